"""The tokeniser by hand-checked cases, and against spaCy on made-up, hard and real texts."""

import itertools
import random
import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.jobs.kernel.tokens.chunk_words import MAX_CHUNK
from plumbline.jobs.kernel.tokens.language_tables import N_CODES, english, stop_words
from plumbline.jobs.kernel.tokens.tokenizer import DEFAULT_TARGETS, tokenize
from plumbline.warehouse.input.shards import documents
from tests.spacy_reference import (
    agreement,
    compare,
    hard_cases,
    reference_tokens,
    reference_words,
    tokenizer,
    words,
)

pytest.importorskip("spacy")

CASES = hard_cases()


def test_exceptions_and_stop_words_are_spacys() -> None:
    from spacy.attrs import ORTH
    from spacy.lang.en.stop_words import STOP_WORDS

    rules = {k: [p[ORTH] for p in v] for k, v in tokenizer().rules.items()}
    chunks = {k: v for k, v in rules.items() if not any(c.isspace() for c in k)}
    assert english()["specials"] == chunks
    assert set(english()["stop_words"]) == STOP_WORDS


def test_affix_characters_are_spacys() -> None:
    def members(name: str) -> set[int]:
        return {c for first, last in english()[name] for c in range(first, last + 1)}

    codes = [c for c in range(0x30000) if not 0xD800 <= c < 0xE000 and not chr(c).isspace()]
    prefixes = {c for c in codes if tokenizer().find_prefix(chr(c)) == 1}
    suffixes = {c for c in codes if tokenizer().find_suffix(chr(c)) == 1}
    assert {c for c in members("prefix") if c < 0x30000} == prefixes
    assert {c for c in members("suffix") if c < 0x30000} == suffixes


SHARDS = [f"{c}/{n:02}" for c, k in (("gutenberg", 4), ("nltk", 2)) for n in range(k)]


PIECES = """
don't U.S. e.g. Mr. ( ) [ ] { } ' " ’s 's n't - -- — – . .. ... … ! ? , : ; / http:// www. a.com
b.org/x?y=1 @ foo Bar BAZ 10 3.14 1,000 km m² $ US$ C$ € % + = < > ^ * _ ~ # & | ` “ ” « » \\ é ΣΑΣ
İ ß ẞ ǅ ﬁ 中文 かな ไทย א \u0301 \u200b \u00ad 😀 ❤️ © ° F. ½ ² 192.168.1.1 8.8.8.8/a co.uk :80 #x
&amp; <br> -> 1x x1 can't Gonna a.m. 10am 9p.m. :) :-D o_O 8) y'all c'mon ma'am 'em 'Cause
"""
Draw = Callable[[random.Random], str]


def of_pieces(chance: random.Random) -> str:
    specials, pieces = list(english()["specials"]), PIECES.split()
    pool = [chance.choice(pieces if chance.random() < 0.85 else specials) for _ in range(5)]
    return "".join(pool[: chance.randint(1, 5)])


@lru_cache(maxsize=1)
def letters() -> list[str]:
    """Runs of letters that have to do with an exception or a stop word."""
    texts = [*english()["specials"], *english()["stop_words"], "Word US WORD km C a lad's"]
    return sorted({run for text in texts for run in re.findall("[A-Za-z]+", text)})


MARKS = ["", "", *"_'\"(,.;:!?’”“…*/$@", "--", "...", "é", "7"]
DASHES = ["-", "--", "---", "----", "—", "——", "–", "-—", "~", "'", "’", "."]


def with_marks(chance: random.Random) -> str:
    chunk = chance.choice(letters())
    for _ in range(chance.choice([0, 0, 0, 1, 2])):
        chunk += chance.choice(DASHES) + chance.choice(letters())
    return chunk.join(chance.choice(MARKS) + chance.choice(MARKS) for _ in range(2))


PLAIN = [*"aAsSo", "word", "Word", "WORD", "U.S", "AB", "man", "Mr", "don", "e.g", "cant"]
BEFORE = list("\"'([{*_“‘—$")
AFTER = [*".,;:!?\"')]}*_”’—", "..", "...", "'s", "’s", "'S"]
JOINTS = ["-", "--", "---", "----", "—", "——", "–", ",--", "'", "/", "."]


def in_plain_punctuation(chance: random.Random) -> str:
    chunk = "".join(chance.choices(BEFORE, k=chance.choice([0, 0, 1, 2])))
    chunk += chance.choice(PLAIN)
    for _ in range(chance.choice([0, 0, 1, 2])):
        chunk += chance.choice(JOINTS) + chance.choice(PLAIN)
    return chunk + "".join(chance.choices(AFTER, k=chance.choice([0, 1, 2, 3])))


HARD = sorted({c for texts in CASES.values() for text in texts for c in text.split()})


def glued_hard_cases(chance: random.Random) -> str:
    text = ""
    for _ in range(chance.randint(1, 4)):
        chunk = chance.choice(HARD)
        start = chance.randint(0, len(chunk))
        text += chunk[start : start + chance.randint(1, 12)] if chance.random() < 0.7 else chunk
    return text.upper() if chance.random() < 0.3 else text


@pytest.mark.parametrize(
    ("draw", "seed", "n_chunks"),
    [
        (of_pieces, 20360, 1200),
        (with_marks, 42, 2000),
        (in_plain_punctuation, 20361, 2000),
        (glued_hard_cases, 20263, 1500),
    ],
)
def test_random_chunks_split_as_in_spacy(draw: Draw, seed: int, n_chunks: int) -> None:
    chance = random.Random(seed)
    for _ in range(n_chunks):
        chunk = draw(chance)
        assert words(chunk) == reference_words(chunk), ascii(chunk)


@pytest.mark.parametrize("name", CASES)
def test_every_hard_case_is_cut_as_spacy_cuts_it(name: str) -> None:
    figures = compare(CASES[name])
    assert figures.kept >= 80 and not figures.different


@pytest.mark.parametrize(
    ("text", "ours", "theirs"),
    [
        ("nurse\x00doctor", ["nurse", "doctor"], ["nurse\x00doctor"]),
        ("x" * (MAX_CHUNK + 1), ["x" * MAX_CHUNK, "x"], ["x" * (MAX_CHUNK + 1)]),
        ("8-10a.m. _.", ["8", "10", "a.m"], ["8", "10a.m"]),
    ],
    ids=["NUL", "long", "across whitespace"],
)
def test_known_differences_are_as_described(text: str, ours: list[str], theirs: list[str]) -> None:
    """In docs/corpora.md."""
    assert (words(text), reference_words(text)) == (ours, theirs)


@pytest.mark.reference
@pytest.mark.parametrize("shard", SHARDS)
def test_agreement_on_reference_shards(data: Path, shard: str) -> None:
    common = total = 0
    path = data / "corpora" / f"{shard}.jsonl.zst"
    for text in itertools.islice(documents(path), 0, None, 40):
        same, length = agreement(tokenize(text), reference_tokens(text, DEFAULT_TARGETS))
        common, total = common + same, total + length
    assert total > 10_000
    assert common / total >= 0.999


BY_HAND = {
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


@pytest.mark.parametrize("text", BY_HAND)
def test_words(text: str) -> None:
    assert words(text) == BY_HAND[text]


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
