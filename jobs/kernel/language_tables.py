"""Lookup tables of the tokenizer, built once per process from ``english.json`` and Unicode data.

The rules of the language (character classes, exceptions, stop words) are data in ``english.json``;
what a letter is and how it is lowercased comes from Python's Unicode tables, whose version is
therefore part of :data:`TOKENIZER_VERSION`.
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

from plumbline.jobs import spacy_rules
from plumbline.warehouse.languages import TokenRules

#: Version of the English tokenizer. Counts of two versions are never mixed.
TOKENIZER_VERSION = f"plumbline-en-2/unicode-{unicodedata.unidata_version}"
#: Version of the steps that turn spaCy's pieces into words.
_VERSION = 1

N_CODES = 0x110000
#: Longest exception in characters.
MAX_SPECIAL = 16

# One bit per property, in the table of flags indexed by code point.
ALPHA, LOWER, UPPER, QUOTE, ICON, PREFIX, SUFFIX, CURRENCY = (1 << n for n in range(8))
BEFORE_DOT, SPACE, ALNUM, MARK, DIGIT, CASED, IGNORABLE = (1 << n for n in range(8, 15))
# OPENER and JOINER: first characters of the first and the second piece of reassembled exceptions.
OPENER, JOINER = 1 << 15, 1 << 16

#: ASCII letters, with single apostrophes between them.
_RUN = re.compile("[A-Za-z]+(?:['\u2019][A-Za-z]+)*")
#: Hash of a run: the upper RUN_BITS bits of RUN_HASH times its first eight bytes in lowercase.
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
    """Constant tables of the tokenizer, of 32-bit items.

    Attributes:
        flags: by code point: properties, the bits ALPHA to JOINER.
        lower: by code point: simple lowercase. U+0130 maps to i; the kernel adds its dot.
        slots: a hash table of exceptions with open addressing; a slot has an exception's index + 1,
            or 0. The number of slots is a power of 2.
        starts, codes: offsets of the exceptions in ``codes``, and their code points.
        cuts: by exception: bit k is set if a token ends after k characters.
        parts: the same for the pieces into which the other rules split it; 0 if it is never
            reassembled.
        unit_starts, unit_codes: the same as ``starts`` and ``codes`` for units of measurement.
        runs: a bit for each hash of a run, set if the run may not be a word of its own.
    """

    flags: NDArray[np.uint32]
    lower: NDArray[np.int32]
    slots: NDArray[np.int32]
    starts: NDArray[np.int32]
    codes: NDArray[np.int32]
    cuts: NDArray[np.int32]
    parts: NDArray[np.int32]
    unit_starts: NDArray[np.int32]
    unit_codes: NDArray[np.int32]
    runs: NDArray[np.int32]


@lru_cache(maxsize=1)
def english() -> dict[str, Any]:
    """The content of ``english.json``."""
    file = resources.files("plumbline.jobs.kernel").joinpath("english.json")
    return dict(json.loads(file.read_text(encoding="utf-8")))


def stop_words(language: str = "") -> frozenset[str]:
    """spaCy's stop words of a language in lowercase, given its token rules; by default of English.

    >>> "the" in stop_words(), "sie" in stop_words(TokenRules("de").text)
    (True, True)
    """
    if language:
        return spacy_rules.stop_words(TokenRules.of_text(language))
    return frozenset(english()["stop_words"])


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


def codes(text: str) -> NDArray[np.int32]:
    """Code points of a string as int32[len(text)]."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.int32)


def code_hash(points: NDArray[np.int32]) -> int:
    """FNV-1a hash over code points; `find_special` computes the same to look up exceptions."""
    h = 0xCBF29CE484222325
    for c in points.tolist():
        h = ((h ^ c) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h


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
    """True if lowercasing ignores ``ch`` when it decides whether a sigma is final."""
    after_letter, after_digit = (f"{c}{ch}\u03a3".lower()[-1] for c in "A1")
    return after_letter == "\u03c2" and after_digit == "\u03c3"


def _cased(ch: str) -> bool:
    return ch.isupper() or ch.islower() or ch.istitle()


def _lowercase() -> NDArray[np.int32]:
    lower = np.arange(N_CODES, dtype=np.int32)
    for start, end in ((0, 0x130), (0x131, 0xD800), (0xE000, N_CODES)):
        lower[start:end] = codes("".join(map(chr, range(start, end))).lower())
    lower[0x130] = ord("i")
    # For a capital sigma the kernel decides by its neighbours; this is the form that isn't final.
    lower[0x3A3] = 0x3C3
    return lower


def _cuts(pieces: list[str]) -> int:
    bits, at = 0, 0
    for piece in pieces:
        at += len(piece)
        bits |= 1 << at
    return bits


def _concatenated(words: list[str]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    start = np.zeros(len(words) + 1, np.int32)
    start[1:] = np.cumsum([len(w) for w in words])
    return start, codes("".join(words)).copy()


def _special_slots(words: list[str]) -> NDArray[np.int32]:
    size = 1 << (2 * len(words)).bit_length()
    slots = np.zeros(size, np.int32)
    for index, word in enumerate(words):
        at = code_hash(codes(word)) >> 40 & (size - 1)
        while slots[at]:
            at = (at + 1) & (size - 1)
        slots[at] = index + 1
    return slots


def _split_runs(specials: dict[str, list[str]], stops: Iterable[str]) -> NDArray[np.int32]:
    """The table ``runs``: runs that an exception splits, or that are part of a stop word."""
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
    """All tables, built once per process (about a third of a second)."""
    facts = english()
    flags = _category_flags()
    for name, bit in _LANGUAGE_FLAGS.items():
        for first, last in facts[name]:
            flags[first : last + 1] |= bit
    for code in range(0x3001):
        if chr(code).isspace():
            flags[code] |= SPACE
    specials: dict[str, list[str]] = facts["specials"]
    # An exception with more tokens than pieces, such as "°C.", applies only to a whole chunk.
    parts: dict[str, list[str]] = {
        w: p for w, p in facts["special_parts"].items() if len(p) >= len(specials[w])
    }
    for word in parts:
        flags[ord(word[0])] |= OPENER
        flags[ord(parts[word][1][0])] |= JOINER
    words = list(specials)
    if max(map(len, words)) > MAX_SPECIAL:
        raise ValueError("an exception is longer than MAX_SPECIAL")
    return Tables(
        flags,
        _lowercase(),
        _special_slots(words),
        *_concatenated(words),
        np.array([_cuts(specials[w]) for w in words], np.int32),
        np.array([_cuts(parts.get(w, [])) for w in words], np.int32),
        *_concatenated([*facts["units"], *facts["long_currency"]]),
        _split_runs(specials, stop_words()),
    )
