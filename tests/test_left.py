"""Nothing that `left.toml` lists is still in the product or on its pages."""

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

from plumbline.pipelines.command import registry
from plumbline.pipelines.command.base import class_of, parameters
from plumbline.warehouse.query.connection import connect
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.opening import OpenWarehouse
from tests.conftest import REPOSITORY
from tools.budget import PRODUCT

LEFT: dict[str, list[str]] = tomllib.loads((REPOSITORY / "tests/left.toml").read_text("utf-8"))
PAGES = [
    REPOSITORY / "README.md",
    *(path for path in (REPOSITORY / "docs").rglob("*.md") if path.name != "studies.md"),
]
PYPROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))


@cache
def identifiers() -> frozenset[str]:
    """Names that the product's Python and SQL use; words of docstrings and comments don't count."""
    found: set[str] = set()
    for room in PRODUCT:
        for path in (REPOSITORY / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                found |= {
                    str(name)
                    for field in ("id", "attr", "name", "arg", "module")
                    if (name := getattr(node, field, None))
                }
    for path in (REPOSITORY / "warehouse/sql").rglob("*.sql"):
        text = re.sub(r"--.*", "", path.read_text("utf-8"))
        found |= set(re.findall(r"\w+", text))
    return frozenset(found)


@cache
def relations(tmp: Path) -> frozenset[str]:
    """Tables, views and macros of an empty warehouse in DuckDB."""
    connection = connect(OpenWarehouse.open(tmp / "warehouse"))
    query = """
        SELECT view_name FROM duckdb_views() UNION ALL SELECT table_name FROM duckdb_tables()
        UNION ALL SELECT function_name FROM duckdb_functions() WHERE function_type LIKE '%macro'
    """
    return frozenset(name for (name,) in connection.execute(query).fetchall())


def on_pages(pattern: str) -> list[str]:
    """The pages that a pattern is on."""
    return [
        str(path.relative_to(REPOSITORY))
        for path in PAGES
        if re.search(pattern, path.read_text("utf-8"))
    ]


def places(kind: str, name: str, tmp: Path) -> list[str]:
    """Where something that should have left still is."""
    word = re.escape(name)
    if kind in ("command", "group"):
        known = any(f"{command} ".startswith(f"{name} ") for command in registry.targets())
        before = "(plumbline |`)" if " " in name else "plumbline "
        return ["commands"] * known + on_pages(rf"{before}{word}\b(?!-)")
    if kind == "option":
        command, _, option = name.rpartition(" ")
        options = {p.option for p in parameters(class_of(command))}
        line = rf"plumbline {re.escape(command)} .*{re.escape(option)}\b(?!-)"
        return [f"options of {command}"] * (option in options) + on_pages(line)
    if kind in ("table", "view"):
        known = name in TABLES or name in relations(tmp)
        used = ["identifiers"] * (name in identifiers())
        return ["tables and views"] * known + used + on_pages(rf"\b{word}\b")
    if kind == "extra":
        known = name in PYPROJECT["project"]["optional-dependencies"]
        return ["pyproject.toml"] * known + on_pages(rf"\[([a-z]+,)*{word}(,[a-z]+)*\]['\"`]")
    if kind == "module":
        file = REPOSITORY / name
        known = file.is_dir() or file.with_suffix(".py").exists()
        used = any(i.endswith(name.replace("/", ".")) for i in identifiers())
        return [name] * known + ["imports"] * used
    assert kind == "page", kind
    return [f"docs/{name}.md"] * (REPOSITORY / f"docs/{name}.md").exists() + on_pages(
        rf"\b{word}\.md\b"
    )


@pytest.mark.parametrize(("kind", "name"), [(k, n) for k, names in LEFT.items() for n in names])
def test_what_left_is_nowhere(kind: str, name: str, tmp_path: Path) -> None:
    assert not places(kind, name, tmp_path)


def test_what_stays_is_found(tmp_path: Path) -> None:
    assert len(places("command", "corpus count", tmp_path)) > 1  # in the product and on a page
    assert len(places("view", "word_lean", tmp_path)) > 1
