"""Wordings are checked before anything is asked with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.eval_workers.generation import prompts
from plumbline.warehouse.errors import BadInput, UsageProblem
from tests.conftest import REPOSITORY

SHIPPED = (REPOSITORY / "eval_workers" / "generation" / "prompts.toml").read_text("utf-8")
MINE = """
generate = "{n} of {max_words} with {word} and {pronoun}"
revise = ["{word} {pronoun} {sentence}", "again {sentence}: {word}, {pronoun}, {max_words}"]
convert = "{sentence} to {pronoun}"
judge = "{{likely}} or not? {sentence}"
"""


def test_a_users_wordings_take_the_place_of_ours(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(MINE, encoding="utf-8")
    found = prompts.load(file)
    assert (len(found.revise), len(found.judge)) == (2, 1)
    assert prompts.fill_prompt(found.judge[0], sentence="{n} left.") == "{likely} or not? {n} left."
    assert found.hash != prompts.load().hash
    assert prompts.load().hash == prompts.parse("same", SHIPPED).hash


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("{word} {pronoun} {sentence}", "{word} {sentence}", "revise, wording 1: {pronoun} is mis"),
        (
            "again {sentence}",
            "{colour} {sentence}",
            "revise, wording 2: {colour} is no",
        ),
        ("{n} of", "some of", "generate: {n} is missing (known here: {max_words}, {n}, {pronoun}"),
        ("{sentence} to {pronoun}", "{sentence!r} {pronoun}", "convert: {sentence!r} is not a pl"),
        ("{sentence} to {pronoun}", "{sentence:9} {pronoun}", "convert: {sentence:9} is not a pl"),
        ("{{likely}}", "{likely", "judge, wording 1:"),
        ("{{likely}}", "{word}", "judge, wording 1: {word} is not a placeholder"),
        ("judge =", "jugde =", "is missing (the roles are generate, revise, convert, judge)"),
        ('convert = "', 'other = "x"\nconvert = "', "other is not a role"),
        ('"{sentence} to {pronoun}"', "3", "convert has to be text"),
        ('"{{likely}} or not? {sentence}"', "[]", "judge has to be text or a list of texts"),
        ("generate =", "generate", "not valid TOML"),
    ],
)
def test_wrong_wordings_are_one_line(tmp_path: Path, old: str, new: str, line: str) -> None:
    assert old in MINE
    file = tmp_path / "mine.toml"
    file.write_text(MINE.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(BadInput) as raised:
        prompts.load(file)
    assert line in str(raised.value) and str(file) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="no such file"):
        prompts.load(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadInput, match="UTF-8"):
        prompts.load(tmp_path / "bad.toml")
