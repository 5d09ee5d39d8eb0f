"""The order in which the steps of a training read the sequences of its token files.

The index of a `.bin` lists its sequences in order, as in `pile-deduped-pythia-preshuffled`
(arXiv:2304.01373). Arrays are cut into sequences of one length. A file of sequence numbers, such as
OLMo's `global_indices.npy`, gives their order.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.input.remote_files import content_mark, located, open_file, unreadable
from plumbline.warehouse.input.token_files import (
    Tokens,
    array_type,
    index_of,
    indexed,
    loaded,
    n_sequences,
    read,
)

#: Number of entries of an order that are read at once.
_ENTRIES = 1 << 22


@dataclass(frozen=True)
class TrainingOrder:
    """The order in which the steps of a training read sequences, and the blocks of its steps.

    Attributes:
        step_sequences: number of sequences that a step reads.
        block_steps: number of steps in a block; the last block may have fewer.
        n_read: number of sequences that all steps together read; the last step may
            read fewer than ``step_sequences``.
        sequence_tokens: number of tokens of each sequence of an array; 0 for a `.bin`.
        index: file with the numbers of the arrays' sequences in the order in which they are read;
            empty for the order of the shards.
        index_mark: hash of the content of ``index``; empty without it.
        first: number of the first sequence of each array, by its path.
    """

    step_sequences: int
    block_steps: int
    n_read: int
    sequence_tokens: int
    index: str
    index_mark: str
    first: Mapping[str, int]

    def end_step(self, position: int) -> int:
        """The last step, from 1, of the block that reads the sequence at ``position``, from 0.

        >>> order = TrainingOrder(2, 10, 50, 0, "", "", {})
        >>> [order.end_step(k) for k in (0, 19, 20, 49)]
        [10, 10, 20, 25]
        """
        whole = (position // (self.step_sequences * self.block_steps) + 1) * self.block_steps
        return min(whole, -(-self.n_read // self.step_sequences))


def training_order(
    shards: Sequence[Path],
    step_sequences: int,
    block_steps: int,
    decoder: bytes,
    sequence_tokens: int = 0,
    index: str = "",
) -> bytes:
    """The order in which a training reads shards, as bytes for :func:`blocks`.

    Arrays must be given in the order in which the training numbers their sequences. Raises
    ``UsageProblem`` if the shards aren't all `.bin` or all `.npy`, and for options that don't fit
    their kind; ``BadInput`` for shards of several indexes, an array that ends inside a token, an
    order that names a sequence which the arrays lack, and a file that can't be read.
    """
    suffixes = {path.suffix for path in shards}
    where = f"shard {shards[0]}"
    first: dict[str, int] = {}
    if suffixes == {".bin"}:
        if index or sequence_tokens:
            problem = "has its sequences and their order in its index"
            raise UsageProblem(where, problem, "leave out --order and --sequence-tokens")
        if len(indexes := sorted({str(index_of(path)) for path in shards})) > 1:
            raise BadInput(where, f"the shards have several indexes: {indexes[0]}, {indexes[1]}")
        n_read = n_sequences(shards[0])
    elif suffixes == {".npy"}:
        if not sequence_tokens:
            problem = "doesn't say how long its sequences are"
            raise UsageProblem(where, problem, "give the training's --sequence-tokens")
        n_read = 0
        for path in shards:
            first[str(path.resolve())] = n_read
            n_read += _Array(path, decoder, sequence_tokens).n
        if index:
            n_read = _n_entries(located(index), n_read)
    else:
        problem = "has no training order: shards must be all .bin or all .npy"
        raise UsageProblem(where, problem, "leave out --step-sequences")
    mark = content_mark(located(index)) if index else ""
    index = str(located(index).resolve()) if index else ""
    order = TrainingOrder(step_sequences, block_steps, n_read, sequence_tokens, index, mark, first)
    return json.dumps(asdict(order)).encode()


def blocks(path: Path, decoder: bytes, content: bytes) -> Iterator[tuple[int, pa.Array]]:
    """The documents of a shard as the training read them, in batches within a block of steps.

    Yields each batch with the last step of its block. A document ends at the token that ends a text
    or at the end of its sequence, the model's context. It is NULL if it has an unknown token.
    Raises ``BadInput`` for a truncated, damaged or unreadable file, index or order.
    """
    order, decode = TrainingOrder(**json.loads(content)), loaded(decoder)
    sequences = indexed(path, sequences=True)
    if path.suffix == ".npy":
        array = _Array(path, decoder, order.sequence_tokens)
        sequences = array.sequences(_places(order, order.first[str(path.resolve())], array.n))
    try:
        for end_step, block in groupby(sequences, key=lambda x: order.end_step(x[0])):
            pieces = (piece for _, ids in block for piece in decode.cut(ids))
            for batch in decode.batches(pieces):
                yield end_step, batch
    except OSError as e:
        raise unreadable(path, e) from e


class _Array:
    """An array of tokens, cut into ``n`` sequences of one length."""

    def __init__(self, path: Path, decoder: bytes, sequence_tokens: int) -> None:
        self._path, self._n_tokens = path, sequence_tokens
        try:
            with open_file(path) as file:
                self._kind = array_type(file, f"shard {path.name}", loaded(decoder).n_ids)
                self._start = file.tell()
                n_bytes = file.size() - self._start
        except OSError as e:
            raise unreadable(path, e) from e
        if n_bytes % self._kind.itemsize:
            problem = f"ends inside a token of {self._kind.itemsize} bytes"
            raise BadInput(f"shard {path.name}", problem, "fetch or make it again")
        self.n = n_bytes // self._kind.itemsize // sequence_tokens

    def sequences(self, places: Iterator[NDArray[np.int64]]) -> Iterator[tuple[int, Tokens]]:
        """Yield each sequence with its position in the training; ``places`` come from ``_places``.

        Sequences are read one at a time, so the file should be on a fast disk.
        """
        n_bytes = self._n_tokens * self._kind.itemsize
        with open_file(self._path) as file:
            for rows in places:
                for position, number in rows.tolist():
                    file.seek(self._start + number * n_bytes)
                    yield position, np.frombuffer(read(file, n_bytes), self._kind)


def _places(order: TrainingOrder, first: int, n: int) -> Iterator[NDArray[np.int64]]:
    """Batches of rows: a sequence's position in the training, and its number in the array.

    The array has ``n`` sequences; the training numbers them from ``first`` on.
    """
    if not order.index:
        yield np.stack([np.arange(first, first + n), np.arange(n)], axis=1)
        return
    for start, entries in _entries(located(order.index)):
        in_array = np.flatnonzero((entries >= first) & (entries < first + n))
        yield np.stack([start + in_array, entries[in_array] - first], axis=1)


def _n_entries(index: Path, n_sequences: int) -> int:
    """Number of entries of an order. Raises ``BadInput`` for an entry beyond the last sequence."""
    n = 0
    for start, entries in _entries(index):
        if wrong := np.flatnonzero((entries < 0) | (entries >= n_sequences)).tolist():
            problem = f"names sequence {entries[wrong[0]]:,} of {n_sequences:,}"
            fix = "give all shards of the training, and its --sequence-tokens"
            raise BadInput(f"order {index.name}, entry {start + wrong[0] + 1:,}", problem, fix)
        n = start + entries.size
    return n


def _entries(index: Path) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Batches of an order's entries, each batch with the position of its first entry.

    In a file without NumPy's header, entries have 32 bits.
    """
    where, start = f"order {index.name}", 0
    try:
        with open_file(index) as file:
            kind = array_type(file, where, 1 << 32)
            while data := read(file, _ENTRIES * kind.itemsize):
                if len(data) % kind.itemsize:
                    raise BadInput(where, f"ends inside an entry of {kind.itemsize} bytes")
                entries = np.frombuffer(data, kind).astype(np.int64)
                yield start, entries
                start += entries.size
    except OSError as e:
        raise BadInput(
            where, str(e), "give the training's order, such as global_indices.npy"
        ) from e
