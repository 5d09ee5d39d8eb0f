"""Hostile words, names and replies: what commands print and write does not obey them."""

from __future__ import annotations

import ast
import csv
import unicodedata
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.eval_workers.pairs.benchmarks import discover
from plumbline.pipelines.command.main import main
from plumbline.pipelines.report.write import write_report
from plumbline.pipelines.reproduce.word_lists import ComparedList, TauAgreement, write_compared
from plumbline.pipelines.stages import CONSOLE, Stages
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.escape import csv_cell, csv_cell_sql, sql_text, terminal
from tests.conftest import REPOSITORY
from tests.metric_rows import delta, fill, pair, score, scored_by
from tests.test_report import Page

#: Clears the screen, sets the title, rings, turns the direction of text, hides and links.
STEERS = "x\x1b[2J\x07\x9b31m\u202ee\u200b\r"
MARKUP = "[bold red]x[/] :skull:[/]"
HTML = "</script><script src=//x><img onerror=alert(1)>{{ 7*7 }}\"'"
HOSTILE = f"{STEERS}{MARKUP}{HTML}"
#: A link needs more letters than a file name has room for beside the rest.
LINK = "[link=https://evil.test]y[/link]"
_MEANT = set("\n\t")


def is_harmless(text: str) -> bool:
    """No control, no mark without a width, nothing that turns the direction of text."""
    unseen = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    return all(c in _MEANT or unicodedata.category(c) not in unseen for c in text)


@given(st.text() | st.text(alphabet="a\x1b\x9b\u202e\u200b\n\r\t\ud800 é\U000e0041"))
def test_terminal_text_holds_nothing_unseen(text: str) -> None:
    one_line, lines = terminal(text), terminal(text, lines=True)
    assert is_harmless(lines) and is_harmless(one_line) and not _MEANT & set(one_line)
    assert (terminal(one_line), terminal(lines, lines=True)) == (one_line, lines)
    assert lines.count("\n") == text.count("\n")
    if text.isprintable():
        assert one_line == text


@given(st.text() | st.text(alphabet="=+-@\t\r\n|%＝ '1.e"))
def test_no_csv_cell_starts_as_a_formula_does(text: str) -> None:
    cell = str(csv_cell(text))
    assert cell in (text, f"'{text}")
    if cell.strip()[:1] in tuple("=+-@|%＝＋－＠") or cell[:1] in tuple("\t\r\n"):
        float(cell)  # a plain number


_EDGES = (
    "=1",
    "\u3000=1",
    "\x1c-1",
    "\v+",
    "\n",
    " \t",
    "1\n",
    "-1\n",
    "-1.5e3",
    "-.5",
    "- 1",
    "'",
)


@settings(max_examples=30)
@given(
    st.lists(st.text(alphabet="=+-@\t\r\n\v\x1c\x1f\x85\u3000\u200b|%＝＋－＠ '1.eE") | st.text())
)
def test_duckdb_escapes_csv_cells_as_python_does(texts: list[str]) -> None:
    texts = [t.replace("\0", "").encode(errors="ignore").decode() for t in (*texts, *_EDGES)]
    expression = csv_cell_sql("t")
    with duckdb.connect() as connection:
        query = f"SELECT {expression} FROM (SELECT unnest($texts::VARCHAR[]) AS t)"
        found = [cell for (cell,) in connection.execute(query, {"texts": texts}).fetchall()]
        assert connection.execute(f"SELECT {expression} FROM (SELECT NULL AS t)").fetchone() == (
            None,
        )
    assert found == [csv_cell(text) for text in texts]


@settings(max_examples=30)
@given(st.text())
def test_sql_text_is_the_text(text: str) -> None:
    text = text.replace("\0", "").encode(errors="ignore").decode()
    with duckdb.connect() as connection:
        assert connection.execute(f"SELECT {sql_text(text)}").fetchone() == (text,)


def held(store: Store) -> Store:
    """A warehouse in which every text is hostile."""
    row: dict[str, object] = dict.fromkeys(
        ("n_shards", "n_shards_failed", "n_documents", "n_rejected", "n_tokens", "n_pairs")
    )
    row = dict.fromkeys(row, 0) | dict.fromkeys(("n_kept_tokens", "n_tokens_pruned"), 0)
    row |= {"n_words": 20, "n_words_kept": 20, "min_count": 1, "corpus": HOSTILE}
    fill(store, "corpus", [row | {"source": "counted", "targets": HOSTILE, "run_id": "r"}])
    words = [f"{HOSTILE}{k}" for k in range(20)]
    fill(store, "word_count", [{"corpus": HOSTILE, "word": w, "n_word": 9} for w in words])
    fill(store, "word_delta", [delta(w, k - 9.5, HOSTILE) for k, w in enumerate(words)])
    texts = dict.fromkeys(("template", "sentence_a", "sentence_b", "word"), LINK + HOSTILE)
    fill(store, "benchmark_pair", [pair(HOSTILE, w, **texts) for w in words])
    fill(store, "pair_score", [score(HOSTILE, w, 0.5, HOSTILE, "k") for w in words])
    fill(store, "model", [scored_by(HOSTILE, key="k")])
    return store


COMMANDS = {
    "corpus list": ("corpus", "list"),
    "corpus words": ("corpus", "words", "--corpus", HOSTILE, "--n", "2"),
    "corpus words --show": ("corpus", "words", "--corpus", HOSTILE, "--show"),
    "word": ("word", f"{HOSTILE}3"),
    "benchmark list": ("benchmark", "list"),
    "benchmark show": ("benchmark", "show", HOSTILE),
    "measure": ("measure",),
    "no such": ("benchmark", "show", f"no{HOSTILE}"),
}


def test_commands_print_hostile_names_and_words_harmlessly(
    store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "2000")
    where = ("--warehouse", str(held(store).root))
    for name, arguments in COMMANDS.items():
        status = main([*arguments, *where])
        out, err = capsys.readouterr()
        assert is_harmless(out + err), f"{name}: {out + err!r}"
        assert status in (0, 2), f"{name}: {err}"
        if name not in ("word", "measure"):  # they show no text of these, or tell it lowercased
            assert MARKUP in out + err, name
            assert "\\x1b[2J" in out + err, name


def test_an_error_that_quotes_a_long_value_is_short(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["corpus", "x" * 99_999], ["runs", "list", "--format", "x" * 99_999]):
        assert main(words) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert len(line) < 2_100


def test_errors_and_warnings_and_stages(capsys: pytest.CaptureFixture[str]) -> None:
    told = str(BadInput(HOSTILE, HOSTILE, HOSTILE))
    assert is_harmless(told) and "\n" not in told and told.count("\\x1b[2J") == 3
    stages = Stages()
    stages.run(HOSTILE, lambda: None)
    CONSOLE.print(stages.table())
    out, _ = capsys.readouterr()
    assert is_harmless(out) and "[bold red]x[/]" in out


def test_the_page_holds_hostile_text_as_text_and_opens_no_connection(
    store: Store, tmp_path: Path
) -> None:
    first = write_report(held(store), tmp_path / "report")
    for path in (first, first.with_name("appendix.html")):
        page = Page(path)  # fails on a script, an on... attribute and tags that do not balance
        raw = path.read_text(encoding="utf-8")
        # The page's own script is the only one, and its hash the only one that may run.
        assert "onerror=alert(1)>{{ 7*7 }}" in page.text and raw.lower().count("<script") == 1
        assert raw.count("script-src 'sha256-") == 1
        own = ("#", "data:", "index.html", "appendix.html", "words.html", "pairs.html")
        assert page.links and all(link.startswith(own) for link in page.links)
        assert "default-src 'none'" in raw and "@import" not in raw
        style = raw.split("<style>")[1].split("</style>")[0]
        assert "url(" not in style and "//" not in style
    assert {p.parent for p in tmp_path.rglob("*.svg")} == {first.parent}
    searches = [first.with_name("words.html"), first.with_name("pairs.html")]
    scripts = [path for page in searches for path in first.parent.glob(f"{page.stem}/*.js")]
    assert len(scripts) >= 2
    for path in searches + scripts:
        text = path.read_text(encoding="utf-8")
        assert "<img" not in text
        assert is_harmless(text)


def test_csv_files_hold_no_formulas(tmp_path: Path) -> None:
    bad = '=HYPERLINK("https://evil.test")'
    rows = ({"contrast": bad, "n_words": 3, "median_se_nats": -0.5},)
    agreement = TauAgreement("@x", "-1+cmd|' /C'!A0", 2, -0.25, -0.5, 0.125)
    compared = ComparedList("../../c", "l", rows, (agreement,), "no intervals", None)
    written = write_compared(compared, tmp_path / "out")
    assert {path.parent for path in written} == {tmp_path / "out"}
    tables = [list(csv.reader(p.open(newline=""))) for p in written if p.suffix == ".csv"]
    assert tables[0][1] == [f"'{bad}", "3", "-0.5"]
    assert tables[1][1] == ["'@x", "'-1+cmd|' /C'!A0", "2", "-0.25", "-0.5", "0.125"]


def test_every_line_is_printed_by_say_and_no_table_reads_markup() -> None:
    """One rule for all commands: `warehouse.text.escape.say`, consoles interpret no markup."""
    for room in ("jobs", "eval_workers", "pipelines"):
        for path in sorted((REPOSITORY / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if not isinstance(node, ast.Call):
                    continue
                where = f"{path.relative_to(REPOSITORY)}:{node.lineno}"
                name = ast.unparse(node.func)
                assert name not in ("typer.echo", "click.echo"), (
                    f"{where}: use plumbline.warehouse.text.escape.say"
                )
                if name == "Console" and not any(k.arg == "stderr" for k in node.keywords):
                    given = {k.arg: ast.unparse(k.value) for k in node.keywords}
                    sql = path.name == "sql.py"  # every cell of its tables is a `Text`
                    assert sql or given.get("markup") == "False", f"{where}: give markup=False"


def test_the_names_of_benchmarks_are_ours() -> None:
    assert all(name.replace("-", "").isalnum() for name in discover())
