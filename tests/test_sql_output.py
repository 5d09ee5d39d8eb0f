"""What `plumbline sql` may do to files, the formats it writes, and the file for `duckdb -init`."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from plumbline.pipelines.command.main import main
from plumbline.pipelines.sql.shell import run_query
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.query.connection import connect, init_sql
from plumbline.warehouse.query.guard import lock
from plumbline.warehouse.storage.store import Store
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


@pytest.mark.parametrize(
    "statement",
    [
        "COPY (SELECT 1) TO '{w}/x.parquet'",
        "COPY (SELECT 1) TO '{w}/x.csv' (USE_TMP_FILE false)",
        "SELECT 1; COPY (SELECT 1) TO '{w}/x.csv'",
        "/* SELECT /* */ */ COPY (" + PIVOT + ") TO '{w}/x.csv'",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '{w}/x.csv'",
        "EXPLAIN (ANALYZE) COPY (" + PIVOT + ") TO '{w}/x.csv'",
        "WITH a AS (COPY (SELECT 1) TO '{w}/x.csv') SELECT 1",
        "CREATE TABLE z AS WITH a AS (COPY (SELECT 1) TO '{w}/x.csv') SELECT 1",
        "EXPLAIN ANALYZE WITH a AS (COPY (SELECT 1) TO '{w}/x.csv') SELECT 1",
        "CREATE TABLE t (i INT); WITH a AS (COPY (FROM t) TO '{w}/x.csv') SELECT 1",
        f"FROM {AS_JSON}",
        f"CREATE VIEW v AS FROM {AS_JSON}; FROM v",
        "FROM query('FROM " + AS_JSON.replace("'", "''") + "')",
        "PREPARE p AS COPY (SELECT 1) TO '{w}/x.csv'",
        "EXPORT DATABASE '{w}/x'",
        "ATTACH '{w}/x.db'",
        "IMPORT DATABASE '{w}/../imported'",
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


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT count(*) FROM word_delta",
        PIVOT,
        "EXPLAIN ANALYZE SELECT 1",
        "EXPLAIN (FORMAT json) " + PIVOT,
        "CREATE TABLE t AS " + PIVOT + "; INSERT INTO t FROM t; DROP TABLE t",
        "SET VARIABLE a = 1",
        "DESCRIBE word_delta",
        "SUMMARIZE word_delta",
        "SHOW TABLES",
    ],
)
def test_a_query_may_read_and_work_in_memory(kept: Store, statement: str) -> None:
    connection = connect(kept.root, statement)
    lock(connection)
    run_query(connection, statement)


def test_write_lets_a_query_write(kept: Store, tmp_path: Path) -> None:
    copy = f"COPY (SELECT 1 AS one) TO '{tmp_path}/x.csv'"
    arguments = ["sql", copy, "--warehouse", str(kept.root)]
    assert main(arguments) == 2 and not (tmp_path / "x.csv").exists()
    assert main([*arguments, "--write"]) == 0
    assert (tmp_path / "x.csv").read_text() == "one\n1\n"
    assert main(["sql", "INSTALL httpfs", "--warehouse", str(kept.root), "--write"]) == 2


QUERY = (
    "SELECT unnest(['=1+1', '\te', 'te''a\"\n,', NULL]) AS text, "
    "unnest([-1.5, 'nan'::DOUBLE, 2.0, NULL]) AS x, [1, 2] AS l, DATE '2024-05-01' AS day, 1 AS x"
)


def ask(store: Store, *arguments: str) -> int:
    return main(["sql", QUERY, "--warehouse", str(store.root), *arguments])


def test_every_format_holds_the_result(kept: Store, tmp_path: Path) -> None:
    texts = ["=1+1", "\te", "te'a\"\n,", None]
    for suffix in ("csv", "json", "jsonl", "parquet"):
        assert ask(kept, "--out", str(tmp_path / f"r.{suffix}")) == 0
    with (tmp_path / "r.csv").open(newline="", encoding="utf-8") as file:
        names, *rows = csv.reader(file)
    assert names == ["text", "x", "l", "day", "x_2"]
    assert [row[0] for row in rows] == ["'=1+1", "'\te", "te'a\"\n,", ""]
    assert [row[1] for row in rows] == ["-1.5", "nan", "2.0", ""]
    expected = [
        {"text": t, "x": x, "l": [1, 2], "day": "2024-05-01", "x_2": 1}
        for t, x in zip(texts, [-1.5, None, 2.0, None], strict=True)
    ]
    assert json.loads((tmp_path / "r.json").read_text("utf-8")) == expected
    lines = (tmp_path / "r.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line) for line in lines] == expected
    assert pq.read_table(tmp_path / "r.parquet")["text"].to_pylist() == texts
    assert sorted(os.listdir(tmp_path)) == ["r.csv", "r.json", "r.jsonl", "r.parquet"]


def test_an_empty_result_is_an_empty_file(kept: Store, tmp_path: Path) -> None:
    for suffix, text in (("csv", "a\n"), ("json", "[]\n"), ("jsonl", "")):
        out = tmp_path / f"r.{suffix}"
        query = "SELECT 1 AS a WHERE false"
        assert main(["sql", query, "--warehouse", str(kept.root), "--out", str(out)]) == 0
        assert out.read_text() == text


def test_bad_formats_are_refused(kept: Store, tmp_path: Path) -> None:
    assert ask(kept, "--format", "xlsx") == 2
    assert ask(kept, "--format", "parquet") == 2
    assert ask(kept, "--format", "table", "--out", str(tmp_path / "r.csv")) == 2
    assert ask(kept, "--out", str(kept.root / "r.csv")) == 2
    assert ask(kept, "--out", str(tmp_path / ".." / tmp_path.name / "r.xls")) == 2
    assert not list(tmp_path.iterdir())


def test_json_on_standard_output(kept: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(kept, "--format", "jsonl") == 0
    assert json.loads(capsys.readouterr().out.splitlines()[0])["text"] == "=1+1"


@pytest.mark.parametrize("relative", [False, True])
def test_the_init_file_makes_every_view_in_a_plain_duckdb(
    kept: Store, monkeypatch: pytest.MonkeyPatch, relative: bool
) -> None:
    file = kept.root.parent / f"init-{relative}.sql"
    arguments = ["sql", "--init", str(file), "--warehouse", str(kept.root)]
    assert main([*arguments, *(["--relative"] if relative else [])]) == 0
    assert (str(kept.root).replace("'", "''") in file.read_text("utf-8")) != relative
    monkeypatch.chdir(kept.root.parent)
    plain = duckdb.connect()
    for statement in plain.extract_statements(file.read_text("utf-8")):
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


@pytest.mark.slow
def test_a_database_of_views_is_attached_by_the_printed_line(
    kept: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    file = kept.root.parent / "views.duckdb"
    for _ in range(2):  # the second one replaces the first
        assert main(["sql", "--init", str(file), "--warehouse", str(kept.root)]) == 0
    plain = duckdb.connect()
    plain.execute(capsys.readouterr().out.rpartition("in DuckDB: ")[2])
    rows = plain.execute("SELECT word, delta_nats FROM plumbline.word_delta ORDER BY 2").fetchall()
    assert rows == [("=1+1", -0.5), ("nurse", 1.0)]
    ours = connect(kept.root).execute("SELECT count(*) FROM word_lean").fetchall()
    assert plain.execute("SELECT count(*) FROM plumbline.word_lean").fetchall() == ours


def test_the_init_file_is_of_the_version_asked_for(kept: Store, tmp_path: Path) -> None:
    place = ["--warehouse", str(kept.root), "--init", str(tmp_path / "views.sql")]
    assert main(["sql", "--at", "0", *place]) == 0
    assert "as of version 0," in (tmp_path / "views.sql").read_text("utf-8")
    assert main(["sql", *place]) == 0
    assert "as of version 0," not in (tmp_path / "views.sql").read_text("utf-8")


def test_the_init_file_replaces_nothing_of_the_warehouse(
    kept: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, place = files(kept.root), ["--warehouse", str(kept.root)]
    for name in ("README.md", "views.duckdb", "plumbline.json"):
        assert main(["sql", "--init", str(kept.root / name), *place]) == 2
        assert "lies in the warehouse (choose another --init)" in capsys.readouterr().err
    assert files(kept.root) == before
    database = tmp_path / "views.duckdb"
    assert main(["sql", "--init", str(database), "--relative", *place]) == 2
    assert "has absolute paths" in capsys.readouterr().err and not database.exists()


def test_an_error_of_the_query_is_not_the_disk_s(
    kept: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "CASE range WHEN 900000 THEN 'x' ELSE '1' END"  # while rows are written already
    query = f"SELECT CAST({text} AS INTEGER) AS n FROM range(1000000)"
    out = ["--out", str(tmp_path / "r.parquet"), "--warehouse", str(kept.root)]
    assert main(["sql", query, *out]) == 2
    err = capsys.readouterr().err
    assert "Could not convert string" in err and "disk" not in err
    assert len(err.splitlines()) == 1 and not list(tmp_path.iterdir())


def test_decimals_keep_their_digits_in_csv(kept: Store, capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT 12345678901234567890.123456789::DECIMAL(38, 9) AS a, -0.0000001::DECIMAL(9, 7)"
    assert main(["sql", query, "--format", "csv", "--warehouse", str(kept.root)]) == 0
    line = capsys.readouterr().out.splitlines()[1]
    assert line == "12345678901234567890.123456789,-0.0000001"


def test_an_unknown_name_at_the_end_of_the_input_opens_no_second_shell(
    kept: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("FROM nosuch"))
    assert main(["sql", "--warehouse", str(kept.root)]) == 2
    out, err = capsys.readouterr()
    assert out.count(".examples [NUMBER...]") == 1 and "nosuch" in err


def test_the_init_file_names_no_more_than_it_needs(kept: Store) -> None:
    made = re.findall(r"(?m)^CREATE OR REPLACE \w+ \"?([\w.]+)", init_sql(kept.root))
    assert len(made) == len(set(made))
