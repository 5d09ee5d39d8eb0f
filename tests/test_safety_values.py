"""Values that no Plumbline wrote, in files whose hashes are right: one line, never a traceback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from plumbline.eval_workers.chat.ledger import look, open_ledger
from plumbline.pipelines.command.main import main
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.locks import claimed, holder, lock
from plumbline.warehouse.storage.log import Unit, commit
from plumbline.warehouse.storage.store import Store
from tests.test_safety_files import filled, spoilt

#: A table, one of its columns, commands that read it, and the forgeries that they notice: a NULL
#: that SQL reads is what only `warehouse check` reports.
READ = {
    "word_delta": ("delta_nats", ("corpus words --corpus c --n 3", "report --out page"), "etl"),
    "pair_score": ("logprob_a_nats", ("measure", "report --out page"), "tl"),
    "corpus": ("n_words", ("corpus verify --corpus c", "report --out page"), "tl"),
}


def forged(store: Store, table: str, change: Any) -> Path:
    """Put a changed copy of a table's only file in its place, as its author would."""
    (old,) = store.snapshot().files(table)
    rows = change(store.rows(store.path(old)))
    part = store.root / "part.parquet"
    pq.write_table(rows, part)
    partition = dict(zip(TABLES[table].partitions, old.partition, strict=True))
    new = store.adopt(table, partition, part, (Unit("u", rows.num_rows, old.units[0].run_id),))
    commit(store.place, lambda draft: draft.swap(table, [old], [new]), "r")
    return store.root / new.path


def emptied(name: str, rows: pa.Table) -> pa.Table:
    """The column is NULL in every row."""
    at = rows.column_names.index(name)
    return rows.set_column(at, name, pa.nulls(rows.num_rows, rows.schema.field(name).type))


def texts(name: str, rows: pa.Table) -> pa.Table:
    """The column is a text that is no number, and no JSON."""
    at = rows.column_names.index(name)
    return rows.set_column(at, name, pa.array(["tea\x1b[2J"] * rows.num_rows))


def lacking(name: str, rows: pa.Table) -> pa.Table:
    return rows.drop_columns([name])


def most(name: str, rows: pa.Table) -> pa.Table:
    """Every number is infinite or as large as can be."""
    value = float("inf") if pa.types.is_floating(rows.schema.field(name).type) else 2**63 - 1
    at = rows.column_names.index(name)
    return rows.set_column(at, name, pa.array([value] * rows.num_rows))


@pytest.mark.parametrize("change", [emptied, texts, lacking, most])
@pytest.mark.parametrize(
    "table", ["word_delta", *(pytest.param(t, marks=pytest.mark.slow) for t in [*READ][1:])]
)
def test_a_forged_column_is_one_line(
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    table: str,
    change: Any,
) -> None:
    monkeypatch.chdir(tmp_path)
    column, commands, noticed = READ[table]
    path = forged(filled(store), table, lambda rows: change(column, rows))
    named = False
    for command in commands:
        status = main([*command.split(), "--warehouse", str(store.root)])
        out, err = capsys.readouterr()
        assert "\x1b[2J" not in out + err and len(err.splitlines()) <= 1
        assert status == (3 if err else 0)
        named |= str(path) in err or "Conversion Error" in err
    assert named == (change.__name__[0] in noticed)


@pytest.mark.parametrize(
    "text",
    [
        None,
        pytest.param('{"eta": []}', marks=pytest.mark.slow),
        pytest.param("null", marks=pytest.mark.slow),
        pytest.param("[" * 100_000, marks=pytest.mark.slow),
    ],
)
def test_options_of_metrics_that_are_none(
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str | None,
) -> None:
    monkeypatch.chdir(tmp_path)
    where = ["--warehouse", str(filled(store).root)]
    assert main(["measure", *where]) == 0

    def change(rows: pa.Table) -> pa.Table:
        at = rows.column_names.index("options")
        return rows.set_column(at, "options", pa.array([text] * rows.num_rows, pa.string()))

    forged(store, "metric_value", change)
    (run,) = store.read("run").filter(pc.field("command") == "measure")["run_id"].to_pylist()
    for command in ("report --out page", f"runs compare {run} {run}", "measure"):
        capsys.readouterr()
        status = main([*command.split(), *where])
        err = capsys.readouterr().err
        assert len(err.splitlines()) <= 1 and status == (3 if err else 0), err


ROW = {"request_id": "q", "prompt": "p", "model": "m", "parameters": "{}", "run_id": "r"}
ROW |= {"purpose": "write", "word": None, "pronoun": None, "round": 1}
ASKED = {"event": "asked", "row": ROW, "n_tokens": 5, "cost": None}


@pytest.mark.parametrize(
    "event",
    [
        None,
        [],
        {"event": "row"},
        {"event": "row", "row": 5},
        {"event": "row", "row": ROW | {"n_attempts": "many"}},
        {"event": "row", "row": ROW | {"request_id": []}},
        {"event": "row", "row": ROW | {"cost": {}, "reply": 7}},
        {"event": "row", "row": ROW | {"nobody": 1}},
        {"event": "row", "row": ROW | {"n_attempts": 10**30}},
        {"event": "replied", "request_id": "another"},
        ASKED | {"n_tokens": "all"},
        ASKED | {"row": ROW | {"request_id": 5}},
    ],
)
def test_a_ledger_of_replies_that_is_none_is_named(store: Store, event: object) -> None:
    path = store.work_directory("generate", "b") / "ledger.jsonl"
    lines = [json.dumps(ASKED), json.dumps(event)]
    path.write_text("".join(f"{line}\n" for line in lines))
    with pytest.raises(BadInput, match=r"ledger\.jsonl"):
        look(store, "b")
    with pytest.raises(BadInput, match=r"ledger\.jsonl"), open_ledger(store, "b", "r"):
        pass


@pytest.mark.parametrize("damage", ["pipe", "directory"])
def test_a_ledger_of_replies_that_is_no_file(store: Store, damage: str) -> None:
    path = store.work_directory("generate", "b") / "ledger.jsonl"
    path.write_text("")
    spoilt(path, damage)
    with pytest.raises(BadInput, match=r"ledger\.jsonl"), open_ledger(store, "b", "r"):
        pass


@pytest.mark.parametrize("damage", ["pipe", "directory", "circle", "link", "\xff\x1b[2J" * 999])
def test_a_lock_that_is_none(store: Store, tmp_path: Path, damage: str) -> None:
    """It is taken or refused in one line; what a link leads to is not written."""
    path = store.work_directory("locks") / "x.claim"
    path.write_text("")
    secret = tmp_path / "secret"
    secret.write_text("mine")
    if damage == "link":
        path.unlink()
        path.symlink_to(secret)
    else:
        spoilt(path, damage)
    assert str(UsageProblem(holder(path))).isprintable()
    try:
        with lock(store, "x", "x"), claimed(path) as again:
            assert not again
    except (BadInput, UsageProblem) as e:
        assert str(e).isprintable()
    assert secret.read_text() == "mine"
