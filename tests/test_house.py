"""The rules of the house: imports, generated documentation, what the wheel ships."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

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
    *("plumbline.jobs.spark.session", "plumbline.jobs.spark.engine"),
    *("plumbline.eval_workers.backends.", "plumbline.eval_workers.mitigation."),
    *(
        "plumbline.pipelines.flow",
        "plumbline.pipelines.benchmark_flow",
        "plumbline.pipelines.fairpair_flow",
    ),
    "plumbline.pipelines.disclosure_flow",
    "plumbline.pipelines.compare_flow",
    *("plumbline.pipelines.attached", "plumbline.pipelines.deployed"),
)


def modules() -> list[str]:
    found = []
    for room in ROOMS:
        for path in sorted((REPOSITORY / room).rglob("*.py")):
            parts = path.relative_to(REPOSITORY).with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            found.append(".".join(("plumbline", *parts)))
    return found


def imported_names(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
    return names


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_import_one_way(room: str) -> None:
    """Anywhere in a file, also inside functions, a room names only the rooms it may."""
    others = set(ROOMS) - {room} - ALLOWED[room]
    for path in sorted((REPOSITORY / room).rglob("*.py")):
        names = {tuple(n.split(".")) for n in imported_names(path)}
        assert not {n[0] for n in names} & set(ROOMS), f"{path} imports a room without plumbline."
        rooms = {n[1] for n in names if n[0] == "plumbline" and len(n) > 1}
        assert not rooms & others, f"{path.relative_to(REPOSITORY)} imports {rooms & others}"


def test_the_warehouse_is_a_leaf() -> None:
    allowed = set(sys.stdlib_module_names) | {"pyarrow", "duckdb", "filelock", "plumbline"}
    allowed |= {"rich"}  # draws progress on a terminal
    allowed |= {"tomllib", "tomli"}  # the same module, by its name before Python 3.11
    for path in sorted((REPOSITORY / "warehouse").rglob("*.py")):
        outside = {name.split(".")[0] for name in imported_names(path)} - allowed
        assert not outside, f"{path.relative_to(REPOSITORY)} imports {outside}"


def test_importing_a_room_loads_no_engine() -> None:
    """In a fresh interpreter, importing every module but the engines' own loads none of them."""
    names = [m for m in modules() if not m.startswith(ENGINE_ROOMS)]
    code = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]:\n"
        "    importlib.import_module(name)\n"
        f"    heavy = [h for h in {HEAVY!r} if h in sys.modules]\n"
        "    assert not heavy, f'importing {name} imports {heavy}'\n"
        "print(len(sys.argv) - 1)\n"
    )
    command = [sys.executable, "-c", code, *names]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) == len(names) > 20


def test_the_page_of_tables_describes_them_as_they_are() -> None:
    page = (REPOSITORY / "docs" / "tables.md").read_text(encoding="utf-8")
    assert all(f"### `{name}`" in page for name in TABLES)
    assert page == filled(page), (
        "stale: run `python -m plumbline.warehouse.query.reference docs/tables.md docs/sql.md`"
    )


def test_every_table_has_a_key_among_its_columns() -> None:
    for table in TABLES.values():
        names = set(table.arrow.names)
        assert set(table.key) <= names and set(table.partitions) <= names, table.name
        assert set(table.partitions) <= set(table.key) or table.name == "metric_value"
        assert all(c.description for c in table.columns), table.name
