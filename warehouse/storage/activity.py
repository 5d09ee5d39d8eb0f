"""Runs that may be writing to a warehouse now."""

from __future__ import annotations

import os
import re
import socket
from typing import Any

from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.storage.store import Store

_PROCESS = re.compile(r"process (\d+) on (.+)$")


def may_be_running(row: dict[str, Any]) -> bool:
    """Whether a row of ``run`` has no end yet and its process is not known to be gone.

    Of another host nothing is known.

    >>> may_be_running({"status": "finished", "error": None})
    False
    """
    if row["status"] != "running":
        return False
    found = _PROCESS.search(row["error"] or "")
    if not found or found[2] != socket.gethostname():
        return True
    try:
        os.kill(int(found[1]), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def refuse_beside_runs(store: Store, what: str) -> None:
    """Raises ``UsageProblem`` naming a run that may be writing, this process's own apart."""
    mine = f"process {os.getpid()} on {socket.gethostname()}"
    for row in store.read("run").to_pylist():
        if may_be_running(row) and not (row["error"] or "").endswith(mine):
            problem = f"run {row['run_id']} ({row['command']}) may be writing: {row['error']}"
            raise UsageProblem(what, problem, "wait for its end; --force if it is gone")
