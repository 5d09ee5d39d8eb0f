"""Tuning an adapter: what falls, what a kill costs, what is kept out, what the warehouse holds."""

import math
import re
from collections import Counter
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoConfig, LlamaForCausalLM

from plumbline.eval_workers.disclosure.prompt_sets import import_probe
from plumbline.eval_workers.models.local.causal_model import CausalModel
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.training import adapter_tuning
from plumbline.eval_workers.training.adapter_tuning import (
    adapted,
    dev_losses,
    switch_dropout,
    take_steps,
    tune,
)
from plumbline.eval_workers.training.trainer import trainable
from plumbline.eval_workers.training.training_options import (
    ALPHA,
    DROPOUT,
    LOSSES,
    MAX_TOKENS,
    TuneOptions,
)
from plumbline.eval_workers.training.tuning_prompts import tuning_prompts
from plumbline.eval_workers.training.word_losses import TuningTarget, WordReader, target
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.wordlists import load
from tests.prompt_rows import list_file, put_prompts
from tests.steps import probe_set
from tests.tiny_models import save, save_calm

SUBJECTS = ("The clerk", "The nurse", "The crowd", "A technician", "The customer", "The CEO")
ACTIONS = ("drank tea", "lost the key", "asked for cash", "wrote a report", "went home", "waited")
PROMPTS = [f"{subject} {action}, and" for subject in SUBJECTS for action in ACTIONS]
TRAIN, TEST = PROMPTS[:24], PROMPTS[24:]
PAIRS = (("she", "he"), ("her", "his"), ("her", "him"), ("herself", "himself"))
TINY = TuneOptions(
    rank=4, learning_rate=5e-3, batch_prompts=8, steps=24, checkpoint_steps=5, seed=3
)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_calm(tmp_path_factory.mktemp("models") / "tiny-neox")


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> str:
    return list_file(tmp_path_factory.mktemp("lists") / "mine.toml", PAIRS)


@pytest.fixture
def filled(store: Store) -> Store:
    put_prompts(store, "train", TRAIN)
    put_prompts(store, "test", TEST)
    return store


def run(
    store: Store, base: Path, words: str, out: Path, name: str = "calm", **changes: Any
) -> tuple[dict[str, Any], bool]:
    dev_sets = changes.pop("dev_sets", ())
    options = replace(TINY, word_list=words, **changes)
    given: dict[str, Any] = {"sets": ["train"], "dev_sets": dev_sets, "name": name, "out": out}
    return tune(store, str(base), ModelOptions(), options, "run", **given)


def weights(path: Path) -> dict[str, torch.Tensor]:
    return load_file(path / "adapter_model.safetensors")


def apart(one: Path, two: Path) -> float:
    """The largest difference between two adapters' weights."""
    a, b = weights(one), weights(two)
    assert a.keys() == b.keys() and a
    return max((a[k] - b[k]).abs().max().item() for k in a)


def figure(store: Store, model_key: str) -> dict[str, Any]:
    rows = rows_of(store.root, "FROM disclosure()")
    (row,) = (row for row in rows if row["model_key"] == model_key and row["probe_set"] == "test")
    return row


def test_prompts_not_tuned_on_disclose_less_with_the_adapter(
    filled: Store, base: Path, words: str, tmp_path: Path
) -> None:
    """Probed as any model is, base and adapter: GLD, ADD and the whole probability all fall."""
    tuned, reused = run(filled, base, words, tmp_path / "adapters")
    assert (tuned["n_prompts"], tuned["n_left_out"], reused) == (24, 0, False)
    keys = []
    for adapter in (None, tuned["path"]):
        options = ModelOptions(adapter=adapter)
        keys.append(probe_set(filled, "test", str(base), options, words).model_key)
    before, after = (figure(filled, key) for key in keys)
    assert before["n_prompts"] == after["n_prompts"] == 12
    assert after["gld"] < before["gld"] / 2
    assert after["add_nats"] < before["add_nats"] / 2
    assert after["p_f"] + after["p_m"] < 0.7 * (before["p_f"] + before["p_m"])
    (row,) = filled.read("tuning").to_pylist()
    (scored,) = (r for r in filled.read("model").to_pylist() if r["adapter"])
    assert row["adapter"] == tuned["adapter"] == scored["adapter"]
    assert (row["base"], row["base_revision"]) == (scored["model"], scored["revision"])


@pytest.mark.slow
def test_the_adapter_is_the_one_whose_measured_losses_on_the_dev_set_are_least(
    filled: Store, base: Path, words: str, tmp_path: Path
) -> None:
    """Against adapters of 3, 6, 9 and 12 steps, each measured on the dev set as any model is."""
    put_prompts(filled, "dev", [*TEST[6:], TRAIN[3].upper()])
    put_prompts(filled, "test", TEST[:6])
    # The loss on the dev prompts falls, and rises again before the end.
    given = {"learning_rate": 0.15, "steps": 12, "checkpoint_steps": 3}
    tuned, _ = run(filled, base, words, tmp_path, dev_sets=["dev"], **given)
    (row,) = filled.read("tuning").to_pylist()
    steps = {r["step"]: r for r in filled.read("tuning_step").to_pylist()}
    measured, adapters = {}, {}
    for n in (3, 6, 9, 12):
        one, _ = run(filled, base, words, tmp_path, f"of-{n}", **{**given, "steps": n})
        options = ModelOptions(adapter=one["path"])
        key = probe_set(filled, "dev", str(base), options, words).model_key
        (found,) = rows_of(
            filled.root, f"FROM disclosure() WHERE model_key = '{key}' AND probe_set = 'dev'"
        )
        total = found["p_f"] + found["p_m"]
        measured[n] = found["add_nats"] + total + found["gld"]
        adapters[n] = Path(one["path"])
        assert steps[n]["dev_loss"] == pytest.approx(measured[n], abs=1e-4)
        assert steps[n]["dev_difference"] == pytest.approx(found["gld"], abs=1e-4)
        assert steps[n]["dev_total"] == pytest.approx(total, abs=1e-4)
        assert steps[n]["dev_distance_nats"] == pytest.approx(found["add_nats"], abs=1e-4)
    best = min(measured, key=lambda n: measured[n])
    assert row["chosen_step"] == best != 12 and row["n_steps"] == 12
    assert [n for n, r in steps.items() if r["dev_loss"] is not None] == [3, 6, 9, 12]
    kept = Path(tuned["path"])
    assert apart(kept, adapters[best]) <= 1e-6 < apart(kept, adapters[12])
    assert row["dev_loss"] == steps[best]["dev_loss"]
    assert (row["dev_sets"], row["n_dev_prompts"], row["n_leaks"]) == ("dev", 7, 1)
    assert sorted(p.name for p in kept.iterdir()) == [
        *("README.md", "adapter_config.json", "adapter_model.safetensors", "plumbline.json")
    ]


@pytest.mark.skipif(
    find_spec("bitsandbytes") is None,
    reason="bitsandbytes is not installed: pip install bitsandbytes",
)
def test_a_quantised_base_is_tuned(filled: Store, words: str, tmp_path: Path) -> None:
    base = save("llama-adds-bos", tmp_path / "base")
    config = AutoConfig.from_pretrained(base)
    config.vocab_size = -(-config.vocab_size // 64) * 64  # bitsandbytes packs whole blocks
    config.hidden_size, config.head_dim, config.num_key_value_heads = 64, 32, 2
    config.initializer_range = 0.1
    torch.manual_seed(0)
    LlamaForCausalLM(config).save_pretrained(base)
    how = ModelOptions(quantisation="nf4")
    options = replace(TINY, word_list=words, learning_rate=2e-2, as_published=True)
    tuned, _ = tune(
        filled, str(base), how, options, "run", sets=["train"], name="calm", out=tmp_path
    )
    glds = []
    for adapter in (None, tuned["path"]):
        how = ModelOptions(quantisation="nf4", adapter=adapter)
        key = probe_set(filled, "test", str(base), how, words).model_key
        glds.append(figure(filled, key)["gld"])
    assert glds[1] < 0.7 * glds[0]
    (row,) = filled.read("tuning").to_pylist()
    assert str(row["base_quantisation"]).startswith("bitsandbytes nf4")
    assert row["layers"] == "q_proj, v_proj"


def test_prompts_of_test_sets_are_left_out_and_counted(store: Store) -> None:
    train = ["The clerk ran, and", "A man ran, and", "The boss ran, and", "A cat ran"]
    more = ["the boss  RAN.", "The nurse ran, and", "John ran, and", "Jane ran, and"]
    counterparts = ["The poet ran", "Jane ran, and"]
    put_prompts(store, "train", train)
    put_prompts(store, "more", more)
    put_prompts(store, "test", ["the  CLERK ran", "John ran, and"], counterparts)
    found = tuning_prompts(store, ["train", "more"], None)
    kept = ["The boss ran, and", "A cat ran", "The nurse ran, and"]
    assert [row["prompt"] for row in found.rows] == kept
    assert found.n_leaks == 3 and found.test_sets == ("test",)
    assert [(r["source_file"], r["source_row"], r["reason"]) for r in found.rejects] == [
        ("train.txt", 1, "is in the test set test"),
        ("train.txt", 2, "holds the gendered word 'man'"),
        ("more.txt", 1, "the same prompt as train 02"),
        ("more.txt", 3, "is in the test set test"),
        ("more.txt", 4, "is in the test set test"),
    ]
    assert tuning_prompts(store, ["train"], None).test_sets == ("more", "test")
    assert len(tuning_prompts(store, ["train"], []).rows) == 3
    put_prompts(store, "copy", ["The clerk ran", "THE BOSS RAN", "a cat ran, and"])
    with pytest.raises(BadInput, match="none is left to tune on; the first: is in the test set"):
        tuning_prompts(store, ["train"], ["copy"])


def test_no_prompt_is_on_two_of_the_three_sides(store: Store) -> None:
    put_prompts(store, "train", ["The clerk ran, and", "The boss ran, and", "A cat ran"])
    put_prompts(store, "dev", ["THE BOSS RAN.", "A man ran", "The poet ran", "the poet ran, and"])
    put_prompts(store, "test", ["the poet  ran", "The nurse ran"])
    with pytest.raises(BadInput, match=r"none is left to choose an adapter by; .* test set"):
        put_prompts(store, "only", ["The poet ran"])
        tuning_prompts(store, ["train"], ["test"], ["only"])
    found = tuning_prompts(store, ["train"], ["test"], ["dev"])
    assert [row["prompt"] for row in found.rows] == ["The clerk ran, and", "A cat ran"]
    assert [row["prompt"] for row in found.dev] == ["THE BOSS RAN."]
    left_out = [("train.txt", 2), ("dev.txt", 2), ("dev.txt", 3), ("dev.txt", 4)]
    assert [(r["source_file"], r["source_row"]) for r in found.rejects] == left_out
    assert found.rejects[0]["reason"] == "is in the dev set dev" and found.n_leaks == 3


def test_the_warehouse_tells_what_was_done(
    filled: Store, base: Path, words: str, tmp_path: Path
) -> None:
    put_prompts(filled, "train", [*TRAIN, TEST[0].upper(), "word " * 80 + "end, and"])
    tuned, _ = run(filled, base, words, tmp_path, steps=3, total=0.5, difference=0)
    (row,) = filled.read("tuning").to_pylist()
    assert row == {**tuned, "run_id": "run"}
    assert (row["n_left_out"], row["n_leaks"]) == (2, 1)
    wanted = {"tuning": "calm", "probe_sets": "train", "test_sets": "test", "n_prompts": 24}
    wanted |= {"distance_weight": 1.0, "total_weight": 0.5, "difference_weight": 0.0, "seed": 3}
    wanted |= {"n_steps": 3, "rank": 4, "path": tuned["path"], "word_list": "mine"}
    wanted |= {"layers": "query_key_value", "run_id": "run", "base_quantisation": None}
    assert {column: row[column] for column in wanted} == wanted
    assert row["n_parameters"] == sum(w.numel() for w in weights(Path(tuned["path"])).values())
    rejects = filled.read("reject", stage="tune").to_pylist()
    assert sorted(r["source_row"] for r in rejects) == [25, 26]
    assert any("context of 64" in r["reason"] for r in rejects)
    steps = sorted(filled.read("tuning_step").to_pylist(), key=lambda row: row["step"])
    assert row["total_start"] == steps[0]["total"] and row["total_end"] == steps[-1]["total"]
    again = run(filled, base, words, tmp_path, steps=3, total=0.5, difference=0)
    assert again == (tuned, True)
    assert filled.read("tuning").to_pylist() == [row]
    _, reused = run(filled, base, words, tmp_path, steps=4, total=0.5, difference=0)
    assert not reused and [p.name for p in tmp_path.iterdir() if "calm" in p.name] == ["calm"]


def test_what_can_t_be_tuned_is_refused(
    filled: Store, base: Path, words: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageProblem, match="PEFT can't put an adapter on it"):
        adapted(CausalModel(str(base), ModelOptions()), 0, 0, 8, 0.0)
    put_prompts(filled, "train", ["The clerk "])
    with pytest.raises(BadInput, match="can use no prompt of train; the last: ends with white"):
        run(filled, base, words, tmp_path)


@pytest.mark.parametrize("as_published", [False, True])
def test_the_defaults_are_the_paper_s(as_published: bool) -> None:
    o = TuneOptions(as_published=as_published)
    assert (o.rank, ALPHA, DROPOUT, o.learning_rate) == (64, 16, 0.1, 2e-4)
    assert (o.batch_prompts, o.steps, MAX_TOKENS) == (16, 500, 512)
    assert o.weights == {"distance": 1.0, "total": 1.0, "difference": 1.0}


def one_step(
    base: Path, words: str, dropout: float = 0.0, **changes: Any
) -> tuple[Any, WordReader, list[TuningTarget], TuneOptions]:
    """A model, its reader and 16 prompts for one step."""
    options = replace(TINY, word_list=words, **{"batch_prompts": 16, "steps": 1, **changes})
    backend = CausalModel(str(base), ModelOptions())
    found = [target(prompt, load(words).pairs, backend.encoded, 512) for prompt in PROMPTS[:16]]
    held = adapted(backend, options.seed, options.rank, ALPHA, dropout)
    reader = WordReader(held.get_base_model(), backend.identity.bos_token_id, 9999)
    return held, reader, [t for t in found if isinstance(t, TuningTarget)], options


def test_as_published_a_step_s_gradient_is_that_of_sums_and_is_not_clipped(
    base: Path, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By autograd prompt by prompt, added up; sums of 16 prompts are 16 times their means."""
    found, columns = {}, {}
    for name, most in {"sums": None, "means": 1e9, "clipped": 0.01}.items():
        monkeypatch.setattr(adapter_tuning, "CLIP_NORM", most)
        model, reader, batch, options = one_step(base, words, as_published=most is None)
        ready = trainable(model)
        if name == "sums":
            by_hand = [torch.zeros_like(w) for w in ready]
            for one in batch:
                loss = reader.losses([one]).sum()
                for whole, part in zip(by_hand, torch.autograd.grad(loss, ready), strict=True):
                    whole += part
        columns[name] = {}
        take_steps(model, reader, batch, options, lambda _, row, x=columns[name]: x.update(row))
        found[name] = [w.grad.clone() for w in ready if w.grad is not None]
    norm = math.sqrt(sum(g.square().sum().item() for g in by_hand))
    assert norm > 1 and len(found["sums"]) == len(by_hand) > 1  # a bound of 1 would have cut it
    for name, scale in {"sums": 1.0, "means": 1 / 16, "clipped": 0.01 / norm}.items():
        for ours, whole in zip(found[name], by_hand, strict=True):
            torch.testing.assert_close(ours, scale * whole, rtol=1e-3, atol=1e-4 * scale)
    assert columns["sums"]["gradient_norm"] == pytest.approx(norm, rel=1e-4)
    assert columns["means"]["gradient_norm"] == pytest.approx(norm / 16, rel=1e-4)
    assert columns["sums"]["loss"] == pytest.approx(16 * columns["means"]["loss"], rel=1e-6)
    for loss in LOSSES:  # are logged as means in both
        assert columns["sums"][loss] == pytest.approx(columns["means"][loss], rel=1e-6)


def test_losses_of_a_dev_set_in_several_passes_are_means_over_its_prompts(
    base: Path, words: str
) -> None:
    model, reader, dev, options = one_step(base, words, 0.5, batch_prompts=8)
    switch_dropout(model, on=False)
    with torch.no_grad():
        for weight in trainable(model):
            torch.nn.init.normal_(weight, std=0.05)
        means = torch.cat([reader.losses([one]) for one in dev]).mean(dim=0)
    switch_dropout(model, on=True)
    small = replace(reader, n_tokens=60)
    assert len(list(small.passes(dev))) > 2
    found = dev_losses(model, small, dev, options)
    assert [found[f"dev_{name}"] for name in LOSSES] == pytest.approx(means.tolist(), rel=1e-4)


def test_as_published_no_prompt_is_left_out_and_the_row_says_so(
    filled: Store, base: Path, words: str, tmp_path: Path
) -> None:
    """A prompt of the test set, one with a gendered word and one that is there twice are kept."""
    more = [TEST[0].upper(), "The man ran, and", TRAIN[0].lower()]
    put_prompts(filled, "train", [*TRAIN, *more])
    put_prompts(filled, "dev", [TEST[1], TRAIN[1], "A lady ran, and"])
    given: dict[str, Any] = {"steps": 2, "dev_sets": ["dev"]}
    ours, _ = run(filled, base, words, tmp_path, **given)
    (default,) = filled.read("tuning").to_pylist()
    theirs, reused = run(filled, base, words, tmp_path, **given, as_published=True)
    (row,) = filled.read("tuning").to_pylist()
    counts = ("n_prompts", "n_left_out", "n_leaks", "n_leaks_kept")
    assert [ours[name] for name in counts] == [23, 6, 3, 0]
    assert [theirs[name] for name in counts] == [27, 0, 0, 1]
    assert not reused and theirs["adapter"] != ours["adapter"]
    assert (default["as_published"], default["clip_norm"]) == (False, 1.0)
    assert (row["as_published"], row["clip_norm"], row["n_dev_prompts"]) == (True, None, 3)
    assert row["n_leaks_kept"] == 1 and row["prompts_hash"] != default["prompts_hash"]
    (step, *_) = sorted(filled.read("tuning_step").to_pylist(), key=lambda r: r["step"])
    means = step["distance_nats"] + step["total"] + step["difference"]
    assert step["loss"] == pytest.approx(8 * means, rel=1e-6)


@pytest.mark.reference
def test_as_published_the_release_s_prompts_are_those_of_table_4(store: Store, data: Path) -> None:
    tests, sets, dev = (
        ["stsb", "snli", "llm-1", "llm-2"],
        *([f"{source}-{part}" for source in ("stsb", "snli")] for part in ("train", "validation")),
    )
    for name in (*tests, *sets, *dev):
        import_probe(store, name, None, "r", allow_gendered=True, data=data)
    found = tuning_prompts(store, sets, tests, dev, keep_all=True)
    assert (len(found.rows), len(found.dev)) == (1_127 + 12_165, 380 + 301)
    assert (found.rejects, found.n_leaks, found.n_leaks_kept) == ([], 0, 260)
    ours = tuning_prompts(store, sets, tests, dev)
    assert (len(ours.rows), len(ours.dev)) == (12_748, 591)
    why = Counter(
        re.sub(" set .*| as .*| words? .*", "", row["reason"])
        for row in ours.rejects
        if "train" in row["source_file"]
    )
    assert why == {
        "is in the test": 260,
        "is in the dev": 149,
        "the same prompt": 68,
        "holds the gendered": 67,
    }
