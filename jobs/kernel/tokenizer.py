"""The tokenizer: text to kept words, for counting and as plain functions.

Tokens are the words that spaCy's English rules give, lowercased, with everything that is neither a
letter, a mark nor a number stripped from both ends; what then holds no letter or number is not a
word. Kept tokens are the words that are not English stop words, plus all target words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from plumbline.jobs.kernel.chunks import ChunkCache, scan
from plumbline.jobs.kernel.memory import SLACK, address, new_record
from plumbline.jobs.kernel.tokens import IdState, Splitter
from plumbline.jobs.kernel.words import Words

#: Targets `tokenize` keeps by default: the pronouns that are spaCy stop words.
DEFAULT_TARGETS = ("he", "she", "his", "her", "him", "hers", "himself", "herself")


class Tokenizer:
    """Text to ids of kept words.

    Args:
        targets: lowercase words kept although they may be stop words.
        keep_stops: keep stop words too.
        n_bytes: most bytes of text that are scanned before their ids are used.
        cache_slots: most slots of the chunk cache.
    """

    def __init__(
        self,
        targets: Sequence[str],
        keep_stops: bool = False,
        n_bytes: int = 1 << 16,
        cache_slots: int = 1 << 20,
    ) -> None:
        self.words = Words(targets, keep_stops)
        self._chunks = ChunkCache(cache_slots)
        self._splitter = Splitter()
        self.ids = new_record(IdState)
        self.reserve(n_bytes)

    def reserve(self, n_bytes: int) -> None:
        """Make room for the ids of so many bytes of text."""
        self._ids = np.empty(n_bytes + SLACK, np.int32)
        self.ids.ids = address(self._ids)

    @property
    def n_bytes(self) -> int:
        """Bytes of all tables."""
        return self.words.n_bytes + self._chunks.n_bytes

    @property
    def need(self) -> int:
        """Words, and bytes of words, for which the last scan had no room; 0 if it had enough."""
        return int(self._chunks.state.need)

    def scan(self, at: int, end: int) -> int:
        """Append the ids of the text at the addresses at..end; see :func:`chunks.scan`."""
        split = self._splitter.state
        return int(scan(self._chunks.state, split, self.words.state, self.ids, at, end))

    def renew_cache(self, n_bytes_left: int) -> None:
        """Let a full chunk cache grow, or empty it when it can't."""
        if self._chunks.is_full:
            if self._chunks.can_grow and 2 * self._chunks.n_bytes <= n_bytes_left:
                self._chunks.grow()
            else:
                self._chunks.clear()

    def clear(self) -> None:
        """Forget all words except the fixed ones and those of pending ids."""
        self.words.clear(self._ids[: int(self.ids.n)])
        self._chunks.clear()

    def pending(self, n: int) -> NDArray[np.int32]:
        """The last ``n`` ids."""
        end = int(self.ids.n)
        return self._ids[end - n : end]

    def tokens(self, text: str) -> list[str]:
        """Kept tokens of a text in order."""
        data = np.frombuffer(text.encode() + b"\n" + bytes(SLACK), np.uint8)
        end = address(data) + data.size - SLACK
        self.ids.n, at = 0, address(data)
        if data.size > self._ids.size:
            self.reserve(data.size)
        while True:
            at = self.scan(at, end)
            if not self.need:
                break
            self.words.grow(self.need)
        return [self.words.text(word) for word in self._ids[: int(self.ids.n)].tolist()]


def tokenize(text: str, targets: Sequence[str] = DEFAULT_TARGETS) -> list[str]:
    """Kept tokens of a text in order: words that are not stop words, and all targets.

    Args:
        text: any string. NUL separates words like a blank; runs without whitespace longer than
            65,536 bytes are cut there.
        targets: lowercase words kept although they may be stop words.

    Raises:
        UnicodeEncodeError: when the text holds a lone surrogate.

    >>> tokenize("She couldn't see the U.S. Army's well-known captain, could she?")
    ['she', 'u.s', 'army', 'known', 'captain', 'she']
    >>> tokenize("")
    []
    """
    return Tokenizer(targets).tokens(text)


def tokenize_all(
    texts: Iterable[str], targets: Sequence[str] = DEFAULT_TARGETS
) -> Iterator[list[str]]:
    """:func:`tokenize` for many texts in order, with one set of tables.

    >>> list(tokenize_all(["She ran.", "He ran home."]))
    [['she', 'ran'], ['he', 'ran', 'home']]
    """
    return map(Tokenizer(targets).tokens, texts)


def words(text: str) -> list[str]:
    """All word tokens of a text in order, before the stop filter.

    Raises:
        UnicodeEncodeError: when the text holds a lone surrogate.

    >>> words("You can't pay $5.00 for 10km, can you?")
    ['you', 'ca', "n't", 'pay', '5.00', 'for', '10', 'km', 'can', 'you']
    """
    return Tokenizer([], keep_stops=True).tokens(text)
