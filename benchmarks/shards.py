"""Make shards of real text in the sizes that the benchmarks need."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from plumbline.warehouse.input.shards import documents, write_jsonl_zst

#: The vocabulary grows with this power of the text's length; the part `growth` measures it.
GROWTH = 0.61
_WORD = re.compile(r"[a-z]+")


def joined(parts: Sequence[Path], out: Path) -> Path:
    """Join several `.jsonl.zst` shards into one by writing their frames one after another."""
    with out.open("wb") as file:
        for part in parts:
            file.write(part.read_bytes())
    return out


def rotated(parts: Sequence[Path], directory: Path, times: int) -> list[Path]:
    """Make as many shards as parts, with the same documents in other orders, so no two are equal.

    Each repeats all parts ``times`` times. Real text of that size has more distinct words, so these
    shards can compare ways of counting, but don't show the speed on real text.
    """
    shards = []
    for k in range(len(parts)):
        order = [*parts[k:], *parts[:k]] * times
        shards.append(joined(order, directory / f"{k:03}.jsonl.zst"))
    return shards


def grown_blocks(parts: Sequence[Path], directory: Path, n: int, times: int) -> list[Path]:
    """Make ``n`` shards, each ``times`` as long as the parts, with new words as in real text."""
    texts = _repeated(parts, n * times)
    n_texts = times * sum(1 for part in parts for _ in documents(part))
    shards = [directory / f"{k:03}.jsonl.zst" for k in range(n)]
    for shard in shards:
        write_jsonl_zst(shard, itertools.islice(texts, n_texts))
    return shards


def _repeated(parts: Sequence[Path], times: int) -> Iterator[str]:
    """Yield the documents of all parts ``times`` times, the first time unchanged.

    In each repetition, some of the rarest words get another ending, so that the number of distinct
    words follows ``n ** GROWTH``.
    """
    texts = [text for part in parts for text in documents(part)]
    counts = Counter(word for text in texts for word in _WORD.findall(text))
    rarest = sorted(counts, key=lambda word: (counts[word], word))
    yield from texts
    n_new = [round(len(counts) * (t**GROWTH - (t - 1) ** GROWTH)) for t in range(2, times + 1)]
    changed = frozenset(rarest[: max(n_new, default=0)])
    cut = [_cut(text, changed) for text in texts]
    for time, n in enumerate(n_new, 2):
        ending = "q" + "".join(chr(97 + int(digit)) for digit in str(time))
        new = {word: word + ending for word in rarest[:n]}
        yield from ("".join(new.get(piece, piece) for piece in pieces) for pieces in cut)


def _cut(text: str, words: frozenset[str]) -> list[str]:
    """Split a text into pieces, so that each of the words is a piece of its own.

    >>> _cut("an old teapot", frozenset({"old"}))
    ['an ', 'old', ' teapot']
    """
    pieces, end = [], 0
    for found in _WORD.finditer(text):
        if found[0] in words:
            pieces += [text[end : found.start()], found[0]]
            end = found.end()
    return [*pieces, text[end:]]
