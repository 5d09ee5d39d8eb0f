"""Pairs of any two words, gathered in runs and summed, against numpy's counts of the same rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pytest import MonkeyPatch

from plumbline.jobs.kernel.pair_runs import AllPairs, PairRuns


def skewed_rows(seed: int, n: int, n_ids: int) -> np.ndarray:
    """Unordered pairs of ids, of which the small ones are frequent."""
    random = np.random.default_rng(seed)
    ids = (n_ids * random.random((2, n)) ** 4).astype(np.int64)
    return ids.min(axis=0) << 32 | ids.max(axis=0)


@pytest.mark.parametrize("n_ids", [1, 700, 70_000, 1 << 31])
@pytest.mark.parametrize("sizes", [[], [1], [5000], [3000, 1, 40_000, 2, 2, 9000], [700] * 90])
def test_runs_hold_every_pair_once(n_ids: int, sizes: list[int], monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setattr("plumbline.jobs.kernel.pair_runs.RANGE_ROWS", 512)  # many ranges
    parts = [skewed_rows(seed, n, n_ids) for seed, n in enumerate(sizes)]
    runs = PairRuns()
    for _ in range(2):  # after they are taken, runs begin again
        for part in parts:
            runs.add(part.copy())
        found = [np.concatenate(columns) for columns in zip(*runs.take(), strict=True)]
        every = np.concatenate([np.empty(0, np.int64), *parts])
        rows, counts = np.unique(every, return_counts=True)
        assert found[0].tolist() == rows.tolist() and found[1].tolist() == counts.tolist()
        assert runs.n_bytes == 0


def test_tables_of_all_pairs_are_few(monkeypatch: MonkeyPatch) -> None:
    """Each is written with the whole vocabulary, so only the last may have few rows."""
    monkeypatch.setattr("plumbline.jobs.kernel.pair_runs.RANGE_ROWS", 512)
    monkeypatch.setattr("plumbline.jobs.kernel.pair_runs._TABLE_ROWS", 4_000)
    pairs, rows = AllPairs("windows", 10), skewed_rows(0, 40_000, 700)
    pairs._rows[: rows.size] = rows
    pairs.state.n_rows = rows.size
    tables = list(pairs.take_tables(pa.array([f"word{k}" for k in range(700)])))
    assert sum(table.num_rows for table in tables) == np.unique(rows).size > 16_000
    assert all(4_000 <= table.num_rows < 6_000 for table in tables[:-1])
