"""SQL: macros, views, `docs/sql.md`, and `plumbline sql`: what it may do, formats, the shell."""

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from rich.console import Console

from plumbline.pipelines.command.main import main
from plumbline.pipelines.commands import sql
from plumbline.pipelines.commands.sql import run_query
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.query.connection import connect, init_sql, lock, rows_of
from plumbline.warehouse.query.reference import entries, filled
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.store import Store
from tests.conftest import REPOSITORY
from tests.metric_rows import delta, fill

#: SQL that comes as JSON, which no text of the query shows.
AS_JSON = (
    "json_execute_serialized_sql(json_serialize_sql("
    "'WITH a AS (COPY (SELECT 1) TO ''{w}/x.csv'') SELECT 1'))"
)
PIVOT = "PIVOT word_delta ON word USING count(*)"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store.open(tmp_path_factory.mktemp("it's") / "w")
    fill(store, "word_delta", [delta(w, d) for w, d in (("nurse", 1.0), ("=1+1", -0.5))])
    return store


def files(root: Path) -> dict[Path, bytes]:
    return {p: p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


def test_figures_by_hand(kept: Store) -> None:
    """Of 0, 0.5, -0.7, 9: two are even, one leans each way; areas 6, 5.49, 5.31 and 0."""
    values = "(VALUES (0), (0.5), (-0.7), (9), (NULL), ('nan'::DOUBLE), ('inf'::DOUBLE)) AS t (x)"
    (row,) = rows_of(kept, f"SELECT us(x), pd(x), aufc(x), us(x, 0.1), pd(x, 1) FROM {values}")
    # 0.5 is first covered by the point 0.54: 6 - 0.54 + half a step; 0.7 by 0.72.
    assert list(row.values()) == pytest.approx([0.5, 0, (6 + 5.49 + 5.31) / 4, 0.25, 25])


@pytest.mark.slow
def test_every_view_of_an_empty_warehouse_is_empty(store: Store) -> None:
    connection = connect(store.root)
    names = {name for (name,) in connection.execute("SHOW TABLES").fetchall()}
    assert names > {*TABLES, "audited_pair"}
    calls = {"deduplication()", "deduplication_mean()"}
    for name in names - {"spanish_word"} | calls:  # a list of words
        assert connection.execute(f"FROM {name}").fetchall() == [], name
        assert rows_of(store, f"FROM {name}") == [], name


@pytest.mark.parametrize(
    "statement",
    [
        "COPY (SELECT 1) TO '{w}/x.parquet'",
        "COPY (SELECT 1) TO '{w}/x.csv' (USE_TMP_FILE false)",
        "SELECT 1; COPY (SELECT 1) TO '{w}/x.csv'",
        "/* SELECT /* */ */ COPY (" + PIVOT + ") TO '{w}/x.csv'",
        "EXPLAIN (ANALYZE) COPY (" + PIVOT + ") TO '{w}/x.csv'",
        "EXPLAIN ANALYZE WITH a AS (COPY (SELECT 1) TO '{w}/x.csv') SELECT 1",
        "CREATE TABLE t (i INT); WITH a AS (COPY (FROM t) TO '{w}/x.csv') SELECT 1",
        f"CREATE VIEW v AS FROM {AS_JSON}; FROM v",
        "FROM query('FROM " + AS_JSON.replace("'", "''") + "')",
        "PREPARE p AS COPY (SELECT 1) TO '{w}/x.csv'",
        "EXPORT DATABASE '{w}/x'",
        "ATTACH '{w}/x.db'",
        "PRAGMA import_database('{w}/../imported')",
        "INSTALL httpfs",
        "LOAD httpfs",
        "UPDATE EXTENSIONS",
        "SET log_query_path = '{w}/x'",
        "PRAGMA profiling_output = '{w}/x'",
        "FROM enable_logging(storage = 'file', storage_path = '{w}/x')",
        "FROM enable_profiling(save_location = '{w}/x')",
        "CREATE PERSISTENT SECRET s (TYPE http)",
        "SET lock_configuration = false",
        "SET autoload_known_extensions = true",
        "FROM 'https://127.0.0.1:1/x.parquet'",
        "FROM read_text('{w}/../imported/load.sql')",
        "FROM kept",
        "SELECT getenv('HOME')",
    ],
)
def test_a_query_changes_no_file_reads_no_other_and_fetches_nothing(
    kept: Store, statement: str
) -> None:
    imported = kept.root.parent / "imported"
    imported.mkdir(exist_ok=True)
    inside = str(kept.root).replace("'", "''")
    for name in ("schema.sql", "load.sql"):
        (imported / name).write_text(f"COPY (SELECT 1) TO '{inside}/x.csv';")
    connection, before = connect(kept.root, statement), files(kept.root)
    lock(connection)
    with pytest.raises(UsageProblem):
        run_query(connection, statement.format(w=inside))
    assert files(kept.root) == before


QUERY = (
    "SELECT unnest(['=1+1', '\te', 'te''a\"\n,', NULL]) AS text, "
    "unnest([-1.5, 'nan'::DOUBLE, 2.0, NULL]) AS x, [1, 2] AS l, DATE '2024-05-01' AS day, 1 AS x"
)


def ask(store: Store, *arguments: str, query: str = QUERY) -> int:
    return main(["sql", query, "--warehouse", str(store.root), *arguments])


def test_every_format_holds_the_result(kept: Store, capsys: pytest.CaptureFixture[str]) -> None:
    texts = ["=1+1", "\te", "te'a\"\n,", None]
    assert ask(kept, "--format", "csv") == 0
    names, *rows = csv.reader(io.StringIO(capsys.readouterr().out, newline=""))
    assert names == ["text", "x", "l", "day", "x_2"]
    assert [row[0] for row in rows] == ["'=1+1", "'\te", "te'a\"\n,", ""]
    assert [row[1] for row in rows] == ["-1.5", "nan", "2.0", ""]
    assert ask(kept, "--format", "csv", query='SELECT 1 AS "=x"') == 0
    assert capsys.readouterr().out == "'=x\n1\n"
    assert ask(kept, "--format", "json") == 0
    assert json.loads(capsys.readouterr().out) == [
        {"text": t, "x": x, "l": [1, 2], "day": "2024-05-01", "x_2": 1}
        for t, x in zip(texts, [-1.5, None, 2.0, None], strict=True)
    ]


def test_a_query_that_fails_at_a_late_row_prints_none(
    kept: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "CASE range WHEN 900000 THEN 'x' ELSE '1' END"
    query = f"SELECT CAST({text} AS INTEGER) AS n FROM range(1000000)"
    for form in ("json", "csv"):
        assert ask(kept, "--format", form, query=query) == 2
        out, err = capsys.readouterr()
        assert "Could not convert string" in err and len(err.splitlines()) == 1 and not out


def test_the_shell_prints_only_tables(kept: Store) -> None:
    assert ask(kept, "--format", "csv", query="") == 2


def test_init_sql_makes_every_view_in_a_plain_duckdb(kept: Store) -> None:
    assert "as of version 0," in init_sql(kept.pinned(0))
    plain = duckdb.connect()
    for statement in plain.extract_statements(init_sql(kept.root)):
        plain.execute(statement)
    rows = plain.execute("SELECT word, delta_nats FROM word_delta ORDER BY 2").fetchall()
    assert rows == [("=1+1", -0.5), ("nurse", 1.0)]
    ours = connect(kept.root)
    for listed in (
        "SHOW TABLES",
        "SELECT function_name FROM duckdb_functions() WHERE NOT internal",
    ):
        assert plain.execute(listed).fetchall() == ours.execute(listed).fetchall()
    assert plain.execute("SELECT us(0.1)").fetchone() == (1,)
    made = re.findall(r"(?m)^CREATE OR REPLACE \w+ \"?([\w.]+)", init_sql(kept.root))
    assert len(made) == len(set(made))


def test_the_shell_is_duckdb_s_own_where_it_is_installed(
    kept: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, copy = tmp_path / "duckdb", tmp_path / "views.sql"
    program.write_text(f"#!/bin/sh\n[ $1 = -init ] && /bin/cp $2 {copy}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert sql.duckdb_shell(kept)
    plain = duckdb.connect()
    plain.execute(copy.read_text("utf-8"))
    assert plain.execute("SELECT count(*) FROM word_delta").fetchone() == (2,)
    with pytest.raises(duckdb.PermissionException):
        plain.execute(f"COPY (SELECT 1) TO '{tmp_path}/x.csv'")
    program.unlink()
    assert not sql.duckdb_shell(kept)


def typed(lines: list[str]) -> Callable[[str], str]:
    """An ``input`` that gives these lines, then the end of the input."""
    waiting = iter(lines)

    def read(prompt: str) -> str:
        line = next(waiting, None)
        if line is None:
            raise EOFError
        if line == "^C":
            raise KeyboardInterrupt
        return line

    return read


def test_shell(kept: Store, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["SHOW TABLES;", "SELECT nonsense;", "half a query", "^C", "SELECT 40 +", "2 AS n;"]
    lines += ["SELECT 'by blank line' AS ended", "", "FROM rating;", "SELECT 'the end' AS reached"]
    out = io.StringIO()
    console = Console(file=out, color_system=None)
    sql.shell(connect(kept.root), console, typed(lines))
    text = out.getvalue()
    for expected in ("scored_pair", "nonsense", "42", "by blank line", "the end"):
        assert expected in text
    assert "half a query" not in text
    assert "`plumbline benchmark import-ratings`" in capsys.readouterr().err


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
    files = (REPOSITORY / "warehouse" / "sql" / "views").glob("*.sql")
    written = "\n".join(f.read_text(encoding="utf-8") for f in files)
    views = small.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
    assert {name for name, e in found.items() if e.kind == "view"} == {
        v for (v,) in views if f"CREATE OR REPLACE VIEW {v} " in written
    }
    assert all(e.grain for e in entries() if e.kind != "function")


def split(signature: str) -> list[str]:
    inside = signature.split("(", 1)[1].removesuffix(")")
    return [p.strip() for p in inside.split(",") if p.strip()]


def test_the_page_s_other_queries_run(small: duckdb.DuckDBPyConnection) -> None:
    text = (REPOSITORY / "docs" / "sql.md").read_text(encoding="utf-8")
    for query in re.findall(r'(?:plumbline sql|connection\.sql\() ?"([^"]+)"', text):
        assert small.execute(query).fetchall(), query
    call = re.search(r"`(preference_pairwise\([^`]*epsilon := 1\))`", text)
    assert call and small.execute(f"FROM {call[1]}").fetchall() == []
