"""The store, its views, and `plumbline warehouse`: what is found, changed, kept and deleted."""

import errno
import json
import math
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import unicodedata
from datetime import datetime, timezone
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from plumbline.pipelines.command.main import main
from plumbline.warehouse import run_records
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.query.connection import connect
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage import log
from plumbline.warehouse.storage.check import check
from plumbline.warehouse.storage.compaction import compact, leftovers
from plumbline.warehouse.storage.opening import FORMAT
from plumbline.warehouse.storage.place import Unit
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import fill, made_row, score


def words(corpus: str, **counts: int) -> list[dict[str, object]]:
    return [{"corpus": corpus, "word": w, "n_word": n} for w, n in counts.items()]


@pytest.fixture
def kept(store: Store) -> Store:
    """Three runs; words in two files of two runs, a score with NaN."""
    for command, units in (("one", {"a": 1, "b": 2}), ("two", {"c": 3}), ("three", {})):
        with run_records.recorded(store, command, {"seed": 1, "deep": {"x": command}}) as run_id:
            for unit, n in units.items():
                rows = words("c s", **{unit * 2: n})
                store.publish("word_count", rows, unit=f"{unit}/", run_id=run_id)
            if command == "two":
                row = score("b", "p", math.nan) | {"run_id": run_id}
                store.publish("pair_score", [row], unit="all", run_id=run_id)
    return store


def named(store: Store) -> list[tuple[str, str]]:
    return [
        (str(Path(p["path"]).relative_to(store.root)), f"{p['problem']} | {p['fix']}")
        for p in check(store)
    ]


def test_every_problem_is_named_with_what_mends_it(
    kept: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    table = kept.root / "word_count" / "corpus=c%20s"
    run_id = min(kept.read("run")["run_id"].to_pylist())
    kept.publish("word_count", words("c s", aa=9), unit="again", run_id=run_id)
    units = {f.units[0].name: f for f in kept.snapshot().files("word_count")}
    whole = pq.read_table(kept.root / units["a/"].path)

    def publish(name: str) -> None:
        path = kept.root / f"{name}.parquet"
        pq.write_table(whole, path)
        unit = Unit(name, whole.num_rows, run_id)
        file = kept.adopt("word_count", {"corpus": "c s"}, path, [unit])
        log.commit(kept.place, lambda draft: draft.swap("word_count", [], [file]), "r")
        places[name] = file.path

    places: dict[str, str] = {}
    publish("cut")
    cut = kept.root / places["cut"]
    cut.write_bytes(cut.read_bytes()[:-9])
    publish("flipped")
    flipped = kept.root / places["flipped"]
    flipped.write_bytes(bytes(255 - b for b in flipped.read_bytes()))
    publish("gone")
    (kept.root / places["gone"]).unlink()
    (table / "unnamed.parquet").write_bytes(b"")
    shutil.copytree(table, kept.root / "_staging" / "7")
    unnamed, staged = table / "unnamed.parquet", kept.root / "_staging" / "7"
    for path in (unnamed, *staged.iterdir(), staged):
        os.utime(path, (1, 1))
    expected = {
        "_staging/7": "not finished | plumbline warehouse compact",
        "word_count": "1 keys occur more than once, such as corpus 'c s', word 'aa'",
        "word_count/corpus=c%20s/unnamed.parquet": "version names | plumbline warehouse compact",
        places["cut"]: "is damaged: holds",
        places["flipped"]: "its hash differs from the published one",
        places["gone"]: "is not there | get it from a copy",
    }
    found = dict(named(kept))
    assert found.keys() == expected.keys()
    for place, problem in found.items():
        assert expected[place] in problem, place
    assert main(["warehouse", "check", "--warehouse", str(kept.root)]) == 3
    out, err = capsys.readouterr()
    assert "6 problems" in err and "6 rows" in out and "\x1b" not in out + err


def test_leftovers_go_and_work_that_saves_time_stays(kept: Store) -> None:
    """What is younger than a day may belong to a command that is about to name it."""
    work = kept.work_directory("generate", "g") / "requests.jsonl"
    work.write_text("{}\n")
    kept.replace("word_count", words("c s", cup=9), {"corpus": "c s"}, "r")
    commit = kept.root / log.commit_name(1)
    old = {kept.root / f"word_count/corpus=c%20s/{name}.parquet" for name in "ab"}
    young = kept.root / "word_count/young.parquet"
    for path in (*old, young):
        path.write_bytes(b"")
    staged = Path(kept.stage("word_count", {"corpus": "c"}, "r").directory)
    half = kept.root / "_staging/half.parquet"
    half.write_bytes(b"")
    for path in (*old, half, work, commit):
        os.utime(path, (1, 1))
    assert {kept.root / name for name in leftovers(kept)} == old | {half}
    assert main(["warehouse", "compact", "--warehouse", str(kept.root)]) == 0
    assert not any(path.exists() for path in (*old, half))
    assert all(path.exists() for path in (work, young, staged, commit))
    assert main(["warehouse", "compact", "--keep-days", "0", "--warehouse", str(kept.root)]) == 0
    assert not commit.exists() and young.exists()


_SAMPLE = {
    pa.string(): "x",
    pa.int32(): 4,
    pa.float32(): 0.25,
    pa.int64(): 3,
    pa.float64(): 0.5,
    pa.bool_(): True,
    pa.timestamp("us", tz="UTC"): datetime(2024, 5, 1, tzinfo=timezone.utc),
}


@pytest.mark.parametrize("name", TABLES)
def test_every_table_comes_out_by_its_view_and_delta_lake(store: Store, name: str) -> None:
    row = {c.name: _SAMPLE[c.type] for c in TABLES[name].columns}
    store.publish(name, [row], unit="one", run_id="r")
    assert store.read(name).to_pylist() == [row]
    query = f'SELECT * FROM "{name}"'
    with connect(store.root, query) as connection:
        view = connection.sql(query).to_arrow_table()
    assert view.column_names == TABLES[name].arrow.names
    assert view.to_pylist() == [row]
    assert deltalake.DeltaTable(store.root / name).to_pyarrow_table().to_pylist() == [row]


def test_publishing_units_of_a_merged_file_leaves_the_others(store: Store) -> None:
    units = {"a": {"tea": 1, "cup": 1}, "b": {"pot": 2}, "c": {"milk": 3, "jug": 3, "tray": 3}}
    for unit, counts in units.items():
        store.publish("word_count", words("c", **counts), unit=unit, run_id="r")
    compact(store, "r")
    assert len(store.snapshot().files("word_count")) == 1
    for unit in "ba":  # the first leaves a file of two units, the second one of one
        units[unit] = {f"new-{unit}": 9}
        store.publish("word_count", words("c", **units[unit]), unit=unit, run_id="r")
        rows = store.read("word_count", corpus="c").to_pylist()
        expected = {word: n for counts in units.values() for word, n in counts.items()}
        assert {r["word"]: r["n_word"] for r in rows} == expected
        assert len(rows) == len(expected)
        assert store.units("word_count", corpus="c") == set(units)


@pytest.mark.parametrize("name", ["pyarrow.parquet.write_table", f"{log.__name__}._create"])
def test_a_full_disk_is_named(name: str, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow, and Python's own writes, name no file."""

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "Error writing bytes to file")

    monkeypatch.setattr(name, full)
    rows = [{"corpus": "c", "word": "a", "n_word": 1}]
    with pytest.raises(OSError, match="No space left") as e:
        store.publish("word_count", rows, unit="a", run_id="r")
    assert str(e.value.filename).startswith(str(store.root))


def test_a_column_that_is_no_partition_is_refused(store: Store) -> None:
    """Not ignored, which would give the rows of all."""
    with pytest.raises(KeyError, match="model has no partitions by model_key"):
        store.read("model", model_key="k")


@settings(max_examples=30, deadline=None)
@example("../../x")
@example("a\0b")
@example("corpus=evil")
@example("e\u0301")
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20))
def test_any_name_is_a_partition(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    store = Store.open(tmp_path_factory.mktemp("w") / "w")
    other = unicodedata.normalize("NFC", name)  # may look alike and be another name
    for corpus in {name, other}:
        store.publish("word_count", words(corpus, tea=1), unit=corpus, run_id="r")
    assert store.read("word_count", corpus=name).to_pylist() == words(name, tea=1)
    made = [path.relative_to(store.root) for path in store.root.rglob("corpus=*/*.parquet")]
    assert len(made) == len({name, other}) and {len(path.parts) for path in made} == {3}
    query = "SELECT corpus FROM word_count"
    with connect(store.root, query) as connection:
        assert {name, other} == {row[0] for row in connection.execute(query).fetchall()}


@pytest.mark.parametrize(
    ("rows", "words_in_message"),
    [
        ([{"corpus": "c", "word": "tea", "n_word": "many"}], ("word_count", "n_word", "int64")),
        ([{"corpus": "c", "word": None, "n_word": 1}], ("word_count", "word", "NULL")),
        ([{"corpus": "c", "word": "tea", "count": 1}], ("word_count", "count")),
        ([*words("c", tea=1), *words("d", tea=1)], ("word_count", "corpus", "2")),
    ],
)
def test_rows_that_do_not_fit_are_refused(
    store: Store, rows: list[dict[str, object]], words_in_message: tuple[str, ...]
) -> None:
    with pytest.raises(BadInput) as caught:
        store.publish("word_count", rows, unit="u", run_id="r")
    assert all(w in str(caught.value) for w in words_in_message)
    assert "\n" not in str(caught.value)
    assert store.read("word_count").num_rows == 0


def test_a_warehouse_of_another_version_is_refused(tmp_path: Path) -> None:
    root = Store.open(tmp_path / "w").root
    (root / "plumbline.json").write_text(json.dumps({"warehouse_version": 99}))
    for opening in (Store.open, connect):
        with pytest.raises(BadInput, match=rf"format 99, this Plumbline reads {FORMAT}"):
            opening(root)


_KILLED = """
import os, signal, sys
from plumbline.warehouse.run_records import recorded
from plumbline.warehouse.storage.store import Store

with recorded(Store.open(sys.argv[1]), "one", {"seed": 1}):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_run_leaves_its_row(store: Store) -> None:
    killed = subprocess.Popen([sys.executable, "-c", _KILLED, str(store.root)])
    assert killed.wait() == -signal.SIGKILL
    with connect(store.root) as connection:
        found = connection.execute("SELECT status, ended_at, error, config FROM run").fetchall()
    where = f"process {killed.pid} on {socket.gethostname()}"
    assert found == [("running", None, f"no end yet: {where}", '{"seed": 1}')]
    (row,) = run_records.runs(store)
    assert row["error"].startswith(f"gone: {where}")
    for process, known in (
        (f"process {os.getpid()} on {socket.gethostname()}", "alive"),
        ("process 7 on elsewhere", "on another host"),
    ):
        run_records.publish(store, row | {"status": "running", "error": f"no end yet: {process}"})
        (row,) = run_records.runs(store)
        assert row["error"].startswith(f"{known}: {process}")


def test_errors_in_the_list_of_runs_are_short(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    for error in (BadInput("long " * 90), BrokenPipeError(errno.EPIPE, "Broken pipe")):
        with pytest.raises(type(error)), run_records.recorded(store, "one", {}):
            raise error
    by_list = ["runs", "--warehouse", str(store.root)]
    assert main(by_list) == 0
    table = capsys.readouterr().out
    assert "interrupted" in table and "process that started this command has ended" in table
    assert "long ..." in table and max(map(len, table.splitlines())) < 250
    assert main([*by_list, "--format", "json"]) == 0
    assert "long " * 90 in json.loads(capsys.readouterr().out)["rows"][1]["error"] + " "


def test_a_long_error_of_one_run_is_cut(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BadInput), run_records.recorded(store, "one", {}) as run_id:
        raise BadInput("long " * 900)
    one = ["runs", run_id, "--warehouse", str(store.root)]
    assert main(one) == 0
    shown = capsys.readouterr().out
    assert "long ..." in shown and max(map(len, shown.splitlines())) < 500
    assert main([*one, "--format", "json"]) == 0
    assert "long " * 899 in capsys.readouterr().out


def test_a_run_on_a_full_disk_is_one_line(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(BadInput, match="first"), run_records.recorded(store, "one", {}):
        monkeypatch.setattr(os, "replace", full)
        raise BadInput("first")  # not hidden by the second, that of its row
    with pytest.raises(BadInput, match=r"No space left.*run the same command again"):  # noqa: SIM117
        with run_records.recorded(store, "two", {}):
            pytest.fail("starts nothing that can't be recorded")
    assert [row["status"] for row in store.read("run").to_pylist()] == ["running"]


CONTRASTS = ("she/he", "queen/king")


@pytest.mark.parametrize("seed", range(8))
def test_seed_words_go_with_the_deltas_of_their_contrast(store: Store, seed: int) -> None:
    """As an independent account of every row says, through merged files and several corpora."""
    draw = random.Random(seed)
    deltas: dict[tuple[str, str], dict[str, float]] = {
        (corpus, contrast): {word: draw.random() for word in "abc"}
        for corpus in "xy"
        for contrast in CONTRASTS
    }

    def write(corpus: str) -> None:
        rows = [
            made_row("word_delta", corpus=c, contrast=contrast, word=word, delta_nats=nats)
            for (c, contrast), of_word in deltas.items()
            for word, nats in of_word.items()
            if c == corpus
        ]
        draw.shuffle(rows)
        store.replace("word_delta", rows, {"corpus": corpus}, f"run-{draw.random()}")

    for corpus in "xy":
        write(corpus)
    expected: set[tuple[str, str]] = set()
    for _ in range(12):
        corpus, contrast = draw.choice("xy"), draw.choice(CONTRASTS)
        action = draw.choice(["sample", "change", "add", "same", "drop", "compact"])
        if action == "sample" and deltas[corpus, contrast]:
            fill(store, "seed_word", [{"corpus": corpus, "contrast": contrast}], contrast)
            expected.add((corpus, contrast))
        elif action == "change" and deltas[corpus, contrast]:
            deltas[corpus, contrast][draw.choice([*deltas[corpus, contrast]])] += 1.0
            expected.discard((corpus, contrast))
        elif action == "add":
            deltas[corpus, contrast][f"new{draw.random()}"] = 1.0
            expected.discard((corpus, contrast))
        elif action == "drop":
            expected.discard((corpus, contrast))
            deltas[corpus, contrast] = {}
        elif action == "compact":
            compact(store, "r")
        write(corpus)
        found = store.read("seed_word").to_pylist()
        assert {(row["corpus"], row["contrast"]) for row in found} == expected
