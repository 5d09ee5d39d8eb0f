"""Checkpoints of a model, scored one after the other: on disk, and from a hub on loopback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import HfApi, constants, hf_hub_download, snapshot_download

from plumbline.eval_workers.models.local.loading import _has_file
from plumbline.eval_workers.models.local.source import Source
from plumbline.eval_workers.pairs.benchmarks import import_benchmark
from plumbline.eval_workers.scoring.revisions import checkpoints, one_ahead
from plumbline.warehouse.errors import PlumblineError, UsageProblem
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests.hub_server import Hub, environment, hub
from tests.tiny_models import save

_COMMAND = "from plumbline.pipelines.command.main import entry; entry()"


def model_with_checkpoints(directory: Path) -> Path:
    for seed, name in enumerate(["", "checkpoints/step0", "checkpoints/step20", "checkpoint-100"]):
        save("gpt2", directory / name, seed=seed)
    (directory / "step5").mkdir()  # holds no model
    return directory


def test_names_and_patterns(tmp_path: Path) -> None:
    model = model_with_checkpoints(tmp_path / "m")
    for wanted, names in {
        "all": ["checkpoints/step0", "checkpoints/step20", "checkpoint-100"],
        "step20, step0": ["checkpoints/step0", "checkpoints/step20"],
        "step*,step0": ["checkpoints/step0", "checkpoints/step20"],
        "checkpoint-*": ["checkpoint-100"],
    }.items():
        found = checkpoints(str(model), wanted)
        assert [c.model for c in found] == [str(model / name) for name in names]
        assert {c.revision for c in found} == {None}
    assert [c.step for c in checkpoints(str(model), "all")] == [0, 20, 100]
    with pytest.raises(UsageProblem, match=r"'step7'.*it has step0, step20, checkpoint-100"):
        checkpoints(str(model), "step0,step7")
    with pytest.raises(UsageProblem, match="is empty"):
        checkpoints(str(model), " , ")


def score_by_command(
    model: str, warehouse: Path, environment: dict[str, str], *more: str
) -> subprocess.CompletedProcess[str]:
    given = ["--model", model, "--benchmark", "closed-world", "--warehouse", str(warehouse)]
    return subprocess.run(
        [sys.executable, "-c", _COMMAND, "score", *given, *more],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub of two checkpoints, which this process's client talks to."""
    model = save("gpt2", tmp_path / "m")
    with hub({"org/m@step0": model, "org/m@step20": model}) as server:
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, server.url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "ENDPOINT", server.url)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        yield server


def test_a_snapshot_with_weights_that_was_there_stays_and_others_go(
    served: Hub, tmp_path: Path
) -> None:
    """Whatever revision it was downloaded by; configuration files alone are no model."""
    commit = served.commit("org/m", "step0")
    snapshot_download("org/m", revision=commit, cache_dir=tmp_path / "cache")
    hf_hub_download("org/m", "config.json", revision="step20", cache_dir=tmp_path / "cache")
    found = []
    for _ in one_ahead([("org/m", "step0"), ("org/m", "step20"), ("org/m", None)]):
        found.append(sorted(p.parent.name for p in tmp_path.glob("cache/*/*/*/*.safetensors")))
    assert found[1] == sorted([commit, served.commit("org/m", "step20")])
    assert found[2] == [commit]
    assert [p.name for p in tmp_path.glob("cache/*/snapshots/*")] == [commit]


def test_a_file_is_looked_for_without_its_download(served: Hub, tmp_path: Path) -> None:
    source = Source("org/m", "org/m", "step0", is_local=False)
    assert _has_file(source, "model.safetensors")
    assert not _has_file(source, "adapter_config.json")
    assert not any(tmp_path.glob("cache/*/*/*/*"))
    commit = served.commit("org/m", "step0")
    snapshot_download("org/m", revision="step0", cache_dir=tmp_path / "cache")
    served.go("refused")
    for revision in ("step0", commit):
        held = Source("org/m", "org/m", revision, is_local=False)
        assert _has_file(held, "model.safetensors")
        assert not _has_file(held, "adapter_config.json")


def test_an_error_of_the_hub_without_words_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(HfApi, "list_repo_refs", fails)
    with pytest.raises(PlumblineError, match="can't be had from the hub: OSError"):
        checkpoints("org/m", "all")


@pytest.mark.slow
def test_checkpoints_of_a_hub_are_scored_and_dropped(tmp_path: Path) -> None:
    """Each under its step, with the scores of the same directory; what was cached before stays."""
    model = model_with_checkpoints(tmp_path / "m")
    made = {
        "org/m@main": model,
        "org/m@step0": model / "checkpoints/step0",
        "org/m@step20": model / "checkpoints/step20",
    }
    store = Store.open(tmp_path / "w")
    import_benchmark(store, "closed-world", None, "r")
    with hub(made) as server:
        where = environment(server, tmp_path / "home")
        first = score_by_command("org/m", tmp_path / "w", where, "--revision", "step20")
        assert first.returncode == 0, first.stderr
        cached = sorted(path.name for path in tmp_path.glob("home/hub/*/snapshots/*"))
        done = score_by_command("org/m", tmp_path / "w", where, "--revisions", "all")
        assert done.returncode == 0, done.stderr
        assert "score with org/m at step20" in done.stdout
        assert sorted(path.name for path in tmp_path.glob("home/hub/*/snapshots/*")) == cached
        refused = score_by_command("org/m", tmp_path / "w", where, "--revisions", "step7")
        assert refused.returncode == 2 and "it has step0, step20, main" in refused.stderr
        both = score_by_command(
            "org/m", tmp_path / "w", where, "--revisions", "all", "--revision", "main"
        )
        assert both.returncode == 2 and "exclude each other" in both.stderr
        away = score_by_command("org/other", tmp_path / "w", where, "--revisions", "all")
        assert away.returncode == 3 and "can't be had from the hub" in away.stderr
    local = score_by_command(str(model), tmp_path / "w", dict(os.environ), "--revisions", "step*")
    assert local.returncode == 0, local.stderr
    query = (
        "SELECT m.model, step, sum(logprob_a_nats) AS total FROM pair_score "
        "JOIN model AS m USING (model_key) GROUP BY ALL ORDER BY ALL"
    )
    rows = {(row["model"], row["step"]): row["total"] for row in rows_of(store.root, query)}
    assert sorted(rows) == [(name, step) for name in ("m", "org/m") for step in (0, 20)]
    assert rows["m", 0] == rows["org/m", 0] != rows["m", 20] == rows["org/m", 20]
    labels = rows_of(store.root, "SELECT label FROM model_label ORDER BY ALL")
    assert [row["label"] for row in labels] == [
        f"{name} (step {step})" for name in ("m", "org/m") for step in (0, 20)
    ]
