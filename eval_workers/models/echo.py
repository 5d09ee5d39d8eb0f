"""Get the log-probabilities of a text from a completions server by asking it to echo the text.

If a request asks for an echo, a server with OpenAI's completions protocol (vLLM, SGLang and others)
returns each token of the prompt with log p(token | earlier tokens). It also generates one token,
which is dropped. (Plumbline can't ask for 0 tokens, because some servers treat 0 as no limit.)
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import ge
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from pydantic import BaseModel, Field, ValidationError

from plumbline.eval_workers.chat.client import ChatClient, ServerOptions, completion, retried
from plumbline.eval_workers.chat.requests import Failure

if TYPE_CHECKING:
    import openai

#: Parameters of each request, besides its model and prompt. Some servers apply the sampler's
#: settings to the prompt's log-probabilities, so all settings are sent.
PARAMETERS: dict[str, object] = {
    "echo": True,
    "logprobs": 1,
    "max_tokens": 1,
    "temperature": 1.0,
    "top_p": 1.0,
    "frequency_penalty": 0.0,
    "presence_penalty": 0.0,
    "repetition_penalty": 1.0,
    "repeat_penalty": 1.0,
}
#: Parameters outside OpenAI's protocol: vLLM's and llama.cpp's names for the same penalty.
NOT_OPENAI = ("repetition_penalty", "repeat_penalty")
#: A log-probability of 0 may be wrong by this much, because of rounding.
ROUNDING_NATS = 1e-6
#: The value that servers send instead of minus infinity, which JSON can't express.
LEAST_NATS = -9999.0
#: HTTP statuses of a refused prompt, such as a prompt that is too long.
_OF_THE_PROMPT = (400, 413, 422)
#: In tokens, U+FFFD stands for part of a character. U+2581 may stand for a space before a word.
_PARTIAL, _SPACE = "\ufffd", "\u2581"
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_EXCERPT = 60


class _Logprobs(BaseModel, strict=True):
    tokens: list[str] = Field(min_length=1)
    token_logprobs: list[float | None]
    top_logprobs: Any = None


class _Choice(BaseModel):
    text: str = ""
    logprobs: _Logprobs


class _Body(BaseModel):
    choices: list[_Choice] = Field(min_length=1)
    usage: dict[str, Any] | None = None


class _Entry(BaseModel):
    id: str = ""
    owned_by: str = ""


class _About(BaseModel):
    data: list[_Entry] = []
    version: str = ""


@dataclass(frozen=True)
class Echo:
    """A server's answer to a text: the tokens as the server spells them, with log-probabilities.

    Log-probabilities are in nats. A log-probability is ``None`` if the server doesn't return it.

    Attributes:
        context: tokens before the text, such as the BOS that the server or Plumbline adds.
        pieces: tokens of the text.
        logprobs_nats: log-probability of each of the ``pieces``.
        after: tokens after the text, each with its log-probability. They are EOS (if
            the server adds it) and the generated token.
        first_nats: log-probability of the first token of the answer, which may be BOS.
        tops_nats: for each position, the log-probabilities of the likeliest tokens, if requested.
        written: the generated text.
    """

    context: tuple[str, ...]
    pieces: tuple[str, ...]
    logprobs_nats: tuple[float | None, ...]
    after: tuple[tuple[str, float | None], ...]
    first_nats: float | None
    tops_nats: Sequence[Sequence[float]] = ()
    written: str = ""

    @property
    def problem(self) -> str | None:
        """What is wrong with the text's log-probabilities; ``None`` if they are valid."""
        for piece, value in zip(self.pieces, self.logprobs_nats, strict=True):
            if value is None or not LEAST_NATS < value <= ROUNDING_NATS:
                shown = "no log-probability" if value is None else f"log-probability {value:g}"
                return f"gives {shown} for the token {piece!r} within a text"
        return None


def read_echo(body: str | Failure, text: str) -> Echo | str:
    """Find the echo of ``text`` in a server's answer and return it. White space is ignored.

    If the answer has no echo of the text, return a string that says what is wrong.

    >>> echo = read_echo('{"choices": [{"text": "She ran off", "logprobs": {"tokens": ["<s>", '
    ...     '"She", "ran", "off"], "token_logprobs": [null, -2, -5, -1]}}]}', "She ran")
    >>> echo.context, echo.pieces, echo.logprobs_nats
    (('<s>',), ('She', 'ran'), (-2.0, -5.0))
    """
    if isinstance(body, Failure):
        return f"refuses to echo a prompt with log-probabilities: {body.error}"
    try:
        reply = _Body.model_validate_json(body)
    except ValidationError:
        return f"gives no log-probabilities of tokens: {body[:_EXCERPT]!r}"
    logprobs = reply.choices[0].logprobs
    tokens, values = tuple(logprobs.tokens), tuple(logprobs.token_logprobs)
    if len(tokens) != len(values):
        return f"gives {len(tokens)} tokens but {len(values)} log-probabilities"
    # Usually one token follows the text: the generated one. Two tokens follow if the server adds
    # EOS to the text. No token follows if the server generates EOS without showing it.
    is_unwritten = (reply.usage or {}).get("completion_tokens") == 0
    for n_after in (0, 1) if is_unwritten else (1, 2, 0):
        end = len(tokens) - n_after
        for start in range(min(3, end)):
            if any(not token.replace(_SPACE, " ").strip() for token in tokens[:start]):
                break  # a blank token is the space before the first word, not BOS
            if spells(tokens[start:end], text):
                after = tuple(zip(tokens[end:], values[end:], strict=True))
                tops = [_numbers(top) for top in logprobs.top_logprobs or ()]
                written = reply.choices[0].text.partition(text)[2]
                of_text = (tokens[:start], tokens[start:end], values[start:end])
                return Echo(*of_text, after, values[0], tops, written)
    seen = f"{''.join(tokens)[:_EXCERPT]!r} for {text[:_EXCERPT]!r}"
    return f"gives tokens that don't make up the text: {seen}"


def _numbers(top: Any) -> list[float]:
    values = top.values() if isinstance(top, dict) else ()
    return [value for value in values if type(value) in (int, float) and math.isfinite(value)]


def spells(pieces: Sequence[str], text: str) -> bool:
    """Return True if the joined tokens equal the text, except for white space.

    A server returns U+FFFD for a token that is only part of a character. If there is such a token,
    only the ASCII characters must be equal. Each run of other characters must be at least as long
    in the tokens as in the text.

    >>> spells(["The", "\u2581nurse"], "The nurse"), spells(["The"], "The nurse")
    (True, False)
    >>> spells(["caf", "\\ufffd", "\\ufffd"], "caf\u00e9"), spells(["caf", "\\ufffd"], "cafe")
    (True, False)
    """
    spelled = "".join("".join(pieces).replace(_SPACE, " ").split())
    expected = "".join(text.split())
    if _PARTIAL not in spelled:
        return spelled == expected
    (ascii_, parts), (wanted, characters) = (
        (_NOT_ASCII.split(s), _NOT_ASCII.findall(s)) for s in (spelled, expected)
    )
    return ascii_ == wanted and all(map(ge, map(len, parts), map(len, characters)))


@dataclass(frozen=True)
class EchoServer:
    """A server that echoes prompts. Requests name the ``model`` that should process them.

    ``sent`` is the string to put before each text: BOS, or "" if the server adds BOS itself.
    ``parameters`` are sent with each request.
    """

    model: str
    server: ServerOptions
    sent: str = ""
    parameters: dict[str, object] = field(default_factory=PARAMETERS.copy)

    def bodies(self, texts: Sequence[str], **changes: object) -> list[str | Failure]:
        """Return the server's answer to each text, in the order given.

        If the server refuses a text, the answer is a ``Failure``. ``changes`` override values of
        ``parameters``. ``self.server`` has the settings for concurrency and retries.

        Raises ``BadInput`` if a request is refused for a reason other than its prompt, and
        ``Interrupted`` if the server doesn't answer. Also raises the errors of ``ChatClient``
        (``UsageProblem``, ``MissingComponent``).
        """
        return asyncio.run(self._bodies(texts, self.parameters | changes)) if texts else []

    def echoes(self, texts: Sequence[str], **changes: object) -> list[Echo | str]:
        """Return the echo of each text, or a string that says what the server does wrong."""
        answers = zip(self.bodies(texts, **changes), texts, strict=True)
        return [read_echo(body, text) for body, text in answers]

    def software(self) -> str:
        """Return the name and version of the server's software, or an empty string if unknown."""
        return asyncio.run(self._software())

    async def _bodies(
        self, texts: Sequence[str], parameters: dict[str, object]
    ) -> list[str | Failure]:
        slots = asyncio.Semaphore(self.server.concurrency)

        async def answer(text: str) -> str | Failure:
            prompt = self.sent + text
            call = partial(completion, model=self.model, prompt=prompt, parameters=parameters)

            async def attempt() -> tuple[str | Failure] | Failure:
                body = await client.body(call)
                if isinstance(body, Failure) and body.status not in _OF_THE_PROMPT:
                    return body
                return (body,)

            async with slots:
                (body,) = await retried(attempt, self.server.base_url, asyncio.Event())
                return body

        async with ChatClient(self.server) as client:
            return await asyncio.gather(*map(answer, texts))

    async def _software(self) -> str:
        async with ChatClient(self.server) as client:

            async def page(path: str) -> _About:
                body = await client.body(partial(_read, path=path))
                try:
                    return _About.model_validate_json(body if isinstance(body, str) else "{}")
                except ValidationError:
                    return _About()

            entries = (await page("models")).data
            owners = [entry.owned_by for entry in entries if entry.id == self.model]
            version = (await page("/version")).version
            return " ".join(map(client.clean, filter(None, [*owners[:1], version])))


async def _read(client: openai.AsyncOpenAI, path: str) -> str:
    """Return a page of the server. ``path`` is relative to the base URL or starts with `/`."""
    import httpx2

    url = urljoin(str(client.base_url), path)
    return str((await client.get(url, cast_to=httpx2.Response)).text)
