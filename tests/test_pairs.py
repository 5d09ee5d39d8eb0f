"""Filling templates: laws, the released sentences, verbs that agree with they."""

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
    fill_for,
)
from plumbline.warehouse.text.placeholders import PLACEHOLDER

_TEXT = st.text(st.characters(exclude_characters="{}\x00", exclude_categories=("Cs",)), max_size=12)
_PLACEHOLDERS = st.sampled_from(sorted(PRONOUNS["f"]))
_TEMPLATES = st.lists(st.tuples(_TEXT, _PLACEHOLDERS), min_size=1, max_size=4).flatmap(
    lambda parts: _TEXT.map(lambda tail: [*parts, (" " + tail, "")])
)


@given(_TEMPLATES)
def test_only_the_pronouns_differ_and_they_lead_back_to_the_template(
    parts: list[tuple[str, str]],
) -> None:
    # a space keeps "self" a word of its own after {pronoun2}
    template = "".join(f"{text} {placeholder}" for text, placeholder in parts)
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


#: Template, and the sentence about them, written by hand.
THEY = {
    "{pronoun} is tall.": "They are tall.",
    "Ann says {pronoun} does.": "Ann says they do.",
    "{pronoun} runs {pronoun1} shop.": "They run their shop.",
    "{pronoun} often carries {pronoun1} bag.": "They often carry their bag.",
    "{pronoun} sometimes watches {pronoun2}self.": "They sometimes watch themselves.",
    "{pronoun} really fixes the car.": "They really fix the car.",
    "{pronoun} cries at night.": "They cry at night.",
    "{pronoun} will sing.": "They will sing.",
    "{pronoun} could have been first.": "They could have been first.",
    "{pronoun}'ll sing, and {pronoun}'d know.": "They'll sing, and they'd know.",
    "The nurse said that {pronoun} needs rest.": "The nurse said that they need rest.",
    "{pronoun} knows what {pronoun} wants.": "They know what they want.",
    "{pronoun} and Ann were late.": "They and Ann were late.",
    "The friend was {pronoun1}.": "The friend was theirs.",
    "I saw {pronoun2} with {pronoun1} dog.": "I saw them with their dog.",
    "{pronoun} {pronoun2}self is a cook.": "They themselves are a cook.",
    "{pronoun} misses {pronoun1} train.": "They miss their train.",
    "{pronoun} focuses on {pronoun1} work.": "They focus on their work.",
    "{pronoun} had tea.": "They had tea.",
    '"{pronoun} is," Ann said.': '"They are," Ann said.',
}
UNDECIDED = [
    "{pronoun} was late, wasn't {pronoun}?",
    "{pronoun} has a car and drives it.",
    "{pronoun} goes home and is happy.",
    "{pronoun} ran home and was happy.",
    "{pronoun}'s going home.",
    "{pronoun}'s never been there.",
    "{pronoun} isn't here and hasn't called.",
    "Was {pronoun} there?",
    "What does {pronoun} want?",
    "Nor does {pronoun} know.",
    "{pronoun} loves the sea and hates the sun.",
    "Rarely does {pronoun} sing.",
    "{pronoun} likes cats and dogs.",  # dogs: a verb?
    "The truth is {pronoun} left.",  # is she left?
    "{pronoun}'s finished.",  # is or has
    "{pronoun}, a nurse, runs the shop.",
    "It was {pronoun} who was late.",
    "{pronoun} or Ann was late.",
]


@pytest.mark.parametrize("template", THEY)
def test_the_verb_agrees_with_they(template: str) -> None:
    assert fill_for(template, "they") == THEY[template]


@pytest.mark.parametrize("template", UNDECIDED)
def test_what_the_words_do_not_decide_is_refused(template: str) -> None:
    with pytest.raises(ValueError, match="stays undecided"):
        fill_for(template, "they")
    assert fill_for(template, "xe")  # a singular verb needs no decision
