"""Estimates of the requests, tokens and money that a build needs, in all or from now on.

A prompt counts as one token per four characters, plus ``FRAME_TOKENS`` for the tokens that servers
put around a message. A sentence of w words counts as 1.4 w tokens, plus 4 for its number. As
tokenizers and languages differ, ``budget.py`` compares an upper bound with the limits instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from plumbline.eval_workers.chat.budget import Price, money
from plumbline.eval_workers.chat.chat_session import spending
from plumbline.eval_workers.chat.ledger import look
from plumbline.eval_workers.chat.requests import Reply, Request
from plumbline.eval_workers.writing.build_spec import BuildSpec
from plumbline.eval_workers.writing.judge import ROUNDS, judgement
from plumbline.eval_workers.writing.pairing import (
    CONVERSION_ROUNDS,
    conversion,
    paired,
    undecided,
)
from plumbline.eval_workers.writing.wordings import differences, is_released
from plumbline.eval_workers.writing.written_sentences import (
    PRONOUNS,
    WritingSpec,
    WrittenSentence,
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
    """Assumptions about the model.

    Attributes:
        revised: share of sentences, and of revisions, that lack the word or the pronoun.
        lost: share of sentences that are rejected for good.
        natural_asked_twice: share of verdicts that are unclear and requested again.
    """

    revised: float = 0.25
    lost: float = 0.1
    natural_asked_twice: float = 0.05


@dataclass(frozen=True)
class Forecast:
    """Expected requests, tokens and cost, and the most requests that can be needed.

    ``cost`` is in ``currency``; both are ``None`` without a price. Failed attempts are not
    included.
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
    """Estimate the requests, tokens and cost of a whole build for these seed words.

    ``judge_price`` is the price of a separate judge. Without ``judge`` nothing is judged.
    Conversions count only in ``n_requests_most``, since rules decide nearly every "her".

    >>> from plumbline.eval_workers.writing.wordings import load
    >>> from plumbline.eval_workers.chat.requests import ChatModel
    >>> spec = WritingSpec(ChatModel("m"), load(), n_sentences=5, revise_rounds=2)
    >>> sure = Habits(revised=0.0, lost=0.0, natural_asked_twice=0.0)
    >>> forecast(["tea"], spec, habits=sure).n_requests  # 2 lists, 10 pairs of 2 verdicts
    22
    """
    n_lists = len(words) * len(PRONOUNS)
    n_sentences = n_lists * spec.n_sentences
    revisions = n_sentences * _repeats(habits.revised, spec.n_revisions)
    verdicts = 2 * n_sentences * (1 + habits.natural_asked_twice) if judge else 0.0
    incomplete = 1 - (1 - habits.lost) ** spec.n_sentences  # share of lists asked for again
    lists_again = n_lists * _repeats(incomplete, spec.generate_rounds - 1)
    prompts = [spec.generate(w, p, 1, spec.n_sentences) for w in words for p in PRONOUNS]
    list_tokens = sum(map(_tokens, prompts)) / max(1, len(prompts))
    revise, verdict = _typical(spec)
    sentence = _TOKENS_A_WORD * spec.max_words
    n_input = (n_lists + lists_again) * list_tokens + revisions * revise
    written = (n_lists + lists_again) * spec.n_sentences * (sentence + _TOKENS_A_NUMBER)
    to_write = math.ceil(n_input), math.ceil(written + revisions * sentence)
    to_judge = math.ceil(verdicts * verdict), math.ceil(verdicts * _VERDICT_TOKENS)
    return Forecast(
        n_requests=math.ceil(n_lists + lists_again + revisions + verdicts),
        n_requests_most=_most(n_lists, spec, judge),
        n_input_tokens=to_write[0] + to_judge[0],
        n_output_tokens=to_write[1] + to_judge[1],
        cost=price.cost(*to_write) + (judge_price or price).cost(*to_judge) if price else None,
        currency=price.currency if price else None,
    )


def planned_requests(
    store: Store | None, name: str, words: Sequence[str], spec: BuildSpec
) -> Iterator[tuple[str, str, object, str, str]]:
    """Figures of a build's plan, each with subject, name, amount, unit and note."""
    writing = spec.writing()
    for role, source in writing.prompts.sources:
        yield f"wording, {role}", "from", source, "", f"hash of all: {writing.prompts.hash}"
    if is_released(spec.prompts):
        differ = differences(Path(spec.prompts), vars(spec))
        yield "the release", "other settings", len(differ), "", "; ".join(differ)
    judge_price = spec.judging().price()
    whole = forecast(words, writing, spec.price(), judge=spec.judge, judge_price=judge_price)
    yield name, "requests", whole.n_requests, "", f"about, at most {whole.n_requests_most:,}"
    yield name, "tokens in", whole.n_input_tokens, "", "about"
    yield name, "tokens out", whole.n_output_tokens, "", "about"
    if whole.cost is None or whole.currency is None:
        yield name, "cost", None, "", "unknown without --prices FILE"
    else:
        yield name, "cost", money(whole.cost, whole.currency), "", "about"
    ledger = look(store, name) if store is not None else None
    if ledger is not None and ledger.spent.n_requests:
        left = remaining(words, writing, ledger.replies, judge=spec.judge)
        note = "and one more for each unclear answer"
        if not left.is_known:
            note = f"about; {left.n_written:,} of {len(words):,} words are written"
        spent = spending(ledger.spent, whole.currency)
        yield name, "requests in the ledger", ledger.spent.n_requests, "", spent
        yield name, "requests left", left.n_requests, "", note if left.n_requests else ""


def _repeats(share: float, rounds: int) -> float:
    """Mean number of repeats of a request if each round repeats ``share`` of the previous round's.

    >>> _repeats(0.5, 3)
    0.875
    """
    return sum(share**round for round in range(1, rounds + 1))


def _most(n_lists: int, spec: WritingSpec, judge: bool) -> int:
    each_list = spec.generate_rounds * (1 + spec.n_sentences * spec.n_revisions)
    verdicts = 2 * ROUNDS * spec.n_sentences if judge else 0
    # Only sentences with "she", one of a word's two lists, can have a "her" to convert.
    conversions = n_lists // len(PRONOUNS) * spec.n_sentences * CONVERSION_ROUNDS
    return n_lists * (each_list + verdicts) + conversions


def _typical(spec: WritingSpec) -> tuple[float, float]:
    """Mean tokens of the prompts that ask for a revision, and tokens of one that asks to judge."""
    sentence = " ".join([_MEAN_WORD] * spec.max_words)
    rounds = range(1, len(spec.prompts.revise) + 1)
    revisions = [_tokens(spec.revise(_MEAN_WORD, "she", r, sentence)) for r in rounds]
    pair = {"word": _MEAN_WORD, "sentence_a": sentence, "sentence_b": sentence}
    request = judgement(pair, spec.judge or spec.model, spec.prompts, {}).requests[0]
    return sum(revisions) / len(revisions), _tokens(request)


def _tokens(request: Request) -> float:
    return len(request.prompt) / _CHARACTERS_A_TOKEN + FRAME_TOKENS


@dataclass(frozen=True)
class Remaining:
    """Number of requests left, and of seed words whose sentences are all written.

    ``is_known`` is true if all words are written and all conversions made. ``n_requests`` is then
    exact, apart from one more request for each unclear answer; else it is an estimate.
    """

    n_written: int
    n_requests: int
    is_known: bool


def remaining(
    words: Sequence[str], spec: WritingSpec, replies: Mapping[str, Reply], *, judge: bool = True
) -> Remaining:
    """Estimate the requests still needed to write and judge sentences for these seed words.

    A word with some replies counts with its next requests and all its verdicts; ``forecast``
    estimates words without replies. Replies to other requests, as with other wordings, are ignored.

    >>> from plumbline.eval_workers.writing.wordings import load
    >>> from plumbline.eval_workers.chat.requests import ChatModel
    >>> spec = WritingSpec(ChatModel("m"), load(), n_sentences=5, revise_rounds=2)
    >>> remaining(["tea"], spec, {}).n_requests == forecast(["tea"], spec).n_requests
    True
    """
    fresh: list[str] = []
    kept: list[WrittenSentence] = []
    n_written = n_begun = 0
    n = 0.0
    verdicts = 2 * len(PRONOUNS) * spec.n_sentences * (1 + Habits().natural_asked_twice)
    for word in dict.fromkeys(words):
        state = progress(word, spec, replies)
        first = [spec.generate(word, pronoun, 1, spec.n_sentences) for pronoun in PRONOUNS]
        if not state.requests:
            n_written += 1
            kept += state.kept
        elif any(request.request_id in replies for request in first):
            n_begun += 1
            n += len(state.requests) + judge * verdicts
        else:
            fresh.append(word)
    n += forecast(fresh, spec, judge=judge).n_requests if fresh else 0
    n_after, is_known = _after_writing(kept, spec, replies, judge)
    return Remaining(n_written, math.ceil(n + n_after), is_known and not fresh and not n_begun)


def _after_writing(
    sentences: Sequence[WrittenSentence],
    spec: WritingSpec,
    replies: Mapping[str, Reply],
    judge: bool,
) -> tuple[int, bool]:
    """Number of missing conversions and verdicts, and True if no conversion is missing."""
    answers = {
        sentence: conversion(sentence, spec.model, spec.prompts, replies)
        for sentence in undecided(sentences)
    }
    n_conversions = sum(len(answer.requests) for answer in answers.values())
    n = n_conversions * (3 if judge else 1)  # a conversion, and two verdicts on its pair
    for pair in paired("", sentences, answers).pairs if judge else ():
        n += len(judgement(pair, spec.judge or spec.model, spec.prompts, replies).requests)
    return n, not n_conversions
