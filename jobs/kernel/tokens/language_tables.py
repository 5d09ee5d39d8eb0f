"""Build the tokenizer's lookup tables, once per process, from ``english.json`` and Unicode data.

The rules of English (character classes, exceptions, stop words) are data in ``english.json``. What
counts as a letter, and a letter's lowercase, come from Python's Unicode tables. Therefore the
version of Unicode is part of :data:`TOKENIZER_VERSION`.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plumbline.jobs.kernel.cache import compiled
from plumbline.jobs.kernel.memory import get32
from plumbline.jobs.kernel.tokens import spacy_rules
from plumbline.warehouse.languages import TokenRules

#: Version of the English tokenizer. Counts of two versions are never mixed.
TOKENIZER_VERSION = f"plumbline-en-2/unicode-{unicodedata.unidata_version}"
#: Version of the steps that turn spaCy's pieces into words.
_VERSION = 1

N_CODES = 0x110000
#: Maximum length, in characters, of an exception and of a unit of measurement.
MAX_SPECIAL, MAX_UNIT = 16, 5

# Each property of a code point is a bit in the table ``flags``.
ALPHA, LOWER, UPPER, QUOTE, ICON, PREFIX, SUFFIX, CURRENCY = (1 << n for n in range(8))
BEFORE_DOT, SPACE, ALNUM, MARK, DIGIT, CASED, IGNORABLE = (1 << n for n in range(8, 15))
# The first piece of an exception starts with an OPENER. Its second piece starts with a JOINER.
OPENER, JOINER = 1 << 15, 1 << 16

#: ASCII letters, with single apostrophes between them.
_RUN = re.compile("[A-Za-z]+(?:['\u2019][A-Za-z]+)*")
#: To hash a run, multiply its first 8 bytes in lowercase by RUN_HASH and take RUN_BITS upper bits.
RUN_BITS, RUN_HASH = 13, np.uint64(0x9E3779B97F4A7C15)
_ONES = (1 << 64) - 1
_LANGUAGE_FLAGS = {
    "alpha": ALPHA,
    "lower": LOWER,
    "upper": UPPER,
    "quote": QUOTE,
    "icon": ICON,
    "prefix": PREFIX,
    "suffix": SUFFIX,
    "currency": CURRENCY,
    "before_dot": BEFORE_DOT,
}


class Tables(NamedTuple):
    """The tokenizer's constant tables, with 32-bit items.

    Attributes:
        flags: properties of each code point, as bits ALPHA to JOINER.
        lower: simple lowercase of each code point. U+0130 maps to i; the kernel adds its dot.
        listed: exceptions (chunks that have a rule of their own), followed by units. Item k has
            index k + 1 in ``cuts``, ``parts`` and ``is_unit``.
        cuts: where an exception is split. Bit k is set if a token ends after k characters. The
            value for a unit is 0.
        parts: where the other rules would split an exception, encoded like ``cuts``. The value is
            0 if these pieces are never joined.
        is_unit: 1 for a unit of measurement or a long currency sign, else 0.
        runs: one bit for each hash value. A run consists of ASCII letters and apostrophes. If the
            bit of a run's hash is 0, the run is a single word.
    """

    flags: NDArray[np.uint32]
    lower: NDArray[np.int32]
    cuts: NDArray[np.int32]
    parts: NDArray[np.int32]
    is_unit: NDArray[np.int32]
    runs: NDArray[np.int32]
    listed: tuple[str, ...]


@lru_cache(maxsize=1)
def english() -> dict[str, Any]:
    file = resources.files("plumbline.jobs.kernel.tokens").joinpath("english.json")
    return dict(json.loads(file.read_text(encoding="utf-8")))


def stop_words(language: str = "") -> frozenset[str]:
    """Return spaCy's lowercase stop words for a language's token rules (default: English).

    >>> "the" in stop_words(), "sie" in stop_words(TokenRules("de").text)
    (True, True)
    """
    if language:
        return spacy_rules.stop_words(TokenRules.of_text(language))
    return frozenset(english()["stop_words"])


def tokenizer_version(language: str = "") -> str:
    """Return the version of a language's tokenizer. Counts of two versions are never mixed."""
    if not language:
        return TOKENIZER_VERSION
    code = TokenRules.of_text(language).spacy
    digest = hashlib.sha256(language.encode()).hexdigest()[:12]
    spacy = f"spacy-{spacy_rules.spacy_version(code)}"
    rules = f"plumbline-spacy-{_VERSION}/{code}/{spacy}/rules-{digest}"
    return f"{rules}/unicode-{unicodedata.unidata_version}"


def _category_flags() -> NDArray[np.uint32]:
    flags = np.zeros(N_CODES, np.uint32)
    names = "".join(map(unicodedata.category, map(chr, range(N_CODES))))
    category = np.frombuffer(names.encode(), "S2")
    kind = np.frombuffer(names.encode(), "S1")[::2]
    flags[(kind == b"L") | (kind == b"N")] |= ALNUM
    flags[category == b"Nd"] |= DIGIT
    flags[kind == b"M"] |= MARK
    likely = np.isin(category, [b"Mn", b"Me", b"Cf", b"Lm", b"Sk", b"Po", b"Pf", b"Pi"])
    flags[[c for c in np.flatnonzero(likely).tolist() if _ignorable(chr(c))]] |= IGNORABLE
    likely = np.isin(category, [b"Lu", b"Ll", b"Lt", b"Lm", b"Lo", b"So", b"Nl", b"Mn"])
    flags[[c for c in np.flatnonzero(likely).tolist() if _cased(chr(c))]] |= CASED
    return flags


def _ignorable(ch: str) -> bool:
    """Return whether lowercasing ignores ``ch`` when it decides whether a sigma is final."""
    after_letter, after_digit = (f"{c}{ch}\u03a3".lower()[-1] for c in "A1")
    return after_letter == "\u03c2" and after_digit == "\u03c3"


def _cased(ch: str) -> bool:
    return ch.isupper() or ch.islower() or ch.istitle()


def _lowercase() -> NDArray[np.int32]:
    lower = np.arange(N_CODES, dtype=np.int32)
    for start, end in ((0, 0x130), (0x131, 0xD800), (0xE000, N_CODES)):
        text = "".join(map(chr, range(start, end))).lower()
        lower[start:end] = np.frombuffer(text.encode("utf-32-le"), np.int32)
    lower[0x130] = ord("i")
    # Sigma has two lowercase forms. The table has the one that doesn't end a word.
    lower[0x3A3] = 0x3C3
    return lower


def _cuts(pieces: list[str]) -> int:
    bits, at = 0, 0
    for piece in pieces:
        at += len(piece)
        bits |= 1 << at
    return bits


def _split_runs(specials: dict[str, list[str]], stops: Iterable[str]) -> NDArray[np.int32]:
    """Make ``Tables.runs``. Mark runs that exceptions split, and runs in stop words like "n't"."""
    split = specials | {word: [] for word in stops if not word.isalpha()}
    bits = np.zeros(1 << RUN_BITS, np.uint8)
    for word, pieces in split.items():
        for run in _RUN.findall(word):
            if not any(run in piece for piece in pieces):
                first = int.from_bytes(bytes(c | 0x20 for c in run.encode()[:8]), "little")
                bits[(first * int(RUN_HASH) & _ONES) >> (64 - RUN_BITS)] = 1
    runs: NDArray[np.int32] = np.packbits(bits, bitorder="little").view(np.int32)
    return runs


@lru_cache(maxsize=1)
def tables() -> Tables:
    """Build all tables, once per process. This takes about a third of a second."""
    facts = english()
    flags = _category_flags()
    for name, bit in _LANGUAGE_FLAGS.items():
        for first, last in facts[name]:
            flags[first : last + 1] |= bit
    for code in range(0x3001):
        if chr(code).isspace():
            flags[code] |= SPACE
    specials: dict[str, list[str]] = facts["specials"]
    # Skip exceptions with more tokens than pieces, such as "°C.". Their pieces are never joined.
    parts: dict[str, list[str]] = {
        w: p for w, p in facts["special_parts"].items() if len(p) >= len(specials[w])
    }
    for word in parts:
        flags[ord(word[0])] |= OPENER
        flags[ord(parts[word][1][0])] |= JOINER
    units = [*facts["units"], *facts["long_currency"]]
    if max(map(len, specials)) > MAX_SPECIAL or max(map(len, units)) > MAX_UNIT:
        raise ValueError("an exception is longer than MAX_SPECIAL, or a unit than MAX_UNIT")
    listed = (*specials, *units)
    return Tables(
        flags,
        _lowercase(),
        np.array([0, *(_cuts(specials.get(x, [])) for x in listed)], np.int32),
        np.array([0, *(_cuts(parts.get(x, [])) for x in listed)], np.int32),
        np.array([0, *(x in units for x in listed)], np.int32),
        _split_runs(specials, stop_words()),
        listed,
    )


_ZERO, _NINE = ord("0"), ord("9")


class SplitState:
    """Addresses of the tables in :class:`Tables`, and of scratch memory for splitting a chunk."""

    flags: int
    lower: int
    slots: int  # Address of the hash table that holds ``Tables.listed`` as code points.
    mask: int
    offsets: int
    arena: int
    cuts: int
    parts: int
    is_unit: int
    runs: int
    cps: int  # Address of the chunk's code points, 32-bit.
    ends: int  # Address of the ends of the chunk's pieces, 64-bit.
    tail: int  # Address of scratch memory for `split_chunk`, 64-bit.
    word: int  # Address of the current piece in lowercase UTF-8.
    n_answered: int  # Number of chunks that spaCy has split, 0 for English.
    answer_starts: int  # Address of each split chunk's first index in ``answers``, 64-bit.
    answers: int  # Address of the ends of spaCy's pieces, in characters of the chunk, 64-bit.


@compiled
def point(s: SplitState, k: int) -> int:
    return get32(s.cps, k)


@compiled
def kind_of(s: SplitState, k: int) -> int:
    return get32(s.flags, get32(s.cps, k))


@compiled
def is_digit(s: SplitState, k: int) -> bool:
    """Return whether code point k is an ASCII digit."""
    return _ZERO <= get32(s.cps, k) <= _NINE
