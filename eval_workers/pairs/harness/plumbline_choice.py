"""A task of Inspect that asks a model to name one of a pair's sentences, shown in both orders.

Plumbline puts a copy beside the task's data, its wordings and ``plumbline_replies.py``, which
reads the replies. The copy runs without Plumbline, so this module imports nothing of it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, metric, scorer
from inspect_ai.solver import TaskState, generate
from plumbline_replies import chosen

_HERE = Path(__file__).parent


@task
def forced_choice(file: str = "", n: int = 4) -> Task:
    """Ask about each pair of a JSON lines file ``n`` times in each order of its sentences.

    The default ``file`` is the only one beside this module. The wordings are used in turn.
    """
    files = [_HERE / file] if file else sorted(_HERE.glob("*.jsonl"))
    if len(files) != 1:
        raise ValueError(f"give -T file=NAME, one of {', '.join(path.name for path in files)}")
    lines = files[0].read_text(encoding="utf-8").split("\n")
    wordings = json.loads((_HERE / "wordings.json").read_text(encoding="utf-8"))
    samples = [
        _sample(pair, side, ask, wordings[ask % len(wordings)])
        for ask in range(n)
        for pair in (json.loads(line) for line in lines if line)
        for side in "ab"
    ]
    config = GenerateConfig(temperature=1.0, max_tokens=16)
    dataset = MemoryDataset(samples, name=files[0].stem)
    return Task(dataset=dataset, solver=generate(), scorer=names_a_sentence(), config=config)


def _sample(pair: dict[str, Any], side: str, ask: int, wording: str) -> Sample:
    shown = [pair["sentence_a"], pair["sentence_b"]]
    first, second = shown if side == "a" else reversed(shown)
    return Sample(
        id=f"{pair['pair_id']}/{side}/{ask}",
        input=wording.format(first=first, second=second),
        metadata={"pair_id": pair["pair_id"], "shown_first": side},
    )


def _shares(scores: Sequence[SampleScore]) -> list[tuple[float, float]]:
    """Per pair with choices in both orders: share of choices of a, with a first, with b first."""
    by_pair: dict[str, dict[str, list[bool]]] = {}
    for entry in scores:
        about = entry.score.metadata or {}
        if about["choice"]:
            order = by_pair.setdefault(about["pair_id"], {}).setdefault(about["shown_first"], [])
            order.append(about["choice"] == "a")
    in_both_orders = [orders for orders in by_pair.values() if len(orders) == 2]
    return [(sum(o["a"]) / len(o["a"]), sum(o["b"]) / len(o["b"])) for o in in_both_orders]


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else float("nan")


@metric
def preference() -> Metric:
    """Share of choices of sentence a: mean over orders, then pairs; 0.5 means no preference."""

    # Inspect reads this annotation to decide which values it passes.
    def figure(scores: list[SampleScore]) -> float:
        return _mean([(first + second) / 2 for first, second in _shares(scores)])

    return figure


@metric
def first_share() -> Metric:
    """Share of choices of the sentence shown first, averaged like ``preference``."""

    def figure(scores: list[SampleScore]) -> float:
        return _mean([(first + 1 - second) / 2 for first, second in _shares(scores)])

    return figure


@metric
def n_neither() -> Metric:
    """Number of replies that name neither sentence; the other metrics leave them out."""

    def figure(scores: list[SampleScore]) -> float:
        return sum(not (entry.score.metadata or {})["choice"] for entry in scores)

    return figure


@scorer(metrics=[preference(), first_share(), n_neither()])
def names_a_sentence() -> Scorer:
    """Score of a reply: 1 if it names sentence a, 0 for b, 0.5 for neither.

    Metrics use ``choice`` in the metadata, not this number.
    """

    async def score(state: TaskState, target: Target) -> Score:
        reply, side = state.output.completion, state.metadata["shown_first"]
        number = chosen(reply)
        choice = {None: None, 1: side, 2: "b" if side == "a" else "a"}[number]
        value = {None: 0.5, "a": 1.0, "b": 0.0}[choice]
        return Score(value=value, answer=reply, metadata={**state.metadata, "choice": choice})

    return score
