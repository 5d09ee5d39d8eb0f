"""Hostile names, links, texts and queries × what writes, prints or runs them: none is obeyed."""

from __future__ import annotations

import ast
import io
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.pipelines.command.main import main
from plumbline.pipelines.report.write import write_report
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.paths import segment
from plumbline.warehouse.storage.locks import temporary_directory
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.escape import csv_cell, sql_text, terminal
from tests.conftest import REPOSITORY
from tests.hostile import (
    HOSTILE,
    MARKUP,
    MEANT,
    STEERS,
    filled,
    filled_with_hostile_texts,
    is_harmless,
)
from tests.metric_rows import fill
from tests.test_report import Page

# Names and links × what writes: nothing is written or removed outside its place


def words(corpus: str, word: str = "tea") -> list[dict[str, object]]:
    return [{"corpus": corpus, "word": word, "n_word": 2}]


@given(st.text(max_size=30), st.text(max_size=30))
def test_different_names_are_different_parts(a: str, b: str) -> None:
    def made(name: str) -> str | None:
        try:
            return segment(name)
        except BadInput:
            return None

    for name in (a, b):
        part = made(name)
        assert part is None or ((Path("x") / part).parent == Path("x") and "\0" not in part)
    if made(a) is not None and a != b:
        assert made(a) != made(b)


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 300, "é" * 60, "half\udce4"])
def test_names_no_file_can_have_are_one_line(store: Store, name: str) -> None:
    """Work never lies above its place."""
    with pytest.raises(BadInput, match="name") as raised:
        store.work_directory("count", name)
    assert len(str(raised.value)) < 250


def test_no_archive_is_unpacked_and_no_data_is_run() -> None:
    """Archives are written, never unpacked; no pickle or code is read from data. YAML is in one
    module, which reads the wordings of UnStereoEval's release, as plain data."""
    plain_yaml = REPOSITORY / "eval_workers" / "writing" / "wordings.py"
    # Between a process and the helpers that it started, over their pipes.
    helpers = ("jobs/counting/local_engine.py", "warehouse/steps/helper_processes.py")
    own_helpers = {REPOSITORY / name for name in helpers}
    forbidden = {"extractall", "extract", "unpack_archive", "eval", "exec", "yaml", "pickle"}
    forbidden |= {"dill", "joblib", "cloudpickle", "shelve", "marshal", "tarfile", "allow_pickle"}
    for room in ("warehouse", "jobs", "eval_workers", "pipelines"):
        for path in sorted((REPOSITORY / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names: set[str] = set()
                if isinstance(node, ast.Import):
                    names = {a.name.split(".")[0] for a in node.names}
                elif isinstance(node, ast.ImportFrom):
                    names = {(node.module or "").split(".")[0]}
                elif isinstance(node, ast.Call):
                    names = {ast.unparse(node.func)} | {str(k.arg) for k in node.keywords}
                    if ast.unparse(node.func) == "torch.load":
                        assert any(
                            k.arg == "weights_only" and ast.unparse(k.value) == "True"
                            for k in node.keywords
                        ), f"{path.name}:{node.lineno}"
                if path in own_helpers:
                    names -= {"pickle"}
                if path == plain_yaml:
                    names -= {"yaml"}
                    if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "yaml":
                        assert node.attr in ("safe_load", "YAMLError")
                found = names & forbidden
                assert not found, f"{path.relative_to(REPOSITORY)}:{node.lineno}: {found}"


# Texts × what prints or writes them: nothing obeys them


@given(st.text() | st.text(alphabet="a\x1b\x9b\u202e\u200b\n\r\t\ud800 é\U000e0041"))
def test_terminal_text_holds_nothing_unseen(text: str) -> None:
    one_line, lines = terminal(text), terminal(text, lines=True)
    assert is_harmless(lines) and is_harmless(one_line) and not MEANT & set(one_line)
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


@settings(max_examples=30)
@given(st.text())
def test_sql_text_is_the_text(text: str) -> None:
    text = text.replace("\0", "").encode(errors="ignore").decode()
    with duckdb.connect() as connection:
        assert connection.execute(f"SELECT {sql_text(text)}").fetchone() == (text,)


COMMANDS = {
    "corpus list": ("corpus", "list"),
    "corpus words": ("corpus", "words", "--corpus", HOSTILE, "--any-language"),
    "word": ("word", f"{HOSTILE}3"),
    "benchmark list": ("benchmark", "show"),
    "benchmark show": ("benchmark", "show", HOSTILE),
    "measure": ("measure",),
    "no such": ("benchmark", "show", f"no{HOSTILE}"),
}


@pytest.fixture(scope="module")
def hostile_store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return filled_with_hostile_texts(Store.open(tmp_path_factory.mktemp("hostile") / "w"))


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_print_hostile_names_and_words_harmlessly(
    hostile_store: Store,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    monkeypatch.setenv("COLUMNS", "2000")
    status = main([*COMMANDS[name], "--warehouse", str(hostile_store.root)])
    out, err = capsys.readouterr()
    assert is_harmless(out + err)
    assert status in (0, 2), err
    if name not in ("word", "measure"):  # they show no text of these, or tell it lowercased
        assert MARKUP in out + err
        assert "\\x1b[2J" in out + err


def test_the_page_holds_hostile_text_as_text_and_opens_no_connection(
    hostile_store: Store, tmp_path: Path
) -> None:
    first = write_report(hostile_store, tmp_path / "report")
    for path in (first, first.with_name("appendix.html")):
        page = Page(path)  # fails on a script, an on... attribute and tags that do not balance
        raw = path.read_text(encoding="utf-8")
        # The page's own script and that of its charts are the only ones that may run.
        assert "onerror=alert(1)>{{ 7*7 }}" in page.text
        n_charts = raw.count('<script type="application/json">')
        assert raw.lower().count("<script") == n_charts + 2 > 2
        assert raw.count("script-src 'self' 'sha256-") == 1
        own = ("#", "data:", "index.html", "appendix.html", "words.html", "pairs.html", "vega.js")
        assert page.links and all(
            x.startswith(own) or (first.parent / x).is_file() for x in page.links
        )
        assert "default-src 'none'" in raw and "@import" not in raw
        style = raw.split("<style>")[1].split("</style>")[0]
        assert "url(" not in style and "//" not in style
    assert {p.parent for p in tmp_path.rglob("*.vl.json")} == {first.parent}
    searches = [first.with_name("words.html"), first.with_name("pairs.html")]
    scripts = [path for page in searches for path in first.parent.glob(f"{page.stem}/*.js")]
    assert len(scripts) >= 2
    for path in searches + scripts:
        text = path.read_text(encoding="utf-8")
        assert "<img" not in text
        assert is_harmless(text)


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


# Queries


def sql(store: Store, *arguments: str) -> int:
    return main(["sql", *arguments, "--warehouse", str(store.root)])


@pytest.mark.parametrize("text", [";", " ;; ", "/* tea */", "SELECT '\udcff'"])
@pytest.mark.parametrize("kind", ["table", "csv", "json"])
def test_a_query_without_a_statement_is_one_line(
    store: Store, capsys: pytest.CaptureFixture[str], kind: str, text: str
) -> None:
    assert sql(store, text, "--format", kind) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_names_of_columns_do_not_steer_a_terminal(
    store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store, "word_count", [{"corpus": "c", "word": STEERS, "n_word": 9}])
    pivot = "PIVOT word_count ON word USING sum(n_word) GROUP BY corpus"
    monkeypatch.setenv("COLUMNS", "200")
    assert sql(store, pivot) == 0
    out = capsys.readouterr().out
    assert is_harmless(out) and "\\x1b[2J" in out
    typed = f"CREATE TABLE t AS ({pivot});\nDESCRIBE t;\nFROM t;\nSHOW TABLES;\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    assert sql(store) == 0
    out, err = capsys.readouterr()
    assert is_harmless(out + err) and out.count("\\x1b[2J") == 2


def test_a_byte_that_is_not_utf_8_is_one_bad_query(
    store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = io.BytesIO(b"SELECT '\xff';\nSELECT 41 + 1 AS n;\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(typed, encoding="utf-8"))
    assert sql(store) == 0
    out = capsys.readouterr().out
    assert "is not Unicode" in out and "42" in out


# What killed processes leave


_SLEEP = "\nprint('in', flush=True)\nimport time; time.sleep(60)"


def killed(code: str, *arguments: str) -> None:
    """Run code until it prints, then kill it."""
    process = subprocess.Popen(
        [sys.executable, "-c", code + _SLEEP, *arguments],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "in\n"
    process.kill()
    process.wait()


_TEMPORARY = """
import sys
from pathlib import Path
from plumbline.warehouse.storage.locks import temporary_directory
held = temporary_directory(Path(sys.argv[1]), "spark-")
(held.__enter__() / "libzstd.so").touch()
"""


def test_the_next_process_removes_the_temporary_files_of_the_dead_alone(tmp_path: Path) -> None:
    (tmp_path / "spark-of-somebody").mkdir()
    with temporary_directory(tmp_path, "spark-") as living:
        (living / "a").touch()
        killed(_TEMPORARY, str(tmp_path))
        assert len(list(tmp_path.glob("spark-*/"))) >= 3
        with temporary_directory(tmp_path, "spark-") as mine:
            assert {p for p in tmp_path.glob("spark-*") if p.is_dir()} == {
                *(living, mine, tmp_path / "spark-of-somebody")
            }
            assert (living / "a").exists()


def test_a_report_leaves_nothing_half_written(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "report"
    write_report(filled(store), out)
    before = {p.name for p in out.iterdir()}
    left = out / f"_{'0' * 32}.tmp"
    for name in (left, out / "words" / left.name, out / "mine.tmp"):
        name.touch()
    write_report(store, out)
    assert {p.name for p in out.iterdir()} == before | {"mine.tmp"}
    assert not (out / "words" / left.name).exists()

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(BadInput, match="No space"):
        write_report(store, out)
    assert {p.name for p in out.iterdir()} == before | {"mine.tmp"}


# Tables that are emptied
