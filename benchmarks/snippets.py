"""Sentences for every word, collected while counting, beside finding those of some words later.

Collecting is done the cheapest way that draws as ``plumbline why`` does: compiled, on documents
that are words already, keeping for each word and side the occurrences of lowest rank.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from benchmarks.counting import WINDOW, median_seconds

#: Words whose sentences are looked for later.
WORDS = ("nurse", "captain", "wept")
#: Sentences per word and side.
N = 5


@dataclass(frozen=True)
class Outcome:
    """Median seconds of processor time, and what collecting holds.

    Attributes:
        counting: counting the text, with its documents kept.
        collecting: what drawing sentences for every word adds to it.
        later: a whole look for ``WORDS`` afterwards, tables and texts included.
        n_words: words that collecting holds sentences of, ``n_bytes`` for all.
    """

    counting: float
    collecting: float
    later: float
    n_words: int
    n_bytes: int


@njit  # type: ignore[untyped-decorator]
def _mixed(x: np.uint64) -> np.uint64:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit  # type: ignore[untyped-decorator]
def _collect(
    ids: NDArray[np.int64],
    offsets: NDArray[np.int64],
    side_of: NDArray[np.int8],
    window: int,
    ranks: NDArray[np.uint64],
    places: NDArray[np.int64],
) -> None:
    """Keep the occurrences of lowest rank in ``ranks`` and ``places``, [side, word, N] each."""
    golden = np.uint64(0x9E3779B97F4A7C15)
    for d in range(offsets.size - 1):
        start, end = offsets[d], offsets[d + 1]
        mark = np.uint64(end - start)
        for i in range(start, end):
            mark += _mixed(np.uint64(ids[i] + 1) + np.uint64(i - start) * golden)
        mark = _mixed(mark)
        for t in range(start, end):
            side = side_of[ids[t]]
            if side < 0:
                continue
            for i in range(max(start, t - window + 1), min(end, t + window)):
                if i == t:
                    continue
                best = ranks[side, ids[i]]
                rank = _mixed(mark ^ _mixed(np.uint64(i - start) * golden))
                if rank >= best[-1]:
                    continue
                k = best.size - 1
                while k and rank < best[k - 1]:
                    k -= 1
                if k and best[k - 1] == rank:  # near a second target
                    continue
                best[k + 1 :] = best[k:-1].copy()
                best[k] = rank
                of = places[side, ids[i]]
                of[k + 1 :] = of[k:-1].copy()
                of[k] = i


def run(shards: Sequence[Path], directory: Path, rounds: int = 5) -> Outcome:
    """Time all three on the shards."""
    from plumbline.jobs.association.associations import associate
    from plumbline.jobs.counting.corpus_options import CorpusOptions
    from plumbline.jobs.counting.document_words import evidence_of
    from plumbline.jobs.counting.shard import count_shard
    from plumbline.jobs.evidence.explanation import Sampling, explain
    from plumbline.jobs.ingest.count_corpus import count_corpus
    from plumbline.warehouse.storage.store import Store

    store = Store.open(directory / "warehouse")
    count_corpus(store, "c", tuple(shards), CorpusOptions())
    associate(store, "c")
    evidence = evidence_of(store, "c")
    vocabulary: dict[str, int] = {}

    def value_of(words: Any) -> NDArray[Any]:
        return np.array([vocabulary.setdefault(w, len(vocabulary)) for w in words.to_pylist()])

    parts = [d for shard in evidence.shards for d in evidence.documents(shard, value_of)]
    ids = np.concatenate([part.values for part in parts]).astype(np.int64)
    lengths = np.concatenate([np.diff(part.offsets) for part in parts])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    side_of = np.full(len(vocabulary), -1, np.int8)
    side_of[vocabulary["she"]], side_of[vocabulary["he"]] = 0, 1
    shape = (2, len(vocabulary), N)
    held = (np.empty(shape, np.uint64), np.empty(shape, np.int64))

    def collect() -> None:
        held[0].fill(np.iinfo(np.uint64).max)
        _collect(ids, offsets, side_of, WINDOW, *held)

    work: list[Callable[[], object]] = [
        lambda: [count_shard(shard, evidence.targets, evidence.options) for shard in shards],
        collect,
        lambda: explain(store, "c", WORDS, sampling=Sampling(N)),
    ]
    seconds = median_seconds(work, rounds, time.process_time)
    return Outcome(*seconds, len(vocabulary), sum(array.nbytes for array in held))
