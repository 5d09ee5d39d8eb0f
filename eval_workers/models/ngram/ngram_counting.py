"""Count n-grams on a disk: sorted runs of the longest n-grams, then a tree of all lengths.

At every word of a text, the longest n-gram that begins there is packed into a few 64-bit numbers;
near the end of a sentence it is padded with ``BOS``. A run holds the distinct n-grams of one range
of these numbers, sorted, with their counts. N-grams with the same beginning are adjacent, so the
tree is built run after run. At most one run is in memory; the files are memory-mapped.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numba
import numpy as np

from plumbline.eval_workers.models.local.source import file_hash
from plumbline.eval_workers.models.ngram.ngram_model import WEIGHTS, estimated_discount, lay_out
from plumbline.eval_workers.models.ngram.text_words import BOS, Ints
from plumbline.warehouse.paths import replacing

#: About the number of n-grams that are sorted at a time.
ROWS_AT_ONCE = 1 << 23
#: Words read at a time, and words in the sample from which the runs' ranges are chosen.
_WORDS_AT_ONCE, _SAMPLED = 1 << 22, 1 << 20
#: Bits per digit of the radix sort.
_DIGIT = 11
#: Packing of n-grams into numbers: bits per word, words per number, words of the longest n-gram.
_Packing: TypeAlias = tuple[int, int, int]


def count_ngrams(words: Ints, n_words: int, order: int, work: Path, directory: Path) -> None:
    """Write the arrays of a model, see ``NgramModel``, into a directory.

    ``words``: numbers below ``n_words``, with ``BOS`` before every sentence. Runs are files in the
    directory ``work``; whole files from an earlier call are used again.
    """
    bits = n_words.bit_length()
    packing = (bits, min(64 // bits, order), order)
    runs = [_run(words, packing, *limits, work) for limits in _ranges(words, packing)]
    sizes, last = _add_runs(runs, packing, np.zeros(order, int), *[np.zeros(0, np.uint32)] * 3)
    levels = np.cumsum([0, n_words, *sizes[1:]])
    n_inner, n_nodes = int(levels[-2]), int(levels[-1])
    kind = "U32" if len(words) < 1 << 32 else "U64"
    of_nodes = {"words": n_nodes, "counts": n_nodes, "children": n_inner + 1, "totals": n_inner}
    arrays = lay_out(
        directory / WEIGHTS,
        {"levels": ("I64", order + 1), "root": ("I64", 2), "discounts": ("F64", order)}
        | {name: (kind, n) for name, n in of_nodes.items()},
    )
    nodes, a, children = arrays["words"], arrays["counts"], arrays["children"]
    arrays["levels"][:], nodes[:n_words] = levels, np.arange(n_words)
    _add_runs(runs, packing, levels[:-1], nodes, a, children)
    children[last + 1 : min(n_words, n_inner)] = levels[min(2, order)]
    children[n_inner] = n_nodes
    links = np.memmap(work / "links", np.int64, "w+", shape=(n_inner + 1,))
    for n in range(1, order):
        _count_before(levels[n - 1], levels[n], children, nodes, links, a)
    a[BOS] = 0  # BOS is never predicted
    _add_up(children, a, arrays["totals"])
    arrays["root"][:] = a[:n_words].sum(), np.count_nonzero(a[:n_words])
    arrays["discounts"][:] = [
        estimated_discount(a[levels[n] : levels[n + 1]]) for n in range(order)
    ]


def _ranges(words: Ints, packing: _Packing) -> list[tuple[int, int]]:
    """For each run, the range of its n-grams' first packed numbers, from a sample of the text."""
    bits, width, _ = packing
    step = max(1, len(words) // _SAMPLED)
    at = np.arange(0, max(1, len(words) - width), step)
    numbers, is_inside = words[at].astype(np.uint64), np.ones(len(at), bool)
    for k in range(1, width):
        added = words[np.minimum(at + k, len(words) - 1)].astype(np.uint64)
        is_inside &= added != BOS
        numbers = numbers << np.uint64(bits) | added * is_inside
    every = max(1, ROWS_AT_ONCE // step)
    firsts = sorted({0, *np.sort(numbers)[every::every].tolist()})
    return list(zip(firsts, [n - 1 for n in firsts[1:]] + [(1 << 64) - 1], strict=True))


def _run(words: Ints, packing: _Packing, first: int, last: int, work: Path) -> Path:
    """The file of a range's distinct n-grams, sorted, with their counts in the last column."""
    path = work / f"{first:016x}-{last:016x}.npy"
    if is_whole(path):
        return path
    room = min(len(words), ROWS_AT_ONCE + ROWS_AT_ONCE // 4)
    rows = _unsorted(words, packing, (np.uint64(first), np.uint64(last)), room)
    bits, width, _ = packing
    rows = _sorted(rows, np.empty_like(rows), bits * width)
    is_first = np.ones(len(rows), bool)
    is_first[1:] = False
    for column in rows.T:
        is_first[1:] |= column[1:] != column[:-1]
    at = np.flatnonzero(is_first)
    counts = np.diff(at, append=len(rows)).astype(np.uint64)
    with hashed(path) as temporary, temporary.open("wb") as file:
        np.save(file, np.column_stack([rows[at], counts]))
    return path


@contextmanager
def hashed(path: Path) -> Iterator[Path]:
    """A temporary path to write to; on exit its hash is saved, then it is renamed to ``path``."""
    with replacing(path) as temporary:
        yield temporary
        path.with_suffix(".sha256").write_text(file_hash(temporary), encoding="ascii")


def is_whole(path: Path) -> bool:
    """True if a file exists and has the hash in the file beside it."""
    mark = path.with_suffix(".sha256")
    return path.exists() and mark.exists() and file_hash(path) == mark.read_text("ascii")


def _unsorted(words: Ints, packing: _Packing, limits: tuple[Any, Any], room: int) -> Ints:
    """The n-grams of a range, unsorted, one row per occurrence; ``room``: rows to allocate."""
    _, width, order = packing
    rows, n = np.empty((room, -(-order // width)), np.uint64), 0
    for start in range(0, len(words), _WORDS_AT_ONCE):
        piece = np.array(words[start : start + _WORDS_AT_ONCE + order])
        n = _gather(piece, _WORDS_AT_ONCE, *packing, *limits, rows, n)
    return rows[:n] if n <= room else _unsorted(words, packing, limits, n)


def _add_runs(runs: list[Path], packing: _Packing, nodes: Ints, *arrays: Ints) -> tuple[Ints, int]:
    """Fill ``arrays`` (words, counts, children); ``nodes``: first node of each length.

    If the arrays are empty, the nodes are only counted. Returns the next free node of each length,
    and the last word that begins an n-gram.
    """
    nodes, last = nodes.astype(np.int64), np.full(packing[-1], -1)
    for run in runs:
        _add_rows(np.load(run, mmap_mode="r"), *packing, last, nodes, *arrays)
    return nodes, int(last[0])


@numba.njit(cache=True)
def _gather(
    piece: Any, n: int, bits: int, width: int, order: int, first: Any, last: Any, rows: Any, at: int
) -> int:
    """Pack the n-grams that begin at the first ``n`` words of ``piece`` into ``rows``, from ``at``.

    Only n-grams whose first number is from ``first`` to ``last`` are packed. Returns ``at`` plus
    their number, even if ``rows`` has no room for all.
    """
    shift, mask = np.uint64(bits), np.uint64((1 << bits) - 1)
    top = np.uint64(bits * (width - 1))
    number = np.uint64(0)
    for i in range(len(piece) - 1, -1, -1):
        if i + 1 < len(piece) and piece[i + 1] == BOS:
            number = np.uint64(0)
        number = np.uint64(piece[i]) << top | number >> shift
        if i >= n or number < first or number > last:
            continue
        if at < len(rows):
            is_inside = number & mask != np.uint64(0)
            rows[at, 0] = number
            for column in range(1, rows.shape[1]):
                packed = np.uint64(0)
                for k in range(width * column, width * (column + 1)):
                    is_inside = is_inside and k < order and i + k < len(piece)
                    is_inside = is_inside and piece[i + k] != BOS
                    packed = packed << shift | np.uint64(piece[i + k] if is_inside else BOS)
                rows[at, column] = packed
        at += 1
    return at


@numba.njit(cache=True)
def _sorted(rows: Any, others: Any, bits: int) -> Any:
    """The rows sorted by a radix sort; overwrites both arrays."""
    starts = np.empty((1 << _DIGIT) + 1, np.int64)
    mask = np.uint64((1 << _DIGIT) - 1)
    for column in range(rows.shape[1] - 1, -1, -1):
        for shift in np.arange(0, bits, _DIGIT).astype(np.uint64):
            starts[:] = 0
            for i in range(len(rows)):
                starts[np.int64(rows[i, column] >> shift & mask) + 1] += 1
            if starts.max() == len(rows):
                continue
            for k in range(1, len(starts)):
                starts[k] += starts[k - 1]
            for i in range(len(rows)):
                digit = np.int64(rows[i, column] >> shift & mask)
                for k in range(rows.shape[1]):
                    others[starts[digit], k] = rows[i, k]
                starts[digit] += 1
            rows, others = others, rows
    return rows


@numba.njit(cache=True)
def _add_rows(
    rows: Any, bits: int, width: int, order: int, last: Any, nodes: Any,
    words: Any, counts: Any, children: Any,
) -> None:  # fmt: skip
    """Add sorted n-grams to the tree.

    ``last``: the words of the previous n-gram; ``nodes``: the next free node of each length.
    """
    is_filled, mask = len(words) > 0, np.uint64((1 << bits) - 1)
    for i in range(len(rows)):
        is_same = True
        for n in range(order):
            shift = np.uint64(bits * (width - 1 - n % width))
            word = np.int64(rows[i, n // width] >> shift & mask)
            if n and word == BOS:
                last[n:] = BOS
                break
            is_same = is_same and word == last[n]
            if not is_same and n:
                if is_filled:
                    words[nodes[n]] = word
                    if n + 1 < order:
                        children[nodes[n]] = nodes[n + 1]
                nodes[n] += 1
            elif not is_same and is_filled and order > 1:
                for single in range(last[0] + 1, word + 1):
                    children[single] = nodes[1]
            last[n] = word
            # Other n-grams have counts of distinct words before them, see ``_count_before``.
            if is_filled and (n == order - 1 or last[0] == BOS):
                counts[nodes[n] - 1 if n else word] += rows[i, -1]


@numba.njit(cache=True)
def _count_before(first: int, end: int, children: Any, words: Any, links: Any, counts: Any) -> None:
    """For each child of the nodes from ``first`` to ``end`` - 1, add 1 to its link's count.

    The link of a node is the node of its n-gram without the first word.
    """
    for node in range(first, end):
        low = high = np.int64(0)
        if first:
            low, high = np.int64(children[links[node]]), np.int64(children[links[node] + 1])
        for child in range(np.int64(children[node]), np.int64(children[node + 1])):
            word, step = words[child], np.int64(1)
            if not first:
                low = np.int64(word)
            while low + step < high and words[low + step] <= word:  # from the last link on
                low += step
                step *= 2
            stop = min(low + step, high)
            while words[low] != word:
                middle = (low + stop) // 2
                if words[middle] <= word:
                    low = middle
                else:
                    stop = middle
            counts[low] += 1
            if child < len(links):
                links[child] = low


@numba.njit(cache=True)
def _add_up(children: Any, counts: Any, totals: Any) -> None:
    """Set ``totals`` to the sum of the counts of each node's children."""
    for node in range(len(totals)):
        total = 0
        for child in range(np.int64(children[node]), np.int64(children[node + 1])):
            total += counts[child]
        totals[node] = total
