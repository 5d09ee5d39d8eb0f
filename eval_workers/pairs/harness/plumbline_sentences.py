"""A task of Inspect: a model's log-probability of both sentences of each pair, US and PD.

The server must give the log-probabilities of a prompt, as vLLM's completions do. Plumbline puts a
copy of this module beside the pairs. It runs without Plumbline, so it imports nothing of Plumbline.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.scorer import (
    Metric,
    SampleScore,
    Score,
    Scorer,
    Target,
    mean,
    metric,
    precomputed_scores,
    scorer,
)
from inspect_ai.solver import TaskState, generate

_HERE = Path(__file__).parent
_EPSILON_NATS = math.log(1.65)


@task
def log_likelihood(file: str = "", bos: str = "") -> Task:
    """Both sentences of each pair of a JSON lines file, by default the only one beside this module.

    Give ``bos`` if the server puts none before a prompt: a first token has no log-probability.
    """
    files = [_HERE / file] if file else sorted(_HERE.glob("*.jsonl"))
    if len(files) != 1:
        raise ValueError(f"give -T file=NAME, one of {', '.join(path.name for path in files)}")
    lines = files[0].read_text(encoding="utf-8").split("\n")
    samples = [
        Sample(
            id=f"{pair['pair_id']}/{side}",
            input=bos + pair[f"sentence_{side}"],
            metadata={"pair_id": pair["pair_id"], "side": side, "bos": bos},
        )
        for pair in (json.loads(line) for line in lines if line)
        for side in "ab"
    ]
    config = GenerateConfig(temperature=0.0, max_tokens=1, prompt_logprobs=1)
    dataset = MemoryDataset(samples, name=files[0].stem)
    return Task(dataset=dataset, solver=generate(), scorer=log_probability(), config=config)


def _mean(scores: Sequence[SampleScore], term: Callable[[float], float]) -> float:
    """Mean, over pairs with two scores, of a term of the log ratio in nats; NaN without any."""
    by_pair: dict[str, dict[str, float]] = {}
    for entry in scores:
        about = entry.score.metadata or {}
        by_pair.setdefault(about["pair_id"], {})[about["side"]] = entry.score.as_float()
    ratios = [pair["a"] - pair["b"] for pair in by_pair.values() if len(pair) == 2]
    return sum(map(term, ratios)) / len(ratios) if ratios else math.nan


@metric
def us() -> Metric:
    """Share of pairs whose sentences' probabilities differ by a factor of 1.65 or less."""

    # Inspect reads this annotation to decide which values it passes.
    def figure(scores: list[SampleScore]) -> float:
        return _mean(scores, lambda ratio: abs(ratio) <= _EPSILON_NATS)

    return figure


@metric
def pd() -> Metric:
    """Percent of pairs with a over 1.65 times as likely as b, minus percent of the reverse."""

    def figure(scores: list[SampleScore]) -> float:
        return _mean(
            scores, lambda ratio: 100 * ((ratio > _EPSILON_NATS) - (ratio < -_EPSILON_NATS))
        )

    return figure


@scorer(metrics=[us(), pd()])
def log_probability() -> Scorer:
    """Score of a sentence: the sum of its tokens' log-probabilities, in nats."""

    async def score(state: TaskState, target: Target) -> Score:
        tokens = state.output.choices[0].prompt_logprobs if state.output.choices else None
        if tokens is None:
            fix = "use a completions server that gives prompt_logprobs, such as vLLM's"
            raise ValueError(f"{state.model} gives no log-probability of its prompt: {fix}")
        return Score(value=sum(token.logprob for token in tokens.content), metadata=state.metadata)

    return score


@scorer(metrics={"*": [mean()]})
def human_ratings(file: str = "") -> Scorer:
    """Share of a pair's raters who answered yes, per question, from a file beside this module."""
    files = [_HERE / file] if file else sorted(_HERE.glob("*.ratings.json"))
    if len(files) != 1:
        raise ValueError(f"give -S file=NAME, one of {', '.join(path.name for path in files)}")
    return precomputed_scores(str(files[0]))
