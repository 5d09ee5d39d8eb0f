"""Training of the small model: seeded, reused, honest about what it was trained from."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from plumbline.eval_workers.pairs.closed_world_corpus.corpus_writer import WorldOptions, write_world
from plumbline.eval_workers.training import trainer
from plumbline.eval_workers.training.learner import new_model
from plumbline.eval_workers.training.trained_models import train_model
from plumbline.eval_workers.training.trainer import fit, trainable
from plumbline.eval_workers.training.training_options import StepProgress, TrainOptions
from plumbline.jobs.ingest.count_corpus import count_corpus
from plumbline.pipelines.command.main import main
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.input.shards import write_jsonl_zst
from plumbline.warehouse.storage.store import Store

TINY = TrainOptions(
    vocabulary=600,
    hidden=16,
    layers=1,
    heads=2,
    context=32,
    batch_rows=8,
    learning_rate=1e-2,
    max_tokens=15_000,
    warmup_steps=5,
)


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    world = write_world(WorldOptions(n_tokens=12_000, n_shards=2), tmp_path_factory.mktemp("world"))
    return list(world.shards)


def weights(path: Path) -> dict[str, torch.Tensor]:
    return load_file(path / "model.safetensors")


def same(a: Path, b: Path) -> bool:
    one, two = weights(a), weights(b)
    return one.keys() == two.keys() and all(torch.equal(one[k], two[k]) for k in one)


class Stop(Exception):
    """Stands for a killed run."""


def stop_at(step: int) -> StepProgress:
    def progress(done: int, n_steps: int, note: str) -> None:
        if done == step:
            raise Stop

    return progress


def test_the_loss_of_a_tiny_model_falls_and_the_model_loads(
    shards: list[Path], tmp_path: Path
) -> None:
    trained = train_model(shards, "tiny", "c", TINY, tmp_path)
    assert trained.n_steps == 15_000 // (8 * 32) and trained.n_tokens == trained.n_steps * 8 * 32
    tokenizer = AutoTokenizer.from_pretrained(trained.path)
    assert tokenizer.bos_token == tokenizer.eos_token == "<|endoftext|>"
    assert tokenizer.bos_token_id == 0
    assert trained.loss_start_nats > 4.5 and trained.loss_end_nats < trained.loss_start_nats - 1
    model = AutoModelForCausalLM.from_pretrained(trained.path)
    assert model.config.model_type == "gpt_neox"
    assert sum(p.numel() for p in model.parameters()) == trained.n_parameters
    ids = tokenizer("She was calm. Ünïcode ☃")["input_ids"]
    assert tokenizer.decode(ids) == "She was calm. Ünïcode ☃"


def test_a_trained_model_is_reused_until_options_or_shards_change(
    shards: list[Path], tmp_path: Path
) -> None:
    options = replace(TINY, max_tokens=2_000)
    first = train_model(shards, "m", "c", options, tmp_path)
    again = train_model(shards, "m", "c", options, tmp_path)
    assert again.reused and again == replace(first, reused=True)
    fewer = train_model(shards[:1], "m", "c", options, tmp_path)
    assert not fewer.reused
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_a_directory_of_someone_else_is_left_alone(shards: list[Path], tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(UsageProblem, match="not trained here"):
        train_model(shards, "mine", "c", TINY, tmp_path)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"
    for name in ("", "../x", "a/b", ".hidden"):
        with pytest.raises(UsageProblem, match="plain directory name"):
            train_model(shards, name, "c", TINY, tmp_path)


def not_finite_at(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the gradient of a step infinite."""
    real, done = torch.nn.utils.clip_grad_norm_, itertools.count(1)

    def clip(weights: list[torch.Tensor], most: float) -> torch.Tensor:
        norm = real(weights, most)
        return norm / 0 if next(done) == step else norm

    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", clip)


def test_a_gradient_that_is_not_finite_stops_the_training(
    shards: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    not_finite_at(31, monkeypatch)
    with pytest.raises(BadInput, match=r"m: .* not finite at step 31 .*learning rate"):
        train_model(shards, "m", "c", TINY, tmp_path)
    assert not (tmp_path / "m").exists()


def test_the_gradient_of_a_batch_is_that_of_its_parts_together() -> None:
    """Against the mean loss over all positions at once, by torch's own backward pass."""
    model = new_model(20, TINY).double()
    rows = torch.randint(0, 20, (5, 32), generator=torch.Generator().manual_seed(1))
    weights = trainable(model)
    for n_parts, n_lanes in ((2, 2), (3, 1)):
        optimizer = torch.optim.SGD(weights, lr=0.0)
        parts = [trainer._parts(model, rows.numpy(), n_parts)]
        (figures,) = fit(weights, parts, optimizer, 1e9, "m", n_lanes=n_lanes)
        found = [weight.grad.clone() for weight in weights if weight.grad is not None]
        model.zero_grad()
        expected = torch.nn.functional.cross_entropy(
            model(input_ids=rows).logits[:, :-1].flatten(0, 1).float(), rows[:, 1:].flatten()
        )
        expected.backward()
        assert figures["loss"] == pytest.approx(expected.item(), rel=1e-5)
        for one, weight in zip(found, weights, strict=True):
            torch.testing.assert_close(one, weight.grad, rtol=1e-4, atol=1e-6)
        norm = torch.cat([one.flatten() for one in found]).norm().item()
        assert figures["gradient_norm"] == pytest.approx(norm, rel=1e-6)


def test_the_rate_rises_to_its_peak_and_falls_to_a_tenth(
    shards: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates: list[float] = []

    def step(self: torch.optim.Optimizer) -> None:
        rates.append(self.param_groups[0]["lr"])

    monkeypatch.setattr(torch.optim.AdamW, "step", step)
    train_model(shards, "m", "c", TINY, tmp_path)
    assert len(rates) == 58 and max(rates) == rates[4] == pytest.approx(1e-2)
    assert rates[:5] == pytest.approx([2e-3, 4e-3, 6e-3, 8e-3, 1e-2])
    assert rates[5:] == sorted(rates[5:], reverse=True) and rates[-1] == pytest.approx(1e-3)
    middle = 4 + (58 - 5) / 2  # between two steps
    assert (rates[int(middle)] + rates[int(middle) + 1]) / 2 == pytest.approx(5.5e-3, rel=1e-2)


def test_shards_without_enough_text_are_refused(tmp_path: Path) -> None:
    write_jsonl_zst(tmp_path / "empty.jsonl.zst", [])
    with pytest.raises(BadInput, match="hold no text"):
        train_model([tmp_path / "empty.jsonl.zst"], "m", "c", TINY, tmp_path)
    write_jsonl_zst(tmp_path / "short.jsonl.zst", ["She left."])
    with pytest.raises(BadInput, match="less text than one row"):
        train_model([tmp_path / "short.jsonl.zst"], "m", "c", TINY, tmp_path)


def test_a_corpus_that_is_not_counted_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where nothing is counted yet any name does."""
    shard, where = tmp_path / "a.jsonl.zst", tmp_path / "w"
    write_jsonl_zst(shard, ["She sat by the sea. He sang of tea."] * 20)
    train = ["train", str(shard), "--preset", "5gram", "--out", str(tmp_path / "models")]
    train += ["--warehouse", str(where)]
    assert main([*train, "--name", "first", "--corpus", "letters"]) == 0
    count_corpus(Store.open(where), "letters", (shard,))
    for more in ([], ["--dry-run"]):
        assert main([*train, "--name", "m", "--corpus", "leters", *more]) != 0
        assert "corpus 'leters': not in the warehouse, only letters" in capsys.readouterr().err
    assert not (tmp_path / "models/m").exists()
    assert main([*train, "--name", "m", "--corpus", "letters"]) == 0
