"""Warehouses of other formats are refused; an added column or table is not another format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plumbline.pipelines.command.main import main
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.query.connection import connect
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.schema.columns import tables
from plumbline.warehouse.storage.opening import FORMAT, MARKER
from plumbline.warehouse.storage.store import Store

OLD, GROWN = tables("""
planted: Old.
by: corpus count
key: corpus / word
    corpus word

planted: With a column that may be NULL.
by: corpus count
key: corpus / word
    corpus word
    note: text? -- n
""")


@pytest.fixture
def old(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Store:
    """A warehouse written when its table had two columns."""
    monkeypatch.setitem(TABLES, "planted", OLD)
    store = Store.open(tmp_path / "w")
    for corpus, words in (("c", ["tea", "cup"]), ("d", ["pot"])):
        rows = [{"corpus": corpus, "word": word} for word in words]
        store.publish("planted", rows, unit="all", run_id=f"run-{corpus}")
    return store


def rows(store: Store) -> list[tuple[object, ...]]:
    with connect(store.root) as connection:
        return connection.execute("SELECT * FROM planted ORDER BY ALL").fetchall()


def test_an_added_column_is_null_in_older_files(
    old: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TABLES, "planted", GROWN)
    store = Store.open(old.root)
    assert rows(store) == [("c", "cup", None), ("c", "tea", None), ("d", "pot", None)]
    assert {row["note"] for row in store.read("planted").to_pylist()} == {None}
    new = {"corpus": "a", "word": "jug", "note": "new"}
    store.publish("planted", [new], unit="all", run_id="r")  # sorted before the older files
    assert rows(store)[0] == ("a", "jug", "new") and len(rows(store)) == 4


def test_what_a_newer_plumbline_added_is_refused(
    old: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TABLES, "planted", GROWN)
    Store.open(old.root).publish(
        "planted", [{"corpus": "e", "word": "w", "note": "n"}], unit="u", run_id="r"
    )
    monkeypatch.setitem(TABLES, "planted", OLD)
    with pytest.raises(BadInput, match=r"a newer Plumbline wrote planted\.note .*upgrade"):
        connect(old.root)
    monkeypatch.delitem(TABLES, "planted")
    (line,) = Store.open(old.root).snapshot().kept
    assert line == "Table planted: no installed package declares it; kept as it is"


@pytest.mark.parametrize("version", [1, 3, FORMAT - 1])
def test_a_warehouse_of_an_earlier_format_is_one_line(
    old: Store, version: int, capsys: pytest.CaptureFixture[str]
) -> None:
    marker = json.dumps({"warehouse_version": version})
    (old.root / MARKER).write_text(marker, encoding="utf-8")
    before = sorted(old.root.rglob("*"))
    for command in (["sql", "FROM run"], ["warehouse", "check"], ["measure"]):
        assert main([*command, "--warehouse", str(old.root)]) == 3
        (line,) = capsys.readouterr().err.splitlines()
        assert f"has format {version}, this Plumbline reads {FORMAT} (use the Plumbline" in line
    assert sorted(old.root.rglob("*")) == before
