"""The tokeniser tested against spaCy: its facts, and its tokens on the reference shards."""

from __future__ import annotations

import itertools
import random
import re
from pathlib import Path

import pytest

from plumbline.jobs.kernel.tokens.language_tables import english
from plumbline.jobs.kernel.tokens.tokenizer import DEFAULT_TARGETS, tokenize
from plumbline.warehouse.input.shards import documents
from tests.spacy_reference import agreement, reference_tokens, tokenizer

pytest.importorskip("spacy")

SHARDS = [f"{c}/{n:02}" for c, k in (("gutenberg", 4), ("nltk", 2)) for n in range(k)]


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


PIECES = """
don't U.S. e.g. Mr. ( ) [ ] { } ' " ’s 's n't - -- — – . .. ... … ! ? , : ; / http:// www. a.com
b.org/x?y=1 @ foo Bar BAZ 10 3.14 1,000 km m² $ US$ C$ € % + = < > ^ * _ ~ # & | ` “ ” « » \\ é ΣΑΣ
İ ß ẞ ǅ ﬁ 中文 かな ไทย א \u0301 \u200b \u00ad 😀 ❤️ © ° F. ½ ² 192.168.1.1 8.8.8.8/a co.uk :80 #x
&amp; <br> -> 1x x1 can't Gonna a.m. 10am 9p.m. :) :-D o_O 8) y'all c'mon ma'am 'em 'Cause
"""


@pytest.mark.parametrize(
    ("seed", "n_chunks"), [(20360, 1200), pytest.param(20260, 4000, marks=pytest.mark.slow)]
)
def test_random_chunks_split_as_in_spacy(seed: int, n_chunks: int) -> None:
    chance = random.Random(seed)
    specials, pieces = list(english()["specials"]), PIECES.split()
    for _ in range(n_chunks):
        pool = [chance.choice(pieces if chance.random() < 0.85 else specials) for _ in range(5)]
        chunk = "".join(pool[: chance.randint(1, 5)])
        assert tokenize(chunk) == reference_tokens(chunk, DEFAULT_TARGETS), chunk


MARKS = ["", "", *"_'\"(,.;:!?’”“…*/$@", "--", "...", "é", "7"]
DASHES = ["-", "--", "---", "----", "—", "——", "–", "-—", "~", "'", "’", "."]


def test_letters_with_marks_and_dashes_split_as_in_spacy() -> None:
    chance = random.Random(42)
    texts = [*english()["specials"], *english()["stop_words"], "Word US WORD km C a lad's"]
    runs = sorted({run for text in texts for run in re.findall("[A-Za-z]+", text)})
    for _ in range(2000):
        chunk = chance.choice(runs)
        for _ in range(chance.choice([0, 0, 0, 1, 2])):
            chunk += chance.choice(DASHES) + chance.choice(runs)
        ends = [chance.choice(MARKS) + chance.choice(MARKS) for _ in range(2)]
        chunk = chunk.join(ends)
        assert tokenize(chunk) == reference_tokens(chunk, DEFAULT_TARGETS), chunk


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


@pytest.mark.parametrize(
    ("seed", "n_chunks"), [(20361, 2000), pytest.param(20261, 6000, marks=pytest.mark.slow)]
)
def test_words_in_plain_punctuation_split_as_in_spacy(seed: int, n_chunks: int) -> None:
    chance = random.Random(seed)
    words = [*"aAsSo", "word", "Word", "WORD", "U.S", "AB", "man", "Mr", "don", "e.g", "cant"]
    before, after = (
        list("\"'([{*_“‘—$"),
        [*".,;:!?\"')]}*_”’—", "..", "...", "'s", "’s", "'S"],
    )
    joints = ["-", "--", "---", "----", "—", "——", "–", ",--", "'", "/", "."]
    for _ in range(n_chunks):
        chunk = "".join(chance.choices(before, k=chance.choice([0, 0, 1, 2])))
        chunk += chance.choice(words)
        for _ in range(chance.choice([0, 0, 1, 2])):
            chunk += chance.choice(joints) + chance.choice(words)
        chunk += "".join(chance.choices(after, k=chance.choice([0, 1, 2, 3])))
        assert tokenize(chunk) == reference_tokens(chunk, DEFAULT_TARGETS), chunk
