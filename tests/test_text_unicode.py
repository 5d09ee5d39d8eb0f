"""Lowercasing and character classes over all of Unicode, tested against Python and spaCy."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.jobs.kernel.tokens.language_tables import N_CODES, english
from tests.spacy_reference import reference_words, words

pytest.importorskip("spacy")

#: Large blocks without case, all of whose characters are alike: every 53rd stands for the rest.
UNIFORM = ((0x3400, 0xA000), (0xAC00, 0xD7A4), (0x17000, 0x18D00), (0x20000, 0x32000))

#: A capital sigma before and behind the character, and a dotted capital I: lowercase of all three
#: is more than a table of characters.
CONTEXTS = ["{}", "A{}Σ", "AΣ{}", "AΣ{}B", "İ{}Σ"]

#: Everything on which the lowercase of a sigma hangs, and what lowers to more than one character.
TRICKY = "ΣσςİIıiAaßẞǅﬁΆʰªⅧⒶ" + "'’.:·-_^`¨,!/1é中א" + "\u0301\u0307\u0345\u00ad\u200b\u200d\ufeff"


@lru_cache(maxsize=1)
def code_points() -> list[int]:
    """All assigned code points but surrogates, NUL and most of the uniform blocks."""

    def stands_alone(c: int) -> bool:
        return c % 53 == 0 or not any(first <= c < end for first, end in UNIFORM)

    private = [0xE000, 0xF8FF, 0xF0000, 0x10FFFD]
    kinds = ((c, unicodedata.category(chr(c))) for c in range(1, N_CODES))
    return [c for c, kind in kinds if kind not in ("Cn", "Co", "Cs") and stands_alone(c)] + private


@pytest.mark.parametrize("context", CONTEXTS)
def test_every_code_point_is_lowercased_as_python_does_it(context: str) -> None:
    chunks = [context.format(chr(c)) for c in code_points()]
    assert len(chunks) > 30_000
    # A couple of hundred chunks to a text: quick, and a failure stays readable.
    for k in range(0, len(chunks), 200):
        text = " ".join(chunks[k : k + 200])
        assert words(text) == reference_words(text), ascii(text)


@settings(max_examples=1500)
@given(st.text(st.sampled_from(TRICKY), min_size=1, max_size=8))
def test_tricky_characters_together_are_lowercased_as_python_does_it(text: str) -> None:
    assert words(text) == reference_words(text)


@pytest.mark.parametrize("name", ["alpha", "lower", "upper", "quote", "icon"])
def test_character_classes_are_spacys(name: str) -> None:
    from spacy.lang import char_classes as spacys

    pattern = {
        "alpha": spacys.ALPHA,
        "lower": spacys.ALPHA_LOWER,
        "upper": spacys.ALPHA_UPPER,
        "quote": spacys.CONCAT_QUOTES,
        "icon": spacys.CONCAT_ICONS,
    }[name]
    every = "".join(map(chr, range(N_CODES)))
    theirs = {m.start() for m in re.finditer(f"[{pattern}]", every)}
    ours = {c for first, last in english()[name] for c in range(first, last + 1)}
    assert ours == theirs
