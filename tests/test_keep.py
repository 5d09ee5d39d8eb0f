"""`plumbline runs` and `plumbline warehouse`: what is found, what is changed, what is kept."""

from __future__ import annotations

import math
import os
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from plumbline.pipelines.command.main import main
from plumbline.warehouse import run_records
from plumbline.warehouse.query.connection import connect
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage import log
from plumbline.warehouse.storage.check import check
from plumbline.warehouse.storage.compaction import leftovers
from plumbline.warehouse.storage.place import Unit
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
    return [
        (str(Path(p["path"]).relative_to(store.root)), f"{p['problem']} | {p['fix']}")
        for p in check(store)
    ]


def test_every_problem_is_named_with_what_mends_it(
    kept: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    table = kept.root / "word_count" / "corpus=c%20s"
    run_id = runs_of(kept)[0]
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
    assert main(["warehouse", "compact", "--warehouse", str(kept.root)]) == 0
    assert not any(path.exists() for path in (*old, half))
    assert all(path.exists() for path in (work, young, staged, commit))
    assert main(["warehouse", "compact", "--keep-days", "0", "--warehouse", str(kept.root)]) == 0
    assert not commit.exists() and young.exists()
