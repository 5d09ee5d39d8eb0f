"""Shards for the benchmarks: real text in the sizes that a measurement needs."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from plumbline.warehouse.input.shards import documents, write_jsonl_zst

#: By this power of the text's length its vocabulary grows: the part `growth` measures it.
GROWTH = 0.61
_WORD = re.compile(r"[a-z]+")


def joined(parts: Sequence[Path], out: Path) -> Path:
    """One `.jsonl.zst` shard with the documents of several: their frames one after another."""
    with out.open("wb") as file:
        for part in parts:
            file.write(part.read_bytes())
    return out


def rotated(parts: Sequence[Path], directory: Path, times: int) -> list[Path]:
    """As many shards as parts, of equal documents in other orders, so that no two have equal bytes.

    Each holds all parts ``times`` times. Their words repeat, as those of a text of that size
    would not: for comparing ways to run the same counting, not for its speed as such.
    """
    shards = []
    for k in range(len(parts)):
        order = [*parts[k:], *parts[:k]] * times
        shards.append(joined(order, directory / f"{k:03}.jsonl.zst"))
    return shards


def grown(parts: Sequence[Path], out: Path, times: int) -> Path:
    """One shard of a text ``times`` as long, whose vocabulary grows as that of real text would."""
    write_jsonl_zst(out, _repeated(parts, times))
    return out


def grown_blocks(parts: Sequence[Path], directory: Path, n: int, times: int) -> list[Path]:
    """The text of ``grown`` in ``n`` shards, each ``times`` as long as the parts together."""
    texts = _repeated(parts, n * times)
    n_texts = times * sum(1 for part in parts for _ in documents(part))
    shards = [directory / f"{k:03}.jsonl.zst" for k in range(n)]
    for shard in shards:
        write_jsonl_zst(shard, itertools.islice(texts, n_texts))
    return shards


def _repeated(parts: Sequence[Path], times: int) -> Iterator[str]:
    """The documents of all parts, ``times``, first as they are.

    In each repetition enough of the rarest words get another ending for the number of distinct
    words to follow ``n ** GROWTH``.
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
    """The text in pieces, so that each of the words is a piece of its own.

    >>> _cut("an old teapot", frozenset({"old"}))
    ['an ', 'old', ' teapot']
    """
    pieces, end = [], 0
    for found in _WORD.finditer(text):
        if found[0] in words:
            pieces += [text[end : found.start()], found[0]]
            end = found.end()
    return [*pieces, text[end:]]
