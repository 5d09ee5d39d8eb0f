"""Warehouses as they were before the commit log: the files of a directory were the table."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from urllib.parse import quote

import pyarrow.parquet as pq

from plumbline.warehouse.storage.store import Store


def downgrade(root: Path, version: int = 2) -> None:
    """Make a warehouse of a version without a log out of one of today's, file by file.

    A file was named by its unit; one of several units listed them in its metadata.
    """
    now = Store.open(root).snapshot()
    live = {root / file.path for table in now.tables for file in now.files(table)}
    for path in set(root.rglob("*/*.parquet")) - live:
        path.unlink()
    for table in now.tables:
        for file in now.files(table):
            path, units = (
                root / file.path,
                [(quote(u.name, safe=""), u.n_rows, u.run_id) for u in file.units],
            )
            rows = pq.ParquetFile(path).read()
            kept = {b"plumbline.table": table.encode(), b"plumbline.run_id": units[0][2].encode()}
            kept[b"plumbline.warehouse_version"] = str(version).encode()
            if len(units) > 1:
                kept[b"plumbline.units"] = json.dumps(units).encode()
            name = units[0][0] if len(units) == 1 else "+merged-0123456789ab"
            path.unlink()
            pq.write_table(rows.replace_schema_metadata(kept), path.with_name(f"{name}.parquet"))
        shutil.rmtree(root / table / "_delta_log")
    for name in ("_log", "_staging"):
        shutil.rmtree(root / name)
    (root / "README.md").unlink()
    (root / "plumbline.json").write_text(json.dumps({"warehouse_version": version}))
