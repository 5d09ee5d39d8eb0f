"""Turn text into kept words. All code that splits text into words uses this tokenizer.

spaCy's rules for a language cut a text into pieces. A word is the part of a piece from its first
letter or number to its last letter, mark or number, in lowercase. Pieces without a letter or number
contain no word. The kept words are the targets and all words that are not stop words. For English,
compiled code applies the rules. For other languages, spaCy splits each new chunk of text.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plumbline.jobs.kernel.memory import SLACK, Limits, address, aligned_zeros, new_record
from plumbline.jobs.kernel.tokens.chunk_words import Splitter
from plumbline.jobs.kernel.tokens.chunks import (
    END,
    MAX_ASKED,
    MAX_BATCH_CHUNKS,
    ChunkState,
    move,
    scan,
)
from plumbline.jobs.kernel.tokens.language_tables import SplitState, stop_words
from plumbline.jobs.kernel.tokens.spacy_rules import pieces, tokenizer_of
from plumbline.jobs.kernel.tokens.words import IdState, Words, WordState
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.languages import TokenRules

#: Targets that `tokenize` keeps by default: gendered pronouns, all of which are spaCy stop words.
DEFAULT_TARGETS = ("he", "she", "his", "her", "him", "hers", "himself", "herself")
#: Maximum number of chunks that spaCy splits per call.
_ASKED_TOGETHER = 4096


class ChunkCache:
    """Stores the ids of the kept words of each chunk (a piece of text without whitespace).

    Args:
        most: maximum number of slots. A full cache of this size is emptied, which loses no counts.
    """

    def __init__(self, most: int = 1 << 20) -> None:
        self._most = most
        self.state = new_record(ChunkState)
        self._cache = aligned_zeros(min(1 << 17, most), 4)
        self._kept = np.empty(1 << 16, np.int32)
        self._batch = np.empty((8, MAX_BATCH_CHUNKS), np.int64)
        starts = address(self._batch)
        self.state.starts, self.state.ends = starts, starts + 8 * MAX_BATCH_CHUNKS
        self.state.keys = starts + 16 * MAX_BATCH_CHUNKS
        self.state.values = starts + 48 * MAX_BATCH_CHUNKS
        self.state.missing = starts + 56 * MAX_BATCH_CHUNKS
        self._publish()

    @property
    def n_bytes(self) -> int:
        return self._cache.nbytes + self._kept.nbytes

    def renew(self, n_bytes_left: int) -> None:
        """If the cache is full, double its size, or empty it if doubling would exceed a limit."""
        state = self.state
        if state.n < state.capacity and state.n_kept < state.kept_capacity - 64:
            return
        if len(self._cache) == self._most or 2 * self.n_bytes > n_bytes_left:
            self.clear()
            return
        cache = aligned_zeros(2 * len(self._cache), 4)
        move(address(self._cache), len(self._cache), address(cache), len(cache) - 1)
        self._cache = cache
        self._kept = np.concatenate([self._kept, np.empty_like(self._kept)])
        self._publish()

    def clear(self) -> None:
        self._cache[:] = 0
        self.state.n = self.state.n_kept = 0

    def _publish(self) -> None:
        state = self.state
        state.cache, state.mask = address(self._cache), len(self._cache) - 1
        state.capacity = 3 * len(self._cache) // 4
        state.kept, state.kept_capacity = address(self._kept), self._kept.size


class Answers:
    """Stores where spaCy splits chunks. English doesn't need this class.

    Args:
        rules: the language's token rules.
        split: record that tells compiled code the addresses of the answers.
        most: maximum number of chunks. All answers are dropped when there are this many chunks, or
            when the chunks have 64 * ``most`` bytes in total.
    """

    def __init__(self, rules: TokenRules, split: SplitState, most: int) -> None:
        self._tokenizer = tokenizer_of(rules.spacy)
        self._split, self._most = split, most
        self.chunks = Words([])  # the chunks that spaCy has to split
        self.clear()

    @property
    def n_bytes(self) -> int:
        return self.chunks.n_bytes + 8 * (len(self._starts) + len(self._ends))

    def clear(self) -> None:
        self.chunks.clear(np.empty(0, np.int32))
        self._starts, self._ends = array("q", [0]), array("q")
        # END_WORD, which is chunk number 0, has no pieces.
        self._add(np.zeros(1, np.int64), np.zeros(0, np.int64))

    def ask(self) -> None:
        """Let spaCy split the chunks that were added since the last call.

        If there are none, there was no room to add a new chunk. In that case, make room.
        """
        noted = [*map(self.chunks.text, range(self._split.n_answered, len(self.chunks)))]
        if not noted:
            if len(self.chunks) < self._most and self.chunks.state.n_bytes < 64 * self._most:
                self.chunks.grow(max(len(self.chunks), MAX_ASKED))
            else:
                self.clear()
        for start in range(0, len(noted), _ASKED_TOGETHER):
            self._add(*pieces(self._tokenizer, noted[start : start + _ASKED_TOGETHER]))

    def _add(self, n_pieces: NDArray[np.int64], ends: NDArray[np.int64]) -> None:
        self._starts.frombytes((len(self._ends) + np.cumsum(n_pieces)).tobytes())
        self._ends.frombytes(ends.tobytes())
        (starts_at, _), (ends_at, _) = self._starts.buffer_info(), self._ends.buffer_info()
        self._split.answer_starts, self._split.answers = starts_at, ends_at
        self._split.n_answered = len(self._starts) - 1


class Tokenizer:
    """Turns text into ids of kept words.

    Args:
        targets: lowercase words that are kept even if they are stop words.
        keep_stops: keep all stop words.
        n_bytes: maximum number of bytes of text to scan before the caller removes the ids.
        limits: limits on the memory for chunks.
        language: token rules, see ``warehouse.languages``; empty for English.
    """

    def __init__(
        self,
        targets: Sequence[str],
        keep_stops: bool = False,
        n_bytes: int = 1 << 16,
        limits: Limits | None = None,
        language: str = "",
    ) -> None:
        self.words = Words(targets, () if keep_stops else stop_words(language))
        limits = limits or Limits()
        self.cache = ChunkCache(limits.cache_slots)
        self._splitter = Splitter()
        self._answers: Answers | None = None
        if language:
            split = self._splitter.state
            self._answers = Answers(TokenRules.of_text(language), split, limits.n_answers)
            self.cache.state.is_asking = 1
        self._asked = self._answers.chunks.state if self._answers else new_record(WordState)
        self.ids = new_record(IdState)
        self.reserve(n_bytes)

    def reserve(self, n_bytes: int) -> None:
        """Make room for the ids of ``n_bytes`` bytes of text."""
        self._ids = np.empty(n_bytes + SLACK, np.int32)
        self.ids.ids = address(self._ids)

    @property
    def n_bytes(self) -> int:
        n_answers = self._answers.n_bytes if self._answers else 0
        return self.words.n_bytes + self.cache.n_bytes + n_answers

    @property
    def need(self) -> int:
        """Size in bytes of the batch whose words need more room in the word table, or 0."""
        return int(self.cache.state.need)

    def scan(self, at: int, end: int) -> int:
        """Append the ids of the text at the addresses at..end; see :func:`chunks.scan`."""
        split, asked = self._splitter.state, self._asked
        while True:
            at = scan(self.cache.state, split, asked, self.words.state, self.ids, at, end)
            if not self._answers or not self.cache.state.unknown:
                return int(at)
            self._answers.ask()

    def clear(self) -> None:
        """Remove all chunks and words, except targets, stop words and words not counted yet."""
        self.words.clear(self._ids[: int(self.ids.n)])
        self.cache.clear()

    def pending(self, n: int) -> NDArray[np.int32]:
        """Return the last ``n`` ids of kept words."""
        end = int(self.ids.n)
        return self._ids[end - n : end]

    def tokens(self, text: str) -> list[str]:
        return self._texts_of(self._scanned(text.encode()))

    def words_of_chunks(self, chunks: Sequence[str]) -> tuple[list[str], NDArray[np.int64]]:
        """Return one list of the chunks' kept words, and where each chunk's words end in that list.

        >>> words, ends = Tokenizer(["she"]).words_of_chunks(["She", "...", "drinks"])
        >>> words, ends.tolist()
        (['she', 'drinks'], [1, 1, 2])
        """
        ids = self._scanned(b"".join(chunk.encode() + END for chunk in chunks))
        is_word = ids != self.words.state.n_fixed - 1
        return self._texts_of(ids[is_word]), np.cumsum(is_word)[~is_word]

    def _texts_of(self, ids: NDArray[np.int32]) -> list[str]:
        return [self.words.text(word) for word in ids.tolist()]

    def _scanned(self, text: bytes) -> NDArray[np.int32]:
        data = np.frombuffer(text + b"\n" + bytes(SLACK), np.uint8)
        end = address(data) + data.size - SLACK
        self.ids.n, at = 0, address(data)
        if data.size > self._ids.size:
            self.reserve(data.size)
        while True:
            at = self.scan(at, end)
            if not self.need:
                break
            self.words.grow(self.need)
        return self._ids[: int(self.ids.n)]


def tokenize(text: str, targets: Sequence[str] = DEFAULT_TARGETS, language: str = "") -> list[str]:
    """Return the kept tokens of a text in order: words that are not stop words, and all targets.

    Args:
        text: any string. NUL separates words like a space. Text without whitespace is cut after
            65,536 bytes in English, and after 1,024 bytes in other languages.
        targets: lowercase words that are kept even if they are stop words.
        language: token rules, see ``warehouse.languages``; empty for English.

    Raises:
        UnicodeEncodeError: the text contains a lone surrogate.
        MissingComponent: the language is not English, and spaCy is not installed.

    >>> tokenize("She couldn't see the U.S. Army's well-known captain, could she?")
    ['she', 'u.s', 'army', 'known', 'captain', 'she']
    >>> tokenize("")
    []
    """
    return Tokenizer(targets, language=language).tokens(text)


def tokenize_all(
    texts: Iterable[str], targets: Sequence[str] = DEFAULT_TARGETS, language: str = ""
) -> Iterator[list[str]]:
    """Tokenize many texts in order, as :func:`tokenize` does. The tokenizer is built only once."""
    return map(Tokenizer(targets, language=language).tokens, texts)


@dataclass(frozen=True)
class Targets:
    """The target words, and the token rules of their language. Pairs with targets are counted."""

    words: tuple[str, ...]
    language: str = ""

    def checked(self) -> Targets:
        """Check that each target is a single token. Return the targets.

        Raises:
            UsageProblem: a word is not a token.
            MissingComponent: the language is not English, and spaCy is not installed.
        """
        all_tokens = tokenize_all(self.words, self.words, self.language)
        for word, tokens in zip(self.words, all_tokens, strict=True):
            if tokens != [word]:
                problem = "is not one lowercase token, so it never occurs"
                fix = "give one word in lowercase, as the tokenizer cuts it"
                raise UsageProblem(f"target {word!r}", problem, fix)
        return self
