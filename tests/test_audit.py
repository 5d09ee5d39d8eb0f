"""The whole audit by one command: every stage, with a chat model that writes, on either backend."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.eval_workers.pairs.closed_world_corpus.corpus_writer import WorldOptions, write_world
from plumbline.eval_workers.vllm import vllm_client
from plumbline.warehouse.errors import MissingComponent
from plumbline.warehouse.storage.store import Store
from tests.chat_server import good_script, serving
from tests.prefect_server import Place
from tests.test_flow import pipeline

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_SETTINGS = """
corpus = "corpora/*.jsonl.zst"
build = "written.toml"
probe_set = "common-sents"
prompt_sets = "topics"
train_tokens = 40_000

[fairpair]
n = 2
max_new_tokens = 4
n_permutations = 19
n_resamples = 20

[[model]]
id = "train:small"
backend = "{backend}"
workers = 1

[[model]]
id = "out/models/small-corpora"
backend = "{backend}"
dtype = "bfloat16"
"""
_WRITTEN = """
model = "scripted"
base_url = "{url}"
n_words = 6
n_sentences = 2
max_words = 20
"""


def prepared(directory: Path, backend: str, url: str) -> None:
    """A corpus, and what `audit.toml` and `written.toml` hold."""
    write_world(WorldOptions(60_000, 0, "straight"), directory / "corpora")
    (directory / "audit.toml").write_text(_SETTINGS.format(backend=backend))
    (directory / "written.toml").write_text(_WRITTEN.format(url=url))


def check(directory: Path, backend: str) -> None:
    """Every stage has its rows for both models, and the page has its sections."""
    store = Store.open(directory / "out/warehouse")
    pairs = store.read("benchmark_pair", benchmark="written").to_pylist()
    assert len({p["word"] for p in pairs}) == 6 and any(p["is_natural"] for p in pairs)
    models = {m["model_key"]: m for m in store.read("model").to_pylist()}
    assert {(m["backend"], m["dtype"]) for m in models.values()} == {
        (backend, "float32"),
        (backend, "bfloat16"),
    }
    scores = store.read("pair_score", benchmark="written").to_pylist()
    assert len(scores) == 2 * len(pairs)
    for table, name in (("fairpair_set", "common-sents"), ("pronoun_probability", "topics")):
        rows = store.read(table, probe_set=name).to_pylist()
        assert {row["model_key"] for row in rows} == set(models), table
    constrained = store.read("pair_association", corpus="corpora", benchmark="written")
    assert constrained.num_rows == len(pairs)
    page = (directory / "out/report/appendix.html").read_text("utf-8")
    assert "written" in page and 'id="fairpair"' in page and 'id="disclosure"' in page


def test_one_command_counts_has_written_scores_samples_probes_and_reports(tmp_path: Path) -> None:
    with serving(good_script) as server:
        prepared(tmp_path, "transformers", server.url)
        done = pipeline(tmp_path, "--conf", "audit.toml", timeout_s=1800)
    assert done.returncode == 0, done.stderr[-3000:]
    check(tmp_path, "transformers")


@pytest.mark.vllm
def test_a_deployment_does_it_with_vllm(request: pytest.FixtureRequest) -> None:
    try:
        _ = vllm_client.interpreter()
    except MissingComponent as e:
        pytest.skip(str(e))
    there: Place = request.getfixturevalue("place")
    with serving(good_script) as server:
        prepared(there.work, "vllm", server.url)
        run = there.end(there.begin("pipeline/audit", conf="audit.toml"), timeout_s=1800)
    assert run["state"]["type"] == "COMPLETED", run["state"]["message"]
    assert run["state"]["message"] == "2 models on 1 benchmarks"
    assert {"corpus-count", "score", "measure", "report"} <= set(there.artifacts(run))
    check(there.work, "vllm")
