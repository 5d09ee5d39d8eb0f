"""Parts of other packages: that of `docs/extend.md` removed; faults are named in a line."""

import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest

from plumbline.eval_workers.pairs import benchmarks
from plumbline.pipelines.command import registry
from plumbline.pipelines.command.main import main
from plumbline.warehouse.errors import BadInput, MissingComponent, PlumblineError, UsageProblem
from plumbline.warehouse.plugins import Registry
from plumbline.warehouse.query.connection import connect, rows_of
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import delta, pair, score
from tests.test_extend_docs import FIRST, files_of

FILES = files_of(FIRST)
TOPICS = "tools: saw hammer\nhome: tea\n"
KEPT = "Table topic_word: no installed package declares it; kept as it is"


@pytest.fixture
def uninstall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Install the package, in an empty working directory; returned is what uninstalls it."""
    packages, work = tmp_path / "packages", tmp_path / "work"
    for name, text in {**FILES, "my_parts/__init__.py": ""}.items():
        (packages / name).parent.mkdir(parents=True, exist_ok=True)
        (packages / name).write_text(text, encoding="utf-8")
    groups = tomllib.loads(FILES["pyproject.toml"])["project"]["entry-points"].items()
    lines = ((f"[{group}]", *(f"{k} = {v}" for k, v in named.items())) for group, named in groups)
    install(packages, "my-parts", "\n".join(line for group in lines for line in group))
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.syspath_prepend(packages)

    def gone() -> None:
        monkeypatch.setattr(sys, "path", [p for p in sys.path if p != str(packages)])
        forget()

    def forget() -> None:
        registry.targets.cache_clear()
        for name in [name for name in sys.modules if name.startswith("my_parts")]:
            del sys.modules[name]

    forget()
    (work / "topics.txt").write_text(TOPICS)
    yield gone
    monkeypatch.undo()
    forget()


def ran(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    """What a command prints."""
    capsys.readouterr()
    assert main(words) == status, capsys.readouterr().err
    return capsys.readouterr().out


def store() -> Store:
    """The warehouse with topics, leans and scored pairs."""
    assert main(["topics", "import", "topics.txt"]) == 0
    found = Store.open("out/warehouse")
    (run,) = found.read("run")["run_id"].to_pylist()
    made = {
        "word_delta": [delta("saw", -1.0), delta("hammer", -2.0)],
        "benchmark_pair": [pair("b", str(i)) for i in range(3)],
        "pair_score": [score("b", str(i), x) for i, x in enumerate((1.0, 0.5, -2.0))],
    }
    for table, rows in made.items():
        found.publish(table, rows, unit="u", run_id=run)
    return found


def test_without_the_package_its_table_is_kept(
    uninstall: Callable[[], None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = store()
    assert main(["topics", "import", "topics.txt"]) == 0
    files = {path: path.read_bytes() for path in made.root.glob("topic_word/topic=*/*.parquet")}
    manifest, version = made.snapshot().tables["topic_word"], made.snapshot().version
    path = sys.path
    uninstall()
    assert "topics" not in ran(capsys, "--help").split()
    assert KEPT in ran(capsys, "warehouse", "check")
    assert KEPT in ran(capsys, "warehouse", "compact", "--keep-days", "0")
    assert KEPT in ran(capsys, "warehouse", "restore")
    version = made.snapshot().version
    made.replace("word_delta", [], {}, "run")
    assert KEPT in ran(capsys, "warehouse", "restore", str(version))
    assert made.read("word_delta").num_rows == 2
    for command in (["measure"], ["report"], ["sql", "FROM run", "--at", str(version)]):
        assert main(command) == 0
    assert main(["sql", "FROM topic_word"]) == 2
    assert KEPT in capsys.readouterr().err
    assert KEPT in ran(capsys, "warehouse", "check") and len(files) == 4
    assert {path: path.read_bytes() for path in files} == files
    assert made.snapshot().tables["topic_word"] == manifest
    monkeypatch.setattr(sys, "path", path)
    ran(capsys, "warehouse", "compact")  # removes the files of versions that were dropped
    assert KEPT not in ran(capsys, "warehouse", "check")
    assert made.read("topic_word").num_rows == 3


@pytest.mark.parametrize(
    ("entry", "query", "message"),
    [
        ("tables]\nrun", "FROM run", r"table 'run': plumbline and mugs 1.2 each have one"),
        ("tables]\nword_lean", "FROM word_lean", r"plumbline has a view of this name"),
        ("tables]\ntopic_word", "FROM topic_word", r"table 'topic_word': .* each have one of"),
        ("views]\nword_lean", "FROM word_lean", r"view 'word_lean': plumbline and mugs 1.2 each"),
        ("views]\nrun", "FROM run", r"view 'run': plumbline and mugs 1.2 each have one"),
    ],
)
def test_a_name_that_is_taken_is_refused(
    uninstall: Callable[[], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    entry: str,
    query: str,
    message: str,
) -> None:
    (tmp_path / "more/mugs").mkdir(parents=True)
    (tmp_path / "more/mugs/__init__.py").write_text("")
    name = entry.partition("\n")[2]
    text = FILES["my_parts/topic_word.py"].replace("topic_word:", f"{name}:")
    (tmp_path / "more/mugs/tables.py").write_text(text)
    install(tmp_path / "more", "mugs", f"[plumbline.{entry} = mugs.tables\n")
    made = Store.open("out/warehouse")
    monkeypatch.syspath_prepend(tmp_path / "more")
    assert rows_of(made, "FROM pair_score") == []
    with pytest.raises(UsageProblem, match=message):
        connect(made, query)
    with pytest.raises(UsageProblem, match=message):
        connect(made)


class Tea(Protocol):
    LEAVES: int

    def pour(self) -> str: ...


#: `escape` is a module of the package's own, here in the role of a part.
CODE = Registry("tea", "plumbline.warehouse.text", ".py", "plumbline.teas", Tea)
LISTS = Registry("list", "plumbline.warehouse.wordlists", ".toml", "plumbline.lists")
SPICES = Registry("list", LISTS.package, ".toml", LISTS.group, made=("herbs", "spices"))
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
        (LISTS.text, "she-he", UsageProblem, ("plumbline and cups 1.2",)),
        (LISTS.text, "nowhere", BadInput, ("list 'nowhere' of cups 1.2", "nowhere.toml")),
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
