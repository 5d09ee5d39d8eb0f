"""Shards for the benchmarks: real text in the sizes that a measurement needs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
    """One shard of a text ``times`` as long, whose vocabulary grows as that of real text would.

    The text is repeated, and in each repetition enough of its rarest words get another ending for
    the number of distinct words to follow ``n ** GROWTH``.
    """
    texts = [text for part in parts for text in documents(part)]
    counts = Counter(word for text in texts for word in _WORD.findall(text))
    rarest = sorted(counts, key=lambda word: (counts[word], word))

    def repeated() -> Iterator[str]:
        yield from texts
        for time in range(2, times + 1):
            n_new = len(counts) * (time**GROWTH - (time - 1) ** GROWTH)
            ending = "q" + "".join(chr(97 + int(digit)) for digit in str(time))
            new = {word: word + ending for word in rarest[: round(n_new)]}
            yield from (_replaced(text, new) for text in texts)

    write_jsonl_zst(out, repeated())
    return out


def _replaced(text: str, new: Mapping[str, str]) -> str:
    return _WORD.sub(lambda found: new.get(found[0], found[0]), text)
