"""Prompts from a TOML file: Common Sents as published, other languages and axes, bad files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plumbline.eval_workers.fairpair.probe_prompts import load, prompt_rows

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


def test_word_forms_by_group_and_no_article(tmp_path: Path) -> None:
    path = tmp_path / "de.toml"
    path.write_text(GERMAN)
    rows = prompt_rows(load(path), "de", "r")
    assert [(r["prompt"], r["perturbed_prompt"]) for r in rows] == [
        ("Hans arbeitet als Lehrer.", "Anna arbeitet als Lehrerin."),
        ("Hans arbeitet als Fachkraft.", "Anna arbeitet als Fachkraft."),
    ]
