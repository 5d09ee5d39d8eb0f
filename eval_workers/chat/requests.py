"""Requests to a served model, and what comes back: a reply, or a failure. Plain values."""

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
    """The parameter ``response_format`` for a JSON object with one key."""
    schema = {
        "type": "object",
        "properties": {key: value},
        "required": [key],
        "additionalProperties": False,
    }
    return {"type": "json_schema", "json_schema": {"name": key, "strict": True, "schema": schema}}


_SENTENCE = _json_with("sentence", {"type": "string"})
#: Purpose -> the JSON form of its replies.
_FORMS: Mapping[Purpose, dict[str, Any]] = {
    "generate": _json_with("sentences", {"type": "array", "items": {"type": "string"}}),
    "revise": _SENTENCE,
    "convert": _SENTENCE,
    "judge": _json_with("verdict", {"type": "string", "enum": ["likely", "unlikely"]}),
}


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
        as_json: bool = False,
    ) -> Request:
        """A request to this model; ``max_tokens`` bounds the tokens of its reply.

        ``as_json`` asks for the JSON form of the purpose; with ``perturb``, ``continue`` and
        ``choose`` it raises ``KeyError``, as their replies are a text or a number.
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
    """One completion to ask for: a single user message, its parameters and its purpose.

    Attributes:
        endpoint: `completions` continues the bare prompt, without a message around it.
        round: from 1; one more for each repeat of a question (a revision, an unclear verdict).
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
        """Hash of all that identifies this request (32 hex digits), the form of its reply included.

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
    """The reply to a request; a number of tokens is ``None`` if the server doesn't report it.

    ``refused``: the server's content filter refused the request, and the text is empty.
    """

    request_id: str
    text: str
    finish_reason: str | None = None
    n_input_tokens: int | None = None
    n_output_tokens: int | None = None
    refused: bool = False


@dataclass(frozen=True)
class Failure:
    """An attempt without a reply.

    Attributes:
        retry: True if another attempt may succeed.
        retry_after_s: seconds to wait, if the server states them.
        charged: True if the attempt may have cost tokens, although no usable reply arrived.
        permanent: True if the request or the key has to change.
        refused: True if the server's content filter refused the request.
        status: HTTP status of the server's answer, if it gave one.
    """

    error: str
    retry: bool
    retry_after_s: float | None = None
    charged: bool = False
    permanent: bool = False
    refused: bool = False
    status: int | None = None
