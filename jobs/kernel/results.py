"""Counts in the kernel's memory as Arrow tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plumbline.jobs.kernel.memory import DENSE_WORDS, N_WORDS, Memory
from plumbline.jobs.kernel.pair_runs import PairChunk


@dataclass(frozen=True)
class Reject:
    """A document that was not counted: its line or row from 1, the reason, its start."""

    row: int
    reason: str
    excerpt: str


def word_array(memory: Memory) -> pa.Array:
    """All interned words by id, as an Arrow string array made from the arena without copying."""
    n = int(memory.regs[N_WORDS])
    offsets = pa.py_buffer(memory.offsets[: n + 1].tobytes())
    arena = pa.py_buffer(memory.arena[: int(memory.offsets[n])].tobytes())
    large = pa.LargeStringArray.from_buffers(n, offsets, arena)
    return large.cast(pa.string()) if arena.size < 1 << 31 else large


def word_table(memory: Memory, vocabulary: pa.Array) -> pa.Table:
    """Table word, n_word: every counted word once, in order of first occurrence."""
    used = memory.counts[: len(vocabulary)]
    seen = np.flatnonzero(used)
    return pa.table({"word": vocabulary.take(pa.array(seen)), "n_word": pa.array(used[seen])})


def reject_table(rejects: Sequence[Reject]) -> pa.Table:
    """Table source_row, reason, excerpt."""
    columns = {
        "source_row": pa.array([r.row for r in rejects], pa.int64()),
        "reason": pa.array([r.reason for r in rejects], pa.string()),
        "excerpt": pa.array([r.excerpt for r in rejects], pa.string()),
    }
    return pa.table(columns)


def all_pairs_table(chunk: PairChunk, vocabulary: pa.Array) -> pa.Table:
    """Table word, target (both dictionary-encoded), n_pair of a chunk, without copying.

    Which of the two words is called the target says nothing.
    """
    return _pairs(chunk.word, vocabulary, chunk.target, vocabulary, chunk.n_pair)


def pair_table(memory: Memory, vocabulary: pa.Array, targets: list[str]) -> pa.Table:
    """The same for pairs of a word with a target."""
    entries = memory.pairs.reshape(-1, 2)
    entries = entries[entries[:, 0] > 0]
    rows, n_pair = entries[:, 0].view(np.int64) - 1, entries[:, 1].view(np.int64)
    dense = memory.folded + memory.dense if memory.folded.size else memory.dense
    used = np.flatnonzero(dense != 0)
    target, word = np.divmod(used, DENSE_WORDS)
    late_word, late_target = np.divmod(rows, len(targets))
    return _pairs(
        np.concatenate([word, late_word]),
        vocabulary,
        np.concatenate([target, late_target]),
        pa.array(targets),
        np.concatenate([dense[used].astype(np.int64), n_pair]),
    )


def _pairs(
    word: NDArray[Any],
    words: pa.Array,
    target: NDArray[Any],
    targets: pa.Array,
    counts: NDArray[np.int64],
) -> pa.Table:
    def encoded(ids: NDArray[Any], names: pa.Array) -> pa.Array:
        indices = ids.astype(np.int32, copy=False)
        return pa.DictionaryArray.from_arrays(indices, names)

    columns = {"word": encoded(word, words), "target": encoded(target, targets), "n_pair": counts}
    return pa.table(columns)
