"""Requests to a served model and its replies: plain values with an identity."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Purpose = Literal["generate", "revise", "convert", "judge", "perturb", "continue", "choose"]
Endpoint = Literal["chat", "completions"]
Pronoun = Literal["she", "he"]
TokenLimit = Literal["max_tokens", "max_completion_tokens"]


@dataclass(frozen=True)
class ChatModel:
    """A model as its server names it.

    Attributes:
        seed: a request's seed is this plus its round; ``None`` for servers that refuse a seed.
        token_limit: name of the parameter that bounds the reply; newer models of OpenAI need
            ``max_completion_tokens``.
    """

    name: str
    seed: int | None = 0
    token_limit: TokenLimit = "max_tokens"

    def request(
        self,
        purpose: Purpose,
        prompt: str,
        *,
        word: str,
        pronoun: str,
        round: int,
        temperature: float,
        max_tokens: int,
    ) -> Request:
        """A request to this model; ``max_tokens`` bounds the tokens of its reply."""
        parameters: dict[str, float | int] = {
            "temperature": temperature,
            self.token_limit: max_tokens,
        }
        if self.seed is not None:
            parameters["seed"] = self.seed + round
        in_order = tuple(sorted(parameters.items()))
        return Request(self.name, prompt, in_order, purpose, word, pronoun, round, max_tokens)


@dataclass(frozen=True)
class Request:
    """One completion to ask for: a single user message, its parameters and its purpose.

    Attributes:
        endpoint: `completions` continues the bare prompt, without a message around it.
        round: from 1; one more for each repeat of a question (a revision, an unclear verdict).
    """

    model: str
    prompt: str
    parameters: tuple[tuple[str, float | int], ...]
    purpose: Purpose
    word: str
    pronoun: str
    round: int
    max_tokens: int
    endpoint: Endpoint = "chat"

    @property
    def messages(self) -> list[dict[str, str]]:
        """The messages of a `chat` request."""
        return [{"role": "user", "content": self.prompt}]

    @cached_property
    def request_id(self) -> str:
        """Hash of all that identifies this request (32 hex digits).

        >>> model = ChatModel("m")
        >>> one, two = (
        ...     model.request("judge", "Is it?", word="tea", pronoun="she", round=r,
        ...                   temperature=0, max_tokens=9) for r in (1, 2))
        >>> len(one.request_id), one.request_id == two.request_id
        (32, False)
        """
        place = (self.purpose, self.word, self.pronoun, self.round)
        content = self.messages if self.endpoint == "chat" else self.prompt
        text = json.dumps([self.model, content, self.parameters, *place])
        return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Reply:
    """The reply to a request; its text is empty if the server's filter refused the request."""

    request_id: str
    text: str
    finish_reason: str | None = None
    n_output_tokens: int | None = None
