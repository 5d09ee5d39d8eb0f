"""The pipeline as a user runs it: the command, a real Prefect server, Spark and models."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from plumbline.warehouse.input.shards import write_jsonl_zst
from plumbline.warehouse.storage.store import Store
from tests.steps import python

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def pipeline(
    directory: Path, *options: str, timeout_s: float = 400
) -> subprocess.CompletedProcess[str]:
    code = "import sys; from plumbline.pipelines.command.main import main; sys.exit(main())"
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PREFECT_", "PLUMB"))}
    environment |= {"PLUMBLINE_TRAIN_MAX_TOKENS": "40000"}
    return python(code, "pipeline", *options, cwd=directory, env=environment, timeout=timeout_s)


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


def test_again_it_scores_and_trains_nothing_and_a_broken_shard_stops_nothing_else(
    world: Path,
) -> None:
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
