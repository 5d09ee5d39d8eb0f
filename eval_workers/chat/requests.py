"""Requests to a served model, and their outcomes (a reply or a failure), as plain values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

Purpose = Literal["generate", "revise", "convert", "judge", "perturb", "continue", "choose"]
Endpoint = Literal["chat", "completions"]
Pronoun = Literal["she", "he"]
TokenLimit = Literal["max_tokens", "max_completion_tokens"]


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
    """A model, known by the name that its server uses.

    Attributes:
        seed: added to a request's round to make its seed; ``None`` if the server refuses seeds.
        token_limit: name of the parameter that limits a reply's tokens. OpenAI's newer models need
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
        as_json: bool = False,
    ) -> Request:
        """Return a request to this model. The reply has at most ``max_tokens`` tokens.

        ``as_json`` asks for a reply in the purpose's JSON form. The purposes ``perturb``,
        ``continue`` and ``choose`` have no JSON form, so ``as_json`` raises ``KeyError``.
        """
        parameters: dict[str, Any] = {"temperature": temperature, self.token_limit: max_tokens}
        if self.seed is not None:
            parameters["seed"] = self.seed + round
        if as_json:
            parameters["response_format"] = _FORMS[purpose]
        in_order = tuple(sorted(parameters.items()))
        return Request(self.name, prompt, in_order, purpose, word, pronoun, round, max_tokens)


@dataclass(frozen=True)
class Request:
    """A request for one completion: a single user message, its parameters and its purpose.

    Attributes:
        endpoint: `completions` continues the bare prompt, without a message around it.
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
        """The messages of a `chat` request."""
        return [{"role": "user", "content": self.prompt}]

    @cached_property
    def request_id(self) -> str:
        """A hash of all that identifies this request (32 hex digits), including the reply's form.

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
        permanent: True if the request or the key has to change.
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
