"""`plumbline sql`: one query, the shell, the worked examples."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable

import duckdb
import pytest
from rich.console import Console

from plumbline.pipelines.command import registry
from plumbline.pipelines.command.main import main
from plumbline.pipelines.sql import result_output as output
from plumbline.pipelines.sql import shell as sql
from plumbline.pipelines.sql.shell import completer, completions
from plumbline.warehouse.query.connection import connect
from plumbline.warehouse.query.guard import read_only
from plumbline.warehouse.query.reference import questions
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.schema.columns import Table
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import association, delta, fill, pair, score


@pytest.fixture
def connection(store: Store) -> duckdb.DuckDBPyConnection:
    pairs = [("agrees", 1.0, 2.0), ("contradicts", 0.9, -2.0), ("weakly", 0.9, -0.1)]
    fill(store, "benchmark_pair", [pair("b", name, template=name) for name, _, _ in pairs])
    fill(store, "pair_association", [association("b", name, x) for name, x, _ in pairs])
    fill(store, "pair_score", [score("b", name, y) for name, _, y in pairs])
    words = [(f"w{i:02}", (i - 15) / 10) for i in range(30)]
    rare = delta("rare", 9.0) | {"delta_nats_se": 5.0}
    fill(store, "word_delta", [delta(w, d) for w, d in words] + [rare])
    return connect(store.root)


def captured(width: int | None = None) -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return Console(file=out, width=width, force_terminal=width is not None, color_system=None), out


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


def test_every_column_is_readable_at_any_width() -> None:
    names = [f"column_{i}" for i in range(12)]
    row = [f"value {i} of some length" for i in range(12)]
    for width in (None, 60, 400):
        console, out = captured(width)
        output.show(console, names, [row])
        text = out.getvalue()
        assert all(name in text for name in names), width
        assert all(value in text for value in row), width


def test_a_path_is_in_one_piece_on_a_narrow_terminal() -> None:
    console, out = captured(80)
    path = f"/data/{'blocks of 1 GB/' * 8}pile-00-00012.jsonl.zst"
    output.show(console, ["shard", "state"], [[path, "counted"]])
    assert path in out.getvalue()


def test_output_cannot_steer_the_terminal_or_the_markup() -> None:
    console, out = captured()
    output.show(console, ["[red]x"], [["\x1b[2J[bold]\r\nboo"]])
    assert "\x1b" not in out.getvalue()
    assert "[red]x" in out.getvalue() and "[bold]" in out.getvalue()


def test_long_results_say_how_many_rows_there_are() -> None:
    console, out = captured()
    output.show(console, ["n"], [[i] for i in range(2500)])
    assert "2,500 rows, the first 1,000 shown" in out.getvalue()


def test_shell(connection: duckdb.DuckDBPyConnection) -> None:
    lines = [
        ".tables",
        ".schema word_delta",
        ".schema nothing",
        "SELECT nonsense;",
        "half a query",
        "^C",
        "SELECT 40 +",
        "2 AS answer;",
        "SELECT 'by blank line' AS ended",
        "",
        ".what",
        ".quit",
        "SELECT 'never' AS reached;",
    ]
    console, out = captured()
    sql.shell(connection, console, typed(lines))
    text = out.getvalue()
    for expected in (".examples 3", "scored_pair", "delta_nats", "nothing", "nonsense", "42"):
        assert expected in text
    assert "by blank line" in text and "half a query" not in text and "never" not in text


def test_tables_that_cannot_be_counted_are_one_line() -> None:
    broken = duckdb.connect()
    broken.execute("CREATE TABLE t (i INT); CREATE VIEW v AS FROM t; DROP TABLE t")
    console, out = captured()
    sql.shell(broken, console, typed([".tables", "SELECT 40 + 2 AS answer;"]))
    assert "t does not exist" in out.getvalue() and "42" in out.getvalue()


def test_shell_runs_what_is_left_at_the_end_of_the_input(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    console, out = captured()
    sql.shell(connection, console, typed(["SELECT 40 + 2 AS answer"]))
    assert "42" in out.getvalue()


def test_the_shell_opens_with_the_questions(connection: duckdb.DuckDBPyConnection) -> None:
    console, out = captured()
    sql.shell(connection, console, typed([]))
    text = out.getvalue()
    assert all(f".examples {q.number} " in text and q.question in text for q in questions())
    assert "FROM word_lean" not in text


def test_examples_are_shown_and_answered(connection: duckdb.DuckDBPyConnection) -> None:
    console, out = captured()
    sql.shell(connection, console, typed([".examples"]))
    assert "FROM word_lean" in out.getvalue() and "FROM us_curve" in out.getvalue()
    console, out = captured()
    sql.shell(connection, console, typed([".examples 1", ".examples 99", ".examples 3"]))
    text = out.getvalue()
    assert "w29" in text and "there are 1 to" in text and "contradicts" in text
    assert "│ rare" not in text
    assert "FROM us_curve" not in text


def test_completion_knows_the_warehouse(connection: duckdb.DuckDBPyConnection) -> None:
    def complete(text: str) -> list[str]:
        return completions(connection, text)

    assert complete(".ex") == [".examples", ".exit"]
    assert complete(".sch") == [".schema "]
    assert complete(".schema word_d") == ["word_delta"]
    assert complete("SELECT * FROM audited") == ["audited_pair"]
    assert complete("select * from us_") == [
        "us_by_start",
        "us_curve(",
        "us_difference(",
        "us_gap(",
    ]
    assert complete("SELECT auf") == ["aufc(", "aufc_point(", "aufc_steps("]
    assert complete("SELECT log_r") == ["log_ratio_correlation", "log_ratio_nats"]
    assert complete("SELECT p.LOG_R") == ["p.log_ratio_nats"]
    assert complete("SELECT sum(max_pmi_w") == ["max_pmi_word"]
    assert complete("SELECT 1 FROM log_ratio_n") == []
    assert complete("SELECT 'word_de") == [] and complete("SELECT 'a' < word_de") == ["word_delta"]
    assert complete("nothing_like_it") == []
    assert set(complete("SELECT 1 FROM ")) >= set(TABLES) | {"scored_subset("}


def test_readline_is_given_one_name_after_another(connection: duckdb.DuckDBPyConnection) -> None:
    complete = completer(connection, lambda: "FROM word_")
    expected = completions(connection, "FROM word_")
    names = [complete("word_", state) for state in range(len(expected) + 1)]
    assert len(expected) > 1 and names == [*expected, None]


def test_importing_the_command_starts_nothing_heavy() -> None:
    code = (
        "import sys; import plumbline.pipelines.commands.measure\n"
        "import plumbline.pipelines.commands.sql\n"
        "import plumbline.pipelines.commands.report\n"
        "print(sorted({'torch', 'pyspark', 'prefect', 'altair', 'jinja2'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_empty_answer_says_what_fills_its_tables(
    connection: duckdb.DuckDBPyConnection, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(query: str, *more: str) -> str:
        assert main(["sql", query, "--warehouse", str(store.root), *more]) == 0
        return capsys.readouterr().err

    assert said("SELECT verdict FROM control").startswith("No rows yet in control: `plumbline meas")
    assert "word_evidence: `plumbline why`" in said("FROM word_evidence", "--format", "csv")
    assert "continuation: " in said("FROM gas_prompt")  # a view, by what it reads
    # Of several statements the last is shown.
    assert read_only(store, "SELECT 1; SELECT 2; SELECT 3 AS n").to_pylist() == [{"n": 3}]
    # A filter that nothing passes is no lack of rows.
    filtered = "FROM word_lean WHERE word = 'none'"
    assert said(filtered) == "No rows yet in word_bound: `plumbline corpus associate`\n"
    figures = ("n_word", "n_pair_f", "n_pair_m", "sides_nats_low", "sides_nats_high", "p", "q")
    bound: dict[str, object] = dict.fromkeys((*figures, "chance_clear"), 1)
    fill(store, "word_bound", [bound | {"corpus": "c", "contrast": "she/he", "word": "w00"}])
    assert said(filtered) == said("SELECT 1 LIMIT 0") == ""
    sql.shell(connection, captured()[0], typed(["FROM rating;"]))
    assert "`plumbline benchmark import-ratings`" in capsys.readouterr().err


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
def test_what_fills_a_table_is_a_command(table: Table) -> None:
    if table.filled_by.startswith("any command"):
        return
    words = table.filled_by.partition(",")[0].split()
    assert any(" ".join(words[:k]) in registry.targets() for k in (1, 2)), table.filled_by
