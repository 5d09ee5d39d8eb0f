"""Warehouses of older and newer forms: what opens, what is migrated, what is refused."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from plumbline.pipelines.command.main import main
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.query.connection import connect
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.schema.columns import tables
from plumbline.warehouse.storage import format as formats
from plumbline.warehouse.storage import log
from plumbline.warehouse.storage.format import Migration, constant, newest_version
from plumbline.warehouse.storage.migration import migrate
from plumbline.warehouse.storage.store import Store

OLD, GROWN, REKEYED = tables("""
planted: Old.
by: corpus count
key: corpus / word
    corpus word

planted: With a column that may be NULL.
by: corpus count
key: corpus / word
    corpus word
    note: text? -- n

planted: With a column of key and partitions.
by: corpus count
key: corpus form / word
    corpus
    form: text -- f
    word
    note: text? -- n
""")
#: Those of the project.
REAL = formats.MIGRATIONS
NOW = newest_version()
STEP = Migration("forms", {"planted": constant("form", "none")})


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


def rekey(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TABLES, "planted", REKEYED)
    monkeypatch.setattr(formats, "MIGRATIONS", (*REAL, STEP))


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
    done = migrate(store.root)
    assert [path.parent.name for path in done.files] == ["corpus=c", "corpus=d"]
    assert migrate(store.root).files == () and len(rows(store)) == 4


def test_an_added_table_is_an_empty_view(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TABLES, "planted", OLD)
    assert rows(Store.open(store.root)) == []


def test_what_a_newer_plumbline_added_is_refused(
    old: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TABLES, "planted", GROWN)
    Store.open(old.root).publish(
        "planted", [{"corpus": "e", "word": "w", "note": "n"}], unit="u", run_id="r"
    )
    monkeypatch.setitem(TABLES, "planted", OLD)
    for opening in (connect, migrate):
        with pytest.raises(BadInput, match=r"a newer Plumbline wrote planted\.note .*upgrade"):
            opening(old.root)
    monkeypatch.delitem(TABLES, "planted")
    with pytest.raises(BadInput, match="a newer Plumbline wrote table planted"):
        Store.open(old.root)


def test_a_new_key_column_gets_its_constant_in_old_rows(
    old: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    rekey(monkeypatch)
    for opening in (Store.open, connect):
        with pytest.raises(BadInput, match=rf"version {NOW}, .*{NOW + 1} .*warehouse migrate"):
            opening(old.root)
    planned = migrate(old.root, dry_run=True)
    assert len(planned.files) == 2 and Store(old.place).snapshot().format == NOW
    done = migrate(old.root)
    assert (done.before, done.after, done.files) == (NOW, NOW + 1, planned.files)
    expected = [("c", "none", "cup", None), ("c", "none", "tea", None), ("d", "none", "pot", None)]
    store = Store.open(old.root)
    assert rows(store) == expected
    files = store.snapshot().files("planted")
    assert [f.partition for f in files] == [("c", "none"), ("d", "none")]
    assert [u.run_id for f in files for u in f.units] == ["run-c", "run-d"]
    assert migrate(old.root).files == ()
    assert all(path.exists() for path in planned.files), "kept until they are compacted"


def test_later_migrations_meet_files_of_several_versions(
    old: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are migrated from the version that each was written with."""
    rekey(monkeypatch)
    migrate(old.root)

    def shout(rows: pa.Table) -> pa.Table:
        upper = [word.upper() for word in rows["word"].to_pylist()]
        return rows.set_column(rows.column_names.index("word"), "word", pa.array(upper))

    monkeypatch.setattr(
        formats,
        "MIGRATIONS",
        (*REAL, STEP, Migration("elsewhere", {}), Migration("case", {"planted": shout})),
    )
    assert (migrate(old.root).before, len(migrate(old.root).files)) == (NOW + 1, 0)
    assert [row[2] for row in rows(Store.open(old.root))] == ["CUP", "TEA", "POT"]


def test_a_change_without_a_migration_names_the_file_and_the_command_that_drops_it(
    old: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TABLES, "planted", REKEYED)
    for corpus in "cd":
        lost = rf"planted/corpus={corpus}.*form holds NULL.*no migration"
        with pytest.raises(BadInput, match=lost) as refused:
            migrate(old.root)
        (forget,) = re.findall(r"plumbline (warehouse forget .*), then", str(refused.value))
        assert main(shlex.split(forget)) == 0
    assert migrate(old.root).files == ()


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_warehouse_that_is_too_old_is_one_line(
    old: Store, version: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of 1 and 2 have no commit log."""
    if version < formats.LOGGED:
        shutil.rmtree(old.root / "_log")
        marker = json.dumps({"warehouse_version": version})
        (old.root / formats.MARKER).write_text(marker, encoding="utf-8")
    else:
        log.commit(old.place, lambda draft: setattr(draft, "format", version), "", "an older one")
    before = sorted(old.root.rglob("*"))
    for command in (["sql", "FROM run"], ["warehouse", "migrate"], ["warehouse", "check"]):
        assert main([*command, "--warehouse", str(old.root)]) == 3
        (line,) = capsys.readouterr().err.splitlines()
        assert f"has version {version}, too old to migrate" in line
    assert sorted(old.root.rglob("*")) == before


def test_the_command_migrates_and_says_what_it_would(
    old: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rekey(monkeypatch)
    where = ["--warehouse", str(old.root)]
    before = {p: p.read_bytes() for p in old.root.rglob("*") if p.is_file()}
    assert main(["sql", "FROM planted", *where]) == 3
    assert "plumbline warehouse migrate" in capsys.readouterr().err
    assert main(["warehouse", "migrate", "--dry-run", "--format", "json", *where]) == 0
    (planned,) = json.loads(capsys.readouterr().out)
    assert (planned["amount"], planned["note"]) == (2, f"version {NOW} to {NOW + 1}")
    assert {p: p.read_bytes() for p in old.root.rglob("*") if p.is_file()} == before
    assert main(["warehouse", "migrate", *where]) == 0
    assert len(rows(Store.open(old.root))) == 3
    capsys.readouterr()
    assert main(["warehouse", "migrate", "--dry-run", *where]) == 0
    assert capsys.readouterr().out == "Nothing is left to do.\n"
    assert main(["warehouse", "compact", "--keep-days", "0", *where]) == 0
    assert not any(path.exists() for path in before if "planted/corpus=" in str(path))
