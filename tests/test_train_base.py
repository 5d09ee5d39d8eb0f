"""Training that continues a model: any architecture, whole or by an adapter, to the bit."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer
from typer.testing import CliRunner

from plumbline.eval_workers.models.kinds.causal_model import CausalModel
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.training import trainer
from plumbline.eval_workers.training.trained_models import TrainedModel, record_model, train_model
from plumbline.eval_workers.training.training_options import Base, preset
from plumbline.pipelines.command.app import app
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.input.shards import write_jsonl_zst
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import fill, scored_by
from tests.test_train import Stop, stop_at
from tests.tiny_models import KINDS, SENTENCES, save

TINY = replace(
    preset("continue", learning_rate=1e-3),
    context=24,
    batch_rows=4,
    max_tokens=24 * 4 * 30,
)


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    out = tmp_path_factory.mktemp("bases")
    kinds = ("gpt2", "llama-adds-bos", "neox", "opt-adds-bos")
    return {kind: save(kind, out / kind) for kind in kinds}


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    path = tmp_path_factory.mktemp("text") / "text.jsonl.zst"
    write_jsonl_zst(path, [" ".join(SENTENCES[k:] + SENTENCES[:k]) for k in range(12)])
    return [path]


def train(
    shards: list[Path], base: Path, out: Path, lora: int | None = None, **how: Any
) -> TrainedModel:
    given = Base(str(base), how.pop("how", ModelOptions()), lora)
    options, progress = replace(TINY, seed=how.pop("seed", 0)), how.pop("progress", None)
    name, out = out.name, out.parent
    return train_model(shards, name, "c", options, out, progress, base=given, **how)


def weights(path: Path) -> bytes:
    (file,) = path.glob("*.safetensors")
    return file.read_bytes()


@pytest.mark.parametrize("kind", ["gpt2", "llama-adds-bos", "neox"])
def test_a_step_is_that_of_plain_transformers_and_adamw(
    bases: dict[str, Path], tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows by the bare tokenizer, the library's own loss, one pass over the whole batch."""
    monkeypatch.setattr(trainer, "_products", lambda model: "float32")
    write_jsonl_zst(tmp_path / "s.jsonl.zst", 2 * SENTENCES)
    tokenizer = Tokenizer.from_file(str(bases[kind] / "tokenizer.json"))
    ids: list[int] = []
    for text in 2 * SENTENCES:
        bos = tokenizer.token_to_id(KINDS[kind].bos)
        ids += [bos, *tokenizer.encode(text, add_special_tokens=False).ids]
    n_rows = len(ids) // 24
    options = replace(TINY, batch_rows=n_rows, max_tokens=n_rows * 24, learning_rate=1e-2)
    base = Base(str(bases[kind]), ModelOptions(batch_tokens=50))
    assert n_rows > 4  # several parts
    trained = train_model([tmp_path / "s.jsonl.zst"], "m", "c", options, tmp_path, base=base)
    assert trained.n_steps == 1

    model = AutoModelForCausalLM.from_pretrained(bases[kind]).eval()
    rows = torch.tensor(ids[: n_rows * 24]).view(n_rows, 24)
    how = {"lr": 1e-3, "betas": (0.9, 0.95), "weight_decay": 0.01}  # at the end a tenth
    optimizer = torch.optim.AdamW(model.parameters(), **how, foreach=False)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    loss = model(input_ids=rows, labels=rows).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    assert trained.loss_end_nats == pytest.approx(loss.item(), rel=1e-5)
    found = dict(AutoModelForCausalLM.from_pretrained(trained.path).named_parameters())
    for name, expected in model.named_parameters():
        moved = expected.grad.abs() > 1e-6  # AdamW's first step is the sign of the gradient
        assert torch.allclose(found[name][moved], expected[moved], atol=1e-6), name
        assert (found[name] - before[name]).abs().max() < 1.2e-3 + 1e-4, name


@pytest.mark.parametrize("lora", [None, 4])
@pytest.mark.parametrize("kind", ["neox", "llama-adds-bos"])
@pytest.mark.slow
def test_equal_seeds_give_equal_bytes_also_after_a_stop(
    bases: dict[str, Path], shards: list[Path], tmp_path: Path, kind: str, lora: int | None
) -> None:
    one = train(shards, bases[kind], tmp_path / "one", lora)
    again = train(shards, bases[kind], tmp_path / "again", lora)
    other = train(shards, bases[kind], tmp_path / "other", lora, seed=1)
    seen: list[int] = []
    with pytest.raises(Stop):
        train(shards, bases[kind], tmp_path / "stopped", lora, progress=stop_at(8))
    resumed = train(
        *(shards, bases[kind], tmp_path / "stopped", lora),
        progress=lambda done, n, note: seen.append(done),
    )
    assert one.n_steps == 30 and seen[0] == 1
    assert weights(one.path) == weights(again.path) == weights(resumed.path)
    assert weights(one.path) != weights(other.path)
    assert one.loss_end_nats == resumed.loss_end_nats < one.loss_start_nats
    assert train(shards, bases[kind], tmp_path / "one", lora).reused


def test_neither_lanes_nor_their_number_change_the_weights(
    bases: dict[str, Path], shards: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    how = ModelOptions(batch_tokens=24)
    found = []
    for n_lanes in (1, 3):
        monkeypatch.setattr("plumbline.eval_workers.models.devices.n_threads", lambda n=n_lanes: n)
        trained = train(shards, bases["gpt2"], tmp_path / f"{n_lanes}", how=how)
        found.append(weights(trained.path))
    assert found[0] == found[1]


@pytest.mark.parametrize("kind", ["gpt2", "llama-adds-bos", "neox", "opt-adds-bos"])
def test_a_continued_model_has_its_base_s_tokenizer_and_likes_the_text_more(
    bases: dict[str, Path], shards: list[Path], tmp_path: Path, kind: str
) -> None:
    trained = train(shards, bases[kind], tmp_path / "m")
    before = CausalModel(str(bases[kind]), ModelOptions())
    after = CausalModel(str(trained.path), ModelOptions())
    assert after.identity.bos_token_id == before.identity.bos_token_id
    assert after.encoded(SENTENCES) == before.encoded(SENTENCES)
    gained = [
        b.logprob_nats - a.logprob_nats
        for a, b in zip(before.score(SENTENCES), after.score(SENTENCES), strict=True)
    ]
    assert sum(gained) > 10
    assert trained.n_parameters == before.n_parameters == after.n_parameters


def test_an_adapter_is_scored_on_its_base_which_stays(
    bases: dict[str, Path], shards: list[Path], tmp_path: Path, store: Store
) -> None:
    """And the warehouse knows which scores are the adapter's."""
    base = bases["neox"]
    before = weights(base)
    trained = train(shards, base, tmp_path / "m", lora=4)
    assert weights(base) == before
    model, how = trained.scored(Base(str(base), ModelOptions(), 4))
    plain, adapted = (CausalModel(model, o) for o in (ModelOptions(), how))
    a, b = (sum(s.logprob_nats for s in m.score(SENTENCES)) for m in (plain, adapted))
    assert b > a + 10
    record_model(store, trained, "r")
    (row,) = store.read("trained_model").to_pylist()
    identity = adapted.identity
    assert (row["base"], row["base_revision"]) == (identity.model, identity.revision)
    assert (row["adapter"], row["lora_rank"]) == (identity.adapter, 4)
    known = {"model": identity.model, "revision": identity.revision}
    for key, adapter in (("plain", None), ("adapted", identity.adapter), ("other", "x@1")):
        row = {**scored_by(identity.model, key=key), **known, "adapter": adapter}
        fill(store, "model", [row], key)
    (found,) = rows_of(store.root, "SELECT model_key, model FROM trained_key")
    assert (found["model_key"], found["model"]) == ("adapted", "m")


def test_what_is_no_causal_model_or_cannot_be_trained_is_refused(
    bases: dict[str, Path], shards: list[Path], tmp_path: Path
) -> None:
    masked = transformers.BertForMaskedLM(
        transformers.BertConfig(
            vocab_size=30, hidden_size=8, num_hidden_layers=1, num_attention_heads=1
        )
    )
    masked.save_pretrained(tmp_path / "bert")
    with pytest.raises(BadInput, match="not a causal language model but of the kind masked"):
        train(shards, tmp_path / "bert", tmp_path / "m")
    (tmp_path / "t5").mkdir()
    config = {"model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "d_model": 8}
    (tmp_path / "t5" / "config.json").write_text(json.dumps({**config, "is_encoder_decoder": True}))
    (tmp_path / "t5" / "model.safetensors").write_bytes(b"")
    with pytest.raises(BadInput, match="of the kind encoder-decoder"):
        train(shards, tmp_path / "t5", tmp_path / "m")
    for how in ({"dtype": "bfloat16"}, {"quantisation": "nf4"}, {"adapter": "x"}):
        with pytest.raises(UsageProblem, match=r"too coarse|no weights to train|can't be trained"):
            Base("m", ModelOptions(**how))
    with pytest.raises(UsageProblem, match="are of a new model"):
        train_model(shards, "m", "c", preset("small"), tmp_path, base=Base(str(bases["neox"])))
    with pytest.raises(UsageProblem, match="of a model that is continued"):
        train_model(shards, "m", "c", preset("continue"), tmp_path)
    assert not (tmp_path / "m").exists()


def test_the_command_continues_a_model_and_says_how_it_is_scored(
    bases: dict[str, Path], shards: list[Path], tmp_path: Path
) -> None:
    line = ["train", str(shards[0]), "--name", "m", "--corpus", "c", "--max-tokens", "2000"]
    line += ["--out", str(tmp_path / "models"), "--warehouse", str(tmp_path / "w")]
    base = ["--base", str(bases["neox"])]
    result = CliRunner().invoke(app, [*line, *base, "--lora", "2", "--learning-rate", "0.001"])
    assert result.exit_code == 0, result.output
    adapter = f"--adapter {tmp_path / 'models' / 'm'}"
    assert f"score --model {bases['neox']} {adapter}" in " ".join(result.output.split())
    (row,) = Store.open(tmp_path / "w").read("trained_model").to_pylist()
    assert (row["base"], row["lora_rank"]) == ("neox", 2)
    (run,) = Store.open(tmp_path / "w").read("run").to_pylist()
    assert json.loads(run["config"])["learning_rate"] == 0.001
    for more, problem in (
        (["--lora", "2"], "--lora: is for a model that is continued"),
        (["--dtype", "bfloat16"], "--dtype: is for a model that is continued"),
        ([*base, "--preset", "small"], "training options: are of a new model"),
        ([*base, "--revision", "main"], "has no revisions"),
    ):
        result = CliRunner().invoke(app, [*line, *more])
        assert isinstance(result.exception, UsageProblem)
        assert problem in str(result.exception)


def test_the_tokenizer_s_ids_fit_the_weights(
    bases: dict[str, Path], shards: list[Path], tmp_path: Path
) -> None:
    base = save("neox", tmp_path / "neox")
    tokenizer = AutoTokenizer.from_pretrained(base)
    tokenizer.add_tokens(["nurse"])
    tokenizer.save_pretrained(base)
    with pytest.raises(BadInput, match="model neox: its tokenizer gives token"):
        train(shards, base, tmp_path / "m")
