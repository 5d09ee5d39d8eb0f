"""The rules of the house: imports, generated documentation, what the wheel ships."""

import ast
import re
import subprocess
import sys
from collections import Counter
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import get_args

import pytest

from plumbline.jobs.kernel.cooccurrences import RULES
from plumbline.jobs.kernel.corpus_options import Rule
from plumbline.warehouse.query.reference import filled
from plumbline.warehouse.schema.catalog import TABLES
from tests.conftest import REPOSITORY

ROOMS = ("warehouse", "jobs", "spark_conf", "eval_workers", "pipelines")
#: Room -> rooms it may import besides itself.
ALLOWED = {
    "warehouse": set(),
    "spark_conf": set(),
    "jobs": {"warehouse", "spark_conf"},
    "eval_workers": {"warehouse"},
    "pipelines": {"warehouse", "jobs", "eval_workers"},
}
HEAVY = ("pyspark", "torch", "transformers", "vllm", "prefect", "nltk", "fasttext")
#: Modules whose work a heavy package is; every other one must not load any.
ENGINE_ROOMS = (
    "plumbline.jobs.spark.engine",
    "plumbline.jobs.spark.spark_session",
    "plumbline.eval_workers.models.",
    "plumbline.eval_workers.training.trainer",
    "plumbline.eval_workers.training.adapter_tuning",
    "plumbline.eval_workers.training.word_losses",
    "plumbline.pipelines.flows",
)
#: Rooms whose inner structure follows the plan.
ORDERED = ("jobs", "warehouse", "eval_workers", "pipelines")
#: Most modules of a folder besides its ``__init__``.
MOST_MODULES = 12


def module_paths() -> list[Path]:
    return [path for room in ROOMS for path in sorted((REPOSITORY / room).rglob("*.py"))]


def modules() -> list[str]:
    found = []
    for path in module_paths():
        parts = path.relative_to(REPOSITORY).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        found.append(".".join(("plumbline", *parts)))
    return found


def imported(path: Path, *, when_run: bool = False) -> set[str]:
    """Modules and names that a file imports, also in functions; ``when_run``: but for types."""
    found: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        is_for_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        waiting += [] if when_run and is_for_types else ast.iter_child_nodes(node)
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_import_one_way(room: str) -> None:
    """Anywhere in a file, also inside functions, a room names only the rooms it may."""
    others = set(ROOMS) - {room} - ALLOWED[room]
    for path in sorted((REPOSITORY / room).rglob("*.py")):
        names = {tuple(n.split(".")) for n in imported(path)}
        assert not {n[0] for n in names} & set(ROOMS), f"{path} imports a room without plumbline."
        rooms = {n[1] for n in names if n[0] == "plumbline" and len(n) > 1}
        assert not rooms & others, f"{path.relative_to(REPOSITORY)} imports {rooms & others}"


def check_no_circle(graph: dict[str, set[str]]) -> None:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as e:
        pytest.fail(" -> ".join(e.args[1]))


@pytest.mark.parametrize("room", ORDERED)
def test_no_modules_of_a_room_import_each_other_in_a_circle(room: str) -> None:
    inside = f"plumbline.{room}."
    known = {f"{m}.": path for m, path in zip(modules(), module_paths(), strict=True)}
    known = {m[:-1]: path for m, path in known.items() if m.startswith(inside)}
    graph = {
        name: (imported(path, when_run=True) & set(known)) - {name} for name, path in known.items()
    }
    assert len(graph) > 20
    check_no_circle(graph)


@pytest.mark.parametrize("room", ORDERED)
def test_no_folders_of_a_room_import_each_other_in_a_circle(room: str) -> None:
    """A folder below a room is a storey: what it imports lies below it."""
    graph: dict[str, set[str]] = {}
    for path in sorted((REPOSITORY / room).rglob("*/*.py")):
        folder = path.relative_to(REPOSITORY).parts[1]
        inside = {
            n.split(".")[2]
            for n in imported(path, when_run=True)
            if n.startswith(f"plumbline.{room}.")
        }
        graph.setdefault(folder, set()).update(inside - {folder})
    graph = {folder: inside & set(graph) for folder, inside in graph.items()}
    assert len(graph) > 3
    check_no_circle(graph)


@pytest.mark.parametrize("room", ORDERED)
def test_no_folder_is_a_pile_of_modules(room: str) -> None:
    for folder in {path.parent for path in (REPOSITORY / room).rglob("*.py")}:
        name = folder.relative_to(REPOSITORY).as_posix()
        n = len([path for path in folder.glob("*.py") if path.name != "__init__.py"])
        assert n <= MOST_MODULES, f"{name} holds {n} modules, more than {MOST_MODULES}"


def test_spark_has_one_door() -> None:
    for path in module_paths():
        packages = {name.split(".")[0] for name in imported(path)}
        inside = path.is_relative_to(REPOSITORY / "jobs" / "spark")
        assert inside or not packages & {"pyspark", "py4j"}, f"{path} imports Spark"


def run(code: str, *arguments: str) -> str:
    """What a fresh interpreter prints."""
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_the_command_line_loads_no_command() -> None:
    """Help of a group, and of the whole: neither a command's module nor a large library."""
    code = (
        "import sys\n"
        "from plumbline.pipelines.command.main import main\n"
        "for words in ([], ['corpus'], ['warehouse']):\n"
        "    assert main([*words, '--help']) == 0\n"
        "known = {'pandas', 'pyarrow', 'numpy', 'duckdb', 'numba', 'jinja2', 'altair'}\n"
        "loaded = known & set(sys.modules)\n"
        "assert not loaded, loaded\n"
        "loaded = [m for m in sys.modules if m.startswith('plumbline.pipelines.commands.')]\n"
        "commands = [m for m in loaded if not hasattr(sys.modules[m], '__path__')]\n"
        "assert not commands, commands\n"
    )
    run(code)


def test_help_of_a_command_loads_no_data_library() -> None:
    """Declaring options, and importing the steps that a command calls, must be fast."""
    code = (
        "import sys\n"
        "from plumbline.pipelines.command.base import class_of\n"
        "from plumbline.pipelines.command.registry import targets\n"
        "known = {'pandas', 'pyarrow', 'numpy', 'duckdb', 'numba', 'jinja2', 'altair', 'scipy'}\n"
        "for name in targets():\n"
        "    class_of(name)\n"
        "    assert not known & set(sys.modules), (name, known & set(sys.modules))\n"
    )
    run(code)


def test_opening_a_warehouse_loads_no_large_library() -> None:
    code = (
        "import sys, tempfile\n"
        "from plumbline.warehouse.storage.opening import OpenWarehouse\n"
        "OpenWarehouse.open(tempfile.mkdtemp() + '/w').units('word_count')\n"
        "loaded = {'pyarrow', 'numpy', 'duckdb', 'obstore'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    run(code)


def test_the_warehouse_is_a_leaf() -> None:
    allowed = {*sys.stdlib_module_names, "plumbline", "pyarrow", "duckdb", "filelock", "pydantic"}
    allowed |= {"obstore", "platformdirs"}  # a warehouse in an object store, and its copies here
    allowed |= {"huggingface_hub"}  # shards on the hub
    allowed |= {"backports"}  # shards with windows of over 128 MiB, which Arrow refuses
    for path in sorted((REPOSITORY / "warehouse").rglob("*.py")):
        outside = {name.split(".")[0] for name in imported(path)} - allowed
        assert not outside, f"{path.relative_to(REPOSITORY)} imports {outside}"


def test_importing_a_room_loads_no_engine() -> None:
    names = [m for m in modules() if not m.startswith(ENGINE_ROOMS)]
    code = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]:\n"
        "    importlib.import_module(name)\n"
        f"    heavy = [h for h in {HEAVY!r} if h in sys.modules]\n"
        "    assert not heavy, f'importing {name} imports {heavy}'\n"
        "print(len(sys.argv) - 1)\n"
    )
    assert int(run(code, *names)) == len(names) > 20


def test_the_page_of_tables_describes_them_as_they_are() -> None:
    page = (REPOSITORY / "docs" / "tables.md").read_text(encoding="utf-8")
    assert all(f"## `{name}`" in page for name in TABLES)
    assert page == filled(page), (
        "stale: run `python -m plumbline.warehouse.query.reference docs/tables.md docs/sql.md`"
    )


#: Names of a command's file, of what it does and of the report's section on it; and the benchmarks
#: that are named after their module, beside the folder of all that makes pairs.
SHARED_NAMES = set(
    ["disclosure", "fairpair", "measure", "pairs", "report", "reproduce", "sql", "warehouse", "why"]
)


def test_a_name_means_one_thing() -> None:
    stems = Counter(name.rpartition(".")[2] for name in modules())
    assert {stem for stem, n in stems.items() if n > 1} <= SHARED_NAMES
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in module_paths()]
    kinds = Counter(n.name for tree in trees for n in tree.body if isinstance(n, ast.ClassDef))
    twice = {name for name, n in kinds.items() if n > 1 and not name.startswith("_")}
    assert not twice


@pytest.mark.parametrize(("handled", "most_files"), [("document", 18), ("pair", 20)])
def test_the_way_of_a_document_and_of_a_pair(handled: str, most_files: int) -> None:
    """docs/design.md lists the files that a newcomer opens to follow one; they exist."""
    text = (REPOSITORY / "docs" / "design.md").read_text(encoding="utf-8")
    way = text.partition("## How a document and a pair are processed")[2].partition("\n## ")[0]
    tables = way.split("| where | files |")
    rows = re.findall(r"(?m)^\| `(.+)` \| (.+) \|$", tables[{"document": 1, "pair": 2}[handled]])
    files = [
        REPOSITORY / folder / f"{name}.py"
        for folder, cell in rows
        for name in re.findall(r"`([\w/]+)`", re.sub(r"\(.*?\)|;.*", "", cell))
    ]
    assert not [file for file in files if not file.is_file()]
    assert 15 < len(files) <= most_files, len(files)


def test_the_rules_of_counting_are_those_of_the_kernel() -> None:
    assert get_args(Rule) == RULES
