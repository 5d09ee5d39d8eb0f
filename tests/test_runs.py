"""Pairs of any two words, gathered in runs and merged, against numpy's counts of the same rows."""

from __future__ import annotations

import numpy as np
import pytest
from pytest import MonkeyPatch

from plumbline.jobs.kernel.pair_runs import PairChunk, PairRuns


def skewed_rows(seed: int, n: int, n_ids: int) -> np.ndarray:
    """Unordered pairs of ids, of which the small ones are frequent."""
    random = np.random.default_rng(seed)
    ids = (n_ids * random.random((2, n)) ** 4).astype(np.int64)
    return ids.min(axis=0) << 32 | ids.max(axis=0)


def gathered(runs: PairRuns) -> PairChunk:
    chunks = list(runs.chunks())
    return PairChunk(*(np.concatenate(column) for column in zip(*chunks, strict=True)))


@pytest.mark.parametrize("n_ids", [1, 2, 700, 1 << 10, 70_000, 1 << 22, 1 << 31])
@pytest.mark.parametrize("sizes", [[], [1], [5000], [3000, 1, 40_000, 2, 2, 9000], [700] * 90])
def test_runs_hold_every_pair_once(n_ids: int, sizes: list[int], monkeypatch: MonkeyPatch) -> None:
    # Small chunks and ranges, so that many are needed.
    monkeypatch.setattr("plumbline.jobs.kernel.pair_runs.CHUNK_ROWS", 1000)
    monkeypatch.setattr("plumbline.jobs.kernel.pair_runs._RANGE", 256)
    parts = [skewed_rows(seed, n, n_ids) for seed, n in enumerate(sizes)]
    runs = PairRuns()
    for part in parts:
        runs.add(part.copy())
    found = gathered(runs)
    rows, counts = np.unique(np.concatenate([np.empty(0, np.int64), *parts]), return_counts=True)
    assert (found.word.astype(np.int64) << 32 | found.target).tolist() == rows.tolist()
    assert found.n_pair.tolist() == counts.tolist()


def test_cleared_runs_start_again() -> None:
    runs = PairRuns()
    runs.add(skewed_rows(0, 9000, 50))
    runs.clear()
    assert runs.n_bytes == 0 and gathered(runs).word.size == 0
    runs.add(np.array([7, 7, 3 << 32 | 9]))
    assert [column.tolist() for column in gathered(runs)] == [[0, 3], [7, 9], [2, 1]]
