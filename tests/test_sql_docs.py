"""`docs/sql.md`: the questions run and answer what they say, the lists are those of the files."""

from __future__ import annotations

import re

import duckdb
import pytest

from plumbline.warehouse.query.connection import connect
from plumbline.warehouse.query.reference import entries, filled
from plumbline.warehouse.storage.store import Store
from tests.conftest import REPOSITORY


@pytest.fixture(scope="module")
def small(world: Store) -> duckdb.DuckDBPyConnection:
    return connect(world.root)


def test_the_list_holds_every_view_and_macro(small: duckdb.DuckDBPyConnection) -> None:
    """As DuckDB itself lists them, with their parameters."""
    text = (REPOSITORY / "docs" / "sql.md").read_text(encoding="utf-8")
    assert text == filled(text), (
        "stale: run `python -m plumbline.warehouse.query.reference docs/tables.md docs/sql.md`"
    )
    macros = small.execute(
        "SELECT function_name, parameters, function_type FROM duckdb_functions() WHERE NOT internal"
    ).fetchall()
    found = {re.split(r"\(", e.signature)[0]: e for e in entries()}
    assert all(f"`{e.signature}`" in text for e in entries())
    for name, parameters, kind in macros:
        assert (found[name].kind == "table macro") == (kind == "table_macro")
        assert [p.split(" := ")[0] for p in split(found[name].signature)] == parameters
    views = small.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
    assert {name for name, e in found.items() if e.kind == "view"} == {
        v for (v,) in views if f"CREATE OR REPLACE VIEW {v} " in all_sql()
    }
    assert all(e.grain for e in entries() if e.kind != "function")


def split(signature: str) -> list[str]:
    inside = signature.split("(", 1)[1].removesuffix(")")
    return [p.strip() for p in inside.split(",") if p.strip()]


def all_sql() -> str:
    files = (REPOSITORY / "warehouse" / "sql" / "views").glob("*.sql")
    return "\n".join(f.read_text(encoding="utf-8") for f in files)


def test_the_page_s_other_queries_run(small: duckdb.DuckDBPyConnection) -> None:
    text = (REPOSITORY / "docs" / "sql.md").read_text(encoding="utf-8")
    for query in re.findall(r'(?:plumbline sql|connection\.sql\() ?"([^"]+)"', text):
        assert small.execute(query).fetchall(), query
    call = re.search(r"`(preference_pairwise\([^`]*epsilon := 1\))`", text)
    assert call and small.execute(f"FROM {call[1]}").fetchall() == []
