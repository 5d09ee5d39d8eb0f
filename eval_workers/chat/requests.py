"""Requests to a model on a server, their costs, and their outcomes (a reply or a failure)."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

Purpose = Literal["generate", "revise", "convert", "judge", "perturb", "continue", "choose"]
Endpoint = Literal["chat", "completions"]
Pronoun = Literal["she", "he"]
TokenLimit = Literal["max_tokens", "max_completion_tokens"]
#: How many tokens a server is assumed to add to a message, for roles and a system prompt.
FRAME_TOKENS = 64


def expected_tokens(prompt: str) -> int:
    """Estimate the tokens of an English prompt, including the tokens that a server adds."""
    return 8 + math.ceil(len(prompt) / 4)


@dataclass(frozen=True)
class Spent:
    """The cost of attempts: a number of requests, and a number of tokens (prompts and replies).

    >>> str(Spent(3, 1200))
    '3 requests, 1,200 tokens'
    """

    n_requests: int = 0
    n_tokens: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.n_requests + other.n_requests, self.n_tokens + other.n_tokens)

    def __str__(self) -> str:
        return f"{self.n_requests:,} requests, {self.n_tokens:,} tokens"

    def excess(self, max_requests: int | None, max_tokens: int | None) -> str | None:
        """Return the limit that this cost exceeds, such as `9 requests`, or ``None``."""
        if max_requests is not None and self.n_requests > max_requests:
            return f"{max_requests} requests"
        if max_tokens is not None and self.n_tokens > max_tokens:
            return f"{max_tokens} tokens"
        return None


def _json_with(key: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameter ``response_format`` that asks for a JSON object with one key."""
    schema = {
        "type": "object",
        "properties": {key: value},
        "required": [key],
        "additionalProperties": False,
    }
    return {"type": "json_schema", "json_schema": {"name": key, "strict": True, "schema": schema}}


_SENTENCE = _json_with("sentence", {"type": "string"})
#: Purpose -> the JSON form that its replies should have.
_FORMS: Mapping[Purpose, dict[str, Any]] = {
    "generate": _json_with("sentences", {"type": "array", "items": {"type": "string"}}),
    "revise": _SENTENCE,
    "convert": _SENTENCE,
    "judge": _json_with("verdict", {"type": "string", "enum": ["likely", "unlikely"]}),
}


@dataclass(frozen=True)
class ChatModel:
    """A model on a server. ``name`` is the name that the server uses.

    Attributes:
        seed: a request's seed is this number plus the request's ``round``. ``None`` sends no seed.
        token_limit: name of the parameter that limits a reply's tokens. OpenAI's newer models need
            ``max_completion_tokens``.
        endpoint: `chat` sends a prompt as a user's message, `completions` as a text to continue.
    """

    name: str
    seed: int | None = 0
    token_limit: TokenLimit = "max_tokens"
    endpoint: Endpoint = "chat"

    def request(
        self,
        purpose: Purpose,
        prompt: str,
        *,
        word: str,
        pronoun: str,
        round: int,
        max_tokens: int,
        as_json: bool = False,
        **parameters: Any,
    ) -> Request:
        """Return a request to this model. The reply has at most ``max_tokens`` tokens.

        ``parameters``, such as a temperature, are sent unchanged. ``as_json`` asks for a reply in
        the purpose's JSON form. The purposes ``perturb``, ``continue`` and ``choose`` have no JSON
        form. For these, ``as_json`` raises ``KeyError``.
        """
        parameters[self.token_limit] = max_tokens
        if self.seed is not None:
            parameters["seed"] = self.seed + round
        if as_json:
            parameters["response_format"] = _FORMS[purpose]
        in_order = tuple(sorted(parameters.items()))
        place = purpose, word, pronoun, round
        return Request(self.name, prompt, in_order, *place, max_tokens, self.endpoint)


@dataclass(frozen=True)
class Request:
    """A request for one completion: the prompt, the parameters and the purpose.

    Attributes:
        endpoint: see ``ChatModel``.
        round: starts at 1 and grows by 1 each time a question is repeated (for a revision, or
            after an unclear verdict).
    """

    model: str
    prompt: str
    parameters: tuple[tuple[str, Any], ...]
    purpose: Purpose
    word: str
    pronoun: str
    round: int
    max_tokens: int
    endpoint: Endpoint = "chat"

    @property
    def messages(self) -> list[dict[str, str]]:
        return [{"role": "user", "content": self.prompt}]

    @cached_property
    def request_id(self) -> str:
        """A hash (32 hex digits) of everything that can change the reply, and of the purpose.

        >>> model = ChatModel("m")
        >>> one, two = (
        ...     model.request("judge", "Is it?", word="tea", pronoun="she", round=1, as_json=form,
        ...                   temperature=0, max_tokens=9) for form in (False, True))
        >>> len(one.request_id), one.request_id == two.request_id
        (32, False)
        """
        place = (self.purpose, self.word, self.pronoun, self.round)
        content = self.messages if self.endpoint == "chat" else self.prompt
        text = json.dumps([self.model, content, self.parameters, *place])
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @property
    def most(self) -> Spent:
        """The largest possible cost of one attempt.

        It is one token per byte of the prompt, plus ``FRAME_TOKENS``, plus the longest reply.

        >>> ChatModel("m").request("judge", "Is it?", word="tea", pronoun="she", round=1,
        ...                        temperature=0, max_tokens=30).most
        Spent(n_requests=1, n_tokens=100)
        """
        n_input = len(self.prompt.encode("utf-8", "replace")) + FRAME_TOKENS
        return Spent(1, n_input + self.max_tokens)


@dataclass(frozen=True)
class Reply:
    """The reply to a request. Numbers of tokens are ``None`` if the server doesn't report them.

    ``refused`` means that the server's content filter refused the request. The text is then empty.
    """

    request_id: str
    text: str
    finish_reason: str | None = None
    n_input_tokens: int | None = None
    n_output_tokens: int | None = None
    refused: bool = False


@dataclass(frozen=True)
class Failure:
    """The outcome of an attempt that got no usable reply.

    Attributes:
        retry: True if another attempt may succeed.
        retry_after_s: seconds to wait, or ``None`` if the server doesn't say how long.
        charged: True if the attempt may have cost tokens, although no usable reply arrived.
        permanent: True if no attempt can succeed until the request or the key changes.
        refused: True if the server's content filter refused the request.
        status: HTTP status of the server's answer, or ``None`` without an answer.
    """

    error: str
    retry: bool
    retry_after_s: float | None = None
    charged: bool = False
    permanent: bool = False
    refused: bool = False
    status: int | None = None
