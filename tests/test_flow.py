"""The pipeline as a user runs it: the command, a real Prefect server, Spark and models."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from plumbline.eval_workers.pairs.closed_world_corpus.corpus_writer import WorldOptions, write_world
from plumbline.warehouse.input.shards import write_jsonl_zst
from plumbline.warehouse.storage.store import Store
from tests.conftest import REPOSITORY

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def pipeline(
    directory: Path, *options: str, timeout_s: float = 400
) -> subprocess.CompletedProcess[str]:
    code = "import sys; from plumbline.pipelines.command.main import main; sys.exit(main())"
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PREFECT_", "PLUMB"))}
    environment |= {"PYTHONPATH": str(REPOSITORY), "PLUMBLINE_TRAIN_MAX_TOKENS": "40000"}
    return subprocess.run(
        [sys.executable, "-c", code, "pipeline", *options],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )


#: The corpus of a pipeline without options.
CORPUS = "closed-world-straight"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a small closed world that ran through the whole pipeline."""
    directory = tmp_path_factory.mktemp("pipeline")
    done = pipeline(directory, "--demo-tokens", "60000")
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Wrote out/report/index.html" in done.stdout
    stages = re.findall(r"(?m)^(\d+)/(\d+) .* \.\.\.$", done.stderr)
    assert stages == [(str(k), "9") for k in range(1, 10)]
    for found in ("repeat the gender leans", "PD", "F = ", "GLD", "no word leans"):
        assert found in done.stdout
    return directory


def test_the_closed_world_is_measured_in_every_way(world: Path) -> None:
    """Benchmarks, one of them around seed words, and FairPair on both sides."""
    store, name, of = Store.open(world / "out/warehouse"), "closed-world-offline", CORPUS
    (corpus,) = store.read("corpus").to_pylist()
    assert corpus["corpus"] == of and corpus["n_documents"] > 0 and corpus["n_rejected"] == 0
    models = {m["model"] for m in store.read("trained_model").to_pylist()}
    scores = store.read("pair_score").to_pylist()
    assert len(models) == 1 and {s["model"] for s in scores} == models
    drawn = store.read("continuation", probe_set="closed-world").to_pylist()
    assert {r["model"] for r in drawn} == models and len(drawn) == 30 * 2 * 50
    rows = store.read("fairpair_set", probe_set="closed-world").to_pylist()
    assert {(r["phi"], r["side"]) for r in rows} == {
        (phi, side) for phi in ("jaccard", "vader") for side in ("original", "perturbed")
    }
    pairs = store.read("benchmark_pair", benchmark=name).to_pylist()
    words = {p["word"] for p in pairs}
    assert len(words) == 50 and len(pairs) == 500
    assert words <= set(store.read("seed_word", corpus=of)["word"].to_pylist())
    assert store.read("pair_association", corpus=of, benchmark=name).num_rows == 500
    assert sum(r["benchmark"] == name for r in scores) == len(pairs)
    assert (world / f"out/benchmarks/{name}/README.md").is_file()
    page = (world / "out/report/appendix.html").read_text("utf-8")
    assert 'id="fairpair"' in page and "closed-world-straight" in page


def test_commands_take_their_settings_and_models_their_options(tmp_path: Path) -> None:
    """A list of two models on one text: every part has rows of both, and the page its sections."""
    write_world(WorldOptions(60_000, 0, "straight"), tmp_path / "corpora")
    (tmp_path / "audit.toml").write_text(
        '[pipeline]\ncorpus = "corpora/*.jsonl.zst"\nprobe_set = "common-sents"\n'
        "[corpus.count]\nwindow = 5\n"
        "[fairpair.run]\nn = 2\nmax_new_tokens = 4\nn_permutations = 19\nn_resamples = 20\n"
        '[[model]]\nid = "train:small"\n'
        '[[model]]\nid = "out/models/small-corpora"\ndtype = "bfloat16"\n'
    )
    done = pipeline(tmp_path, "--config", "audit.toml", timeout_s=1800)
    assert done.returncode == 0, done.stderr[-3000:]
    store, name = Store.open(tmp_path / "out/warehouse"), "corpora-offline"
    (corpus,) = store.read("corpus").to_pylist()
    pairs = store.read("benchmark_pair", benchmark=name).num_rows
    models = {m["model_key"]: m["dtype"] for m in store.read("model").to_pylist()}
    assert corpus["window_tokens"] == 5 and sorted(models.values()) == ["bfloat16", "float32"]
    assert store.read("pair_score", benchmark=name).num_rows == 2 * pairs > 0
    for table, probe_set in (("fairpair_set", "common-sents"), ("pronoun_probability", "topics")):
        rows = store.read(table, probe_set=probe_set).to_pylist()
        assert {row["model_key"] for row in rows} == set(models), table
    assert 4 in store.read("sampling")["max_new_tokens"].to_pylist()
    page = (tmp_path / "out/report/appendix.html").read_text("utf-8")
    assert 'id="fairpair"' in page and 'id="disclosure"' in page


def test_again_it_scores_and_trains_nothing_and_a_broken_shard_stops_nothing_else(
    world: Path,
) -> None:
    """A corpus of one good and one truncated shard, scored with the model that is there."""
    write_jsonl_zst(world / "a.jsonl.zst", ["She met the nurse.", "He met the baker."] * 30)
    whole = (world / "a.jsonl.zst").read_bytes()
    (world / "b.jsonl.zst").write_bytes(whole[: len(whole) // 2])
    store = Store.open(world / "out/warehouse")
    before = {r["run_id"] for r in store.read("pair_score").to_pylist()}
    options = ["--benchmarks", "closed-world", "--model", "out/models/test-model"]
    done = pipeline(world, "--corpus", "a.jsonl.zst b.jsonl.zst", *options)
    assert done.returncode == 3, done.stderr[-3000:]
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("error:") and "b.jsonl.zst" in last
    ledger = {r["shard"]: r["status"] for r in store.read("corpus_shard", corpus="a").to_pylist()}
    assert ledger == {"a.jsonl.zst": "counted", "b.jsonl.zst": "failed"}
    assert {r["run_id"] for r in store.read("pair_score").to_pylist()} == before
    assert store.read("pair_association", corpus="a").num_rows > 2000
    assert "b.jsonl.zst" in (world / "out/report/appendix.html").read_text("utf-8")
