"""A warehouse's commits and opening, beside the same tables as Delta Lake by ``deltalake``.

Delta Lake commits each table by itself and forces nothing to the disk; ours forces data and commit,
and the commit is of all tables. Both are measured in turns in one process, in which the Delta
tables stay open.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa

from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.check import check
from plumbline.warehouse.storage.compaction import compact
from plumbline.warehouse.storage.store import Store

#: Models whose scores are published one after the other, and pairs of each.
N_MODELS, N_PAIRS = 28, 4_405
#: Writers at once, and how often each replaces its partition.
N_WRITERS, N_TIMES = 4, 10
_ROUNDS = 5
#: Commits of a row each, and how many of the first and last are compared.
N_COMMITS, EDGE = 300, 50


@dataclass(frozen=True)
class Beside:
    """What was done, and the seconds that each took (least of several rounds, in turns)."""

    what: str
    ours_s: float
    delta_s: float


def run(directory: Path) -> list[Beside]:
    """Replace partitions, open all tables, four writers."""
    ours, delta = str(directory / "ours"), str(directory / "delta")
    store = Store.open(ours)
    for table in TABLES.values():
        row = {c.name: _SAMPLE[c.kind] for c in table.columns}
        store.publish(table.name, [row], unit="u", run_id="r")
        _delta_write(f"{delta}/{table.name}", store.read(table.name), None)
    replaced: list[tuple[float, float]] = []
    for k in range(N_MODELS):
        replaced.append((_ours(ours, f"m{k}"), _delta(delta, f"m{k}")))
    opened = [(_seconds(lambda: _open_ours(ours)), _seconds(lambda: _open_delta(delta)))]
    opened += [
        (_seconds(lambda: _open_ours(ours)), _seconds(lambda: _open_delta(delta)))
        for _ in range(_ROUNDS)
    ]
    at_once = [(_writers(_ours, ours), _writers(_delta, delta)) for _ in range(2)]
    return [
        Beside(f"replace a partition of {N_PAIRS:,} scores (median)", *_each(replaced)),
        Beside(f"name the files of {len(TABLES)} tables", *map(min, zip(*opened, strict=True))),
        Beside(f"{N_WRITERS} writers, {N_TIMES} times each", *map(min, zip(*at_once, strict=True))),
    ]


@dataclass(frozen=True)
class Commits:
    """Commits of a row each: median seconds of the first and last, and bytes of the log."""

    first_s: float
    last_s: float
    n_bytes: int


def many_commits(directory: Path) -> tuple[Commits, Commits, dict[str, float]]:
    """``N_COMMITS`` rows, each appended by a commit of its own: ours, Delta Lake's.

    The last value has the seconds of what ours is asked then.
    """
    store, path = Store.open(directory / "many"), f"{directory}/many-delta"

    def ours(number: int) -> None:
        row = {"corpus": "c", "word": str(number), "n_word": 1}
        store.publish("word_count", [row], unit=str(number), run_id="r")

    def delta(number: int) -> None:
        rows = pa.table({"corpus": ["c"], "word": [str(number)], "n_word": [1]})
        where = _now(path) if number else path
        deltalake.write_deltalake(where, rows, mode="append", partition_by=["corpus"])

    times = [
        (_seconds(partial(ours, number)), _seconds(partial(delta, number)))
        for number in range(N_COMMITS)
    ]

    def commits(side: int, logs: Path) -> Commits:
        own = [pair[side] for pair in times]
        n_bytes = sum(file.stat().st_size for file in logs.rglob("*.*"))
        first, last = own[EDGE : 2 * EDGE], own[-EDGE:]  # the very first warm up
        return Commits(statistics.median(first), statistics.median(last), n_bytes)

    asked = {
        "SELECT sum(n_word)": lambda: rows_of(store, "SELECT sum(n_word) FROM word_count"),
        "warehouse check": lambda: check(store),
        "compact": lambda: compact(store, "r"),
        "compact again": lambda: compact(store, "r"),
    }
    took = {what: _seconds(act) for what, act in asked.items()}
    return commits(0, store.root / "_log"), commits(1, Path(path) / "_delta_log"), took


_SAMPLE: dict[str, Any] = {"text": "x", "bool": True, "int": 3, "int32": 4, "float": 0.5}
_SAMPLE |= {"float32": 0.25, "time": pa.scalar(0, pa.timestamp("us", "UTC")).as_py()}


def _each(pairs: list[tuple[float, float]]) -> tuple[float, float]:
    ours, delta = zip(*pairs, strict=True)
    return statistics.median(ours), statistics.median(delta)


def _seconds(act: Callable[[], object]) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def _scores(model: str) -> pa.Table:
    table = TABLES["pair_score"]
    columns = {c.name: [_SAMPLE[c.kind]] * N_PAIRS for c in table.columns}
    columns |= {"model_key": [model] * N_PAIRS, "pair_id": [str(k) for k in range(N_PAIRS)]}
    rng = random.Random(model)
    columns |= {
        f"logprob_{side}_nats": [rng.gauss(-60, 9) for _ in range(N_PAIRS)] for side in "ab"
    }
    return pa.table(columns, schema=table.arrow)


def _ours(root: str, model: str) -> float:
    store, rows = Store.open(root), _scores(model)
    partition = {"benchmark": "x", "model_key": model}
    return _seconds(lambda: store.replace("pair_score", rows, partition, "r"))


def _delta(root: str, model: str) -> float:
    rows = _scores(model)
    return _seconds(lambda: _delta_write(f"{root}/pair_score", rows, f"model_key = '{model}'"))


def _delta_write(path: str, rows: pa.Table, predicate: str | None) -> None:
    columns, mode = list(TABLES[Path(path).name].partitions), "overwrite"
    where = _now(path) if Path(path).exists() else path
    deltalake.write_deltalake(where, rows, mode=mode, predicate=predicate, partition_by=columns)


@cache
def _handle(path: str) -> deltalake.DeltaTable:
    """A table that stays open in this process."""
    return deltalake.DeltaTable(path)


def _now(path: str) -> deltalake.DeltaTable:
    _handle(path).update_incremental()
    return _handle(path)


def _open_ours(root: str) -> None:
    now = Store.open(root).snapshot()
    for table in TABLES:
        now.files(table)


def _open_delta(root: str) -> None:
    for table in TABLES:
        _now(f"{root}/{table}").file_uris()


def _writers(write: Callable[[str, str], float], root: str) -> float:
    with ProcessPoolExecutor(N_WRITERS, mp_context=get_context("spawn")) as pool:
        list(pool.map(_nothing, range(N_WRITERS)))
        jobs = [(write, root, f"w{k}") for k in range(N_WRITERS)]
        return _seconds(lambda: list(pool.map(_again, jobs)))


def _nothing(_: int) -> None:
    time.sleep(0.5)  # so that each process of the pool gets one, and is ready


def _again(job: tuple[Callable[[str, str], float], str, str]) -> None:
    write, root, model = job
    for _ in range(N_TIMES):
        write(root, model)
