"""The tokeniser by hand-checked cases; the comparison with spaCy is in test_text_reference.py."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.jobs.kernel.tokens.language_tables import stop_words
from plumbline.jobs.kernel.tokens.tokenizer import tokenize
from tests.spacy_reference import words

CASES = {
    "could couldn't cannot gonna": ["could", "could", "n't", "can", "not", "gon", "na"],
    "she's He'd I’ll": ["she", "s", "he", "d", "i", "ll"],
    "the cat's James' o'clock": ["the", "cat", "s", "james", "o'clock"],
    "well-known 1990-91 a--b": ["well", "known", "1990", "91", "a", "b"],
    "U.S. e.g. Mr. 3.14 1,000 Ph.D.": ["u.s", "e.g", "mr", "3.14", "1,000", "ph.d"],
    "$5.00 10km 50% C++ 9am": ["5.00", "10", "km", "50", "c", "9", "am"],
    "see http://a.com/b?c=1, or foo@bar.com.": [
        "see",
        "http://a.com/b?c=1",
        "or",
        "foo@bar.com",
    ],
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
