"""The hard cases of ``data/hard_cases.jsonl`` and the known differences, tested against spaCy."""

from __future__ import annotations

import random

import pytest

from plumbline.jobs.kernel.tokens.chunk_words import MAX_CHUNK
from tests.conftest import REPOSITORY
from tests.spacy_reference import (
    compare,
    hard_cases,
    reference_words,
    words,
)

pytest.importorskip("spacy")

CASES = hard_cases()

#: Heading of the difference in docs/corpora.md -> a text, our words, spaCy's words.
DIFFERENCES = {
    "NUL": ("nurse\x00doctor", ["nurse", "doctor"], ["nurse\x00doctor"]),
    "Long runs": ("x" * (MAX_CHUNK + 1), ["x" * MAX_CHUNK, "x"], ["x" * (MAX_CHUNK + 1)]),
    "Exceptions across whitespace": ("8-10a.m. _.", ["8", "10", "a.m"], ["8", "10a.m"]),
}


@pytest.mark.parametrize("name", CASES)
def test_agreement_by_class(name: str) -> None:
    figures = compare(CASES[name])
    print(f"{name}: {figures.share} of {figures.kept} kept tokens in {figures.texts} cases")
    for text in figures.different[:5]:
        print(f"  {text!a}\n    ours   {words(text)}\n    spaCy's {reference_words(text)}")
    assert figures.kept >= 80
    assert figures.common >= 0.999 * figures.kept


@pytest.mark.parametrize(
    ("seed", "n_texts"), [(20263, 1500), pytest.param(20262, 8000, marks=pytest.mark.slow)]
)
def test_pieces_of_hard_cases_glued_split_as_in_spacy(seed: int, n_texts: int) -> None:
    chance = random.Random(seed)
    chunks = sorted({c for texts in CASES.values() for text in texts for c in text.split()})

    def piece() -> str:
        chunk = chance.choice(chunks)
        start = chance.randint(0, len(chunk))
        return chunk[start : start + chance.randint(1, 12)] if chance.random() < 0.7 else chunk

    for _ in range(n_texts):
        text = "".join(piece() for _ in range(chance.randint(1, 4)))
        text = text.upper() if chance.random() < 0.3 else text
        assert words(text) == reference_words(text), ascii(text)


def test_the_page_lists_the_differences_and_figures_as_they_are() -> None:
    page = (REPOSITORY / "docs" / "corpora.md").read_text(encoding="utf-8")
    section = page.split("### Known differences\n")[1].split("\n#")[0]
    listed = [line.split("**")[1] for line in section.splitlines() if line.startswith("- **")]
    assert listed == list(DIFFERENCES)
    found = [compare(texts) for texts in CASES.values()]
    n_texts, n_kept = sum(f.texts for f in found), sum(f.kept for f in found)
    assert f"has {n_texts} texts" in page and f"in {len(CASES)} classes" in page
    assert all(f.identical == f.texts for f in found)
    assert f"all {n_kept:,} kept tokens are those of spaCy" in page
