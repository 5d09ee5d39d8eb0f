"""Other pairs under a benchmark's name: nothing of the old sentences stays with the new ones."""

from __future__ import annotations

from pathlib import Path

from plumbline.eval_workers.pairs.benchmarks import import_benchmark
from plumbline.eval_workers.scoring.measure import MeasureOptions, measure
from plumbline.eval_workers.scoring.pair_scores import text_id
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import association, fill, score

HEAD = "sentence_a,sentence_b,group_a,group_b\n"
FIRST = "She wept.,He wept.,female,male\n"
OTHER = "She ran far.,He ran far.,female,male\n"


def written(path: Path, *lines: str) -> Path:
    path.write_text(HEAD + "".join(lines), encoding="utf-8")
    return path


def test_what_is_known_of_changed_pairs_goes_with_them(store: Store, tmp_path: Path) -> None:
    import_benchmark(store, "mine", written(tmp_path / "1.csv", FIRST, OTHER), "r")
    pairs = store.read("benchmark_pair", benchmark="mine").to_pylist()
    ids = {pair["sentence_a"]: pair["pair_id"] for pair in pairs}
    for key in ("k", "l"):
        fill(store, "pair_score", [score("mine", i, 1.0, key=key) for i in ids.values()])
    fill(store, "pair_score", [score("yours", i, 2.0, key="k") for i in ids.values()])
    fill(store, "pair_association", [association("mine", i, 0.5) for i in ids.values()])
    lost = {"stage": "score", "source_file": "1.csv", "reason": "too long", "excerpt": ""}
    lost |= {"source_row": 1, "run_id": "r"}
    for name in ("mine", "yours"):
        fill(store, "reject", [{**lost, "subject": f"k/{name}"}])
    measure(store, "r", MeasureOptions())
    import_benchmark(store, "mine", tmp_path / "1.csv", "s")
    assert store.read("pair_score", benchmark="mine").num_rows == 4
    assert not store.snapshot().out_of_date
    assert store.read("metric_value", benchmark="mine").num_rows
    assert store.read("reject", stage="score").num_rows == 2

    edited = written(tmp_path / "2.csv", FIRST.replace("wept", "killed the bear"), OTHER)
    n_figures = store.read("metric_value", benchmark="mine").num_rows
    import_benchmark(store, "mine", edited, "r")
    assert store.snapshot().out_of_date == {
        "pair_score/benchmark=mine/model_key=k": 1,
        "pair_score/benchmark=mine/model_key=l": 1,
        "pair_association/corpus=c/benchmark=mine": 1,
        "metric_value/benchmark=mine": n_figures,
        "model_rank/benchmark=mine": 6,  # two models, three metrics
        "benchmark_power/benchmark=mine": 2,
    }
    now = {p["pair_id"]: p for p in store.read("benchmark_pair", benchmark="mine").to_pylist()}
    left = store.read("pair_score", benchmark="mine").to_pylist()
    assert store.read("reject", stage="score")["subject"].to_pylist() == ["k/yours"]
    assert sorted((r["model_key"], r["pair_id"]) for r in left) == [
        (key, ids["She ran far."]) for key in ("k", "l")
    ]
    assert now[ids["She ran far."]]["sentence_a"] == "She ran far."
    assert len({text_id(pair) for pair in now.values()}) == 2
    assert [r["pair_id"] for r in store.read("pair_association").to_pylist()] == [
        ids["She ran far."]
    ]
    assert store.read("pair_score", benchmark="yours").num_rows == 2
    assert store.read("metric_value", benchmark="mine").num_rows == 0
