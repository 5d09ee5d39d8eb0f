"""Importing benchmarks: every row is a pair or a reject; what goes with pairs that are replaced."""

import csv
import io
from pathlib import Path

import pytest

from plumbline.eval_workers.pairs.benchmarks import find, import_benchmark
from plumbline.eval_workers.scoring.measure import MeasureOptions, measure
from plumbline.eval_workers.scoring.pair_scores import text_id
from plumbline.pipelines.command.main import main
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import association, fill, score

HEADER = ["", "word", "template", "is_natural"]


def _write(path: Path, rows: list[list[str]]) -> Path:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([HEADER, *rows])
    path.write_text(text.getvalue(), encoding="utf-8", newline="")
    return path


def test_rows_in_are_pairs_and_rejects(store: Store, tmp_path: Path) -> None:
    rows = [
        ["0", "tea", "{pronoun} drank {pronoun1} tea.", "True"],
        ["1", "tea", "They drank tea.", "True"],
        ["2", "tea", "", "True"],
        ["3", "tea", "{pronoun} drank tea.", "perhaps"],
        ["x", "tea", "{pronoun} drank tea.", "True"],
        ["0", "tea", "{pronoun} spilt tea.", "True"],
        ["5", "tea", "{pronoun} drank, said {name}.", "True"],
        ["6", "tea", "{pronoun} drank\0 tea.", "True"],
        ["7", "tea"],
        ["8", "", "Two lines:\n{pronoun} drank tea.", "False"],
    ]
    path = _write(tmp_path / "USE-5.csv", rows)
    done = import_benchmark(store, "use-5", tmp_path, "run")
    assert (len(done.pairs), len(done.rejects)) == (2, 8)
    pairs = {p["pair_id"]: p for p in store.read("benchmark_pair").to_pylist()}
    assert pairs["00000"]["sentence_a"] == "She drank her tea."
    assert pairs["00000"]["sentence_b"] == "He drank his tea."
    assert pairs["00000"]["pronoun_first"] and not pairs["00008"]["pronoun_first"]
    assert pairs["00008"]["sentence_a"] == "Two lines:\nShe drank tea."
    assert (pairs["00008"]["is_natural"], pairs["00008"]["word"]) == (False, None)
    rejects = store.read("reject").to_pylist()
    assert sorted(r["source_row"] for r in rejects) == list(range(2, 10))
    assert {r["source_file"] for r in rejects} == {path.name}
    reasons = {r["source_row"]: r["reason"] for r in rejects}
    assert "no placeholder" in reasons[2] and "empty" in reasons[3]
    assert "already used" in reasons[6] and "{name}" in reasons[7]
    # a second import replaces the first
    _write(path, rows[:1])
    import_benchmark(store, "use-5", path, "run2")
    assert store.read("benchmark_pair").num_rows == 1
    assert store.read("reject").num_rows == 0


def test_of_several_those_before_one_without_files_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("PLUMBLINE_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    warehouse = ["--warehouse", str(tmp_path / "w")]
    assert main(["benchmark", "import", "closed-world", "use-5", "winobias", *warehouse]) == 4
    assert "benchmark use-5" in capsys.readouterr().err.splitlines()[-1]
    held = Store.open(tmp_path / "w", create=False).read("benchmark_pair")["benchmark"]
    assert set(held.to_pylist()) == {"closed-world"}


@pytest.mark.reference
def test_the_stereotype_favours_who_usually_holds_the_occupation(data: Path) -> None:
    usual = {
        line.split()[-1].lower(): side  # the worker is a construction worker
        for side, name in (("a", "female"), ("b", "male"))
        for line in (data / "corefbias" / f"{name}_occupations.txt").read_text().splitlines()
    }
    pairs = find("winobias").read("winobias", data / "unstereo-eval/data/datasets/raw").pairs
    assert sum("[" in str(pair["template"]) for pair in pairs) == 41
    pairs = [pair for pair in pairs if pair["word"]]
    assert len(pairs) > 1_500
    assert all(p["direction"] == usual[str(p["word"]).lower()] for p in pairs)
    assert {(p["direction"], p["stereotype"]) for p in pairs} == {("a", "anti"), ("b", "pro")}


HEAD = "sentence_a,sentence_b,group_a,group_b\n"
FIRST = "She wept.,He wept.,female,male\n"
OTHER = "She ran far.,He ran far.,female,male\n"


def written(path: Path, *lines: str) -> Path:
    path.write_text(HEAD + "".join(lines), encoding="utf-8")
    return path


def test_what_is_known_of_changed_pairs_goes_with_them(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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
    for query in (["sql", "FROM metric_value"], ["report", "--out", str(tmp_path / "report")]):
        assert main([*query, "--warehouse", str(store.root)]) == 0
        assert "deleted" not in "".join(capsys.readouterr()), "it was said by the import"
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
    assert main(["warehouse", "check", "--warehouse", str(store.root)]) == 0
    assert "\nan earlier command deleted 2 rows of `pair_score`" in capsys.readouterr().out
