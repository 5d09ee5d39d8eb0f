"""Warehouses of other formats are refused; an added column or table is not another format."""

from pathlib import Path

import pytest

from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.query.connection import connect
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.schema.columns import tables
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
