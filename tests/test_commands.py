"""A command as a class: all that comes from it, for ours and for one of another package."""

import json
import shlex
import sys
from pathlib import Path

import pytest

import plumbline
from plumbline.pipelines.command import registry
from plumbline.pipelines.command.base import Done
from plumbline.pipelines.command.command_line import _print_rows, show
from plumbline.pipelines.command.main import main
from plumbline.pipelines.command.settings import made
from plumbline.pipelines.commands.model_commands.score import Score
from plumbline.warehouse.errors import UsageProblem
from tests.test_plugins import install

TIDY = '''
"""A command of another package."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from plumbline.pipelines.command.base import Command, Context, Done, On, Row, planned


class Tidy(Command):
    """Count letters of words.

    Example: plumbline shelf tidy tea rum
    """

    makes_warehouse = True

    words: Annotated[tuple[str, ...], Field(description="Words."), On(positional=True)]
    times: Annotated[int, Field(ge=1, le=9, description="How often.")] = 1
    case: Annotated[Literal["upper", "lower"], Field(description="Letters.")] = "lower"
    loud: Annotated[bool, Field(description="With a mark.")] = True

    def plan(self, store: object) -> Iterator[Row]:
        yield planned("words", "to count", len(self.words))

    def run(self, context: Context) -> Done:
        rows = [context.stage(f"count {word}", self.counted, word) for word in self.words]
        return Done(rows=rows, next="plumbline sql")

    def counted(self, word: str) -> Row:
        shown = word.upper() if self.case == "upper" else word
        return {"word": shown + "!" * self.loud, "n_letters": self.times * len(word)}
'''


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another package with one command, and an empty working directory."""
    packages, work = tmp_path / "packages", tmp_path / "work"
    (packages / "shelf_pack").mkdir(parents=True)
    work.mkdir()
    (packages / "shelf_pack/__init__.py").write_text("")
    (packages / "shelf_pack/tidy.py").write_text(TIDY)
    entries = "[plumbline.commands]\nshelf tidy = shelf_pack.tidy:Tidy\n"
    install(packages, "shelf-pack", entries)
    monkeypatch.syspath_prepend(packages)
    monkeypatch.chdir(work)
    monkeypatch.delenv("PLUMBLINE_WAREHOUSE", raising=False)
    registry.targets.cache_clear()
    yield work
    registry.targets.cache_clear()
    for name in ("shelf_pack", "shelf_pack.tidy"):
        sys.modules.pop(name, None)


def test_the_help_names_a_command_of_another_package_and_imports_none(
    shelf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--help"]) == 0
    assert "shelf" in capsys.readouterr().out and "shelf_pack.tidy" not in sys.modules


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("[shelf.tidy]\ntims = 2", "[shelf.tidy]: key 'tims': is unknown"),
        ("[shelf.tidy]\ntimes = [2]", "plumbline.toml: times = [2]: should be a valid integer"),
        ("[shelf.tidy]\ncase = ['upper', 'lower']", "should be 'upper' or 'lower'"),
        ("[corpus.cuont]\nwindow = 5", "plumbline.toml [corpus]: key 'cuont': is unknown"),
        ("[fairpair]\nn = 5", "plumbline.toml [fairpair]: key 'n': is unknown"),
        ("banchmarks = 'use-5'", "plumbline.toml: key 'banchmarks': is unknown"),
        ("[shelf]\ntidy = 5", "shelf tidy: isn't a table"),
    ],
)
def test_the_settings_file_is_checked(
    shelf: Path, capsys: pytest.CaptureFixture[str], table: str, message: str
) -> None:
    (shelf / "plumbline.toml").write_text(f"{table}\n")
    assert main(["shelf", "tidy", "tea"]) == 2
    assert message in capsys.readouterr().err


def test_a_dry_run_of_a_count_says_how_much_it_would_count(
    shelf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = shelf / "texts.jsonl"
    texts.write_text('{"text": "She is a nurse and he is a captain."}\n')
    given = ["corpus", "count", "texts.jsonl", "--corpus", "a"]

    def planned() -> dict[str, tuple[str, int]]:
        assert main([*given, "--dry-run", "--format", "json"]) == 0
        rows = json.loads(capsys.readouterr().out)
        return {row["subject"]: (row["what"], row["amount"]) for row in rows}

    n_bytes = texts.stat().st_size
    before = planned()
    assert before["texts.jsonl"] == ("to count", n_bytes)
    assert before["a"] == ("bytes to count", n_bytes)
    assert before["this machine"] == ("processes", 1)
    assert list(shelf.iterdir()) == [texts], "nothing is made"
    assert main(given) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert main(shlex.split(last.removeprefix("Next: plumbline "))) == 0, "what it says to do next"
    capsys.readouterr()
    made = sorted(shelf.rglob("*"))
    given += ["--window", "5"]
    assert main([*given, "--dry-run"]) == 2
    refused = capsys.readouterr().err
    assert "exists with window_tokens 10" in refused and "again with --replace" in refused
    given += ["--replace"]
    assert planned()["texts.jsonl"] == ("to count", n_bytes)
    assert sorted(shelf.rglob("*")) == made
    given += ["--master", "local[2]"]
    assert planned()["Spark"] == ("counts", None)


def test_it_is_a_method_in_python(shelf: Path) -> None:
    wh = plumbline.open(shelf / "w", "arrow", create=True)
    assert "shelf_tidy" in dir(wh)
    about = wh.shelf_tidy.__doc__ or ""
    assert about.startswith("Count letters of words.") and "times: How often." in about
    rows = wh.shelf_tidy(words=["tea"], case="upper").to_pylist()
    assert rows == [{"word": "TEA!", "n_letters": 3}]
    assert wh.run("shelf tidy", words=["tea"]).to_pylist() == [{"word": "tea!", "n_letters": 3}]
    with pytest.raises(UsageProblem, match="times = 10: should be less than or equal to 9"):
        wh.shelf_tidy(words=["tea"], times=10)
    with pytest.raises(UsageProblem, match="key 'tims': is unknown"):
        wh.shelf_tidy(words=["tea"], tims=1)
    with pytest.raises(UsageProblem, match="warehouse: is no option here"):
        wh.shelf_tidy(words=["tea"], warehouse="other")
    with pytest.raises(AttributeError, match="no 'shelf_mess'"):
        wh.shelf_mess()


def test_a_broken_entry_is_one_line(shelf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (shelf.parent / "packages/shelf_pack/tidy.py").write_text("Tidy = 3\n")
    assert main(["shelf", "tidy", "tea"]) == 3
    assert "command shelf tidy: shelf_pack.tidy:Tidy is no Command" in capsys.readouterr().err


def test_every_file_that_was_written_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    show(Done(files=("a.csv", "b.json")), made(Score, {"model": "m", "benchmark": "b"}), "table")
    assert capsys.readouterr().out == "Wrote a.csv\nWrote b.json\n"


def test_csv_is_no_formula_and_steers_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"name": "=1+1", "n": -2}, {"name": "\x1b[2J", "n": None}]
    _print_rows(rows, "csv")
    assert capsys.readouterr().out == "name,n\n'=1+1,-2\n\x1b[2J,\n"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    _print_rows(rows, "csv")
    assert capsys.readouterr().out == "name,n\n'=1+1,-2\n\\x1b[2J,\n"
