"""The rule-based perturber: labelled texts, laws, the released pairs, lists of one's own."""

import csv
import gzip
import json
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.eval_workers.fairpair import text_rules as rules
from plumbline.eval_workers.fairpair.perturbers import Original, RulePerturber
from plumbline.eval_workers.fairpair.text_rules import Entity, Perturbed, perturb
from plumbline.eval_workers.fairpair.text_words import load
from plumbline.eval_workers.pairs.pronouns.pronoun_templates import Gender, fill
from plumbline.warehouse.text.placeholders import PLACEHOLDER
from tests.conftest import REPOSITORY

TERMS = load()
PEOPLE = {"m": Entity("John", "m"), "f": Entity("Jane", "f")}
OTHER: dict[str, Gender] = {"m": "f", "f": "m"}


def _perturbed(text: str, group: str) -> Perturbed:
    return perturb(text, PEOPLE[group], PEOPLE[OTHER[group]], TERMS)


def test_labelled_texts() -> None:
    """``expected`` is what a reader makes of the text, null where no reader can tell."""
    told: dict[str, Counter[str]] = {}
    wrong = []
    path = REPOSITORY / "tests" / "data" / "perturb_cases.jsonl"
    for case in map(json.loads, path.read_text("utf-8").splitlines()):
        found = _perturbed(case["text"], case["group"]).text
        right = found == case["expected"]
        verdict = "right" if right else "undecided" if found is None else "wrong"
        told.setdefault(case["kind"], Counter())[verdict] += 1
        if verdict == "wrong":
            wrong.append(case["text"])
    total = sum(told.values(), Counter())
    assert total.total() == 135 and {kind for kind in told} >= {"others", "ambiguous", "title"}
    assert total["right"] >= 0.94 * total.total(), told
    assert total["wrong"] <= 2, wrong


def test_every_reason_occurs_and_is_the_right_one() -> None:
    texts = {
        "John met Jane.": rules.COUNTERPART_NAMED,
        "John met Paul. He left.": rules.RIVAL,
        "John met Paul. John's hat fell. He left.": rules.RIVAL,
        "John saw him.": rules.RIVAL,
        'John sat down. "No," said Hill, and he left.': rules.RIVAL,
        "John came late, and Hill laughed at his hat.": rules.RIVAL,
        "John sings. She sings.": rules.NOBODY_ELSE,
        "John came. The man sang.": rules.NOUN,
        "John is known. They call him Mr. Hall.": rules.TITLE,
    }
    for text, reason in texts.items():
        assert _perturbed(text, "m") == Perturbed(None, reason), text
    assert _perturbed("I saw her smile.", "f") == Perturbed(None, rules.HER)
    assert _perturbed("Jane paid her.", "f") == Perturbed(None, rules.RIVAL)


def test_a_noun_of_somebody_else_s_is_not_the_entity() -> None:
    for text in ("John met the nurse's father.", "John called the neighbour’s son."):
        assert _perturbed(text, "m").text == text.replace("John", "Jane")
    assert _perturbed("John met the father.", "m") == Perturbed(None, rules.NOUN)


#: Sentences about one person alone, whose rules are sure in both directions.
_SURE = st.sampled_from(
    [
        "{name} is a good {man}.",
        "{He} lost {his} key.",
        "I told {him} the news.",
        "{name}'s phone rang, and {he} smiled.",
        "{He} hurt {himself}.",
        "{name} works as a {waiter}.",
        "{Mr}. {name} Hill came late.",
        '"Is {he} here?" they asked.',
        "{NAME} SAID {HE} WAS ILL.",
        "{name}, a {son} of the town, won.",
        "{He} wants to be a {father}.",
        "The weather was fine.",
        "The idea was {his2}.",
    ]
)
_KEYS = "name he his him himself his2 man waiter son father Mr"
_FORMS = {
    "m": "John he his him himself his man waiter son father Mr",
    "f": "Jane she her her herself hers woman waitress daughter mother Ms",
}


def _filled(templates: list[str], group: str) -> str:
    forms = dict(zip(_KEYS.split(), _FORMS[group].split(), strict=True))
    forms |= {"He": forms["he"].capitalize(), "HE": forms["he"].upper()}
    return " ".join(templates).format(NAME=forms["name"].upper(), **forms)


@given(st.lists(_SURE, min_size=1, max_size=6), st.sampled_from("mf"))
def test_there_is_the_other_text_and_back_the_same(templates: list[str], group: str) -> None:
    text = _filled(templates, group)
    there = _perturbed(text, group)
    assert there.text == _filled(templates, OTHER[group]), there.reason
    assert _perturbed(there.text, OTHER[group]).text == text


_LISTED = {
    *_FORMS["m"].lower().split(),
    *_FORMS["f"].lower().split(),
    *(
        word.lower()
        for table in (TERMS.noun_of, TERMS.title_of)
        for side in table.values()
        for word in side
    ),
    *(name.lower() for names in TERMS.first_names.values() for name in names),
}


_MIXED = """John Jane JOHN he she him her his hers himself He's 's man wife woman actor Mr . , and
is the as his mother Paul Mary men or / who said key good ( ) “ - John's Smith a"""
_ANY = st.lists(st.sampled_from([*_MIXED.split(), "\n"]), max_size=25).map(" ".join)


@given(_ANY, st.sampled_from("mf"))
def test_only_listed_words_change(text: str, group: str) -> None:
    found = _perturbed(text, group)
    assert (found.text is None) != (found.reason is None)
    if found.text is None:
        return
    before, after = text.split(" "), found.text.split(" ")
    assert len(before) == len(after)
    for old, new in zip(before, after, strict=True):
        if old != new:
            assert re.split(r"\W", old)[0].strip().lower() in _LISTED, (old, new)


def test_other_axes_and_names_of_several_words() -> None:
    old, young = Entity("Old Ann", "old"), Entity("Young Ann", "young")
    text = "Old Ann is a mother. He met a king. OLD ANN ran."
    (found,) = RulePerturber().perturb([Original(text, "Young Ann", old, young, "age")])
    assert found.text == "Young Ann is a mother. He met a king. YOUNG ANN ran."


def _released(data: Path, name: str, group: Gender) -> Counter[str]:
    """Released pairs behind a sentence with the name: our other side compared with theirs."""
    counts: Counter[str] = Counter()
    path = data / "unstereo-eval/data/datasets/raw" / f"{name}.csv.gz"
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        templates = [row["template"] for row in csv.DictReader(file)]
    for template in filter(PLACEHOLDER.search, templates):
        sides = {g: f"{PEOPLE[g].name} is here. {fill(template, g)}" for g in (group, OTHER[group])}
        found = _perturbed(sides[group], group).text
        agrees = "agree" if found == sides[OTHER[group]] else "differ"
        counts["undecided" if found is None else agrees] += 1
    return counts


@pytest.mark.reference
@pytest.mark.parametrize("group", ["m", "f"])
@pytest.mark.parametrize(
    ("name", "n", "agree", "undecided"),
    [
        ("USE-5", 4954, 0.99, 0.01),
        ("USE-10", 4943, 0.99, 0.01),
        ("USE-20", 4945, 0.985, 0.013),
        ("coref__Winobias__templates.dev", 792, 0.97, 0.021),
        ("coref__Winobias__templates.test", 794, 0.97, 0.015),
        ("coref__Winogender__templates", 240, 1.0, 0.0),
    ],
)
def test_released_pairs(
    data: Path, name: str, n: int, agree: float, undecided: float, group: Gender
) -> None:
    """Theirs differ in pronouns alone, so that a woman stays one there and not here."""
    counts = _released(data, name, group)
    assert counts.total() == n
    assert counts["agree"] >= agree * n and counts["undecided"] <= undecided * n, counts
