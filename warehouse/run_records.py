"""Record each command that writes to a warehouse, and how it ended, in the table ``run``."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import datetime, timezone
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, TypeAlias

from plumbline.warehouse.errors import BadInput, Interrupted, UsageProblem, disk_problems
from plumbline.warehouse.plugins import NAME
from plumbline.warehouse.storage.locks import lives, this_process
from plumbline.warehouse.storage.store import Store

Row: TypeAlias = dict[str, Any]
#: Key in `config` for the options of steps. It isn't an identifier, so no option has this name.
STEPS = "joined-steps"
_NO_READER = "the process that started this command has ended: run the command again"
_PACKAGES = ("duckdb", "numba", "numpy", "peft", "pyarrow", "pyspark", "torch", "transformers")


def config_hash(config: Mapping[str, object]) -> str:
    """Return a hash of options, in 16 hex digits. The order of the options doesn't matter."""
    return hashlib.sha256(_as_json(config).encode()).hexdigest()[:16]


def _as_json(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def new_run_id() -> str:
    """Return a new run id. Sorting ids sorts the runs by start time."""
    return f"{datetime.now(timezone.utc):%Y%m%dT%H%M%S%f}-{uuid.uuid4().hex[:6]}"


#: The open run: warehouse, run id, and the options of each step so far.
_JOINED: ContextVar[tuple[str, str, list[dict[str, object]]] | None] = ContextVar(
    "joined", default=None
)


def is_open(store: Store) -> bool:
    """Return whether a run is open on this warehouse. If so, commands become steps of that run."""
    outer = _JOINED.get()
    return outer is not None and outer[0] == str(store.root)


@contextmanager
def recorded(store: Store, command: str, config: Mapping[str, object]) -> Iterator[str]:
    """Record the block as a run of ``command``: add a row to ``run``, and update it at the end.

    Yields the run's id. If a run is already open on the same warehouse, the block becomes a step of
    that run: no row is added, and the id of the open run is yielded. The options of the step that
    differ from those of the run are stored in the run's ``config``, under ``STEPS``.

    If the block raises an exception, the row gets the first line of the message, and the exception
    is raised again. The row's status becomes ``interrupted`` for ``Interrupted``, a broken pipe,
    and exceptions such as ``KeyboardInterrupt``. Other exceptions make it ``failed``. If the
    process is killed, the status stays ``running``. Raises ``BadInput`` if a row can't be written.
    """
    outer = _JOINED.get()
    if outer is not None and outer[0] == str(store.root):
        outer[2].append(dict(config))
        yield outer[1]
        return
    run_id, started = new_run_id(), datetime.now(timezone.utc)
    row = {
        "run_id": run_id,
        "command": command,
        "status": "running",
        "started_at": started,
        "git_commit": _git_commit(),
        "config_hash": config_hash(config),
        "config": _as_json(config),
        "packages": json.dumps(package_versions()),
        "error": f"no end yet: {this_process()}",
        "author": os.environ.get("PLUMBLINE_AUTHOR", "").encode(errors="replace").decode() or None,
    }
    publish(store, row)
    steps: list[dict[str, object]] = []
    token = _JOINED.set((str(store.root), run_id, steps))
    try:
        yield run_id
    except BaseException as e:
        has_no_reader = isinstance(e, BrokenPipeError)
        is_stopped = isinstance(e, Interrupted) or not isinstance(e, Exception) or has_no_reader
        status = "interrupted" if is_stopped else "failed"
        error = str(e).strip() or (status if is_stopped else type(e).__name__)
        ended = _ended(started, status, _NO_READER if has_no_reader else error)
        with suppress(BadInput):  # if the row can't be written, still raise ``e``
            publish(store, row | ended)
        raise
    finally:
        _JOINED.reset(token)
    known = {name: _as_json(value) for name, value in config.items()}
    others = [{n: v for n, v in step.items() if known.get(n) != _as_json(v)} for step in steps]
    if further := [options for options in others if options]:
        row["config"] = _as_json({**config, STEPS: further})
    publish(store, row | _ended(started, "finished", None))


def _ended(started: datetime, status: str, error: str | None) -> dict[str, object]:
    now = datetime.now(timezone.utc)
    seconds = (now - started).total_seconds()
    line = error.splitlines()[0] if error else None
    return {"status": status, "ended_at": now, "seconds": seconds, "error": line}


def publish(store: Store, row: Mapping[str, object]) -> None:
    run_id = str(row["run_id"])
    with disk_problems(store.root):
        store.publish("run", [row], unit=run_id, run_id=run_id)


@cache
def package_versions() -> dict[str, str]:
    """Return the versions of installed packages that can change results, by package name."""
    installed = {}
    for name in (NAME, *_PACKAGES):
        with suppress(metadata.PackageNotFoundError):
            installed[name] = metadata.version(name)
    return installed


def _git_commit() -> str | None:
    root = Path(__file__).resolve().parents[1]
    if not (root / ".git").exists():
        return None
    with suppress(OSError, subprocess.SubprocessError):
        command = ["git", "-C", str(root), "rev-parse", "HEAD"]
        return subprocess.check_output(command, stderr=subprocess.DEVNULL, text=True).strip()
    return None


def runs(store: Store, command: str = "") -> list[Row]:
    """Return the rows of ``run`` whose command starts with ``command``, newest first.

    If a run's status is ``running`` but its process has ended, return it as ``interrupted``.
    """
    rows = map(_with_state, store.read("run").to_pylist())
    selected = [row for row in rows if row["command"].startswith(command)]
    return sorted(selected, key=lambda row: str(row["run_id"]), reverse=True)


def _with_state(row: Row) -> Row:
    if row["status"] != "running":
        return row
    process = (row["error"] or "").removeprefix("no end yet: ")
    is_alive = lives(process)
    state = {True: "alive", False: "gone", None: "on another host"}[is_alive]
    status = "interrupted" if is_alive is False else "running"
    advice = " (killed, or the disk was full: run the command again)" if is_alive is False else ""
    return row | {"status": status, "error": f"{state}: {process}{advice}"}


def find(store: Store, prefix: str) -> Row:
    """Return the only run whose id starts with ``prefix``, or raise ``UsageProblem``."""
    matches = [row for row in runs(store) if row["run_id"].startswith(prefix)]
    if len(matches) == 1:
        return matches[0]
    problem = f"{len(matches)} runs match" if matches else "no run matches"
    raise UsageProblem(f"run {prefix!r}", problem, "`plumbline runs` lists them")


def flat(options: object, name: str = "") -> dict[str, object]:
    """Flatten nested options. Join the names of nested options with dots."""
    if not isinstance(options, Mapping):
        return {name: options}
    level: dict[str, object] = {}
    for key, value in options.items():
        level |= flat(value, f"{name}.{key}" if name else str(key))
    return level
