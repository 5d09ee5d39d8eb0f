"""The ledger of a build: a file with every attempt, reply and error.

The file lies under ``_work``. One JSON line per event is appended. An attempt is written before it
is made; a reply is on the disk (fsync) before it is used. A killed process leaves at most a torn
last line, which is dropped. The table ``generation_request`` is made from the whole file. If only
the table exists (in a copied warehouse), a new file begins with its rows.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, Any

from plumbline.eval_workers.chat.budget import Spent
from plumbline.eval_workers.chat.requests import Reply, Request
from plumbline.warehouse.errors import BadInput, disk_problems
from plumbline.warehouse.paths import opened
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.locks import lock
from plumbline.warehouse.storage.store import Store, cast

Row = dict[str, Any]

_TABLE = "generation_request"
_FILE = "ledger.jsonl"


@dataclass(frozen=True)
class ServerAnswer:
    """A server's answer; a number of tokens is ``None`` if the server doesn't report it."""

    text: str
    finish_reason: str | None
    n_input_tokens: int | None
    n_output_tokens: int | None
    refused: bool = False


class Ledger:
    """Requests and replies of a benchmark with their cost; see ``open_ledger``."""

    def __init__(self, path: Path, file: IO[bytes], benchmark: str, run_id: str) -> None:
        self.path = path
        self._file = file
        self._benchmark = benchmark
        self._run_id = run_id
        self._rows: dict[str, Row] = {}
        self._replies: dict[str, Reply] = {}
        self._pending: dict[str, Spent] = {}

    @property
    def replies(self) -> Mapping[str, Reply]:
        """All replies by request id; a live view."""
        return self._replies

    @property
    def spent(self) -> Spent:
        """Cost of all finished attempts, including those of earlier runs."""
        rows = self._rows.values()
        return sum(
            (Spent(r["n_attempts"], r["n_tokens_most"], r["cost"] or 0.0) for r in rows), Spent()
        )

    def reserve(self, request: Request, most: Spent, *, has_price: bool) -> None:
        """Record an attempt about to be made, and the most that it can cost."""
        names = ("request_id", "purpose", "word", "pronoun", "round", "model", "prompt")
        row = {name: getattr(request, name) for name in names}
        row |= {"parameters": json.dumps(dict(request.parameters)), "run_id": self._run_id}
        cost = most.cost if has_price else None
        self._write({"event": "asked", "row": row, "n_tokens": most.n_tokens, "cost": cost})

    def failed(self, request_id: str, error: str, cost: Spent, seconds: float) -> None:
        """Record an attempt without a reply, and what it may have cost."""
        self._write(_end("failed", request_id, cost, seconds, error=error))

    def replied(self, request_id: str, answer: ServerAnswer, cost: Spent, seconds: float) -> Reply:
        """Record a reply; it is on the disk when this returns."""
        event = _end("replied", request_id, cost, seconds, answer=asdict(answer))
        self._write(event, durable=True)
        return self._replies[request_id]

    def rows(self) -> list[Row]:
        """Rows of ``generation_request``, by request id."""
        return [{**row, "benchmark": self._benchmark} for _, row in sorted(self._rows.items())]

    def publish(self, store: Store) -> None:
        """Publish all requests as the table's rows of this benchmark."""
        rows = [{**row, "error": row["error"] or None} for row in self.rows()]
        store.replace(_TABLE, rows, {"benchmark": self._benchmark}, self._run_id)

    def take(self, rows: Iterable[Row]) -> None:
        """Add rows of ``generation_request``."""
        for row in rows:
            self._apply(_as_event(row))

    def load(self) -> None:
        """Read the file; an attempt without an end counts as failed.

        A torn last line is ignored. Raises ``BadInput`` for any other damaged line; the error names
        it, and a later line that needs it, if there is one.
        """
        damaged: list[int] = []
        for number, event in _events(self.path):
            try:
                self._apply(event)
            except (KeyError, TypeError, AttributeError):
                if not damaged or (isinstance(event, dict) and event.get("event") in _ENDS):
                    damaged.append(number)
                if len(damaged) == 2:
                    break
        if damaged:
            raise _damaged(self.path, *damaged)
        try:
            for request_id in list(self._pending):
                self._interrupted(request_id)
            cast(TABLES[_TABLE], self.rows())
        except (TypeError, BadInput) as e:
            raise BadInput(str(self.path), f"holds invalid rows: {e}") from e

    def _write(self, event: Mapping[str, Any], *, durable: bool = False) -> None:
        self._file.write(json.dumps(event).encode() + b"\n")
        self._file.flush()
        if durable:
            os.fsync(self._file.fileno())
        self._apply(event)

    def _apply(self, event: Mapping[str, Any]) -> None:
        kind = event["event"]
        if kind == "row":
            row = {**_EMPTY, **event["row"]}
            self._rows[row["request_id"]] = row
        elif kind == "asked":
            self._begin_attempt(event)
            return
        else:
            row = self._end_attempt(event)
            if kind == "failed":
                line = f"attempt {row['n_attempts']}: {event['error']}"
                row["error"] = f"{row['error']}; {line}" if row["error"] else line
                return
            answer = event["answer"]
            row["status"] = "refused" if answer["refused"] else "replied"
            row["reply"] = answer["text"]
            for name in ("finish_reason", "n_input_tokens", "n_output_tokens"):
                row[name] = answer[name]
        if row["reply"] is not None:
            values = (row[name] for name in ("reply", "finish_reason", "n_output_tokens"))
            self._replies[row["request_id"]] = Reply(row["request_id"], *values)

    def _begin_attempt(self, event: Mapping[str, Any]) -> None:
        request_id = event["row"]["request_id"]
        if request_id in self._pending:  # its run was killed
            self._interrupted(request_id)
        row = self._rows.setdefault(request_id, {**_EMPTY, **event["row"]})
        row["run_id"] = event["row"]["run_id"]
        row["n_attempts"] += 1
        if event["cost"] is not None and row["cost"] is None:
            row["cost"] = 0.0
        self._pending[request_id] = Spent(1, event["n_tokens"], event["cost"] or 0.0)

    def _interrupted(self, request_id: str) -> None:
        """Count a pending attempt as failed, at the most that it can have cost."""
        error = "the run ended before a reply"
        self._apply(_end("failed", request_id, self._pending[request_id], 0.0, error=error))

    def _end_attempt(self, event: Mapping[str, Any]) -> Row:
        """The request's row with the attempt's cost added."""
        row = self._rows[event["request_id"]]
        del self._pending[event["request_id"]]
        row["n_tokens_most"] += event["n_tokens"]
        if row["cost"] is not None:
            row["cost"] += event["cost"]
        row["seconds"] += event["seconds"]
        return row


_ENDS = ("failed", "replied")
_EMPTY: Row = {
    "status": "failed",
    "reply": None,
    "finish_reason": None,
    "n_attempts": 0,
    "n_input_tokens": None,
    "n_output_tokens": None,
    "n_tokens_most": 0,
    "cost": None,
    "seconds": 0.0,
    "error": "",
}


@contextmanager
def open_ledger(store: Store, benchmark: str, run_id: str) -> Iterator[Ledger]:
    """Open the ledger of a benchmark, for this process alone.

    Raises ``UsageProblem`` if another process has it open, ``BadInput`` for a damaged file.
    """
    path = store.work_directory("generate", benchmark) / _FILE
    with lock(store, f"benchmark {benchmark}", f"benchmark {benchmark}"):
        with disk_problems(path):
            if path.exists():
                _drop_torn_line(path)
            else:
                _write_rows(path, store.read(_TABLE, benchmark=benchmark).to_pylist())
        with path.open("ab") as file:
            ledger = Ledger(path, file, benchmark, run_id)
            ledger.load()
            yield ledger


def look(store: Store, benchmark: str) -> Ledger:
    """The ledger of a benchmark, for reading only; another process may be writing to it.

    Raises ``BadInput`` for a damaged file.
    """
    path = store.work_directory("generate", benchmark, create=False) / _FILE
    ledger = Ledger(path, BytesIO(), benchmark, "")
    if path.exists():
        ledger.load()
    else:
        ledger.take(store.read(_TABLE, benchmark=benchmark).to_pylist())
    return ledger


def _write_rows(path: Path, rows: Iterable[Row]) -> None:
    temporary = path.with_suffix(".tmp")
    with temporary.open("wb") as file:
        for row in rows:
            file.write(json.dumps(_as_event(row)).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def _end(kind: str, request_id: str, cost: Spent, seconds: float, **outcome: Any) -> Row:
    """The event that ends an attempt."""
    usage = {"n_tokens": cost.n_tokens, "cost": cost.cost, "seconds": round(seconds, 3)}
    return {"event": kind, "request_id": request_id, **outcome, **usage}


def _as_event(row: Row) -> Row:
    return {"event": "row", "row": {**row, "error": row["error"] or ""}}


def _drop_torn_line(path: Path) -> None:
    with opened(path) as file:
        n_bytes = file.read().rfind(b"\n") + 1
    os.truncate(path, n_bytes)


def _events(path: Path) -> Iterator[tuple[int, Any]]:
    """Number and event of each line; the event is ``None`` for a line that is not JSON."""
    with opened(path) as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return  # torn, or being written
            try:
                event = json.loads(line)
            except (ValueError, RecursionError):
                event = None
            yield number, event


def _damaged(path: Path, number: int, end: int | None = None) -> BadInput:
    """The error for the damaged line ``number``; line ``end`` ends the attempt that began there."""
    fix = "remove that line: its request is sent again"
    if end is not None:
        fix = f"remove that line and line {end:,}, which needs it: their request is sent again"
    return BadInput(f"{path}, line {number}", "is damaged", fix)
