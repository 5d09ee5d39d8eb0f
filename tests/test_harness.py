"""Scores and metrics are those of lm-evaluation-harness, on small models: its tasks and ours."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.pairs.benchmarks import import_benchmark
from plumbline.eval_workers.pairs.export import export
from plumbline.eval_workers.pairs.harness_logs import import_samples
from plumbline.eval_workers.scoring.measure import MeasureOptions, compute
from plumbline.warehouse.storage.store import Store
from tests.steps import score_sets
from tests.tiny_models import save

pytestmark = [
    pytest.mark.slow,
    pytest.mark.reference,
    pytest.mark.skipif(find_spec("lm_eval") is None, reason="pip install lm_eval to run it"),
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _wide("gpt2", tmp_path_factory.mktemp("models"))


def _wide(kind: str, parent: Path) -> Path:
    """A model that reads the longest sentence, with weights far enough from even."""
    import torch
    import transformers

    directory = save(kind, parent / "tiny")
    config = transformers.AutoConfig.from_pretrained(directory)
    config.max_position_embeddings = 512
    config.initializer_range = 0.1
    torch.manual_seed(5)
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(directory)
    return directory


def test_crows_pairs_agrees_with_the_harness(data: Path, model: Path, tmp_path: Path) -> None:
    """Both give BOS as context and don't score it; the task's own configuration, a local file."""
    source = data / "crows-pairs" / "crows_pairs_anonymized.csv"
    theirs = _harness(model, source, tmp_path / "task")
    store = Store.open(tmp_path / "w")
    done = import_benchmark(store, "crows-pairs", source, "r")
    assert (len(done.pairs), len(done.rejects)) == (1508, 0)
    options = ModelOptions(device="cpu", dtype="float32")
    (scored,) = score_sets(store, ["crows-pairs"], str(model), options)
    assert scored.n_done == 1508
    rows = compute(store.root, MeasureOptions(), "r").to_pylist()
    (row,) = [r for r in rows if (r["metric"], r["subset"]) == ("stereotype score", "all")]
    assert row["n"] == 1508
    assert row["value"] == pytest.approx(theirs["pct_stereotype,none"], abs=5e-5)
    scores = store.read("pair_score").to_pylist()
    difference = sum(abs(r["logprob_a_nats"] - r["logprob_b_nats"]) for r in scores) / 1508
    assert difference == pytest.approx(theirs["likelihood_diff,none"], abs=5e-5)


def _harness(model: Path, source: Path, directory: Path) -> dict[str, float]:
    """What the harness says, its task's configuration copied and pointed to the local file."""
    import lm_eval
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager

    own = Path(lm_eval.__file__).parent / "tasks" / "crows_pairs"
    directory.mkdir()
    (directory / "utils.py").write_text((own / "utils.py").read_text())
    lines = (own / "crows_pairs_english.yaml").read_text().splitlines()
    kept = [line for line in lines if not line.startswith(("dataset_", "task:"))]
    local = [
        "task: crows_pairs_local",
        "dataset_path: csv",
        f"dataset_kwargs: {{data_files: {{test: {source}}}}}",
    ]
    (directory / "crows_pairs_local.yaml").write_text("\n".join([*kept, *local]))
    manager = TaskManager(include_path=str(directory), include_defaults=False)
    wrapped = HFLM(pretrained=str(model), device="cpu", dtype="float32", batch_size=16)
    found = lm_eval.simple_evaluate(
        model=wrapped, tasks=["crows_pairs_local"], task_manager=manager, bootstrap_iters=0
    )
    result: dict[str, float] = found["results"]["crows_pairs_local"]
    return result


@pytest.mark.parametrize("kind", ["gpt2", "opt-adds-bos"])
def test_an_exported_task_gives_our_scores(data: Path, tmp_path: Path, kind: str) -> None:
    """By the command on docs/benchmarks.md; its logs, read back, give the same figures again."""
    model, store = _wide(kind, tmp_path), Store.open(tmp_path / "w")
    own = tmp_path / "own.jsonl"
    own.write_text("".join(json.dumps(row) + "\n" for row in OWN), encoding="utf-8")
    import_benchmark(store, "winogender", data / "unstereo-eval/data/datasets/raw", "r")
    import_benchmark(store, "own", own, "r")
    names = [export(store, b, tmp_path / "task" / b).name for b in ("winogender", "own")]
    logs = tmp_path / "logs"
    theirs = _command(model, tmp_path / "task", names, logs)
    assert len(theirs) == 3  # two kinds of groups in our own pairs
    options = ModelOptions(device="cpu", dtype="float32")
    (first, _) = score_sets(store, ["winogender", "own"], str(model), options)
    ours = {
        (r["benchmark"], r["pair_id"], side): r[f"logprob_{side}_nats"]
        for r in store.read("pair_score").to_pylist()
        for side in "ab"
    }
    found = {}
    for path in logs.rglob("samples_*.jsonl"):
        benchmark = "own" if "own" in path.name else "winogender"
        for line in path.read_text("utf-8").split("\n")[:-1]:
            row = json.loads(line)
            for side, resp in zip("ab", row["resps"], strict=True):
                found[benchmark, row["doc"]["pair_id"], side] = float(resp[0][0])
    assert len(ours) == 2 * (240 + len(OWN))
    assert found == pytest.approx(ours, rel=0, abs=1e-4)
    done = import_samples(store, logs, "r2")
    assert [(d.benchmark, d.n_scored, d.n_rejected, d.n_missing) for d in done] == [
        ("own", len(OWN), 0, 0),
        ("winogender", 240, 0, 0),
    ]
    computed = [
        row
        for row in compute(store.root, MeasureOptions(), "r").to_pylist()
        if row["subset"] == "all" and row["metric"] in ("us", "pd", "stereotype score")
    ]
    for row in computed:
        metric = row["metric"].removesuffix(" score")
        figure = theirs[row["benchmark"], row["groups"]][f"{metric},none"]
        assert row["value"] == pytest.approx(figure, abs=5e-5), row
    kept = [row for row in computed if row["benchmark"] == "winogender"]
    assert len(kept) == 4 and len({r["model_key"] for r in kept}) == 2
    assert {r["n"] for r in kept} == {240} and first.model == kept[0]["model"] == "tiny"


#: Pairs with two kinds of groups: a sentence that begins with a space, letters beyond ASCII.
OWN = [
    {"sentence_a": " Old men sing.", "sentence_b": " Young men sing."},
    {"sentence_a": "Old men “sing” – né.", "sentence_b": "Young men “sing” – né."},
    {"sentence_a": "Her tea\u2028cools.", "sentence_b": "His tea\u2028cools.", "group_a": "f"},
]
for _row in OWN:
    _row |= {"group_a": "old", "group_b": "young", **_row}
    _row |= {"direction": "b"}


def _command(
    model: Path, tasks: Path, names: list[str], out: Path
) -> dict[tuple[str, str], dict[str, float]]:
    """Results of the harness' own command, by benchmark and groups."""
    flags = f"--device cpu --include_path {tasks} --tasks {','.join(names)}"
    how = f"--model hf --model_args pretrained={model},dtype=float32 {flags}"
    logged = f"--log_samples --output_path {out}"
    arguments = [sys.executable, "-m", "lm_eval", "run", *how.split(), *logged.split()]
    run = subprocess.run(arguments, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr[-2000:]
    (path,) = out.rglob("results_*.json")
    results = json.loads(path.read_text("utf-8"))
    about = {task: config["metadata"] for task, config in results["configs"].items()}
    return {(of["benchmark"], of["groups"]): results["results"][task] for task, of in about.items()}
