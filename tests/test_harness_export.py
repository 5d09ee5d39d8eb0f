"""Tasks of lm-evaluation-harness: data, metrics as in SQL, sample logs read back."""

import importlib.util
import json
import math
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from plumbline.eval_workers.pairs.export import export
from plumbline.eval_workers.pairs.harness_logs import import_samples
from plumbline.eval_workers.scoring.measure import MeasureOptions, compute
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import fill, pair, score

EPSILON = math.log(1.65)
RATIOS = [0.0, EPSILON, -EPSILON, EPSILON + 1e-6, -EPSILON - 1e-6, 3.0, -0.2, 7.0]


class _Loader(yaml.SafeLoader):
    """Reads `!function` as its text."""


_Loader.add_constructor("!function", lambda loader, node: loader.construct_scalar(node))  # type: ignore[arg-type]


def _pairs(store: Store) -> list[dict[str, object]]:
    """Pairs of two kinds of groups, some with a direction, one unnatural, one beyond eta."""
    old = {"group_a": "old", "group_b": "young"}
    rows = [
        pair("b é", str(k), sentence_a=f"\u2028She said “{k}”.", direction="ab"[k % 2])
        for k in range(len(RATIOS))
    ]
    rows += [pair("b é", "old", **old), pair("b é", "bad", is_natural=False)]
    fill(store, "benchmark_pair", rows)
    return rows


def _functions(directory: Path) -> Any:
    spec = importlib.util.spec_from_file_location("copied", directory / "plumbline_pairs.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _docs(directory: Path, config: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a task: those of its groups, as `plumbline_pairs.dataset` gives them."""
    asked = config["dataset_kwargs"]
    rows = pq.read_table(directory / asked["file"]).to_pylist()
    return [row for row in rows if f"{row['group_a']}/{row['group_b']}" == asked["groups"]]


def test_a_task_for_each_two_groups_and_metrics_as_in_sql(store: Store, tmp_path: Path) -> None:
    rows = _pairs(store)
    done = export(store, "b é", tmp_path / "task")
    assert (done.data.num_rows, done.n_unnatural, done.n_beyond) == (9, 1, 0)
    tasks = {
        path.stem: yaml.load(path.read_text("utf-8"), _Loader)
        for path in done.paths
        if path.suffix == ".yaml"
    }
    assert list(tasks) == ["plumbline_b__1_female_male", "plumbline_b__2_old_young"]
    one, two = tasks.values()
    assert one["tag"] == two["tag"] == "plumbline_b_"
    assert one["metadata"] == {"version": 1.0, "benchmark": "b é", "groups": "female/male"}
    assert [m["metric"] for m in one["metric_list"]] == ["us", "pd", "stereotype"]
    assert [m["metric"] for m in two["metric_list"]] == ["us", "pd"]
    docs = _docs(tmp_path / "task", one)
    assert [d["pair_id"] for d in _docs(tmp_path / "task", two)] == ["old"]
    assert [(d["sentence_a"], d["sentence_b"]) for d in docs] == [
        (r["sentence_a"], r["sentence_b"]) for r in rows[:8]
    ]
    fill(store, "pair_score", [score("b é", str(k), ratio) for k, ratio in enumerate(RATIOS)])
    functions = _functions(tmp_path / "task")
    found = [
        functions.process_results(d, [(RATIOS[int(d["pair_id"])], False), (0.0, True)])
        for d in docs
    ]
    assert functions.process_results({}, [(-math.inf, False), (-1.0, False)]) == {}
    computed = compute(store.root, MeasureOptions(), "r").to_pylist()
    ours = {r["metric"]: r["value"] for r in computed if r["subset"] == "all"}
    assert {metric: ours[metric] for metric in ("us", "pd", "stereotype score")} == {
        "us": pytest.approx(mean(f["us"] for f in found)),
        "pd": pytest.approx(mean(f["pd"] for f in found)),
        "stereotype score": pytest.approx(mean(f["stereotype"] for f in found)),
    }
    assert (ours["us"], ours["pd"]) == (0.5, 25.0)


def _sample(pair_id: str, a: object = "-3.5", b: object = "-2.25") -> dict[str, Any]:
    """A row as the harness (0.4.13) logs it, without what nobody reads."""
    texts = ("The nurse said she left.", "The nurse said he left.")
    return {
        "doc": {"pair_id": pair_id, "sentence_a": texts[0], "sentence_b": texts[1]},
        "arguments": {f"gen_args_{k}": {"arg_0": "", "arg_1": t} for k, t in enumerate(texts)},
        "resps": [[[a, "False"]], [[b, "False"]]],
        "filtered_resps": [[a, "False"], [b, "False"]],
    }


def _log(
    directory: Path, rows: list[Any], date: str = "2026-11-23T15-19-45.43", **args: str
) -> Path:
    """A log of a run and the results beside it."""
    directory.mkdir(parents=True, exist_ok=True)
    task = "plumbline_b"
    results = {
        "model_name": "org/model",
        "configs": {task: {"metadata": {"benchmark": "b"}}},
        "config": {"model_args": args, "model_dtype": "torch.float16", "model_sha": "abc"}
        | {"model_revision": "main"},
        "lm_eval_version": "0.4.13",
        "transformers_version": "5.23.0",
    }
    (directory / f"results_{date}.json").write_text(json.dumps(results))
    path = directory / f"samples_{task}_{date}.jsonl"
    path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in rows))
    return path


def test_every_row_is_used_or_rejected(store: Store, tmp_path: Path) -> None:
    names = ["0", "1", "2", "3", "twice", "differs", "never"]
    fill(
        store, "benchmark_pair", [*(pair("b", n) for n in names), pair("b", "u", is_natural=False)]
    )
    chat, changed = _sample("1"), _sample("2")
    chat["arguments"]["gen_args_1"]["arg_0"] = "Say: "
    changed["arguments"]["gen_args_0"]["arg_1"] = "The nurse said they left."
    rows = [
        *(_sample("0"), chat, changed, _sample("3", b="-inf"), _sample("3", a="x")),
        *(_sample("twice", -1, -2), _sample("twice", "-1.0", -2), _sample("none"), "{half", "[]"),
        *(_sample("differs"), _sample("differs", -4), _sample("3", a=0.5), {}),
    ]
    _log(tmp_path / "logs", rows)
    (tmp_path / "logs" / "samples_hellaswag_2026.jsonl").write_text("{}")
    for _ in range(2):  # again replaces what was read before
        (done,) = import_samples(store, tmp_path / "logs", "r")
        assert (done.model, done.n_pairs, done.n_scored, done.n_missing) == ("org/model", 7, 1, 6)
        assert done.n_scored + done.n_rejected == len(rows)
        scores = {r["pair_id"]: r for r in store.read("pair_score").to_pylist()}
        rejects = {r["source_row"]: r["reason"] for r in store.read("reject").to_pylist()}
        assert len(rejects) == done.n_rejected == 13
    assert {i: (r["logprob_a_nats"], r["logprob_b_nats"]) for i, r in scores.items()} == {
        "0": (-3.5, -2.25)
    }
    assert scores["0"]["n_tokens_a"] is None
    named = {2: "context", 3: "sentence a", 4: "'-inf'", 8: "'none'", 9: "JSON"}
    named |= dict.fromkeys((6, 7, 11, 12), "in 2 rows")
    assert all(part in rejects[row] for row, part in named.items()), rejects
    (model,) = store.read("model").to_pylist()
    expected = ("org/model", "lm-eval", "lm_eval 0.4.13, transformers 5.23.0", "float16", "abc")
    names = ["model", "backend", "backend_version", "dtype", "revision"]
    assert tuple(model[n] for n in names) == expected
    computed = compute(store.root, MeasureOptions(), "r").to_pylist()
    assert [r["n"] for r in computed if (r["metric"], r["subset"]) == ("us", "all")] == [1]


def _spoil_results(logs: Path, **values: object) -> None:
    path = next(logs.glob("results*"))
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (lambda logs: _log(logs, [_sample("0")], "again"), "plumbline_b of org/model"),
        (lambda logs: next(logs.glob("results*")).unlink(), "results_"),
        (lambda logs: next(logs.glob("results*")).write_text("{}"), "benchmark of plumbline_b"),
        (lambda logs: _spoil_results(logs, config="text"), "config is not"),
        (lambda logs: _spoil_results(logs, config=[1]), "config is not"),
        (lambda logs: _spoil_results(logs, configs=[1]), "configs is not"),
        (lambda logs: _spoil_results(logs, configs={"plumbline_b": 1}), "benchmark of plumbl"),
        (lambda logs: next(logs.glob("samples*")).unlink(), "no sample logs"),
        (lambda logs: None, "plumbline benchmark import b"),
    ],
)
def test_a_log_that_cannot_be_read_is_refused(
    store: Store, tmp_path: Path, spoil: Callable[[Path], object], named: str
) -> None:
    if "import" not in named:
        fill(store, "benchmark_pair", [pair("b", "0")])
    _log(tmp_path / "logs", [_sample("0")])
    spoil(tmp_path / "logs")
    with pytest.raises((BadInput, UsageProblem), match=named):
        import_samples(store, tmp_path / "logs", "r")
    assert not store.read("pair_score").num_rows
