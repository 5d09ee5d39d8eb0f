"""Warehouses as they were before the commit log: the files of a directory were the table."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from urllib.parse import quote

from plumbline.warehouse.storage.store import Store


def downgrade(root: Path, version: int = 2) -> None:
    """Make a warehouse of a version without a log out of one of today's, file by file."""
    store = Store.open(root)
    now = store.snapshot()
    for table in now.tables:
        for file in now.files(table):
            (unit,) = file.units
            path = root / file.path
            path.rename(path.with_name(f"{quote(unit.name, safe='')}.parquet"))
        shutil.rmtree(root / table / "_delta_log")
    for name in ("_log", "_staging"):
        shutil.rmtree(root / name)
    (root / "README.md").unlink()
    columns = {"warehouse_version": version}
    (root / "plumbline.json").write_text(json.dumps(columns))
