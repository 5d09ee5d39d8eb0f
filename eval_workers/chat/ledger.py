"""Record every attempt, reply and error of a build in a file, the ledger.

Each line is a row of ``generation_request`` in JSON. If several lines are about one request, the
last line counts. Before an attempt, a line records the attempt as failed, with its largest possible
cost. After the attempt, another line records the outcome. A reply is written to disk (fsync) before
it is used. If a process is killed, at most the last line is incomplete, and it is dropped. If the
file is missing, as in a copy of a warehouse, the rows of ``generation_request`` replace it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import IO, Any, TypeAlias

from plumbline.eval_workers.chat.requests import Failure, Reply, Request, Spent
from plumbline.warehouse.errors import BadInput, disk_problems
from plumbline.warehouse.paths import opened, replacing
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.data_files import cast
from plumbline.warehouse.storage.locks import lock
from plumbline.warehouse.storage.store import Store

Row: TypeAlias = dict[str, Any]
_TABLE = "generation_request"
_OF_REPLY = ("finish_reason", "n_input_tokens", "n_output_tokens")
_NEW = {"n_attempts": 0, "n_tokens_most": 0, "seconds": 0.0, "status": "failed"}


class Ledger:
    """A benchmark's requests. ``rows`` maps their ids to rows. ``replies`` maps ids to replies."""

    def __init__(self, path: Path, rows: Iterable[Row], file: IO[bytes]) -> None:
        self.path = path
        self.rows: dict[str, Row] = {}
        self.replies: dict[str, Reply] = {}
        self._file = file
        for row in rows:
            self._keep(row)

    @property
    def spent(self) -> Spent:
        """The cost of all attempts, including attempts of earlier runs."""
        costs = (Spent(row["n_attempts"], row["n_tokens_most"]) for row in self.rows.values())
        return sum(costs, Spent())

    def begin(self, request: Request, most: Spent, run_id: str) -> Row:
        """Record an attempt, with its largest possible cost, before it starts. Return the row."""
        row: Row = dict.fromkeys(TABLES[_TABLE].arrow.names) | _NEW
        row |= {name: value for name, value in vars(request).items() if name in row}
        row["request_id"] = request.request_id
        row["parameters"] = json.dumps(dict(request.parameters))
        row = {**self.rows.get(request.request_id, row), "run_id": run_id}
        self._write(_after(row, most, 0.0, "the run ended before a reply"))
        return row

    def end(self, attempt: Row, outcome: Reply | Failure, cost: Spent, seconds: float) -> None:
        """Record the outcome of an attempt. A reply is on disk before this method returns."""
        row = _after(attempt, cost, seconds, getattr(outcome, "error", ""))
        if isinstance(outcome, Reply):
            row |= {"status": "refused" if outcome.refused else "replied", "reply": outcome.text}
            row |= {name: getattr(outcome, name) for name in _OF_REPLY}
        self._write(row)

    def publish(self, store: Store, benchmark: str, run_id: str) -> None:
        """Publish all requests as the benchmark's rows of ``generation_request``."""
        rows = [row | {"benchmark": benchmark} for _, row in sorted(self.rows.items())]
        store.replace(_TABLE, rows, {"benchmark": benchmark}, run_id)

    def _write(self, row: Row) -> None:
        self._file.write(json.dumps(row).encode() + b"\n")
        self._file.flush()
        if row["reply"] is not None:
            os.fsync(self._file.fileno())
        self._keep(row)

    def _keep(self, row: Row) -> None:
        key = row["request_id"]
        self.rows[key] = row
        if row["reply"] is not None:
            values = {name: row[name] for name in _OF_REPLY}
            refused = row["status"] == "refused"
            self.replies[key] = Reply(key, row["reply"], **values, refused=refused)


def _after(row: Row, cost: Spent, seconds: float, error: str = "") -> Row:
    """Return a request's row, updated after one more attempt."""
    row = row | {"n_attempts": row["n_attempts"] + 1, "seconds": row["seconds"] + seconds}
    row["n_tokens_most"] += cost.n_tokens
    errors = [row["error"], error and f"attempt {row['n_attempts']}: {error}"]
    return row | {"error": "; ".join(filter(None, errors)) or None}


@contextmanager
def open_ledger(store: Store, benchmark: str) -> Iterator[Ledger]:
    """Open the ledger of a benchmark for writing. No other process can write to it meanwhile.

    Raises ``UsageProblem`` if another process has it open, and ``BadInput`` if it is damaged.
    """
    with lock(store, f"benchmark {benchmark}", f"benchmark {benchmark}"):
        held = read_ledger(store, benchmark)
        with disk_problems(held.path), replacing(held.path) as new, new.open("wb") as file:
            file.writelines(json.dumps(row).encode() + b"\n" for row in held.rows.values())
            file.flush()
            os.fsync(file.fileno())
        with held.path.open("ab") as file:
            yield Ledger(held.path, held.rows.values(), file)


def read_ledger(store: Store | None, benchmark: str) -> Ledger:
    """Return a benchmark's ledger for reading. Another process may be writing to the file.

    Without a warehouse, the ledger is empty. Raises ``BadInput`` if the file is damaged.
    """
    if store is None:
        return Ledger(Path(), (), BytesIO())
    path = store.work_directory("generate", benchmark, create=False) / "ledger.jsonl"
    if not path.exists():
        return Ledger(path, store.read(_TABLE, benchmark=benchmark).to_pylist(), BytesIO())
    rows: dict[str, Row] = {}
    with disk_problems(path), opened(path) as file:
        for number, line in enumerate(file, 1):
            if line.endswith(b"\n"):
                try:
                    row = json.loads(line)
                    rows[row["request_id"]] = row | {"benchmark": benchmark}
                except (ValueError, TypeError, KeyError, RecursionError):
                    fix = "remove that line, and its request is sent again"
                    raise BadInput(f"{path}, line {number}", "is damaged", fix) from None
    try:
        return Ledger(path, cast(TABLES[_TABLE], rows.values()).to_pylist(), BytesIO())
    except (TypeError, BadInput) as e:
        raise BadInput(str(path), f"holds invalid rows: {e}") from e
