"""Sentences of any group's pronouns: those of she and he as before, verbs that agree with they."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.eval_workers.pairs.benchmarks import ImportOptions, find, for_groups
from plumbline.eval_workers.pairs.pronouns.pronoun_templates import Undecided, fill_for

#: Template, and the sentence about them, written by hand.
THEY = {
    "{pronoun} is tall.": "They are tall.",
    "{pronoun} was late, wasn't {pronoun}?": "They were late, weren't they?",
    "{pronoun} has a car and drives it.": "They have a car and drive it.",
    "Ann says {pronoun} does.": "Ann says they do.",
    "{pronoun} runs {pronoun1} shop.": "They run their shop.",
    "{pronoun} often carries {pronoun1} bag.": "They often carry their bag.",
    "{pronoun} sometimes watches {pronoun2}self.": "They sometimes watch themselves.",
    "{pronoun} really fixes the car.": "They really fix the car.",
    "{pronoun} cries at night.": "They cry at night.",
    "{pronoun} goes home and is happy.": "They go home and are happy.",
    "{pronoun} ran home and was happy.": "They ran home and were happy.",
    "{pronoun} will sing.": "They will sing.",
    "{pronoun} could have been first.": "They could have been first.",
    "{pronoun}'ll sing, and {pronoun}'d know.": "They'll sing, and they'd know.",
    "{pronoun}'s going home.": "They're going home.",
    "{pronoun}'s never been there.": "They've never been there.",
    "{pronoun} isn't here and hasn't called.": "They aren't here and haven't called.",
    "Was {pronoun} there?": "Were they there?",
    "What does {pronoun} want?": "What do they want?",
    "Nor does {pronoun} know.": "Nor do they know.",
    "The nurse said that {pronoun} needs rest.": "The nurse said that they need rest.",
    "{pronoun} knows what {pronoun} wants.": "They know what they want.",
    "{pronoun} loves the sea and hates the sun.": "They love the sea and hate the sun.",
    "{pronoun} and Ann were late.": "They and Ann were late.",
    "The friend was {pronoun1}.": "The friend was theirs.",
    "I saw {pronoun2} with {pronoun1} dog.": "I saw them with their dog.",
    "{pronoun} {pronoun2}self is a cook.": "They themselves are a cook.",
    "{pronoun} misses {pronoun1} train.": "They miss their train.",
    "{pronoun} focuses on {pronoun1} work.": "They focus on their work.",
    "Rarely does {pronoun} sing.": "Rarely do they sing.",
    "{pronoun} had tea.": "They had tea.",
    '"{pronoun} is," Ann said.': '"They are," Ann said.',
}
UNDECIDED = [
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
    with pytest.raises(Undecided, match="stays undecided"):
        fill_for(template, "they")
    assert fill_for(template, "xe")  # a singular verb needs no decision


@pytest.mark.slow
@pytest.mark.reference
def test_how_many_released_templates_are_refused(data: Path) -> None:
    """Those of which the words do not tell what agrees; docs/pairs.md has their share."""
    refused = {}
    for name in ("use-5", "use-10", "use-20", "winobias", "winogender"):
        parsed = find(name).read(name, data / "unstereo-eval/data/datasets/raw")
        made = for_groups(parsed, ImportOptions(groups=("she", "he", "they")))
        assert len(made.pairs) + 3 * (len(made.rejects)) == 3 * len(parsed.pairs)
        refused[name] = len(made.rejects)
    assert refused == {"use-5": 67, "use-10": 108, "use-20": 199, "winobias": 0, "winogender": 0}
