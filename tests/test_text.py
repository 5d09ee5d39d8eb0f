"""The tokeniser by hand-checked cases; the comparison with spaCy is in test_text_reference.py."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.jobs.kernel.tokens.language_tables import N_CODES, english, stop_words
from plumbline.jobs.kernel.tokens.tokenizer import tokenize
from tests.spacy_reference import reference_words, words

pytest.importorskip("spacy")

CASES = {
    "could couldn't cannot gonna": ["could", "could", "n't", "can", "not", "gon", "na"],
    "she's He'd I’ll": ["she", "s", "he", "d", "i", "ll"],
    "the cat's James' o'clock": ["the", "cat", "s", "james", "o'clock"],
    "well-known 1990-91 a--b": ["well", "known", "1990", "91", "a", "b"],
    "U.S. e.g. Mr. 3.14 1,000 Ph.D.": ["u.s", "e.g", "mr", "3.14", "1,000", "ph.d"],
    "$5.00 10km 50% C++ 9am": ["5.00", "10", "km", "50", "c", "9", "am"],
    "see http://a.com/b?c=1, or foo@bar.com.": ["see", "http://a.com/b?c=1", "or", "foo@bar.com"],
    "end.Begin and/or hello...world": ["end", "begin", "and/or", "hello", "world"],
    "“Hello—there,” (he) said_ :-) ^_^": ["hello", "there", "he", "said"],
    "ΣΑΣ ΣΟΦΟΣ. Σ ÉTÉ Straße ǅ": ["σας", "σοφος", "σ", "été", "straße", "ǆ"],
    "İstanbul": ["i\u0307stanbul"],
    "a\u00a0b\u2003c\u3000d\te\nf\x1cg\x00h": list("abcdefgh"),
    "cafe\u0301 \u200bzero\u200b": ["cafe\u0301", "zero"],
    "中文 かな ไทย": ["中文", "かな", "ไทย"],
    "— … ... !? == $ %": [],
    "": [],
    "   \n ": [],
}


@pytest.mark.parametrize("text", CASES)
def test_words(text: str) -> None:
    assert words(text) == CASES[text]


def test_stop_words_with_a_stripped_apostrophe_go_too() -> None:
    assert tokenize("he's she’s I'm we’ve", ["he", "she"]) == ["he", "she"]


@given(st.text())
def test_kept_tokens_are_the_words_less_the_stop_words(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        with pytest.raises(UnicodeEncodeError):
            tokenize(text)
        return
    kept, every = tokenize(text, []), words(text)
    rest = iter(every)
    assert all(token in rest for token in kept), "kept tokens are a subsequence of the words"
    assert not set(kept) & stop_words()
    assert all(word and word == word.lower() for word in every)


@given(st.lists(st.sampled_from(["she", "Nurse's", "x-ray", "U.S.", "don't", "“ah!”", "!"])))
def test_chunks_are_independent(chunks: list[str]) -> None:
    assert tokenize(" ".join(chunks)) == [t for c in chunks for t in tokenize(c)]


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
