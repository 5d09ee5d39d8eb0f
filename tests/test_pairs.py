"""Filling templates: laws over generated templates, and the released sentences."""

from __future__ import annotations

import csv
import gzip
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.eval_workers.pairs.pronouns.pronoun_templates import (
    PRONOUNS,
    fill,
)
from plumbline.warehouse.text.placeholders import PLACEHOLDER

_TEXT = st.text(st.characters(exclude_characters="{}\x00", exclude_categories=("Cs",)), max_size=12)
_PLACEHOLDERS = st.sampled_from(sorted(PRONOUNS["f"]))
_TEMPLATES = st.lists(st.tuples(_TEXT, _PLACEHOLDERS), min_size=1, max_size=4).flatmap(
    lambda parts: _TEXT.map(lambda tail: [*parts, (" " + tail, "")])
)


def _join(parts: list[tuple[str, str]]) -> str:
    # a space keeps "self" a word of its own after {pronoun2}
    return "".join(f"{text} {placeholder}" for text, placeholder in parts)


@given(_TEMPLATES)
def test_only_the_pronouns_differ_and_they_lead_back_to_the_template(
    parts: list[tuple[str, str]],
) -> None:
    template = _join(parts)
    literals = PLACEHOLDER.split(template)
    pattern = "([A-Za-z]+)".join(re.escape(text) for text in literals)
    found = {g: re.fullmatch(pattern, fill(template, g)) for g in ("f", "m")}  # type: ignore[arg-type]
    assert found["f"] and found["m"]
    placeholders = PLACEHOLDER.findall(template)
    for placeholder, f, m in zip(
        placeholders, found["f"].groups(), found["m"].groups(), strict=True
    ):
        assert f[0].isupper() == m[0].isupper()
        assert (f.lower(), m.lower()) == (PRONOUNS["f"][placeholder], PRONOUNS["m"][placeholder])


@pytest.mark.parametrize(
    ("template", "female", "male"),
    [
        ("{pronoun} ran.", "She ran.", "He ran."),
        ('"{pronoun1} key"', '"Her key"', '"His key"'),
        ("('{pronoun2}self')", "('Herself')", "('Himself')"),
        ("Presto! {pronoun} won.", "Presto! She won.", "Presto! He won."),
        ("Ann left. ({pronoun} ran.)", "Ann left. (She ran.)", "Ann left. (He ran.)"),
        ('"Go." {pronoun} ran.', '"Go." She ran.', '"Go." He ran.'),
        ('"Why?" {pronoun} said.', '"Why?" she said.', '"Why?" he said.'),
        ("One:\n{pronoun} ran.", "One:\nShe ran.", "One:\nHe ran."),
        ("Then; {pronoun} saw {pronoun2}.", "Then; she saw her.", "Then; he saw him."),
        ("The cook [{pronoun1}] hat", "The cook [her] hat", "The cook [his] hat"),
    ],
)
def test_capitals(template: str, female: str, male: str) -> None:
    assert fill(template, "f") == female
    assert fill(template, "m") == male


def _rows(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.reference
@pytest.mark.parametrize("split", ["dev", "test"])
def test_winobias_sentences_come_back_exactly(data: Path, split: str) -> None:
    raw = data / "unstereo-eval/data/datasets/raw"
    rows = _rows(raw / f"coref__Winobias__templates.{split}.csv.gz")
    assert len(rows) in (792, 794)
    for row in rows:
        gender = "f" if row["target_word"] in ("she", "her", "hers", "herself") else "m"
        assert fill(row["template"], gender) == row["sentence"]


@pytest.mark.reference
@pytest.mark.parametrize("benchmark", ["5words", "10words", "20words", "Winobias", "Winogender"])
def test_scored_texts_come_back_up_to_their_capitals_and_quotes(data: Path, benchmark: str) -> None:
    """The released scores hold both filled texts, lowercased but for the first letter."""

    def plain(text: str) -> str:
        return text.replace('"', "").casefold()

    files = sorted((data / "unstereo-eval/results" / benchmark).glob("*pythia-70m.csv.gz"))
    assert files
    for row in (row for file in files for row in _rows(file)):
        assert plain(fill(row["template"], "f")) == plain(row["F_template"])
        assert plain(fill(row["template"], "m")) == plain(row["M_template"])


@pytest.mark.reference
@pytest.mark.parametrize("words", [5, 10, 20])
def test_capitals_are_those_of_the_released_sentences(data: Path, words: int) -> None:
    """Where the template is the sentence with its pronouns taken out, they fit letter by letter."""
    rows = _rows(data / f"unstereo-eval/data/datasets/raw/USE-{words}.csv.gz")
    n_compared = n_wrong = 0
    for row in rows:
        literals = PLACEHOLDER.split(row["template"])
        pattern = "([A-Za-z]+)".join(re.escape(text) for text in literals)
        if not (match := re.fullmatch(pattern, row["sentence"])):
            continue  # the template was revised after the sentence
        filled = re.fullmatch(pattern, fill(row["template"], "f"))
        assert filled
        for ours, theirs in zip(filled.groups(), match.groups(), strict=True):
            n_compared += 1
            n_wrong += ours[0].isupper() != theirs[0].isupper()
    assert n_compared > 6000
    assert n_wrong <= 1  # one released sentence reads "and Hime fearlessly"
