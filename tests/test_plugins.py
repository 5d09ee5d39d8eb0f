"""Parts of other installed packages: found by name, imported when used, faults named in a line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest

from plumbline.eval_workers.pairs import benchmarks
from plumbline.warehouse.errors import BadInput, MissingComponent, PlumblineError, UsageProblem
from plumbline.warehouse.plugins import Registry


class Tea(Protocol):
    LEAVES: int

    def pour(self) -> str: ...


#: `escape` is a module of the package's own, here in the role of a part.
CODE = Registry("tea", "plumbline.warehouse.text", ".py", "plumbline.teas", Tea)
FILES = Registry("list", "plumbline.warehouse.wordlists", ".toml", "plumbline.lists")
SPICES = Registry("list", FILES.package, ".toml", FILES.group, made=("herbs", "spices"))
MODULES = {
    "green": "LEAVES = 3\ndef pour(): return 'cup'\n",
    "object": "",
    "broken": "import no_such_module\n",
    "lacking": "LEAVES = 3\n",
    "absent": (
        "from plumbline.warehouse.errors import MissingComponent\n"
        "raise MissingComponent('kettle', 'is not installed', 'buy one')\n"
    ),
}
ENTRIES = """
[plumbline.teas]
green = cups.green
broken = cups.broken
lacking = cups.lacking
gone = cups.object:coffee
absent = cups.absent
escape = cups.green

[plumbline.lists]
herbs = cups
nowhere = cups
she-he = cups
"""


def install(directory: Path, name: str, entries: str) -> None:
    """What an installed package leaves in a directory of the path."""
    info = directory / f"{name}-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(entries)


@pytest.fixture
def strangers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with teas and lists on the path."""
    (tmp_path / "cups").mkdir()
    for name, text in {"__init__": "", **MODULES}.items():
        (tmp_path / "cups" / f"{name}.py").write_text(text)
    install(tmp_path, "cups", ENTRIES)
    monkeypatch.syspath_prepend(tmp_path)
    for name in [m for m in sys.modules if m.partition(".")[0] == "cups"]:
        monkeypatch.delitem(sys.modules, name)
    return tmp_path


@pytest.mark.parametrize(
    ("load", "name", "error", "named"),
    [
        (CODE.load, "broken", BadInput, ("tea 'broken' of cups 1.2: ", "ModuleNotFoundError")),
        (
            CODE.load,
            "lacking",
            BadInput,
            ("tea 'lacking' of cups 1.2: ", "no pour", "LEAVES, pour"),
        ),
        (CODE.load, "gone", BadInput, ("tea 'gone' of cups 1.2: ", "'coffee'")),
        (CODE.load, "absent", MissingComponent, ("buy one",)),
        (CODE.load, "mint", UsageProblem, ("tea 'mint'", "green", "placeholders")),
        (CODE.load, "escape", UsageProblem, ("plumbline and cups 1.2",)),
        (FILES.text, "she-he", UsageProblem, ("plumbline and cups 1.2",)),
        (FILES.text, "nowhere", BadInput, ("list 'nowhere' of cups 1.2", "nowhere.toml")),
        (SPICES.find, "herbs", UsageProblem, ("plumbline and cups 1.2",)),
    ],
)
def test_a_fault_is_one_line_with_the_package_and_what_was_expected(
    *,
    strangers: Path,
    load: Callable[[str], object],
    name: str,
    error: type[PlumblineError],
    named: tuple[str, ...],
) -> None:
    with pytest.raises(error) as caught:
        load(name)
    assert all(part in str(caught.value) for part in named) and "\n" not in str(caught.value)
    assert "spices" in SPICES.names() and SPICES.find("spices") is None


def test_a_benchmark_of_our_name_is_refused_whatever_its_module_is_called(
    strangers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "NAMES, DESCRIPTION, DEFAULT_LOCATION, read = ('use-5',), 'd', None, print\n"
    (strangers / "cups" / "fives.py").write_text(text)
    install(strangers / "more", "mugs", "[plumbline.benchmarks]\nuse_5 = cups.fives\n")
    monkeypatch.syspath_prepend(strangers / "more")
    with pytest.raises(UsageProblem, match="released_sets and use_5 each have one of this name"):
        benchmarks.find("use-5")
    assert benchmarks.find("use-10").NAMES
