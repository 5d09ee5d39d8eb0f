"""Training a small model: seeded, reused, to the bit; the losses of debias tuning."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer
from typer.testing import CliRunner

from plumbline.eval_workers.disclosure.word_probabilities import probabilities, texts_to_score
from plumbline.eval_workers.models.local.causal_model import CausalModel
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.scoring_contract import Tokens
from plumbline.eval_workers.pairs.closed_world_texts import WorldOptions, write_world
from plumbline.eval_workers.training import trainer
from plumbline.eval_workers.training import word_losses as passes
from plumbline.eval_workers.training.adapter_tuning import adapted
from plumbline.eval_workers.training.trained_models import train_model
from plumbline.eval_workers.training.trainer import shuffled
from plumbline.eval_workers.training.training_options import TrainOptions
from plumbline.eval_workers.training.word_losses import TuningTarget, WordReader, target
from plumbline.jobs.ingest.count_corpus import count_corpus
from plumbline.pipelines.command.app import app
from plumbline.pipelines.command.main import main
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.input.shards import write_jsonl_zst
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.wordlists import WordPair
from tests.prompt_rows import put_probabilities, put_prompts, put_words
from tests.tiny_models import KINDS, SENTENCES

TINY = TrainOptions(600, 16, 1, 2, 32, 8, 1e-2, max_tokens=15_000, warmup_steps=5)


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_world(WorldOptions(12_000, n_shards=2), tmp_path_factory.mktemp("world"))[0]


def test_the_loss_of_a_tiny_model_falls_and_the_model_loads(
    shards: list[Path], tmp_path: Path
) -> None:
    trained, _ = train_model(shards, "tiny", "c", TINY, tmp_path)
    n_steps = 15_000 // (8 * 32)
    assert (trained["n_steps"], trained["n_tokens"]) == (n_steps, n_steps * 8 * 32)
    tokenizer = AutoTokenizer.from_pretrained(trained["path"])
    assert tokenizer.bos_token == tokenizer.eos_token == "<|endoftext|>"
    assert tokenizer.bos_token_id == 0
    start, end = trained["loss_start_nats"], trained["loss_end_nats"]
    assert start > 4.5 and end < start - 1
    model = AutoModelForCausalLM.from_pretrained(trained["path"])
    assert model.config.model_type == "gpt_neox"
    assert sum(p.numel() for p in model.parameters()) == trained["n_parameters"]
    ids = tokenizer("She was calm. Ünïcode ☃")["input_ids"]
    assert tokenizer.decode(ids) == "She was calm. Ünïcode ☃"


def test_a_model_is_reused_until_its_input_changes_and_others_files_are_left_alone(
    shards: list[Path], tmp_path: Path
) -> None:
    options = replace(TINY, max_tokens=2_000)
    first, again = (train_model(shards, "m", "c", options, tmp_path) for _ in range(2))
    assert (first[1], again) == (False, (first[0], True))
    assert not train_model(shards[:1], "m", "c", options, tmp_path)[1]
    assert [p.name for p in tmp_path.iterdir()] == ["m"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    for name, problem in {"mine": "not trained here", "../x": "plain directory name"}.items():
        with pytest.raises(UsageProblem, match=problem):
            train_model(shards, name, "c", TINY, tmp_path)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"


def test_a_gradient_that_is_not_finite_stops_the_training(
    shards: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, done = torch.nn.utils.clip_grad_norm_, itertools.count(1)

    def clip(weights: list[torch.Tensor], most: float) -> torch.Tensor:
        norm = real(weights, most)
        return norm / 0 if next(done) == 31 else norm

    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", clip)
    with pytest.raises(BadInput, match=r"m: .* not finite at step 31 .*learning rate"):
        train_model(shards, "m", "c", TINY, tmp_path)
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("texts", "problem"), [([], "hold no text"), (["She left."], "less text than one row")]
)
def test_shards_without_enough_text_are_refused(
    tmp_path: Path, texts: list[str], problem: str
) -> None:
    write_jsonl_zst(tmp_path / "s.jsonl.zst", texts)
    with pytest.raises(BadInput, match=problem):
        train_model([tmp_path / "s.jsonl.zst"], "m", "c", TINY, tmp_path)


def test_a_corpus_need_not_be_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shard, where = tmp_path / "a.jsonl.zst", tmp_path / "w"
    write_jsonl_zst(shard, ["She sat by the sea. He sang of tea."] * 20)
    train = ["train", str(shard), "--preset", "5gram", "--out", str(tmp_path / "models")]
    train += ["--warehouse", str(where)]
    assert main([*train, "--name", "first", "--corpus", "letters"]) == 0
    assert not {"loss", "steps"} & set(capsys.readouterr().out.split()), "n-grams have neither"
    count_corpus(Store.open(where), "letters", (shard,))
    for corpus in ("letters", "others"):
        assert main([*train, "--name", f"of-{corpus}", "--corpus", corpus]) == 0


def test_every_row_is_seen_once_an_epoch_in_another_order() -> None:
    numbers = list(itertools.chain(*itertools.islice(shuffled(12, 8, seed=0), 3)))
    first, second = numbers[:12], numbers[12:]
    assert sorted(first) == sorted(second) == list(range(12)) and first != second


def weights(path: str) -> bytes:
    return Path(path, "model.safetensors").read_bytes()


def test_equal_seeds_give_equal_bytes_also_after_a_stop(
    shards: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = replace(TINY, max_tokens=3_000)
    one, again = (train_model(shards, name, "c", options, tmp_path) for name in ("one", "again"))
    other = train_model(shards, "other", "c", replace(options, seed=1), tmp_path)

    @contextmanager
    def stopping(*_: str) -> Iterator[Callable[..., None]]:
        def stop(done: int, n_steps: int, note: str) -> None:
            if done == 5:
                raise KeyboardInterrupt

        yield stop

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(trainer, "progress", stopping)
        train_model(shards, "stopped", "c", options, tmp_path)
    resumed = train_model(shards, "stopped", "c", options, tmp_path)
    paths = (row["path"] for row, _ in (one, again, resumed, other))
    first, second, third, last = map(weights, paths)
    assert first == second == third != last
    assert one[0]["loss_end_nats"] == resumed[0]["loss_end_nats"]


def test_a_step_is_that_of_plain_transformers_and_adamw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows by the bare tokenizer, the library's own loss, one pass over the whole batch."""
    monkeypatch.setattr(trainer, "_has_bfloat16", lambda: False)
    texts = 4 * SENTENCES
    write_jsonl_zst(tmp_path / "s.jsonl.zst", texts)
    options = replace(TINY, context=24, max_tokens=10**6, learning_rate=1e-2)
    model, tokenizer = trainer.new_model(texts, options)
    tokenizer.save_pretrained(tmp_path / "tokenizer")
    bare = Tokenizer.from_file(str(tmp_path / "tokenizer" / "tokenizer.json"))
    ids: list[int] = []
    for text in texts:
        ids += [bare.token_to_id("<|endoftext|>"), *bare.encode(text).ids]
    n_rows = len(ids) // 24
    assert n_rows > 4
    options = replace(options, batch_rows=n_rows, max_tokens=n_rows * 24)
    trained, _ = train_model([tmp_path / "s.jsonl.zst"], "m", "c", options, tmp_path)
    assert trained["n_steps"] == 1

    rows = torch.tensor(ids[: n_rows * 24]).view(n_rows, 24)
    how = {"lr": 1e-3, "betas": (0.9, 0.95), "weight_decay": 0.01}  # at the end a tenth
    optimizer = torch.optim.AdamW(model.parameters(), **how, foreach=False)
    loss = model(input_ids=rows, labels=rows).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    assert trained["loss_end_nats"] == pytest.approx(loss.item(), rel=1e-5)
    found = dict(AutoModelForCausalLM.from_pretrained(trained["path"]).named_parameters())
    for name, expected in model.named_parameters():
        moved = expected.grad.abs() > 1e-6  # AdamW's first step is the sign of the gradient
        assert torch.allclose(found[name][moved], expected[moved], atol=1e-6), name


def test_the_command_says_how_the_model_is_scored(shards: list[Path], tmp_path: Path) -> None:
    line = ["train", str(shards[0]), "--name", "m", "--corpus", "c", "--max-tokens", "3000"]
    line += ["--out", str(tmp_path / "models"), "--warehouse", str(tmp_path / "w")]
    result = CliRunner().invoke(app, line)
    assert result.exit_code == 0, result.output
    assert f"score --model {tmp_path / 'models' / 'm'}" in " ".join(result.output.split())
    result = CliRunner().invoke(app, [*line, "--preset", "5gram"])
    assert isinstance(result.exception, UsageProblem)
    assert "preset 5gram: counts the whole text" in str(result.exception)


PAIRS = [WordPair("she", "he"), WordPair("her", "his"), WordPair("her", "him")]
PAIRS += [WordPair("herself", "himself")]
WORDS = {"she": "f", "her": "f", "herself": "f", "he": "m", "his": "m", "him": "m", "himself": "m"}
PROMPTS = ["The clerk drank tea, and", "The nurse said", "The crowd lost the key, and"]


def logs(values: Sequence[float]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64).log()


def test_losses_are_the_measures_of_the_same_probabilities(store: Store) -> None:
    """Of likely, unlikely and hardly possible words, each prompt on its own."""
    rng = np.random.default_rng(5)
    table = 10.0 ** rng.uniform(-12, -1, size=(6, len(WORDS)))
    table[5] = table[5, 0]  # all alike: no distance, yet more male words than female ones
    put_probabilities(store, [dict(zip(WORDS, values, strict=True)) for values in table])
    put_words(store, [(pair.a, pair.b) for pair in PAIRS])
    put_prompts(store, "s", [f"prompt {i}" for i in range(6)])
    measured = rows_of(store.root, "FROM disclosure_prompt() ORDER BY prompt_id")
    for values, row in zip(table, measured, strict=True):
        p = dict(zip(WORDS, values, strict=True))
        pair_logs = [logs([p[getattr(x, side)] for x in PAIRS]) for side in "ab"]
        sides = [logs([p[w] for w, g in WORDS.items() if g == side]) for side in "fm"]
        apart = passes.distance(*pair_logs).item()
        assert apart == pytest.approx(row["add_nats"], rel=1e-9, abs=1e-15)
        assert passes.difference(*sides).item() == pytest.approx(row["gld"], rel=1e-9)
        whole = passes.total(logs(list(values))).item()
        assert whole == pytest.approx(row["p_f"] + row["p_m"], rel=1e-9)


def test_a_difference_is_right_where_probabilities_leave_float32() -> None:
    """p = 3e-50 against 1e-50: their sum is 0 in float32, the difference is a half."""
    female, male = (torch.tensor([math.log(p)], dtype=torch.float32) for p in (3e-50, 1e-50))
    assert passes.difference(female, male).item() == pytest.approx(0.5, rel=1e-5)


def _targets(backend: CausalModel, prompts: Sequence[str]) -> list[TuningTarget]:
    found = [target(prompt, PAIRS, backend.encoded, 512) for prompt in prompts]
    assert all(isinstance(one, TuningTarget) for one in found)
    return found  # type: ignore[return-value]


def _reader(backend: CausalModel, model: Any) -> WordReader:
    return WordReader(model, backend.identity.bos_token_id, 4096)


@pytest.mark.parametrize("kind", KINDS)
def test_words_are_as_likely_as_when_probing(saved: dict[str, Path], kind: str) -> None:
    """What is tuned is what is measured, prompts of several lengths and words of several tokens."""
    backend = CausalModel(str(saved[kind]), ModelOptions())
    targets = _targets(backend, PROMPTS)
    several = 0
    found = _reader(backend, backend.weights.model).words(targets)
    for prompt, one, values in zip(PROMPTS, targets, found, strict=True):
        texts = texts_to_score(prompt, list(WORDS))
        scores = dict(zip(texts, backend.score(texts), strict=True))
        several = max(several, *(len(form) for forms in one.words.values() for form in forms))
        probed = probabilities(prompt, PAIRS, scores)
        for word, value in zip(one.words, values, strict=True):
            assert value.item() == pytest.approx(math.log(probed[word][0]), abs=2e-4)
    assert several > 1


@pytest.mark.slow
@pytest.mark.parametrize("loss", [0, 1, 2])
@pytest.mark.parametrize("kind", ["neox", "gpt2"])
def test_gradients_are_those_of_finite_differences(
    saved: dict[str, Path], kind: str, loss: int
) -> None:
    """Through the whole model in float64, for the largest gradient of each adapter matrix."""
    backend = CausalModel(str(saved[kind]), ModelOptions())
    held = adapted(backend, 0, rank=2, alpha=16, dropout=0.0).double()
    torch.manual_seed(1)
    weights = [p for p in held.parameters() if p.requires_grad]
    for weight in weights:  # B is 0 at the start, and A then has no gradient
        torch.nn.init.normal_(weight, std=0.05)
    reader = _reader(backend, held.get_base_model())
    targets = _targets(backend, PROMPTS[:2])

    def value() -> torch.Tensor:
        found = reader.losses(targets)
        assert found.dtype == torch.float64
        return found[:, loss].sum()

    gradients = torch.autograd.grad(value(), weights)
    h = 1e-5
    for weight, gradient in zip(weights, gradients, strict=True):
        i = int(gradient.abs().argmax())
        flat = weight.data.view(-1)
        start, ends = flat[i].item(), []
        for sign in (1, -1):
            flat[i] = start + sign * h
            ends.append(value().item())
        flat[i] = start
        numeric = (ends[0] - ends[1]) / (2 * h)
        assert gradient.view(-1)[i].item() == pytest.approx(numeric, rel=1e-5, abs=1e-9)
        assert numeric != 0


def test_a_pair_goes_with_the_word_that_can_t_be_spelled() -> None:
    def encode(texts: Sequence[str]) -> list[Tokens | str]:
        return ["no letter" if "him" in t else tuple(map(ord, t)) for t in texts]

    found = target("So", PAIRS, encode, 99)
    assert isinstance(found, TuningTarget)
    assert list(found.words) == ["she", "he", "her", "his"] and found.pairs == PAIRS[:2]
    for prompt, pairs, problem in (
        ("So", PAIRS[2:], "no pair of words can be spelled after it; 'him': no letter"),
        ("So ", PAIRS, "ends with white space, but the next word brings its own"),
        ("him", PAIRS, "no letter"),
    ):
        assert target(prompt, pairs, encode, 99) == problem
