"""Hostile names, links, texts and queries × what writes, prints or runs them: none is obeyed."""

import io
import os
import re
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.pipelines.command.main import main
from plumbline.pipelines.report.write import write_report
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.paths import segment
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.escape import csv_cell, hidden, terminal
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
    with pytest.raises(BadInput, match="name") as raised:
        store.work_directory("count", name)
    assert len(str(raised.value)) < 250


def test_no_data_is_unpacked_or_run_and_every_line_is_printed_by_say() -> None:
    """Beside ruff's rules on YAML, `eval` and `exec`; only a count sends its helpers pickles."""
    other = r"\b((typer|click)\.echo|torch\.load)\(|allow_pickle|import (tarfile|shelve|joblib)"
    for room in ("warehouse", "jobs", "eval_workers", "pipelines"):
        for path in (REPOSITORY / room).rglob("*.py"):
            text = path.read_text("utf-8")
            assert not re.search(other, text), path
            assert "import pickle" not in text or path.name == "local_engine.py", path


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


# Queries


def sql(store: Store, *arguments: str) -> int:
    return main(["sql", *arguments, "--warehouse", str(store.root)])


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


# What killed processes leave


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


# Secrets that a server repeats × lines of errors


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AWS_SECRET_ACCESS_KEY", "wJalr/XUtnFEMI+K7MDENG"),
        ("AZURE_STORAGE_ACCOUNT_KEY", "azure-key-1=="),
        ("AZURE_STORAGE_CONNECTION_STRING", "AccountName=a;AccountKey=bcd"),
        ("GOOGLE_SERVICE_ACCOUNT_KEY", '{"private_key": "abc"}'),
        ("HF_TOKEN", "hf_abcdefgh"),
        ("OPENAI_APIKEY", "sk-abcdefgh"),
        ("API_KEYS", "sk-abcdefgh,sk-bcdefghi"),
        ("http_proxy_password", "hunter2hunter2"),
    ],
)
def test_what_variables_hold_is_in_no_part_of_an_error(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    error = BadInput(f"shard {value}", f"says {value} {quote(value, safe='')}", f"not {value[:-1]}")
    assert str(error) == "shard ***: says *** *** (not ***)"
    assert value not in repr(error) + repr(error.args) + error.message


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://me:word@host/a", "https://***@host/a"),
        ("https://me:wo@rd@host/a@b", "https://***@host/a@b"),
        ("s3://id:key@bucket/a", "s3://***@bucket/a"),
        ("abfs://container@account.host/a", "abfs://container@account.host/a"),
        ("x?X-Amz-Signature=ab12&X-Amz-Date=1", "x?X-Amz-Signature=***&X-Amz-Date=1"),
        ("<x?sv=1&sig=a%2Fb>", "<x?sv=1&sig=***>"),
        ("Authorization: Bearer abcdefgh123", "Authorization: Bearer ***"),
        ("{'authorization': 'Basic dXNlcjpwYXNz'}", "{'authorization': 'Basic ***'}"),
        ("Basic tokenizer is missing", "Basic tokenizer is missing"),
        ("AWS4 Credential=AKIA/1/s3, Signature=ab1", "AWS4 Credential=***, Signature=***"),
        ("-----BEGIN PRIVATE KEY-----\nMII\n", "-----BEGIN PRIVATE KEY-----***"),
        ("the word key = tea; sign of a token", "the word key = tea; sign of a token"),
    ],
)
def test_credentials_are_known_by_their_form(text: str, shown: str) -> None:
    assert hidden(text, {}) == shown
    assert hidden(shown, {}) == shown
