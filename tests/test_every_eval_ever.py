"""Records of Every Eval Ever, logs of Inspect: valid, our figures, read back without loss."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plumbline.eval_workers.pairs.benchmarks.own.pushed_set import fingerprint
from plumbline.eval_workers.pairs.harness.every_eval_ever_records import import_records
from plumbline.eval_workers.pairs.harness.inspect_logs import import_inspect
from plumbline.eval_workers.scoring.statistics.metrics_by_sql import measure
from plumbline.pipelines.command.main import main
from plumbline.warehouse.storage.run_records import recorded
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import Row, association, fill, pair, score, scored_by
from tests.test_harness_export import INSPECT

SCHEMAS = Path(__file__).parent / "every_eval_ever"
_WORD = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8)
_PAIR = st.fixed_dictionaries(
    {
        "sentence_a": _WORD.map(lambda w: f"She {w}"),
        "sentence_b": _WORD.map(lambda w: f"He {w}"),
        "group_a": st.sampled_from(["female", "old"]),
        "group_b": st.sampled_from(["male", "young"]),
        "word": st.none() | _WORD,
        "category": st.none() | st.sampled_from(["x", "y\u2028z"]),
        "direction": st.none() | st.sampled_from(["a", "b"]),
        "is_natural": st.none() | st.booleans(),
    }
)
_SCORE = st.fixed_dictionaries(
    {
        "logprob_a_nats": st.floats(-99, 0),
        "logprob_b_nats": st.floats(-99, 0),
        "n_tokens_a": st.none() | st.integers(1, 99),
    }
)
_MODEL = st.fixed_dictionaries(
    {
        "model": st.sampled_from(["me/gpt", "gpt", "data", "a/b/c: d.", "é"]),
        "revision": st.none() | _WORD,
        "bos_token_id": st.none() | st.integers(0, 9),
        "backend": st.sampled_from(["vllm", "released"]),
    }
)


def _filled(root: Path, pairs: list[Row], scores: list[Row], models: list[Row]) -> Store:
    store = Store.open(root)
    fill(store, "benchmark_pair", pairs)
    for model in models:
        key = model["model_key"]
        fill(store, "pair_score", [row for row in scores if row["model_key"] == key])
        fill(store, "model", [model], unit=str(key))
    return store


def _export(store: Store, out: Path) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Records with their instances, as they were written."""
    assert main(["report", "export", "--out", str(out), "--warehouse", str(store.root)]) == 0
    found = []
    for path in sorted(out.glob("data/*/*/*/*.json")):
        lines = path.with_name(f"{path.stem}_samples.jsonl").read_text("utf-8").splitlines()
        found.append((json.loads(path.read_text("utf-8")), [json.loads(line) for line in lines]))
    return found


def _rows(store: Store, table: str) -> list[Row]:
    """The rows of a table but for their runs, sorted."""
    rows = [{**row, "run_id": ""} for row in store.read(table).to_pylist()]
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


def _valid(record: object, schema: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    known = json.loads((SCHEMAS / f"{schema}.schema.json").read_text("utf-8"))
    jsonschema.Draft7Validator(known).validate(record)


@pytest.mark.slow
@settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=st.lists(st.tuples(_PAIR, _SCORE), min_size=1, max_size=8), model=_MODEL)
def test_records_are_valid_and_come_back_the_same(rows: list[tuple[Row, Row]], model: Row) -> None:
    name = str(model["model"])
    pairs = [pair("tea", str(k), **given) for k, (given, _) in enumerate(rows)]
    pairs[0]["is_natural"] = True
    scores = [
        {**score("tea", str(k), 0, name, "0123456789abcdef"), **given}
        for k, (_, given) in enumerate(rows)
    ]
    models = [{**scored_by(name, key="0123456789abcdef"), **model}]
    with tempfile.TemporaryDirectory() as there:
        root = Path(there)
        store = _filled(root / "one", pairs, scores, models)
        measure(store, "r")
        ((record, instances),) = _export(store, root / "out")
        _valid(record, "eval")
        for instance in instances:
            _valid(instance, "instance_level_eval")
        (log,) = _logs(store, root / "out")
        for k, read in enumerate((import_records, import_inspect)):
            again = _filled(root / f"again{k}", pairs, [], [])
            read(again, root / "out", "r")
            for table in ("pair_score", "model", "reject"):
                assert _rows(again, table) == _rows(store, table)
            measure(again, "r")
            assert _rows(again, "metric_value") == _rows(store, "metric_value")
    _same_terms(log, instances)
    _same_as_the_instances(record, instances)
    assert {one["sample_id"] for one in instances} == {str(k) for k in range(len(rows))}


def _same_terms(log: dict[str, Any], instances: list[dict[str, Any]]) -> None:
    """A log's samples have the terms and the likelier sentences of a record's instances."""
    terms = {
        (sample["id"], name): (score["value"], score["answer"])
        for sample in log["samples"]
        for name, score in sample["scores"].items()
    }
    assert terms == {
        (one["sample_id"], one["evaluation_result_id"]): (
            one["evaluation"]["score"],
            one["output"]["raw"][0],
        )
        for one in instances
        if "evaluation_result_id" in one
    }
    assert {x["id"] for x in log["samples"]} == {one["sample_id"] for one in instances}
    assert log["results"]["total_samples"] == len(log["samples"])


def _logs(store: Store, out: Path) -> list[dict[str, Any]]:
    """Logs of Inspect, as they were written."""
    line = ["report", "export", "--to", "inspect", "--out", str(out)]
    assert main([*line, "--warehouse", str(store.root)]) == 0
    return [json.loads(path.read_text("utf-8")) for path in sorted(out.glob("logs/*.json"))]


def _same_as_the_instances(record: dict[str, Any], instances: list[dict[str, Any]]) -> None:
    """The mean of the instances of a result is the result."""
    by_result: dict[str, list[float]] = {}
    for one in instances:
        if "evaluation_result_id" in one:
            scores = by_result.setdefault(one["evaluation_result_id"], [])
            scores.append(one["evaluation"]["score"])
    results = {one["evaluation_result_id"]: one for one in record["evaluation_results"]}
    assert len(results) == len(record["evaluation_results"])
    assert by_result
    for name, values in by_result.items():
        details = results[name]["score_details"]
        assert details["score"] == pytest.approx(math.fsum(values) / len(values))
        assert details["uncertainty"]["num_samples"] == len(values)


def _tea(root: Path) -> Store:
    """Eight pairs of one benchmark, scored by two models, with MaxPMI; one pair is unnatural."""
    pairs = [
        pair("tea", str(k), word=f"w{k}", is_natural=k != 7, sentence_a=f"She {k}")
        for k in range(8)
    ]
    ratios = (-2.0, -1.0, -0.2, 0.1, 0.3, 0.9, 1.5, 3.0)
    names = ("me/gpt", "gpt")
    scores = [
        {**score("tea", str(k), 0, name), "logprob_a_nats": r - 9, "logprob_b_nats": -9.0}
        for name in names
        for k, r in enumerate(ratios)
    ]
    store = _filled(root, pairs, scores, [scored_by(name) for name in names])
    fill(store, "pair_association", [association("tea", str(k), k / 4) for k in range(8)])
    with recorded(store, "measure", {}) as run_id:
        measure(store, run_id)
    return store


def test_results_have_our_intervals_and_their_method(tmp_path: Path) -> None:
    store = _tea(tmp_path / "warehouse")
    found = _export(store, tmp_path / "out")
    assert [record["model_info"]["id"] for record, _ in found] == ["gpt", "me/gpt"]
    record, instances = found[1]
    rows = [r for r in store.read("metric_value").to_pylist() if r["model"] == "me/gpt"]
    rows = [r for r in rows if r["value"] is not None and r["metric"] != "n"]
    assert len(record["evaluation_results"]) == len(rows) > 12
    (row,) = (r for r in rows if r["metric"] == "pd" and r["subset"] == "all")
    results = {one["evaluation_result_id"]: one for one in record["evaluation_results"]}
    result = results["pd; female/male; all"]
    interval = result["score_details"]["uncertainty"]["confidence_interval"]
    assert result["score_details"]["score"] == row["value"]
    assert (interval["lower"], interval["upper"]) == (row["value_low"], row["value_high"])
    assert interval["method"] == "Bonett-Price 95%, clustered by frame, word"
    error = result["score_details"]["uncertainty"]["standard_error"]
    assert error["value"] == row["value_se"]
    assert results["us; female/male; |max_pmi| <= 0.5; c; she/he"]["metric_config"][
        "metric_parameters"
    ] == {
        **{"groups": "female/male", "subset": "|max_pmi| <= 0.5", "corpus": "c"},
        **{"contrast": "she/he", "epsilon_nats": row["epsilon_nats"], "eta_nats": 0.5},
    }
    (left_out,) = (one for one in instances if one["sample_id"] == "7")
    assert "evaluation_result_id" not in left_out
    assert left_out["metadata"]["is_natural"] == "false"
    files = {p: p.read_bytes() for p in (tmp_path / "out").rglob("*.json*")}
    assert len(files) == 4
    _export(store, tmp_path / "out")
    for path in files:
        assert path.relative_to(tmp_path / "out").parts[1] == "plumbline_tea"
    assert {p for p in (tmp_path / "out").rglob("*.json*")} == {*files}, "no second ones"


def test_a_benchmark_on_the_hub_is_named_by_its_repository(tmp_path: Path) -> None:
    store = _tea(tmp_path / "warehouse")
    mark = fingerprint(store.read("benchmark_pair").to_pylist())
    facts = {"benchmark": "tea", "repo": "me/tea", "n_pairs": {"female/male": 7}}
    for pushed, kind in (("other", "other"), (mark, "hf_dataset")):
        with recorded(store, "benchmark push", {**facts, "fingerprint": pushed}):
            pass
        record, _ = _export(store, tmp_path / "out")[0]
        source = record["evaluation_results"][0]["source_data"]
        assert source["source_type"] == kind
        assert source.get("hf_repo") == ("me/tea" if pushed == mark else None)
        _valid(record, "eval")


def _edit(path: Path) -> None:
    path.write_text(path.read_text("utf-8").replace('"-9.0"', '"-8.0"'), "utf-8")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_edit, "is not the file that"),
        (Path.unlink, "put it beside the record"),
        (lambda p: next(p.parent.glob("*.json")).write_text("{}"), "holds no record of"),
    ],
)
def test_a_record_that_lost_something_is_one_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    spoil: Callable[[Path], object],
    message: str,
) -> None:
    store = _tea(tmp_path / "warehouse")
    where = ["--warehouse", str(store.root)]
    assert main(["report", "export", "--out", str(tmp_path), *where]) == 0
    there = tmp_path / "data/plumbline_tea/local"
    spoil(next(there.rglob("*_samples.jsonl")))
    capsys.readouterr()
    assert main(["score", "import", str(there), "--logs", "eee", *where]) == 3
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert message in line


def test_scores_that_were_computed_here_stay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = _tea(tmp_path / "warehouse")
    _export(store, tmp_path / "out")
    ours = [row for row in store.read("pair_score").to_pylist() if row["model"] == "gpt"]
    with recorded(store, "score", {}) as run_id:
        partition = {"benchmark": "tea", "model_key": "key-gpt"}
        store.replace("pair_score", [{**r, "run_id": run_id} for r in ours], partition, run_id)
    where = ["--warehouse", str(store.root)]
    assert main(["score", "import", str(tmp_path / "out"), "--logs", "eee", *where]) == 3
    assert "gpt was scored on tea in this warehouse" in capsys.readouterr().err


def test_instances_of_other_pairs_are_rejected(tmp_path: Path) -> None:
    store = _tea(tmp_path / "warehouse")
    _export(store, tmp_path / "out")
    pairs = store.read("benchmark_pair").to_pylist()
    pairs[1]["sentence_a"] = "She 1!"
    there = Store.open(tmp_path / "there")
    fill(there, "benchmark_pair", pairs[1:])
    done = import_records(there, tmp_path / "out", "r")
    assert [(one.n_scored, one.n_missing) for one in done] == [(6, 1)] * 2
    reasons = {row["reason"] for row in there.read("reject").to_pylist()}
    assert reasons == {
        "no pair of the benchmark has the sample_id '0'",
        "its sentences are not those of the pair",
    }


#: What Inspect 0.3.285 requires of a log and its header, a score, a metric and a sample.
_OF_LOG = {"version", "status", "eval", "plan", "results", "stats", "samples"}
_OF_EVAL = {"created", "task", "dataset", "model", "config"}
_OF_SAMPLE = {"id", "epoch", "input", "target"}


def test_a_log_has_what_inspect_requires_and_our_figures(tmp_path: Path) -> None:
    store = _tea(tmp_path / "warehouse")
    logs = {log["eval"]["model"]: log for log in _logs(store, tmp_path / "out")}
    assert set(logs) == {"gpt", "me/gpt"}
    log = logs["me/gpt"]
    assert (log["version"], log["status"]) == (2, "success") and set(log) == _OF_LOG
    assert set(log["eval"]) >= _OF_EVAL
    assert log["eval"]["model_args"]["model_key"] == "key-me/gpt"
    assert all(set(sample) >= _OF_SAMPLE for sample in log["samples"])
    assert log["eval"]["dataset"]["sample_ids"] == [str(k) for k in range(8)]
    assert log["samples"][7]["scores"] == {}, "an unnatural pair is in no result"
    rows = [r for r in store.read("metric_value").to_pylist() if r["model"] == "me/gpt"]
    (row,) = (r for r in rows if r["metric"] == "pd" and r["subset"] == "all")
    scores = {score["name"]: score for score in log["results"]["scores"]}
    assert len(scores) == sum(r["value"] is not None and r["metric"] != "n" for r in rows)
    score = scores["pd; female/male; all"]
    figures = {name: metric["value"] for name, metric in score["metrics"].items()}
    ends = {"pd_low": row["value_low"], "pd_high": row["value_high"]}
    assert figures == {"pd": row["value"], "stderr": row["value_se"], **ends}
    assert score["metadata"]["uncertainty"]["confidence_interval"]["method"] == (
        "Bonett-Price 95%, clustered by frame, word"
    )
    names = {path.name for path in (tmp_path / "out/logs").iterdir()}
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT[\d-]+\+00-00_[\w-]+_\w{22}\.json", x) for x in names)
    assert len(_logs(store, tmp_path / "out")) == 2, "no second ones"


#: What a user of Inspect does with a directory of logs; prints the samples' data frame.
_READ = """
import sys
from inspect_ai.analysis import samples_df
from inspect_ai.log import list_eval_logs, read_eval_log, write_eval_log
logs, again = sys.argv[1:]
for info in list_eval_logs(logs):
    log = read_eval_log(info)
    assert len(log.samples) == log.results.total_samples == 8
    write_eval_log(log, f"{again}/{log.eval.eval_id}.eval")
print(samples_df(logs, quiet=True).to_json(orient="records"))
"""


@pytest.mark.skipif(
    INSPECT is None,
    reason="pip install inspect_ai openai pandas pyarrow, or PLUMBLINE_INSPECT=its python",
)
def test_inspect_itself_reads_its_logs(tmp_path: Path) -> None:
    """As they are, as a data frame, and as archives of its own, which come back the same."""
    store = _tea(tmp_path / "warehouse")
    logs = _logs(store, tmp_path / "out")
    run = subprocess.run(
        [str(INSPECT), "-c", _READ, str(tmp_path / "out/logs"), str(tmp_path / "again")],
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    frame = json.loads(run.stdout)
    terms = {
        (log["eval"]["eval_id"], sample["id"], f"score_{name}"): score["value"]
        for log in logs
        for sample in log["samples"]
        for name, score in sample["scores"].items()
    }
    assert len(frame) == 16 and terms == {
        (row["eval_id"], row["id"], column): value
        for row in frame
        for column, value in row.items()
        if column.startswith("score_") and value is not None
    }
    again = Store.open(tmp_path / "there")
    fill(again, "benchmark_pair", store.read("benchmark_pair").to_pylist())
    assert [one.n_scored for one in import_inspect(again, tmp_path / "again", "r")] == [8, 8]
    assert _rows(again, "pair_score") == _rows(store, "pair_score")


def test_a_log_whose_samples_changed_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = _tea(tmp_path / "warehouse")
    _logs(store, tmp_path / "out")
    where = ["--logs", "inspect", "--warehouse", str(store.root)]
    with recorded(store, "score", {}) as run_id:
        partition = {"benchmark": "tea", "model_key": "key-gpt"}
        rows = store.read("pair_score", **partition).to_pylist()
        store.replace("pair_score", [{**r, "run_id": run_id} for r in rows], partition, run_id)
    assert main(["score", "import", str(tmp_path / "out"), *where]) == 3
    assert "gpt was scored on tea in this warehouse" in capsys.readouterr().err
    for path in (tmp_path / "out/logs").iterdir():
        path.write_text(path.read_text("utf-8").replace("-9.0", "-8.0"), "utf-8")
    assert main(["score", "import", str(tmp_path / "out"), *where]) == 3
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "has other samples than were written" in line
