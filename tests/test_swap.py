"""Partitions that are replaced while others write and read them: always one of them, whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from plumbline.warehouse.storage import paths
from plumbline.warehouse.storage.compaction import compact
from plumbline.warehouse.storage.paths import retry_missing
from plumbline.warehouse.storage.store import Store
from tests.conftest import REPOSITORY

N_UNITS, N_ROWS = 12, 40
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
#: Reads until its input ends; then what it found, and how often.
_READER = """
import json, select, sys
from collections import Counter
from plumbline.warehouse.query.connection import connect
from plumbline.warehouse.storage.paths import retry_missing
from plumbline.warehouse.storage.store import Store
root, how = sys.argv[1:]
connection, seen = connect(root), Counter()
print("in", flush=True)
ask = "SELECT count(*), count(DISTINCT word) FROM word_count"
while True:
    if how == "store":
        words = Store.open(root).read("word_count")["word"].to_pylist()
        found = len(words), len(set(words))
    else:
        if how == "fresh":
            connection = connect(root)
        found = retry_missing(lambda: connection.execute(ask).fetchone())
    seen[str(tuple(found))] += 1
    if select.select([sys.stdin], [], [], 0)[0]:
        break
print(json.dumps(seen), flush=True)
"""
#: Replaces a partition again and again by parts that all say whose they are.
_WRITER = """
import sys
import pyarrow as pa
from plumbline.warehouse.storage import paths
from plumbline.warehouse.storage.paths import retry_missing
from plumbline.warehouse.storage.store import Store
root, name, n, exchanges = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "True"
if not exchanges:
    paths.exchange = lambda one, other: False
store = Store.open(root)
for _ in range(n):
    staged = store.stage("word_count", {"corpus": "c"}, name)
    for part in range(3):
        rows = [{"corpus": "c", "word": f"{name}-{part}", "n_word": 1}]
        staged.write_part(f"part-{part}", [pa.RecordBatch.from_pylist(rows)])
    store.commit(staged)
"""


def rows(unit: int) -> list[dict[str, object]]:
    return [{"corpus": "c", "word": f"{unit}-{i}", "n_word": 1} for i in range(N_ROWS)]


def started(code: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("n_rounds", [8, pytest.param(40, marks=pytest.mark.slow)])
def test_readers_see_every_row_once_while_the_warehouse_is_compacted(
    store: Store, n_rounds: int
) -> None:
    for unit in range(N_UNITS):
        store.publish("word_count", rows(unit), unit=str(unit), run_id="r")
    readers = [started(_READER, str(store.root), how) for how in ("store", "view", "fresh")]
    for reader in readers:
        assert reader.stdout is not None and reader.stdout.readline() == "in\n"
    for _ in range(n_rounds):
        assert [m.table for m in compact(store, "r").merges] == ["word_count"]
        staged = store.stage("word_count", {"corpus": "c"}, "r")
        for unit in range(N_UNITS):
            staged.write_part(str(unit), [pa.RecordBatch.from_pylist(rows(unit))])
        store.commit(staged)
    n = N_UNITS * N_ROWS
    for reader in readers:
        out, _ = reader.communicate("\n", timeout=60)
        assert reader.returncode == 0 and set(json.loads(out)) == {str((n, n))}


@pytest.mark.parametrize("n_times", [20, pytest.param(90, marks=pytest.mark.slow)])
@pytest.mark.parametrize("exchanges", [True, False])
def test_of_writers_at_once_the_last_one_stays_whole(
    store: Store, exchanges: bool, n_times: int
) -> None:
    """Also where the disk can't exchange two directories."""
    if exchanges and not _can_exchange(store.root):
        pytest.skip("the disk can't exchange two directories")
    writers = [
        started(_WRITER, str(store.root), name, str(n_times), str(exchanges)) for name in "abc"
    ]
    for writer in writers:
        writer.communicate(timeout=120)
        assert writer.returncode == 0
    words = store.read("word_count").to_pylist()
    (name,) = {row["word"].split("-")[0] for row in words}
    assert sorted(row["word"] for row in words) == [f"{name}-{part}" for part in range(3)]
    assert list((store.root / "_staging").iterdir()) == []


def _can_exchange(place: Path) -> bool:
    one, other = place / "one", place / "other"
    one.mkdir()
    other.mkdir()
    try:
        return paths.exchange(one, other)
    finally:
        one.rmdir()
        other.rmdir()


def test_the_original_error_of_a_missing_file_and_other_errors_propagate(store: Store) -> None:
    n_asked = [0]

    def read() -> None:
        n_asked[0] += 1
        raise ValueError("not about files")

    with pytest.raises(ValueError, match="not about files"):
        retry_missing(read)
    assert n_asked == [1]
    with pytest.raises(FileNotFoundError):
        retry_missing(lambda: (store.root / "nothing").read_bytes())
