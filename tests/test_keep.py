"""`plumbline runs` and `plumbline warehouse`: what is found, what is changed, what is kept."""

from __future__ import annotations

import math
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plumbline.pipelines.command.main import main
from plumbline.warehouse import run_records
from plumbline.warehouse.query.connection import connect
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage import log
from plumbline.warehouse.storage.check import check
from plumbline.warehouse.storage.compaction import leftovers
from plumbline.warehouse.storage.place import File, Unit
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import score


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


def content(store: Store) -> dict[str, list[object]]:
    with connect(store.root, " ".join(TABLES)) as connection:
        query = "SELECT * FROM {} ORDER BY ALL"
        return {t: [str(r) for r in connection.execute(query.format(t)).fetchall()] for t in TABLES}


def named(store: Store) -> list[tuple[str, str]]:
    return [(str(p.path.relative_to(store.root)), f"{p.problem} | {p.fix}") for p in check(store)]


def test_every_problem_is_named_with_what_mends_it(
    kept: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    table = kept.root / "word_count" / "corpus=c%20s"
    run_id = runs_of(kept)[0]
    kept.publish("word_count", words("c s", aa=9), unit="again", run_id=run_id)
    units = {f.units[0].name: f for f in kept.snapshot().files("word_count")}
    whole = pq.read_table(kept.root / units["a/"].path)

    def publish(name: str, rows: pa.Table, corpus: str) -> None:
        """Put a file into the log as a defect of Plumbline might."""
        path = kept.root / f"{name}.parquet"
        pq.write_table(rows, path)
        unit = Unit(name, whole.num_rows, run_id)
        file = kept.adopt("word_count", {"corpus": corpus}, path, [unit])
        log.commit(kept.place, lambda draft: draft.swap("word_count", [], [file]), "r")
        places[name] = file.path

    places: dict[str, str] = {}
    publish("lacks", whole.drop_columns(["n_word"]), "c s")
    publish("typed", whole.set_column(2, "n_word", pa.array(["1"] * len(whole))), "c s")
    publish("moved", whole, "e")
    publish("cut", whole, "c s")
    cut = kept.root / places["cut"]
    cut.write_bytes(cut.read_bytes()[:-9])
    publish("flipped", whole, "c s")
    flipped = kept.root / places["flipped"]
    flipped.write_bytes(bytes(255 - b for b in flipped.read_bytes()))
    publish("gone", whole, "c s")
    (kept.root / places["gone"]).unlink()
    (table / "unnamed.parquet").write_bytes(b"")
    shutil.copytree(table, kept.root / "_staging" / "7")
    unnamed, staged = table / "unnamed.parquet", kept.root / "_staging" / "7"
    for path in (unnamed, *staged.iterdir(), staged):
        os.utime(path, (1, 1))
    expected = {
        "_staging/7": "not finished | plumbline warehouse compact",
        "word_count": "1 keys more than once, such as corpus 'c s', word 'aa'",
        "word_count/corpus=c%20s/unnamed.parquet": "keep names | plumbline warehouse compact",
        places["cut"]: "is damaged: holds",
        places["flipped"]: "its hash differs from the published one",
        places["gone"]: "is not there | get it from a copy",
        places["lacks"]: "column n_word holds NULL",
        places["typed"]: "n_word is string, not int64",
        places["moved"]: "its rows are of corpus c s, expected e",
    }
    found = dict(named(kept))
    assert found.keys() == expected.keys()
    for place, problem in found.items():
        assert expected[place] in problem, place
    assert main(["warehouse", "check", "--warehouse", str(kept.root)]) == 3
    out, err = capsys.readouterr()
    assert "9 problems" in err and "9 rows" in out and "\x1b" not in out + err


def test_a_column_that_a_file_lacks_is_named(kept: Store) -> None:
    """Also one that may be NULL, unless it was added after the file was written."""
    (file,) = kept.snapshot().files("pair_score")
    path = kept.root / "lacks.parquet"
    lacking = pq.read_table(kept.root / file.path).drop_columns(["baseline_logprob_a_nats"])
    pq.write_table(lacking, path)
    partition = dict(zip(TABLES["pair_score"].partitions, file.partition, strict=True))
    new = kept.adopt("pair_score", partition, path, file.units)

    def problems(entry: File) -> list[str]:
        log.commit(kept.place, lambda draft: draft.swap("pair_score", [], [entry]), "r")
        return [p.problem for p in check(kept) if p.path == kept.root / entry.path]

    assert problems(new) == ["has no column baseline_logprob_a_nats"]
    assert problems(replace(new, columns="those of an earlier Plumbline")) == []


def runs_of(store: Store) -> list[str]:
    return sorted(row["run_id"] for row in store.read("run").to_pylist())


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
    assert main(["warehouse", "compact", "--dry-run", "--warehouse", str(kept.root)]) == 0
    assert all(path.exists() for path in old)
    assert main(["warehouse", "compact", "--warehouse", str(kept.root)]) == 0
    assert not any(path.exists() for path in (*old, half))
    assert all(path.exists() for path in (work, young, staged, commit))
    assert main(["warehouse", "compact", "--keep-days", "0", "--warehouse", str(kept.root)]) == 0
    assert not commit.exists() and young.exists()
