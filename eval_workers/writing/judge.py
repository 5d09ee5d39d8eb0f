"""A chat model's verdicts on whether both sides of a pair are natural sentences. Pure.

The temperature is 0; after an unclear answer the question is sent once more, with the next wording.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from plumbline.eval_workers.chat.replies import verdict
from plumbline.eval_workers.chat.requests import ChatModel, Reply, Request
from plumbline.eval_workers.writing.wordings import Wordings, fill_prompt

#: Most requests about one side of a pair.
ROUNDS = 2
_TOKENS = 64


@dataclass(frozen=True)
class Judged:
    """State of a pair: done without ``requests``, and natural if there is no ``reason`` either."""

    requests: tuple[Request, ...]
    reason: str = ""

    @property
    def is_natural(self) -> bool:
        """True if the pair is done and both sides are likely."""
        return not self.requests and not self.reason


def judgement(
    pair: Mapping[str, object], model: ChatModel, prompts: Wordings, replies: Mapping[str, Reply]
) -> Judged:
    """Next requests or the verdict for a row of ``benchmark_pair``, given the replies so far."""
    missing: list[Request] = []
    likely: dict[str, bool | None] = {}
    for pronoun, column in (("she", "sentence_a"), ("he", "sentence_b")):
        answer = _side(str(pair["word"]), pronoun, str(pair[column]), model, prompts, replies)
        if isinstance(answer, Request):
            missing.append(answer)
        else:
            likely[pronoun] = answer
    return Judged(tuple(missing)) if missing else Judged((), _reason(likely))


def _side(
    word: str,
    pronoun: str,
    sentence: str,
    model: ChatModel,
    prompts: Wordings,
    replies: Mapping[str, Reply],
) -> Request | bool | None:
    """The next request about a side, or the verdict; ``None`` if all answers are unclear."""
    for round in range(1, ROUNDS + 1):
        request = model.request(
            "judge",
            fill_prompt(prompts.judge[(round - 1) % len(prompts.judge)], sentence=sentence),
            word=word,
            pronoun=pronoun,
            round=round,
            temperature=0,
            max_tokens=_TOKENS,
        )
        reply = replies.get(request.request_id)
        if reply is None:
            return request
        answer = verdict(reply.text)
        if answer is not None:
            return answer
    return None


def _reason(likely: Mapping[str, bool | None]) -> str:
    """Reason why a pair isn't natural; empty if both sides are likely.

    >>> _reason({"she": True, "he": False}), _reason({"she": None, "he": True})
    ('the he side is unlikely', 'the answers about the she side are unclear')
    """
    for side, is_likely in likely.items():
        if is_likely is False:
            return f"the {side} side is unlikely"
    for side, is_likely in likely.items():
        if is_likely is None:
            return f"the answers about the {side} side are unclear"
    return ""
