"""Prefect's environment for a run on one machine: embedded server, quiet, nothing sent out."""

from __future__ import annotations

import os
from pathlib import Path

from plumbline.pipelines import disk
from plumbline.warehouse.errors import BadInput

_DEFAULTS = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",  # no usage statistics leave the machine
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "60",  # slow disks need more than 20 s
    "PREFECT_LOGGING_LEVEL": "CRITICAL",  # the command prints its own stages and errors
    "PREFECT_INTERNAL_LOGGING_LEVEL": "CRITICAL",  # what its threads say when the server is gone
    "PREFECT_LOGGING_TO_API_ENABLED": "false",
}
#: For the embedded server alone.
_EMBEDDED = {
    # Ctrl-C ends it, too: five retries of a call take minutes then. A server elsewhere may be away
    # for a moment, which is what they are for.
    "PREFECT_CLIENT_MAX_RETRIES": "1",
    # No flow here uses a block; a first start takes seconds to register their kinds.
    "PREFECT_API_BLOCKS_REGISTER_ON_START": "false",
}


def prepare(out: str | Path) -> None:
    """Set what Prefect reads when it is imported; values that are already set stay.

    Without ``PREFECT_API_URL`` runs are kept by an embedded server under ``<out>/prefect``.
    Raises ``BadInput`` when that directory can't be made or written, or its disk is full.
    """
    embedded = {} if os.environ.get("PREFECT_API_URL") else _EMBEDDED
    for name, value in {**_DEFAULTS, **embedded}.items():
        os.environ.setdefault(name, value)
    home = (Path(out) / "prefect").resolve()
    os.environ.setdefault("PREFECT_HOME", str(home))
    try:
        home.mkdir(parents=True, exist_ok=True)  # Prefect makes no parents and then times out
    except OSError as e:
        raise BadInput(f"output directory {out}", e.strerror or "can't be made") from e
    if embedded:
        disk.check_room(Path(os.environ["PREFECT_HOME"]), "Prefect's notes of runs")
