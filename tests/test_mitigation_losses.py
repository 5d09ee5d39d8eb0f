"""The losses of debias tuning: against the measures' SQL, finite differences, full softmaxes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from plumbline.eval_workers.disclosure.word_probabilities import probabilities, texts_to_score
from plumbline.eval_workers.models.local.causal_model import CausalModel
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.scoring_contract import Tokens
from plumbline.eval_workers.training import word_losses as passes
from plumbline.eval_workers.training.adapter_tuning import adapted
from plumbline.eval_workers.training.word_losses import TuningTarget, WordReader, target
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.wordlists import WordPair
from tests.prompt_rows import put_probabilities, put_prompts, put_words
from tests.tiny_models import KINDS

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
        ("So ", PAIRS, "ends with white space, which its next word brings along"),
        ("him", PAIRS, "no letter"),
    ):
        assert target(prompt, pairs, encode, 99) == problem
