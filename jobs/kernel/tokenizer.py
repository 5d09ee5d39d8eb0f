"""The tokenizer: text to kept words, for counting and as plain functions.

spaCy's rules of a language cut a text into pieces. A word is a piece in lowercase, from its first
letter or number to its last letter, mark or number. A piece without a letter or number isn't a
word. Kept tokens are the targets and all words that are not stop words. The rules of English are
compiled; for other languages spaCy splits new chunks.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plumbline.jobs import spacy_rules
from plumbline.jobs.kernel.chunk_words import IdState, Splitter
from plumbline.jobs.kernel.chunks import Answers, ChunkCache, scan
from plumbline.jobs.kernel.language_tables import TOKENIZER_VERSION
from plumbline.jobs.kernel.language_tables import stop_words as english_stop_words
from plumbline.jobs.kernel.limits import Limits
from plumbline.jobs.kernel.memory import SLACK, address, new_record
from plumbline.jobs.kernel.words import Words, WordState
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.languages import TokenRules

#: Targets that `tokenize` keeps by default: gendered pronouns, all of them stop words of spaCy.
DEFAULT_TARGETS = ("he", "she", "his", "her", "him", "hers", "himself", "herself")
#: Version of the steps that turn spaCy's pieces into words.
_VERSION = 1


def stop_words(language: str = "") -> frozenset[str]:
    """The stop words of a language, given its token rules; by default of English.

    >>> "the" in stop_words(), "sie" in stop_words(TokenRules("de").text)
    (True, True)
    """
    if not language:
        return english_stop_words()
    return spacy_rules.stop_words(TokenRules.of_text(language))


def tokenizer_version(language: str = "") -> str:
    """Version of the tokenizer of a language: counts of two tokenizers are never mixed.

    >>> tokenizer_version().startswith("plumbline-en-")
    True
    """
    if not language:
        return TOKENIZER_VERSION
    code = TokenRules.of_text(language).spacy
    digest = hashlib.sha256(language.encode()).hexdigest()[:12]
    spacy = f"spacy-{spacy_rules.spacy_version(code)}"
    rules = f"plumbline-spacy-{_VERSION}/{code}/{spacy}/rules-{digest}"
    return f"{rules}/unicode-{unicodedata.unidata_version}"


class Tokenizer:
    """Text to ids of kept words.

    Args:
        targets: lowercase words that are kept even if they are stop words.
        keep_stops: keep all stop words.
        n_bytes: most bytes of text that are scanned before their ids are used.
        limits: bounds of the memory for chunks.
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
        self._chunks = ChunkCache(limits.cache_slots)
        self._splitter = Splitter()
        self._answers: Answers | None = None
        if language:
            split = self._splitter.state
            self._answers = Answers(TokenRules.of_text(language), split, limits.n_answers)
            self._chunks.state.is_asking = 1
        self._asked = self._answers.chunks.state if self._answers else new_record(WordState)
        self.ids = new_record(IdState)
        self.reserve(n_bytes)

    def reserve(self, n_bytes: int) -> None:
        """Make room for the ids of ``n_bytes`` bytes of text."""
        self._ids = np.empty(n_bytes + SLACK, np.int32)
        self.ids.ids = address(self._ids)

    @property
    def n_bytes(self) -> int:
        """Bytes of all tables."""
        n_answers = self._answers.n_bytes if self._answers else 0
        return self.words.n_bytes + self._chunks.n_bytes + n_answers

    @property
    def need(self) -> int:
        """Number of words, and bytes, for which the last scan had no room; 0 if it had enough."""
        return int(self._chunks.state.need)

    def scan(self, at: int, end: int) -> int:
        """Append the ids of the text at the addresses at..end; see :func:`chunks.scan`."""
        split, asked = self._splitter.state, self._asked
        while True:
            at = scan(self._chunks.state, split, asked, self.words.state, self.ids, at, end)
            if not self._answers or not self._chunks.state.unknown:
                return int(at)
            self._answers.ask()

    def renew_cache(self, n_bytes_left: int) -> None:
        """Let a full chunk cache grow; empty it if it can't grow within ``n_bytes_left``."""
        if self._chunks.is_full:
            if self._chunks.can_grow and 2 * self._chunks.n_bytes <= n_bytes_left:
                self._chunks.grow()
            else:
                self._chunks.clear()

    def clear(self) -> None:
        """Forget all chunks, and all words except the fixed ones and those of pending ids."""
        self.words.clear(self._ids[: int(self.ids.n)])
        self._chunks.clear()

    def pending(self, n: int) -> NDArray[np.int32]:
        """The last ``n`` ids."""
        end = int(self.ids.n)
        return self._ids[end - n : end]

    def tokens(self, text: str) -> list[str]:
        """Kept tokens of a text in order."""
        n = self.count(text)
        return [self.words.text(word) for word in self._ids[:n].tolist()]

    def count(self, text: str) -> int:
        """Number of kept tokens of a text."""
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
        return int(self.ids.n)


def tokenize(text: str, targets: Sequence[str] = DEFAULT_TARGETS, language: str = "") -> list[str]:
    """Kept tokens of a text in order: words that are not stop words, and all targets.

    Args:
        text: any string. NUL separates words like a blank; runs without whitespace longer than
            65,536 bytes (English) or 1,024 bytes (other languages) are cut there.
        targets: lowercase words that are kept even if they are stop words.
        language: token rules, see ``warehouse.languages``; empty for English.

    Raises:
        UnicodeEncodeError: when the text holds a lone surrogate.
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
    """:func:`tokenize` for many texts in order, with one set of tables.

    >>> list(tokenize_all(["She ran.", "He ran home."]))
    [['she', 'ran'], ['he', 'ran', 'home']]
    """
    return map(Tokenizer(targets, language=language).tokens, texts)


@dataclass(frozen=True)
class Targets:
    """Words to count pairs of, and the token rules of their language.

    Raises:
        UsageProblem: there are no words, one is listed twice, or one is not a token.
        MissingComponent: the language is not English, and spaCy is not installed.
    """

    words: tuple[str, ...]
    language: str = ""

    def __post_init__(self) -> None:
        if not self.words or len(set(self.words)) != len(self.words):
            what = f"targets {', '.join(self.words)}".strip()
            raise UsageProblem(what, "are not one or more words", "give each word once")
        all_tokens = tokenize_all(self.words, self.words, self.language)
        for word, tokens in zip(self.words, all_tokens, strict=True):
            if tokens != [word]:
                problem = "is not one lowercase token, so never occurs"
                fix = "give one word in lowercase, as the tokenizer cuts it"
                raise UsageProblem(f"target {word!r}", problem, fix)


def words(text: str, language: str = "") -> list[str]:
    """All word tokens of a text in order, before the stop filter.

    Raises:
        UnicodeEncodeError: when the text holds a lone surrogate.

    >>> words("You can't pay $5.00 for 10km, can you?")
    ['you', 'ca', "n't", 'pay', '5.00', 'for', '10', 'km', 'can', 'you']
    """
    return Tokenizer([], keep_stops=True, language=language).tokens(text)
