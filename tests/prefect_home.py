"""Prefect's directory with a database as its server makes it, made once a test run.

A server's first start in an empty directory takes longer than all others. `tests/test_flow.py` has
one; tests of something else find a copy of what such a start leaves behind.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path


def copy_database(shared: Path, home: Path) -> Path:
    """Put a copy of the database that is kept in ``shared`` into ``home``, and return ``home``.

    The first process that asks makes the database, others wait for it.
    """
    kept = shared / "prefect.db"
    with (shared / "prefect.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            _make(shared / "prefect", kept)
    home.mkdir(parents=True)
    shutil.copyfile(kept, home / "prefect.db")
    return home


def _make(home: Path, kept: Path) -> None:
    home.mkdir()
    others = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT_")}
    subprocess.run(
        [sys.executable, "-m", "prefect", "server", "database", "upgrade", "--yes"],
        env={**others, "PREFECT_HOME": str(home), "DO_NOT_TRACK": "1"},
        check=True,
        capture_output=True,
    )
    made = sqlite3.connect(home / "prefect.db")
    made.execute("VACUUM INTO ?", (str(kept),))  # one file, with what a log beside it may hold
    made.close()
