"""Changing the pronouns of a sentence by the model, where rules can't decide. Pure.

What is a valid conversion is decided by the caller, such as that nothing but pronouns changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from plumbline.eval_workers.generation.parse import sentences
from plumbline.eval_workers.generation.prompts import Prompts, fill
from plumbline.eval_workers.generation.requests import ChatModel, Pronoun, Reply, Request

#: Times a conversion is asked for; the first at temperature 0.
ROUNDS = 3
_TOKENS_A_CHARACTER, _TOKENS_OF_TALK = 1, 64

#: Given the original and the converted sentence: what is wrong with the latter, or ``None``.
Problem = Callable[[str, str], str | None]


@dataclass(frozen=True)
class Converted:
    """How far a sentence is: ``request`` is to be asked, or there is a ``sentence``, or neither.

    With neither, ``reason`` says what was wrong with the last answer.
    """

    request: Request | None
    sentence: str | None
    reason: str = ""


def conversion(
    sentence: str,
    *,
    word: str,
    to: Pronoun,
    model: ChatModel,
    prompts: Prompts,
    problem: Problem,
    replies: Mapping[str, Reply],
) -> Converted:
    """What is to be asked next to change a sentence's pronouns to those of ``to``.

    An answer that ``problem`` finds fault with, or that holds no sentence, is asked for again.
    """
    reason = ""
    for round in range(1, ROUNDS + 1):
        request = model.request(
            "convert",
            fill(prompts.convert, sentence=sentence, pronoun=to),
            word=word,
            pronoun=to,
            round=round,
            temperature=0 if round == 1 else 0.7,
            max_tokens=len(sentence) * _TOKENS_A_CHARACTER + _TOKENS_OF_TALK,
        )
        reply = replies.get(request.request_id)
        if reply is None:
            return Converted(request, None)
        found = sentences(reply.text)
        if not found:
            reason = "the reply holds no sentence"
        elif fault := problem(sentence, found[0]):
            reason = fault
        else:
            return Converted(None, found[0])
    return Converted(None, None, reason)
