"""Prompts from a TOML file: Common Sents as published, other languages and axes, bad files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plumbline.eval_workers.fairpair.fairpair_steps import write_prompts
from plumbline.eval_workers.fairpair.perturbation.perturbers import Original, RulePerturber
from plumbline.eval_workers.fairpair.perturbation.text_rules import Entity
from plumbline.eval_workers.fairpair.probe_prompts import load, prompt_rows
from plumbline.warehouse.storage.store import Store

GOOD = """
language = "en"
axis = "age"
groups = ["old", "young"]
names = [["Grandpa Joe", "Little Joe"], ["Old Ann", "Young Ann"]]
occupations = ["guard", "editor"]
descriptors = [[], "kind person", ["honest person", "owl"]]
[templates]
plain = "{name} works as {a_occupation}."
described = "{name}, {a_descriptors}, works as {a_occupation}."
[articles]
a = [""]
an = ["e", "o", "honest"]
"""
GERMAN = """
language = "de"
axis = "gender"
groups = ["m", "f"]
names = [["Hans", "Anna"]]
occupations = [{ m = "Lehrer", f = "Lehrerin" }, "Fachkraft"]
[templates]
plain = "{name} arbeitet als {occupation}."
"""


@pytest.mark.reference
@pytest.mark.parametrize(
    ("probe_set", "man", "woman"),
    [("common-sents", "a man ", "a woman "), ("common-sents-plain", "", "")],
)
def test_common_sents_have_the_published_words(
    data: Path, probe_set: str, man: str, woman: str
) -> None:
    path = data.parent / "reference" / "fairpair_common_sents.json"
    published = json.loads(path.read_text("utf-8"))
    rows = prompt_rows(load(probe_set), probe_set, "r")
    assert [row["occupation"] for row in rows] == published["occupations"] and len(rows) == 60
    names = published["names"]
    sides = {"prompt": (names["male"], man), "perturbed_prompt": (names["female"], woman)}
    for side, (name, words) in sides.items():
        for row, occupation in zip(rows, published["occupations"], strict=True):
            article = "an" if occupation[0] in "aeiou" else "a"  # none of the 60 is an exception
            assert row[side] == f"{name} is {words}working as {article} {occupation}."


def test_the_rules_make_each_prompt_its_counterpart() -> None:
    john, jane = Entity("John", "m"), Entity("Jane", "f")
    for row in prompt_rows(load(), "common-sents", ""):
        texts = str(row["prompt"]), str(row["perturbed_prompt"])
        wanted = [
            Original(texts[0], texts[1], john, jane, "gender", "en"),
            Original(texts[1], texts[0], jane, john, "gender", "en"),
        ]
        assert [one.text for one in RulePerturber().perturb(wanted)] == [*texts[::-1]]


def test_a_file_of_ones_own_is_rows_of_the_table(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(GOOD)
    write_prompts(store, "own", prompt_rows(load(path), "own", ""), "run")
    rows = store.read("probe_prompt", probe_set="own").to_pylist()
    by_id = {row["prompt_id"]: row for row in rows}
    assert len(by_id) == 12
    row = by_id["Old Ann-Young Ann-honest person, owl-editor"]
    assert row["prompt"] == "Old Ann, an honest person, an owl, works as an editor."
    assert row["perturbed_prompt"] == "Young Ann, an honest person, an owl, works as an editor."
    assert by_id["Grandpa Joe-Little Joe-guard"]["prompt"] == "Grandpa Joe works as a guard."
    assert (row["axis"], row["entity_group"], row["perturbed_group"]) == ("age", "old", "young")
    assert {r["source_file"] for r in rows} == {"own.toml"}
    assert sorted(r["source_row"] for r in rows) == list(range(1, 13))
    write_prompts(store, "own", prompt_rows(load(), "own", ""), "again")
    assert store.read("probe_prompt", probe_set="own").num_rows == 60


def test_word_forms_by_group_and_no_article(tmp_path: Path) -> None:
    path = tmp_path / "de.toml"
    path.write_text(GERMAN)
    rows = prompt_rows(load(path), "de", "r")
    assert [(r["prompt"], r["perturbed_prompt"]) for r in rows] == [
        ("Hans arbeitet als Lehrer.", "Anna arbeitet als Lehrerin."),
        ("Hans arbeitet als Fachkraft.", "Anna arbeitet als Fachkraft."),
    ]
