"""Whether both sides of a pair read as natural sentences, in the model's opinion.

Each side is judged at temperature 0; an unclear answer is asked for once more, with the next
wording. A pair is kept when both sides are likely. Pure, like ``write.progress``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from plumbline.eval_workers.chat.replies import verdict
from plumbline.eval_workers.chat.requests import ChatModel, Pronoun, Reply, Request
from plumbline.eval_workers.writing.prompts import Prompts, fill_prompt

#: Times a side is asked about.
ROUNDS = 2
_TOKENS = 64


@dataclass(frozen=True)
class PairToJudge:
    """The two sentences of a pair, and the seed word they were written for."""

    pair_id: str
    word: str
    sentence_a: str
    sentence_b: str


@dataclass(frozen=True)
class Judged:
    """How far a pair is; it is done when there are no ``requests``.

    ``likely_f`` and ``likely_m`` are ``None`` while unasked, and when the answers are unclear.
    ``reason`` says why a pair is dropped; it is empty for one that is kept.
    """

    pair_id: str
    requests: tuple[Request, ...]
    likely_f: bool | None
    likely_m: bool | None
    reason: str = ""

    @property
    def is_natural(self) -> bool:
        """Whether both sides are likely."""
        return self.likely_f is True and self.likely_m is True


def judgement(
    pair: PairToJudge, model: ChatModel, prompts: Prompts, replies: Mapping[str, Reply]
) -> Judged:
    """What is to be asked next about a pair, and what is settled, given the replies so far."""
    sides: tuple[tuple[Pronoun, str], ...] = (("she", pair.sentence_a), ("he", pair.sentence_b))
    missing, likely = [], []
    for pronoun, sentence in sides:
        request, answer = _side(pair.word, pronoun, sentence, model, prompts, replies)
        missing += [request] if request else []
        likely.append(answer)
    if missing:
        return Judged(pair.pair_id, tuple(missing), likely[0], likely[1])
    return Judged(pair.pair_id, (), likely[0], likely[1], _reason(likely[0], likely[1]))


def _side(
    word: str,
    pronoun: Pronoun,
    sentence: str,
    model: ChatModel,
    prompts: Prompts,
    replies: Mapping[str, Reply],
) -> tuple[Request | None, bool | None]:
    for round in range(1, ROUNDS + 1):
        wording = prompts.judge[(round - 1) % len(prompts.judge)]
        request = model.request(
            "judge",
            fill_prompt(wording, sentence=sentence),
            word=word,
            pronoun=pronoun,
            round=round,
            temperature=0,
            max_tokens=_TOKENS,
        )
        reply = replies.get(request.request_id)
        if reply is None:
            return request, None
        answer = verdict(reply.text)
        if answer is not None:
            return None, answer
    return None, None


def _reason(likely_f: bool | None, likely_m: bool | None) -> str:
    """Why a pair is dropped.

    >>> _reason(True, False), _reason(None, True), _reason(True, True)
    ('the he side is unlikely', 'the answers about the she side are unclear', '')
    """
    sides = (("she", likely_f), ("he", likely_m))
    for side, likely in sides:
        if likely is False:
            return f"the {side} side is unlikely"
    for side, likely in sides:
        if likely is None:
            return f"the answers about the {side} side are unclear"
    return ""
