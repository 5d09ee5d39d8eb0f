"""What scoring would take: sizes against hand-made sums and real weights; nothing is written."""

import json
from pathlib import Path

import pytest
import transformers

from plumbline.eval_workers.models.local.weights import Weights
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.scoring.scoring_forecast import weight_bytes
from plumbline.pipelines.command.main import main
from plumbline.warehouse.storage.store import Store
from tests.test_score import TEMPLATES, _pairs
from tests.tiny_models import KINDS, one_by_one, save

#: The tiny GPT-NeoX: width, layers, width of the feed-forward part, tokens.
H, LAYERS, FFN = 64, 2, 64


def test_size_of_a_gpt_neox_by_hand(model: Path) -> None:
    """All weights but the embeddings and the head are quantised."""
    config = transformers.AutoConfig.from_pretrained(model)
    n_tokens = config.vocab_size
    attention = (H * 3 * H + 3 * H) + (H * H + H)
    feed_forward = (H * FFN + FFN) + (FFN * H + H)
    norms = 2 * 2 * H
    exact, layers = 2 * n_tokens * H, LAYERS * (attention + feed_forward + norms) + 2 * H
    assert weight_bytes(config, ModelOptions()) == 4 * (exact + layers)
    options = ModelOptions(dtype="bfloat16", quantisation="nf4")
    assert weight_bytes(config, options) == pytest.approx(2 * exact + layers * 9 / 16)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_parameters_are_those_of_the_real_weights(kind: str, tmp_path: Path) -> None:
    directory = save(kind, tmp_path / "tiny")
    real = transformers.AutoModelForCausalLM.from_pretrained(directory)
    n_parameters = sum(p.numel() for p in real.parameters())
    assert weight_bytes(real.config, ModelOptions()) == 4 * n_parameters


def files(store: Store) -> list[tuple[str, int]]:
    paths = sorted(store.root.rglob("*"))
    return [(str(path), path.stat().st_mtime_ns) for path in paths]


def test_the_command_writes_nothing_and_ends_with_the_one_to_run(
    store: Store, model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Weights, "model", property(lambda self: pytest.fail("weights")))
    _pairs(store, TEMPLATES)
    before = files(store)
    arguments = ["score", "--model", str(model), "--benchmark", "demo", "--batch-tokens", "64"]
    arguments += ["--warehouse", str(store.root)]
    assert main([*arguments, "--dry-run"]) == 0
    assert files(store) == before
    last = capsys.readouterr().out.splitlines()[-1]
    assert sorted(last.split("plumbline ")[1].split()) == sorted(arguments)
    config = store.root.parent / "more.toml"
    config.write_text("[score]\nconcurrency = 2\n")
    assert main([*arguments, "--config", str(config), "--dry-run"]) == 0
    assert f"--config {config}" in capsys.readouterr().out.splitlines()[-1]
    assert main([*arguments, "--dry-run", "--format", "json"]) == 0
    plan = {row["what"]: row for row in json.loads(capsys.readouterr().out)}
    assert (plan["to score"]["amount"], plan["to score"]["note"]) == (42, "of 42")
    pairs = store.read("benchmark_pair").to_pylist()
    texts = sorted({pair[f"sentence_{side}"] for pair in pairs for side in "ab"})
    n_tokens = sum(n for _, n in one_by_one(model, "<|endoftext|>", texts))
    assert (plan["distinct sequences"]["amount"], plan["tokens"]["amount"]) == (82, n_tokens)
    assert plan["memory for weights"]["note"].endswith("they fit")
    assert "time" not in plan
    monkeypatch.undo()
    main([*arguments[:5], "--warehouse", str(store.root)])
    capsys.readouterr()
    assert main([*arguments, "--dry-run", "--format", "json"]) == 0
    plan = {row["what"]: row for row in json.loads(capsys.readouterr().out)}
    assert plan["to score"]["amount"] == plan["tokens"]["amount"] == 0
