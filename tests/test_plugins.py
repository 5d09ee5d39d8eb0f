"""Parts of other installed packages: found by name, imported when used, faults named in a line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Protocol

import pytest

from plumbline.eval_workers.pairs import benchmarks
from plumbline.warehouse.errors import BadInput, MissingComponent, UsageProblem
from plumbline.warehouse.plugins import Registry


class Tea(Protocol):
    LEAVES: int

    def pour(self) -> str: ...


#: `escape` is a module of the package's own, here in the role of a part.
CODE = Registry("tea", "plumbline.warehouse.text", ".py", "plumbline.teas", Tea)
FILES = Registry("list", "plumbline.warehouse.wordlists", ".toml", "plumbline.lists")
MODULES = {
    "green": "LEAVES = 3\ndef pour(): return 'cup'\n",
    "object": "class Tea:\n    LEAVES = 4\n    pour = staticmethod(lambda: 'pot')\ntea = Tea()\n",
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
black = cups.object:tea
broken = cups.broken
lacking = cups.lacking
gone = cups.object:coffee
absent = cups.absent
escape = cups.green

[plumbline.lists]
herbs = cups
beside = cups.green
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
    for name in ("herbs", "beside"):
        (tmp_path / "cups" / f"{name}.toml").write_text(f"# {name} \u00e9", encoding="utf-8")
    install(tmp_path, "cups", ENTRIES)
    monkeypatch.syspath_prepend(tmp_path)
    for name in [m for m in sys.modules if m.partition(".")[0] == "cups"]:
        monkeypatch.delitem(sys.modules, name)
    return tmp_path


def test_listing_imports_nothing(strangers: Path) -> None:
    assert {"green", "black", "broken", "escape"} <= set(CODE.names())
    assert {"herbs", "she-he", "gendered"} <= set(FILES.names())
    assert len(CODE.names()) == len(set(CODE.names()))
    assert not [name for name in sys.modules if name.startswith("cups")]


def test_parts_are_modules_objects_and_files(strangers: Path) -> None:
    assert (CODE.load("green").pour(), CODE.load("black").pour()) == ("cup", "pot")
    assert CODE.load("redaction").__name__ == "plumbline.warehouse.text.redaction"
    assert FILES.text("herbs") == "# herbs \u00e9" and FILES.text("beside") == "# beside \u00e9"
    assert "she" in FILES.text("pronouns")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("broken", "cups.broken can't be loaded: ModuleNotFoundError: No module named"),
        ("lacking", r"cups.lacking can't be .*: it has no pour \(expected LEAVES, pour there\)"),
        ("gone", "no attribute 'coffee'"),
    ],
)
def test_a_fault_is_one_line_with_the_package_and_what_was_expected(
    strangers: Path, name: str, message: str
) -> None:
    with pytest.raises(BadInput, match=message) as caught:
        CODE.load(name)
    assert str(caught.value).startswith(f"tea '{name}' of cups 1.2: ")
    assert "\n" not in str(caught.value) and "LEAVES, pour" in str(caught.value)


def test_a_file_that_is_missing_is_named(strangers: Path) -> None:
    with pytest.raises(BadInput, match=r"list 'nowhere' of cups 1\.2.*holds nowhere\.toml"):
        FILES.text("nowhere")


def test_a_part_may_say_itself_what_is_missing(strangers: Path) -> None:
    with pytest.raises(MissingComponent, match="buy one"):
        CODE.load("absent")


def test_a_name_given_twice_is_refused_and_the_others_work(
    strangers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind, name in ((CODE.load, "escape"), (FILES.text, "she-he")):
        with pytest.raises(
            UsageProblem, match=r"plumbline and cups 1\.2 each have one of this name"
        ):
            kind(name)
    install(strangers / "more", "mugs", "[plumbline.teas]\ngreen = mugs\n")
    monkeypatch.syspath_prepend(strangers / "more")
    with pytest.raises(UsageProblem, match=r"(cups|mugs) 1\.2 and (cups|mugs) 1\.2 each have"):
        CODE.load("green")
    assert CODE.load("black").LEAVES == 4


def test_names_of_parts_without_a_file_are_taken_too(strangers: Path) -> None:
    kind = Registry("list", FILES.package, ".toml", FILES.group, made=("herbs", "spices"))
    assert "spices" in kind.names() and kind.find("spices") is None
    with pytest.raises(UsageProblem, match="plumbline and cups"):
        kind.find("herbs")


def test_a_benchmark_of_our_name_is_refused_whatever_its_module_is_called(
    strangers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "NAMES, DESCRIPTION, DEFAULT_LOCATION, read = ('use-5',), 'd', None, print\n"
    (strangers / "cups" / "fives.py").write_text(text)
    install(strangers / "more", "mugs", "[plumbline.benchmarks]\nuse_5 = cups.fives\n")
    monkeypatch.syspath_prepend(strangers / "more")
    with pytest.raises(UsageProblem, match="use and use_5 each have one of this name"):
        benchmarks.find("use-5")
    assert benchmarks.find("use-10").NAMES


def test_an_unknown_name_lists_those_that_exist(strangers: Path) -> None:
    with pytest.raises(UsageProblem, match=r"tea 'mint': unknown \(there are .*green.*redaction"):
        CODE.load("mint")
    closed = Registry("list", "plumbline.warehouse.wordlists", ".toml")
    assert "herbs" not in closed.names()
