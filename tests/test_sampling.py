"""Continuations by transformers: the right distribution, seeds of their own, ends and limits."""

import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from scipy import stats

from plumbline.eval_workers.models.local.causal_model import CausalModel
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.sampling_contract import Sample, SamplingOptions
from plumbline.eval_workers.models.scoring_contract import Tokens
from tests.tiny_models import KINDS, Plain

PROMPTS = ["The nurse said", "He drank", "The CEO asked the clerk", "She", "Herself. The"]
#: Random weights this wide are nearly certain of each token.
HOT = 6.0


def _opened(path: Path, **options: Any) -> CausalModel:
    return CausalModel(str(path), ModelOptions(**options))


def _continued(backend: CausalModel, wanted: list[tuple[str, int]], **how: Any) -> Any:
    options = SamplingOptions(**how)
    draws = [options.seeded(prompt, sample) for prompt, sample in wanted]
    return backend.continue_(draws, options)


def truncated(plain: Plain, ids: list[int], how: SamplingOptions) -> dict[int, float]:
    """The distribution of the next token that options leave, by its definition, in float64."""
    p = torch.softmax(plain.after(ids)[-1] / how.temperature, dim=0).tolist()
    order = sorted(range(len(p)), key=lambda i: -p[i])[: how.top_k]
    total, reached, kept = math.fsum(p[i] for i in order), 0.0, {}
    for i in order:
        if how.top_p is not None and reached >= how.top_p:
            break
        kept[i] = p[i]
        reached += p[i] / total
    whole = math.fsum(kept.values())
    return {i: x / whole for i, x in kept.items()}


def check_frequencies(seen: dict[Tokens, int], expected: dict[Tokens, float]) -> None:
    """A chi-square test of tokens seen and the numbers expected of each."""
    assert set(seen) <= set(expected)  # nothing outside the nucleus
    cells, here = [], (0, 0.0)
    for pair, e in sorted(expected.items()):  # pairs of one first token share a cell or a few
        here = here[0] + seen.get(pair, 0), here[1] + e
        if here[1] >= 60:
            cells.append(here)
            here = (0, 0.0)
    cells[-1] = cells[-1][0] + here[0], cells[-1][1] + here[1]
    assert len(cells) > 10 and sum(s for s, _ in cells) == sum(seen.values())
    assert stats.chisquare(*zip(*cells, strict=True)).pvalue > 1e-4


@pytest.mark.parametrize(
    "kind",
    ["gpt2", *(pytest.param(k, marks=pytest.mark.slow) for k in ("llama-adds-bos", "mistral"))],
)
@pytest.mark.parametrize(
    "how",
    [
        {"top_p": 0.9, "temperature": HOT},
        {"top_p": None, "top_k": 12, "temperature": HOT},
        {"top_p": 0.7, "top_k": 30, "temperature": 2 * HOT},
    ],
)
def test_two_tokens_are_drawn_as_often_as_the_truncated_distribution_says(
    saved: dict[str, Path], kind: str, how: dict[str, Any]
) -> None:
    """A chi-square test of pairs of tokens: the second is drawn from keys and values kept."""
    plain = Plain(saved[kind], KINDS[kind].bos)
    backend = _opened(saved[kind], batch_tokens=4096)
    options, n, prompt = SamplingOptions(max_new_tokens=2, **how), 4000, plain.ids(PROMPTS[0])
    seeds = [options.seeded(PROMPTS[0], k).seed for k in range(n)]
    prompts = [tuple(prompt)] * n
    seen = Counter(backend.weights.new_tokens(prompts, seeds, options, backend.ends))
    expected: dict[Tokens, float] = {}
    for first, p in truncated(plain, prompt, options).items():
        if first in backend.ends:
            expected[(first,)] = n * p
            continue
        for second, q in truncated(plain, [*prompt, first], options).items():
            expected[(first, second)] = n * p * q
    check_frequencies(seen, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_a_sample_depends_on_its_seed_alone(saved: dict[str, Path], kind: str) -> None:
    how = {"temperature": HOT, "max_new_tokens": 16}
    wanted = [(prompt, k) for prompt in PROMPTS for k in range(6)]
    found = _continued(_opened(saved[kind]), wanted, **how)
    assert len({s.text for s in found}) > 25
    backward = _continued(_opened(saved[kind]), wanted[::-1], **how)
    assert backward == found[::-1]
    few = _continued(_opened(saved[kind], batch_tokens=1), wanted[::3], **how)
    assert few == found[::3]
    other = _continued(_opened(saved[kind]), wanted, seed=1, **how)
    assert sum(a.text == b.text for a, b in zip(found, other, strict=True)) < 3
    # a longer limit begins alike
    longer = _continued(_opened(saved[kind]), wanted, temperature=HOT, max_new_tokens=20)
    assert all(b.text.startswith(a.text[:-1]) for a, b in zip(found, longer, strict=True))


def test_a_prompt_without_room_is_a_problem_and_disturbs_no_other(saved: dict[str, Path]) -> None:
    backend = _opened(saved["gpt2"])
    n = len(Plain(saved["gpt2"], KINDS["gpt2"].bos).ids(PROMPTS[2]))
    wanted = [(PROMPTS[2], 0), ("", 0), ("a <|endoftext|>", 0)]
    full, empty, special = _continued(backend, wanted, max_new_tokens=64 - n)
    assert full.problem is None and full.n_tokens == 64 - n
    assert empty.problem == "the text is empty"
    assert "special token" in special.problem
    over, fits = _continued(backend, [(PROMPTS[2], 0), ("She", 0)], max_new_tokens=65 - n)
    assert over == Sample(
        problem=f"{n} tokens and {65 - n} new ones, more than the model's context of 64"
    )
    assert fits.problem is None
