"""What scoring would take: sizes against hand-made sums and real weights; nothing is written."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import transformers

from plumbline.eval_workers.models import size_forecast as prospects
from plumbline.eval_workers.models.local.weights import Weights
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.size_forecast import model_size, prospect
from plumbline.eval_workers.scoring.scoring_forecast import Task, _memory, todo
from plumbline.pipelines.command.main import main
from plumbline.warehouse.storage.store import Store
from tests.test_score import TEMPLATES, _pairs
from tests.tiny_models import KINDS, one_by_one, save

#: The tiny GPT-NeoX: width, layers, width of the feed-forward part, tokens.
H, LAYERS, FFN = 64, 2, 64


def test_size_of_a_gpt_neox_by_hand(model: Path) -> None:
    config = transformers.AutoConfig.from_pretrained(model)
    size, n_tokens = model_size(config), config.vocab_size
    attention = (H * 3 * H + 3 * H) + (H * H + H)
    feed_forward = (H * FFN + FFN) + (FFN * H + H)
    norms = 2 * 2 * H
    layers = LAYERS * (attention + feed_forward + norms) + 2 * H
    assert size.n_embedding == n_tokens * H
    assert size.n_parameters == 2 * n_tokens * H + layers
    assert (size.hidden, size.widest, size.n_vocabulary) == (H, 3 * H, n_tokens)
    assert size.weight_bytes("float32", None) == 4 * size.n_parameters
    layer, logits = 4 * H + 3 * 3 * H, n_tokens
    assert size.forward_bytes("bfloat16", 7) == 7 * (2 * layer + 2 * logits + (4 + 4) * logits)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_parameters_are_those_of_the_real_weights(kind: str, tmp_path: Path) -> None:
    directory = save(kind, tmp_path / "tiny")
    real = transformers.AutoModelForCausalLM.from_pretrained(directory)
    size = model_size(real.config)
    assert size.n_parameters == sum(p.numel() for p in real.parameters())


def test_weights_of_a_quantised_model_by_hand(model: Path) -> None:
    """All but the embeddings and the head are quantised."""
    config = transformers.AutoConfig.from_pretrained(model)
    size, exact = model_size(config), 2 * config.vocab_size * H
    rest = size.n_parameters - exact
    assert size.n_exact == exact
    assert size.weight_bytes("bfloat16", "int8") == 2 * exact + rest
    assert size.weight_bytes("bfloat16", "nf4") == pytest.approx(2 * exact + rest * 9 / 16, abs=1)


def test_memory_is_that_of_the_options(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = prospect(str(model), ModelOptions())
    opened.size = replace(opened.size, n_parameters=8 * 10**9)

    def weights(**options: Any) -> Any:
        task = Task("m", ModelOptions(**options), ())
        return next(_memory(opened, task))

    monkeypatch.setattr(prospects, "chosen_device", lambda options: "cuda")
    monkeypatch.setattr(prospects, "free_bytes", lambda options: 80 * 10**9)
    assert weights(dtype="bfloat16")["amount"] == 16
    assert weights(dtype="bfloat16", quantisation="int8")["amount"] == 8
    shared = weights(dtype="bfloat16", backend="vllm", tensor_parallel=4)
    assert (shared["amount"], shared["note"]) == (4, "on each of 4 GPUs")


def test_all_experts_count() -> None:
    shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 50}
    config = transformers.MixtralConfig(**shape, intermediate_size=24, num_key_value_heads=2)
    real = transformers.MixtralForCausalLM(config)
    assert model_size(config).n_parameters == sum(p.numel() for p in real.parameters())


def test_tokens_are_those_that_are_scored(store: Store, model: Path) -> None:
    _pairs(store, [*TEMPLATES, "{pronoun} wrote <|endoftext|>."])
    options = ModelOptions()
    task = Task(str(model), options, ("demo",))
    found = todo(store, prospect(str(model), options), "demo", task)
    pairs = store.read("benchmark_pair").to_pylist()
    texts = {pair[f"sentence_{side}"] for pair in pairs[:-1] for side in "ab"}
    n_tokens = sum(n for _, n in one_by_one(model, "<|endoftext|>", sorted(texts)))
    assert (found.n_pairs, found.n_missing, found.n_refused) == (43, 43, 2)
    assert (found.n_sequences, found.n_tokens) == (82, n_tokens)
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    ids = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
    beginnings = {tuple(i[:n]) for i in ids for n in range(len(i))}
    assert found.n_computed == len(beginnings) < n_tokens
    assert "special token" in found.problem and "endoftext" in found.problem


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
    arguments += ["--workers", "2", "--warehouse", str(store.root)]
    assert main([*arguments, "--dry-run"]) == 0
    assert files(store) == before
    last = capsys.readouterr().out.splitlines()[-1]
    assert sorted(last.split("plumbline ")[1].split()) == sorted(arguments)
    config = store.root.parent / "more.toml"
    config.write_text("concurrency = 2\n")
    assert main([*arguments, "--config", str(config), "--dry-run"]) == 0
    assert f"--config {config}" in capsys.readouterr().out.splitlines()[-1]
    assert main([*arguments, "--dry-run", "--format", "json"]) == 0
    plan = {row["what"]: row for row in json.loads(capsys.readouterr().out)}
    assert (plan["to score"]["amount"], plan["to score"]["note"]) == (42, "of 42")
    assert plan["distinct sequences"]["amount"] == 82
    power = "female/male, smallest effects found with 80% power"
    assert plan["power"]["note"].startswith(power)
    assert plan["memory for computing"]["note"].endswith("it fits")
    assert "time" not in plan
    absent = [part for name in ("no", "none") for part in ("--model", str(model.parent / name))]
    assert main([*arguments, *absent, "--dry-run"]) == 3
    shown = capsys.readouterr()
    assert "2 of 3 failed: " in shown.err and "distinct sequences" in shown.out
    monkeypatch.undo()
    main([*arguments[:5], "--warehouse", str(store.root)])
    capsys.readouterr()
    assert main([*arguments, "--dry-run", "--format", "json"]) == 0
    plan = {row["what"]: row for row in json.loads(capsys.readouterr().out)}
    assert plan["to score"]["amount"] == plan["tokens"]["amount"] == 0
