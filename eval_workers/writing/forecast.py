"""What a build would take, and what it still takes: requests, tokens, money.

Tokens of a prompt are taken for a quarter of its characters and ``FRAME_TOKENS`` for what servers
put around a message; a sentence of w words for 1.4 w, and 4 for its number. Other tokenizers and
languages differ: an estimate, where ``budget.py`` holds an upper bound against the limits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from plumbline.eval_workers.chat.budget import Price, money
from plumbline.eval_workers.chat.ledger import look
from plumbline.eval_workers.chat.requests import Reply, Request
from plumbline.eval_workers.chat.spending_bar import spending
from plumbline.eval_workers.writing.build import pair_to_judge
from plumbline.eval_workers.writing.judge import ROUNDS, PairToJudge, judgement
from plumbline.eval_workers.writing.pairing import (
    CONVERSION_ROUNDS,
    Converted,
    conversion,
    fault,
    paired,
    undecided,
)
from plumbline.eval_workers.writing.prompts import differences, is_released
from plumbline.eval_workers.writing.spec import BuildSpec
from plumbline.eval_workers.writing.write import (
    PRONOUNS,
    Progress,
    Sentence,
    WritingSpec,
    progress,
)
from plumbline.warehouse.storage.store import Store

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
class Forecast:
    """Requests, tokens and cost to be expected, and the most requests that can be needed.

    ``cost`` is in ``currency``, both ``None`` without a price. Attempts that fail come on top.
    """

    n_requests: int
    n_requests_most: int
    n_input_tokens: int
    n_output_tokens: int
    cost: float | None
    currency: str | None


def forecast(
    words: Sequence[str],
    spec: WritingSpec,
    price: Price | None = None,
    habits: Habits = Habits(),
    *,
    judge: bool = True,
    judge_price: Price | None = None,
) -> Forecast:
    """What writing and judging sentences for these seed words would take from the start.

    ``judge_price`` is that of a judge of its own. Without ``judge`` nothing is judged. Conversions
    are among ``n_requests_most`` alone: rules can't tell one "her" in some hundreds.

    >>> from plumbline.eval_workers.writing.prompts import load
    >>> from plumbline.eval_workers.chat.requests import ChatModel
    >>> spec = WritingSpec(ChatModel("m"), load(), n_sentences=5, revise_rounds=2)
    >>> sure = Habits(revised=0.0, lost=0.0, natural_asked_twice=0.0)
    >>> forecast(["tea"], spec, habits=sure).n_requests  # 2 lists, 10 pairs of 2 verdicts
    22
    """
    n_lists = len(words) * len(PRONOUNS)
    n_sentences = n_lists * spec.n_sentences
    revisions = n_sentences * _revisions(habits.revised, spec.n_revisions)
    verdicts = 2 * n_sentences * (1 + habits.natural_asked_twice) if judge else 0.0
    lists_again = n_lists * _lists_again(habits, spec)
    prompts = [spec.generate(w, p, 1, spec.n_sentences) for w in words for p in PRONOUNS]
    list_tokens = sum(map(_tokens, prompts)) / max(1, len(prompts))
    revise, verdict = _typical(spec)
    sentence = _TOKENS_A_WORD * spec.max_words
    n_input = (n_lists + lists_again) * list_tokens + revisions * revise
    written = (n_lists + lists_again) * spec.n_sentences * (sentence + _TOKENS_A_NUMBER)
    of_writer = math.ceil(n_input), math.ceil(written + revisions * sentence)
    of_judge = math.ceil(verdicts * verdict), math.ceil(verdicts * _VERDICT_TOKENS)
    return Forecast(
        n_requests=math.ceil(n_lists + lists_again + revisions + verdicts),
        n_requests_most=_most(n_lists, spec, judge),
        n_input_tokens=of_writer[0] + of_judge[0],
        n_output_tokens=of_writer[1] + of_judge[1],
        cost=price.cost(*of_writer) + (judge_price or price).cost(*of_judge) if price else None,
        currency=price.currency if price else None,
    )


def planned_requests(
    store: Store | None, name: str, words: Sequence[str], spec: BuildSpec
) -> Iterator[tuple[str, str, object, str, str]]:
    """What a build would ask for and cost: subject, what, amount, unit and note of each figure."""
    writing, used = spec.writing(), spec.writing().prompts
    for role, source in used.sources:
        yield f"wording, {role}", "from", source, "", f"hash of all: {used.hash}"
    if is_released(spec.prompts):
        differ = differences(Path(spec.prompts), vars(spec))
        yield "the release", "other settings", len(differ), "", "; ".join(differ)
    of_judge = spec.judging().price()
    whole = forecast(words, writing, spec.price(), judge=spec.judge, judge_price=of_judge)
    most = f"about, at most {whole.n_requests_most:,}"
    yield name, "requests", whole.n_requests, "", most
    yield name, "tokens in", whole.n_input_tokens, "", "about"
    yield name, "tokens out", whole.n_output_tokens, "", "about"
    if whole.cost is None or whole.currency is None:
        yield name, "cost", None, "", "unknown without --prices FILE"
    else:
        yield name, "cost", money(whole.cost, whole.currency), "", "about"
    held = look(store, name) if store is not None else None
    if held is not None and held.spent.n_requests:
        left = remaining(words, writing, held.replies, judge=spec.judge)
        note = "and one more for each unclear answer"
        if not left.is_known:
            note = f"about; {left.n_written:,} of {len(words):,} words are written"
        spent = spending(held.spent, whole.currency)
        yield name, "requests in the ledger", held.spent.n_requests, "", spent
        yield name, "requests left", left.n_requests, "", note if left.n_requests else ""


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
    each_list = spec.generate_rounds * (1 + spec.n_sentences * spec.n_revisions)
    verdicts = 2 * ROUNDS * spec.n_sentences if judge else 0
    # One of the two lists of a word is of sentences with "she", where alone a "her" can stand.
    conversions = n_lists // len(PRONOUNS) * spec.n_sentences * CONVERSION_ROUNDS
    return n_lists * (each_list + verdicts) + conversions


def _typical(spec: WritingSpec) -> tuple[float, float]:
    """Tokens of the prompts of a revision, over all wordings, and of a verdict."""
    sentence = " ".join([_MEAN_WORD] * spec.max_words)
    turns = range(1, len(spec.prompts.revise) + 1)
    revisions = [_tokens(spec.revise(_MEAN_WORD, "she", r, sentence)) for r in turns]
    pair = PairToJudge("", _MEAN_WORD, sentence, sentence)
    judge = judgement(pair, spec.judge or spec.model, spec.prompts, {}).requests[0]
    return sum(revisions) / len(revisions), _tokens(judge)


def _tokens(request: Request) -> float:
    return len(request.prompt) / _CHARACTERS_A_TOKEN + FRAME_TOKENS


@dataclass(frozen=True)
class Remaining:
    """Requests left, and the seed words whose sentences are all there.

    Where that is every word (``is_known``), ``n_requests`` are the very requests that come next,
    and only unclear answers bring more; else it is an estimate.
    """

    n_written: int
    n_requests: int
    is_known: bool


def remaining(
    words: Sequence[str],
    spec: WritingSpec,
    replies: Mapping[str, Reply],
    *,
    judge: bool = True,
) -> Remaining:
    """What writing and judging sentences for these seed words would still take.

    Of a word that is begun, what comes next is known; of the rest of it only the verdicts are
    counted. A word that isn't is estimated as ``forecast`` does. Replies to anything else, such as
    other wordings, do not matter.

    >>> from plumbline.eval_workers.writing.prompts import load
    >>> from plumbline.eval_workers.chat.requests import ChatModel
    >>> spec = WritingSpec(ChatModel("m"), load(), n_sentences=5, revise_rounds=2)
    >>> remaining(["tea"], spec, {}).n_requests == forecast(["tea"], spec).n_requests
    True
    """
    habits = Habits()
    written = [progress(word, spec, replies) for word in dict.fromkeys(words)]
    fresh = [p.word for p in written if p.requests and not _is_begun(p, spec, replies)]
    begun = [p for p in written if p.requests and p.word not in fresh]
    done = [p for p in written if not p.requests]
    n = forecast(fresh, spec, judge=judge).n_requests if fresh else 0.0
    verdicts = 2 * len(PRONOUNS) * spec.n_sentences * (1 + habits.natural_asked_twice)
    n += sum(len(p.requests) + judge * verdicts for p in begun)
    n_after, is_known = _after_writing([s for p in done for s in p.kept], spec, replies, judge)
    return Remaining(len(done), math.ceil(n + n_after), is_known and not fresh and not begun)


def _is_begun(of: Progress, spec: WritingSpec, replies: Mapping[str, Reply]) -> bool:
    first = [spec.generate(of.word, pronoun, 1, spec.n_sentences) for pronoun in PRONOUNS]
    return any(request.request_id in replies for request in first)


def _after_writing(
    sentences: Sequence[Sentence], spec: WritingSpec, replies: Mapping[str, Reply], judge: bool
) -> tuple[int, bool]:
    """Conversions and verdicts that are wanting, and whether no more can come of them."""
    answers: dict[Sentence, Converted] = {
        sentence: conversion(
            sentence.text,
            word=sentence.word,
            to="he",
            model=spec.model,
            prompts=spec.prompts,
            problem=fault,
            replies=replies,
        )
        for sentence in undecided(sentences)
    }
    n_conversions = sum(answer.request is not None for answer in answers.values())
    judging = spec.judge or spec.model
    n = n_conversions * (3 if judge else 1)  # with the two verdicts on what comes of it
    for pair in paired("", sentences, answers).pairs if judge else ():
        n += len(judgement(pair_to_judge(pair), judging, spec.prompts, replies).requests)
    return n, not n_conversions
