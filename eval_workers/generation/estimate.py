"""What a build would take, before anything is asked: requests, tokens, money. Pure.

Tokens of a prompt are taken for a quarter of its characters and ``FRAME_TOKENS`` for what servers
put around a message; a sentence of w words for 1.4 w, and 4 for its number. Other tokenizers and
languages differ: an estimate, where ``budget.py`` holds an upper bound against the limits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from plumbline.eval_workers.generation import conversion
from plumbline.eval_workers.generation.budget import Price
from plumbline.eval_workers.generation.judge import ROUNDS, PairToJudge, judgement
from plumbline.eval_workers.generation.requests import Request
from plumbline.eval_workers.generation.write import PRONOUNS, WritingSpec

FRAME_TOKENS = 8
_CHARACTERS_A_TOKEN = 4
_TOKENS_A_WORD = 1.4
_TOKENS_A_NUMBER = 4
_VERDICT_TOKENS = 8
_MEAN_WORD = "garden"


@dataclass(frozen=True)
class Habits:
    """What is supposed of the model.

    Attributes:
        revised: share of its sentences that lack the word or the pronoun; of revisions too.
        lost: share of its sentences that are rejected for good.
        natural_asked_twice: share of verdicts that are unclear.
    """

    revised: float = 0.25
    lost: float = 0.1
    natural_asked_twice: float = 0.05


@dataclass(frozen=True)
class Estimate:
    """Requests, tokens and cost to be expected, and the most requests that can be needed.

    ``cost`` is in ``currency``, both ``None`` without a price. Attempts that fail come on top.
    """

    n_requests: int
    n_requests_most: int
    n_input_tokens: int
    n_output_tokens: int
    cost: float | None
    currency: str | None


def estimate(
    words: Sequence[str],
    spec: WritingSpec,
    price: Price | None = None,
    habits: Habits = Habits(),
    *,
    judge: bool = True,
) -> Estimate:
    """What writing and judging sentences for these seed words would take from the start.

    Without ``judge`` nothing is judged. Conversions are among ``n_requests_most`` alone: rules
    can't tell one "her" in some hundreds.

    >>> from plumbline.eval_workers.generation.prompts import load
    >>> from plumbline.eval_workers.generation.requests import ChatModel
    >>> spec = WritingSpec(ChatModel("m"), load(), n_sentences=5, revise_rounds=2)
    >>> sure = Habits(revised=0.0, lost=0.0, natural_asked_twice=0.0)
    >>> estimate(["tea"], spec, habits=sure).n_requests  # 2 lists, 10 pairs of 2 verdicts
    22
    """
    n_lists = len(words) * len(PRONOUNS)
    n_sentences = n_lists * spec.n_sentences
    revisions = n_sentences * _revisions(habits.revised, spec.revise_rounds)
    verdicts = 2 * n_sentences * (1 + habits.natural_asked_twice) if judge else 0.0
    lists_again = n_lists * _lists_again(habits, spec)
    prompts = [spec.generate(w, p, 1, spec.n_sentences) for w in words for p in PRONOUNS]
    list_tokens = sum(map(_tokens, prompts)) / max(1, len(prompts))
    revise, verdict = _typical(spec)
    sentence = _TOKENS_A_WORD * spec.max_words
    n_input = (n_lists + lists_again) * list_tokens + revisions * revise + verdicts * verdict
    written = (n_lists + lists_again) * spec.n_sentences * (sentence + _TOKENS_A_NUMBER)
    n_output = written + revisions * sentence + verdicts * _VERDICT_TOKENS
    n_input_tokens, n_output_tokens = math.ceil(n_input), math.ceil(n_output)
    return Estimate(
        n_requests=math.ceil(n_lists + lists_again + revisions + verdicts),
        n_requests_most=_most(n_lists, spec, judge),
        n_input_tokens=n_input_tokens,
        n_output_tokens=n_output_tokens,
        cost=price.cost(n_input_tokens, n_output_tokens) if price else None,
        currency=price.currency if price else None,
    )


def _revisions(share: float, rounds: int) -> float:
    """Revisions a sentence takes, when a share of the sentences of each round needs another.

    >>> _revisions(0.5, 3)
    0.875
    """
    return sum(share**round for round in range(1, rounds + 1))


def _lists_again(habits: Habits, spec: WritingSpec) -> float:
    """Further lists that are asked for because the ones before did not do."""
    wanting = 1 - (1 - habits.lost) ** spec.n_sentences
    return sum(wanting**round for round in range(1, spec.generate_rounds))


def _most(n_lists: int, spec: WritingSpec, judge: bool) -> int:
    each_list = spec.generate_rounds * (1 + spec.n_sentences * spec.revise_rounds)
    verdicts = 2 * ROUNDS * spec.n_sentences if judge else 0
    # One of the two lists of a word is of sentences with "she", where alone a "her" can stand.
    conversions = n_lists // len(PRONOUNS) * spec.n_sentences * conversion.ROUNDS
    return n_lists * (each_list + verdicts) + conversions


def _typical(spec: WritingSpec) -> tuple[float, float]:
    """Tokens of the prompts of a revision, over all wordings, and of a verdict."""
    sentence = " ".join([_MEAN_WORD] * spec.max_words)
    turns = range(1, len(spec.prompts.revise) + 1)
    revisions = [_tokens(spec.revise(_MEAN_WORD, "she", r, sentence)) for r in turns]
    pair = PairToJudge("", _MEAN_WORD, sentence, sentence)
    judge = judgement(pair, spec.model, spec.prompts, {}).requests[0]
    return sum(revisions) / len(revisions), _tokens(judge)


def _tokens(request: Request) -> float:
    return len(request.prompt) / _CHARACTERS_A_TOKEN + FRAME_TOKENS
