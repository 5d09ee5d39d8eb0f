"""What is still to be asked for a build, given the replies that are there. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plumbline.eval_workers.generation.build import pair_to_judge
from plumbline.eval_workers.generation.conversion import Converted, conversion
from plumbline.eval_workers.generation.estimate import Habits, estimate
from plumbline.eval_workers.generation.judge import judgement
from plumbline.eval_workers.generation.pairing import fault, paired, undecided
from plumbline.eval_workers.generation.requests import Reply
from plumbline.eval_workers.generation.write import (
    PRONOUNS,
    Progress,
    Sentence,
    WritingSpec,
    progress,
)


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
    counted. A word that isn't is estimated as ``estimate`` does. Replies to anything else, such as
    other wordings, do not matter.

    >>> from plumbline.eval_workers.generation.prompts import load
    >>> from plumbline.eval_workers.generation.requests import ChatModel
    >>> spec = WritingSpec(ChatModel("m"), load(), n_sentences=5, revise_rounds=2)
    >>> remaining(["tea"], spec, {}).n_requests == estimate(["tea"], spec).n_requests
    True
    """
    habits = Habits()
    written = [progress(word, spec, replies) for word in dict.fromkeys(words)]
    fresh = [p.word for p in written if p.requests and not _is_begun(p, spec, replies)]
    begun = [p for p in written if p.requests and p.word not in fresh]
    done = [p for p in written if not p.requests]
    n = estimate(fresh, spec, judge=judge).n_requests if fresh else 0.0
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
    n = n_conversions * (3 if judge else 1)  # with the two verdicts on what comes of it
    for pair in paired("", sentences, answers).pairs if judge else ():
        n += len(judgement(pair_to_judge(pair), spec.model, spec.prompts, replies).requests)
    return n, not n_conversions
