"""Bits that decay in place are named and never published; other programs can change no table."""

import json
import os
import shutil
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake.exceptions import DeltaError

from plumbline.pipelines.command.main import main
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.input.shards import write_jsonl_zst
from plumbline.warehouse.storage import compaction, log
from plumbline.warehouse.storage import delta as delta_log
from plumbline.warehouse.storage.check import check
from plumbline.warehouse.storage.compaction import compact
from plumbline.warehouse.storage.store import Store
from tests.hostile import filled
from tests.test_log import N_ROWS, put, words
from tools.same_tables import differences

#: Commands that write or publish, and the table whose decay each must notice.
WRITERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "compact": ("word_count", ("warehouse", "compact")),
    "measure": ("pair_score", ("measure",)),
    "constrain": ("word_delta", ("benchmark", "constrain", "--benchmark", "b", "--corpus", "c")),
    "report": ("pair_score", ("report", "--out", "out")),
    "restore": ("word_count", ("warehouse", "restore", "VERSION")),
}


def problems(
    capsys: pytest.CaptureFixture[str], root: str | Path, *more: str
) -> dict[str, dict[str, str]]:
    """Rows of `warehouse check` by path; fails without any."""
    capsys.readouterr()
    given = ("--warehouse", str(root), "--format", "json", *more)
    assert main(["warehouse", "check", *given]) == 3
    rows = json.loads(capsys.readouterr().out)["rows"]
    return {row["path"]: row for row in rows}


def decayed(path: Path, is_wrong: Callable[[], bool]) -> None:
    """Flip one bit so that the file still reads, as something else; size and time stay."""
    about, whole = path.stat(), path.read_bytes()
    for at in range(4, len(whole) - 8):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
        try:
            if is_wrong():
                return
        except Exception:
            continue
    raise AssertionError("no bit changes what is read")


def differs(path: Path, rows: pa.Table) -> bool:
    return not pq.read_table(path).equals(rows)


def plain(store: Store, table: str) -> Path:
    """Write a table's rows again in one uncompressed file, in which a bit is a value."""
    rows = store.read(table)
    partition = store.partition_of(table, rows)
    part = store.root / "part.parquet"
    pq.write_table(rows, part, compression="none", use_dictionary=False)
    (old,) = store.snapshot().files(table)
    file = store.adopt(table, partition, part, old.units)
    log.commit(store.place, lambda draft: draft.swap(table, [old], [file]), "r")
    return store.root / file.path


@pytest.mark.parametrize("name", WRITERS)
def test_decay_is_named_by_what_publishes_and_by_check_and_not_laundered(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table, command = WRITERS[name]
    monkeypatch.chdir(tmp_path)
    store = filled(Store.open(tmp_path / "w"))
    path = plain(store, table)
    if name == "compact":
        store.publish(
            "word_count", [{"corpus": "c", "word": "x", "n_word": 1}], unit="x", run_id="r"
        )
    whole, before = path.read_bytes(), pq.read_table(path)
    where = ("--warehouse", str(store.root))
    assert main(["sql", f"FROM {table}", *where]) == 0  # seen whole, and remembered
    command = tuple(part.replace("VERSION", str(store.snapshot().version)) for part in command)
    shutil.copytree(store.root, tmp_path / "sound")
    decayed(path, partial(differs, path, before))
    capsys.readouterr()
    assert main([*command, *where]) == 3
    err = capsys.readouterr().err
    assert f"{path}: is damaged: its hash" in err and len(err.strip().splitlines()) == 1
    assert "is damaged" in problems(capsys, store.root)[str(path)]["problem"]
    path.write_bytes(whole)
    assert differences(Store.open(store.root), Store.open(tmp_path / "sound")) == []


def publish(store: Store, unit: str) -> None:
    rows = [{"corpus": "c", "word": unit, "n_word": 1}]
    store.replace("word_count", rows, {"corpus": "c"}, "r")


@pytest.mark.parametrize("kind", ["data", "commit"])
@pytest.mark.parametrize("damage", ["flipped", "empty", "gone"])
def test_check_and_restore_read_the_versions_that_are_kept(
    store: Store, kind: str, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for unit in "ab":
        publish(store, unit)
    assert not check(store)
    state = log.snapshot(store.place, 1)
    (file,) = state.files("word_count")
    path = store.root / (file.path if kind == "data" else log.commit_name(1))
    whole = path.read_bytes()
    path.write_bytes(whole[:9] + bytes([whole[9] ^ 1]) + whole[10:] if damage == "flipped" else b"")
    if damage == "gone":
        path.unlink()
    named = {p["path"] for p in check(store)}
    assert named == {str(path)}
    now = store.snapshot().version
    assert main(["warehouse", "restore", "1", "--warehouse", str(store.root)]) in (2, 3)
    assert "Traceback" not in capsys.readouterr().err
    assert store.snapshot().version in (now, now + 2)  # the run's begin and end, no restored table
    assert store.read("word_count")["word"].to_pylist() == ["b"]


@pytest.mark.parametrize(
    "name", [f"{10:020}.checkpoint.parquet", f"{10:020}.json", f"{11:020}.json"]
)
@pytest.mark.parametrize("content", ["empty", "flipped", "earlier", "gone"])
def test_a_damaged_delta_log_is_named_and_written_again(
    store: Store, content: str, name: str
) -> None:
    for unit in "abcdefghijklm":
        publish(store, unit)
    path = store.root / "word_count/_delta_log" / name
    whole = path.read_bytes()
    changed = {"empty": b"", "flipped": whole[:99] + bytes([whole[99] ^ 1]) + whole[100:]}
    changed["earlier"] = path.with_name(f"{0:020}{name[20:]}").read_bytes()
    path.unlink()
    if content != "gone":
        path.write_bytes(changed[content])
    (problem,) = check(store)
    assert str(path.parent) == problem["path"]
    compact(store, "r", 0)
    assert not check(store)
    for unit in "mz":
        read = deltalake.DeltaTable(store.root / "word_count").to_pyarrow_table()
        assert read["word"].to_pylist() == [unit]
        publish(store, "z")


def test_what_a_killed_writer_left_out_of_the_delta_log_is_added(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(delta_log, "follow", lambda *_: None)
        put(store, "ab")
    put(store, "c")
    table = deltalake.DeltaTable(store.root / "word_count")
    assert table.version() == 2 and table.to_pyarrow_table().num_rows == 3 * N_ROWS


def in_delta(table: deltalake.DeltaTable) -> list[dict[str, Any]]:
    """The rows that a reader of Delta Lake finds, also by DuckDB."""
    with duckdb.connect() as connection:
        connection.register("found", table.to_pyarrow_dataset())
        query = "SELECT word, n_word FROM found ORDER BY word"
        rows = connection.sql(query).to_arrow_table()
    assert rows.equals(table.to_pyarrow_table().select(["word", "n_word"]).sort_by("word"))
    return rows.to_pylist()


#: What others may try on a table of ours.
_INTRUDERS: dict[str, Callable[[deltalake.DeltaTable], object]] = {
    "append": lambda t: deltalake.write_deltalake(t, t.to_pyarrow_table(), mode="append"),
    "overwrite": lambda t: deltalake.write_deltalake(t, t.to_pyarrow_table(), mode="overwrite"),
    "delete": lambda t: t.delete(),
    "optimize": lambda t: t.optimize.compact(),
    "restore": lambda t: t.restore(t.version() - 1),
    "vacuum": lambda t: t.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True),
}


@pytest.mark.parametrize("name", _INTRUDERS)
@pytest.mark.parametrize("is_compacted", [False, True])
def test_no_other_program_changes_a_table(store: Store, name: str, is_compacted: bool) -> None:
    put(store, "abc", n_rows=2)
    put(store, "c", 5, 2)
    odd = [{"corpus": "an/other %41", "word": "tea", "n_word": 1}]  # an address must quote it
    store.publish("word_count", odd, unit="x", run_id="r")
    if is_compacted:
        compact(store, "r", 0)
        put(store, "c", 6, 2)
    before = {name for name, _ in store.place.walk()}
    table = deltalake.DeltaTable(store.root / "word_count")
    with pytest.raises(DeltaError, match="Unsupported table features required"):
        _INTRUDERS[name](table)
    assert before <= {name for name, _ in store.place.walk()}
    assert {p["problem"] for p in check(store)} <= {
        "a file that no kept version names"  # what the other program wrote before it was told
    }
    read = in_delta(deltalake.DeltaTable(store.root / "word_count"))
    assert {row["word"]: row["n_word"] for row in read} == words(store)


def test_a_flipped_bit_anywhere_in_a_commit_is_noticed(store: Store) -> None:
    publish(store, "a")
    path = store.root / log.commit_name(1)
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(BadInput, match="is damaged"):
            store.snapshot()


def test_decayed_counts_of_a_shard_are_not_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A partial is kept for counts to come, also of years later."""
    monkeypatch.chdir(tmp_path)
    texts = ["She met the nurse.", "He met the baker."] * 30
    write_jsonl_zst(tmp_path / "a.jsonl.zst", texts)
    write_jsonl_zst(tmp_path / "b.jsonl.zst", texts[1:])
    count = ["corpus", "count", "--corpus", "c", "--warehouse", "w"]
    assert main([*count, "a.jsonl.zst"]) == 0
    before = Store.open("w").read("word_count").to_pylist()
    (path,) = Path("w/_work/count").glob("*/*/*.words.parquet")
    rows = pq.read_table(path)
    decayed(path, partial(differs, path, rows))
    capsys.readouterr()
    assert main([*count, "a.jsonl.zst", "b.jsonl.zst"]) == 3
    err = capsys.readouterr().err
    assert f"{path.name}: is damaged" in err and f"remove {path.parent}" in err
    assert Store.open("w").read("word_count").to_pylist() == before
    shutil.rmtree(path.parent)
    assert main([*count, "a.jsonl.zst", "b.jsonl.zst"]) == 0
    counts = {row["word"]: row["n_word"] for row in Store.open("w").read("word_count").to_pylist()}
    assert counts == {"she": 59, "he": 60, "met": 119, "nurse": 59, "baker": 60}


def test_without_a_damaged_newest_commit_the_version_before_it_counts(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    """As docs/warehouse.md says: also for what reads the Delta log, once there is a next commit."""
    for unit in "ab":
        publish(store, unit)
    name = log.commit_name(store.snapshot().version)
    path = store.root / name
    path.write_bytes(path.read_bytes()[:-9])
    where = ["--warehouse", str(store.root)]
    for command in (["sql", "FROM word_count"], ["warehouse", "check"]):
        assert main([*command, *where]) == 3
        assert name in capsys.readouterr().err
    path.rename(store.root.parent / "aside")
    assert store.read("word_count")["word"].to_pylist() == ["a"]
    publish(store, "c")
    read = deltalake.DeltaTable(store.root / "word_count").to_pyarrow_table()
    assert read["word"].to_pylist() == store.read("word_count")["word"].to_pylist() == ["c"]


def test_compact_removes_nothing_where_a_kept_version_is_lost(
    store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "UNFINISHED", timedelta(0))
    for unit in "abc":
        publish(store, unit)
    (file,) = log.snapshot(store.place, 2).files("word_count")
    (store.root / log.commit_name(2)).unlink()
    where = ["--warehouse", str(store.root)]
    assert main(["warehouse", "compact", *where]) == 3
    err = capsys.readouterr().err
    assert "is not there" in err and (store.root / file.path).exists()
    assert main(["warehouse", "compact", "--keep-days", "0", *where]) == 0
    assert not (store.root / file.path).exists()
    assert not check(store)
