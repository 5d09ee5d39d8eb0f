"""Compare the ledger of a corpus with the files on disk and with the tables."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from plumbline.jobs.counting.corpus_lookup import corpus_lists, corpus_row
from plumbline.jobs.kernel.corpus_options import options_of
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.input.remote_files import describe, fingerprint, located
from plumbline.warehouse.options import words
from plumbline.warehouse.storage.store import Store

#: States of a shard for which the corpus is counted again; a failed one is repaired before.
STALE = ("failed", "changed", "gone", "new", "left out")
#: Most shards that a command names one by one.
_NAMED = 8


@dataclass(frozen=True)
class ShardState:
    """One shard: its name and state, its documents and seconds when counted, and a note.

    ``state`` is ``counted``, ``failed``, ``changed`` (the file differs from the counted one),
    ``gone`` (no file), ``new`` (given, not in the ledger) or ``left out`` (counted, not given).
    """

    shard: str
    state: str
    n_documents: int = 0
    seconds: float = 0.0
    note: str = ""


def shard_states(
    store: Store,
    corpus: str,
    given: Sequence[Path] = (),
    *,
    progress: Callable[[int, int], None] | None = None,
) -> list[ShardState]:
    """States of the shards in the ledger and of ``given``, compared with the files on disk.

    Files are compared by content; a file of another size, or left out of ``given``, is not read.

    Raises:
        UsageProblem: there is no such corpus, or it was imported and has no shards.
    """
    _counted_row(store, corpus)
    ledger = store.read("corpus_shard", corpus=corpus).to_pylist()
    resolved = {path.resolve() for path in given}
    states = []
    for n, row in enumerate(ledger, 1):
        states.append(_state(row, resolved))
        if progress:
            progress(n, len(ledger))
    paths = {located(row["shard"]).resolve() for row in ledger if given}
    states += [ShardState(str(path), "new") for path in given if path.resolve() not in paths]
    return states


def _state(row: Mapping[str, Any], given: set[Path]) -> ShardState:
    path, numbers = located(row["shard"]), (row["n_documents"], row["seconds"])
    try:
        file = describe(path)
        if file is None:
            return ShardState(row["shard"], "gone", *numbers, "no such file")
        if given and path.resolve() not in given:
            return ShardState(row["shard"], "left out", *numbers, "counted, but not given")
        same = file.n_bytes == row["n_bytes"] and fingerprint(path) == row["fingerprint"]
    except BadInput as e:
        return ShardState(row["shard"], "failed", *numbers, str(e))
    if not same:
        return ShardState(row["shard"], "changed", *numbers, "the file is not the one counted")
    return ShardState(row["shard"], row["status"], *numbers, row["error"] or "")


def _counted_row(store: Store, corpus: str) -> dict[str, Any]:
    row = corpus_row(store, corpus)
    if row["source"] != "counted":
        raise UsageProblem(f"corpus {corpus!r}", "was imported and has no shards")
    return row


def update_command(
    store: Store, corpus: str, states: Sequence[ShardState], patterns: Sequence[str] = ()
) -> str | None:
    """The command that counts the corpus again, or None if all shards are as they were counted.

    It names ``patterns``, the shards as the user gave them. Without patterns it names the shards of
    ``states`` that aren't gone, or SHARDS... if these are more than ``_NAMED``.
    """
    if all(s.state not in STALE for s in states):
        return None
    row = _counted_row(store, corpus)
    existing = [s.shard for s in states if s.state != "gone"]
    is_few = 0 < len(existing) <= _NAMED
    shards = shlex.join(patterns or existing) if patterns or is_few else "SHARDS..."
    # The row of `corpus` lacks the paths that the user gave to the corpus's run.
    runs = store.read("run", pc.field("run_id") == row["run_id"])["config"].to_pylist()
    config = json.loads(runs[0]) if runs else {}
    given = {"targets": row["targets"], "language": row["language"] or "en"}
    given |= {name: str(config[name]) for name in given if config.get(name)}
    options = replace(options_of(row), **given)
    return f"plumbline corpus count {shards} {shlex.join(['--corpus', corpus, *words(options)])}"


@dataclass(frozen=True)
class TableCheck:
    """Outcome of a check: its name, what it finds, how many such rows, and the first of them."""

    name: str
    violation: str
    n_violations: int
    first: dict[str, Any]


def run_checks(store: Store, corpus: str) -> list[TableCheck]:
    """Compare the tables of a counted corpus with its ledger, by the queries ``sql/checks/*.sql``.

    Each query returns the violating rows.

    Raises:
        UsageProblem: there is no such corpus, or it was imported and has no ledger.
        BadInput: a file of the tables can't be read.
    """
    from plumbline.warehouse.query.connection import connect, query, sql, sql_names

    lists = corpus_lists(store, _counted_row(store, corpus))
    targets = sorted({word for x in lists for word in x.targets})
    names = sql_names("checks")
    connection = connect(store.root, "".join(map(sql, names)))
    checks = []
    for name in names:
        rows = query(connection, name, {"corpus": corpus, "targets": targets})
        violation = sql(name).splitlines()[0].removeprefix("-- grain: ")
        first = rows.slice(0, 1).to_pylist()[0] if rows.num_rows else {}
        checks.append(TableCheck(name.removeprefix("checks/"), violation, rows.num_rows, first))
    return checks
