"""Every command that the documents and the help name can be given as it stands."""

import re
import shlex
from collections.abc import Iterator
from importlib.metadata import version
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
import typer

from plumbline.pipelines.command import app as reference
from plumbline.pipelines.command.app import app
from plumbline.pipelines.command.main import main
from plumbline.warehouse.plugins import NAME
from tests.conftest import REPOSITORY

PAGES = sorted([*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").glob("*.md")])
ROOT: Any = typer.main.get_command(app)
#: What stands for the `plumbline` command on a line.
CALLED = re.compile(r"(\.venv(-vllm)?/bin/)?plumbline")
SUBMITTED = re.compile(r".*/submit\.py")


def in_blocks(text: str) -> Iterator[str]:
    """Lines of code blocks, those that a backslash cuts put together again."""
    for block in re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        yield from block.replace("\\\n", " ").splitlines()


def arguments(line: str) -> list[str] | None:
    """What a line gives to `plumbline`; ``None`` where it runs something else."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:  # not a shell's line
        return None
    submits = words[:1] == ["spark-submit"]
    pattern = SUBMITTED if submits else CALLED
    at = next((i for i, word in enumerate(words) if pattern.fullmatch(word)), None)
    if at is None or not (submits or all("=" in word for word in words[:at])):
        return None
    return [*takewhile(lambda word: word not in ("&", ">"), words[at + 1 :])]


def parse(command: Any, words: list[str], name: str = "plumbline") -> None:
    """Read the words as the command line would, and run nothing. Raises its usage errors."""
    context = command.make_context(name, list(words))
    if hasattr(command, "resolve_command"):
        rest = [*getattr(context, "_protected_args", ()), *context.args]
        if not rest and command.invoke_without_command:
            return
        found, inner, rest = command.resolve_command(context, rest)
        parse(inner, rest, found)


def helps(command: Any) -> Iterator[str]:
    """The examples of all commands."""
    for text in (command.help, command.epilog):
        if text:
            found = re.findall(r"Example:\s*(.*?)(?:\n\n|\Z)", text, re.DOTALL)
            yield from (" ".join(example.split()) for example in found)
    for name in getattr(command, "commands", ()):  # a stub, until it is asked for
        yield from helps(command.get_command(None, name))


COMMANDS = [
    pytest.param(words, id=f"{page.name}: {' '.join(words)[:60]}")
    for page in PAGES
    for line in in_blocks(page.read_text(encoding="utf-8"))
    if (words := arguments(line)) is not None and words[:1] != ["topics"]  # of the page's package
]
EXAMPLES = [
    pytest.param(words, id=" ".join(words)[:60])
    for example in helps(ROOT)
    if (words := arguments(example)) is not None
]


@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_on_a_page_can_be_given(words: list[str]) -> None:
    parse(ROOT, words)


@pytest.mark.parametrize("words", EXAMPLES)
def test_an_example_in_the_help_can_be_given(words: list[str]) -> None:
    parse(ROOT, words)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_pages_that_errors_and_help_name_are_there() -> None:
    rooms = ("warehouse", "jobs", "eval_workers", "pipelines", "plumbline")
    files = (path for room in rooms for path in (REPOSITORY / room).rglob("*.py"))
    named = {
        page for path in files for page in re.findall(r"docs/[\w-]+\.md", path.read_text("utf-8"))
    }
    assert len(named) > 15 and not {page for page in named if not (REPOSITORY / page).exists()}


def test_the_index_lists_each_page_once() -> None:
    """In one of the four kinds; the site's navigation is made from it."""
    docs = REPOSITORY / "docs"
    kinds = re.split(r"(?m)^## ", (docs / "index.md").read_text(encoding="utf-8"))[1:]
    assert [kind.split("\n", 1)[0] for kind in kinds] == [
        *("Tutorials", "How-to guides", "Reference", "Explanation")
    ]
    listed = [page for kind in kinds for page in re.findall(r"(?m)^- \[.*?\]\((.*?)\): ", kind)]
    there = [*docs.glob("*.md"), *docs.glob("notebooks/*.ipynb")]
    assert sorted(listed) == sorted(
        str(page.relative_to(docs)) for page in there if page.name != "index.md"
    )


def test_the_lists_of_commands_are_those_of_their_classes() -> None:
    """Written anew by python -m plumbline.pipelines.command.app docs/commands.md"""
    page = (REPOSITORY / "docs" / "commands.md").read_text(encoding="utf-8")
    assert reference.written(page) == page


def test_it_says_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"plumbline {version(NAME)}\n"
