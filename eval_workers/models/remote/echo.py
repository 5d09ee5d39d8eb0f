"""Log-probabilities of a given text by echo: requests to a completions server and its answers.

If a request asks for an echo, a server of OpenAI's completions protocol (vLLM, SGLang and others)
returns each token of the prompt with log p(token | earlier tokens). It also generates one token,
which is dropped: some servers take a limit of 0 tokens for no limit.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from plumbline.eval_workers.chat.client import ChatClient, Server, completion
from plumbline.eval_workers.chat.requests import Failure
from plumbline.eval_workers.chat.retries import retried
from plumbline.eval_workers.models.scoring_contract import as_nats

if TYPE_CHECKING:
    import openai

#: Parameters of each request, besides its model and prompt. Some servers apply their sampler's
#: settings to the prompt's log-probabilities, so all are sent.
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
#: Those that OpenAI's protocol lacks: vLLM's and llama.cpp's name of one penalty.
NOT_OPENAI = ("repetition_penalty", "repeat_penalty")
#: Statuses for a refused prompt, such as one that is too long; other prompts may be accepted.
_OF_THE_PROMPT = (400, 413, 422)
#: Spelling of a byte in tokens that are only a part of a character.
_BYTES = re.compile(r"\\x([0-9a-fA-F]{2})")
_PARTIAL = "\ufffd"
#: Spelling of the space before a word in some tokenizers.
_SPACE = "\u2581"
_EXCERPT = 60


class EchoFault(Exception):
    """A reply is not an echo with log-probabilities; the text describes it in one line."""


class _PromptRefused(Exception):
    def __init__(self, failure: Failure) -> None:
        self.failure = failure


@dataclass(frozen=True)
class Echo:
    """A prompt's tokens as a server returns them, and log p of each (nats; ``None`` if missing).

    The first ``n_context`` tokens come before the text: BOS, added by the server or by Plumbline.
    The last ``n_after`` come after it: EOS that the server adds, and the generated token.

    ``tops_nats``: for each token, log p of the likeliest ones at its place, if the server sends
    them. ``written``: the generated text.
    """

    pieces: tuple[str, ...]
    logprobs_nats: tuple[float | None, ...]
    n_context: int
    n_after: int = 0
    tops_nats: tuple[tuple[float, ...], ...] = ()
    written: str = ""

    @property
    def context(self) -> tuple[str, ...]:
        """Tokens before the text."""
        return self.pieces[: self.n_context]

    @property
    def text_pieces(self) -> tuple[str, ...]:
        """Tokens of the text."""
        return self.pieces[self.n_context : len(self.pieces) - self.n_after]

    @property
    def after(self) -> tuple[str, ...]:
        """Tokens after the text."""
        return self.pieces[len(self.pieces) - self.n_after :]

    @property
    def text_logprobs_nats(self) -> tuple[float | None, ...]:
        """Log-probabilities of the text's tokens."""
        return self.logprobs_nats[self.n_context : len(self.pieces) - self.n_after]


def read_echo(body: str, text: str) -> Echo:
    """The echo of ``text`` in a reply, perhaps after BOS; white space is not compared.

    Raises ``EchoFault`` for anything else, such as log-probabilities of generated text.

    >>> logprobs = {"tokens": ["<s>", "She", "ran", "off"], "token_logprobs": [None, -2, -5, -1]}
    >>> body = json.dumps({"choices": [{"text": "She ran off", "logprobs": logprobs}]})
    >>> echo = read_echo(body, "She ran")
    >>> echo.context, echo.text_pieces, echo.text_logprobs_nats
    (('<s>',), ('She', 'ran'), (-2.0, -5.0))
    """
    content = _object(body)
    tokens, values, tops = _tokens(content)
    usage = content.get("usage")
    n_usage = usage.get("completion_tokens") if isinstance(usage, dict) else None
    # A server that adds BOS may add EOS too: one more token after the text. One that generates EOS
    # may count it and not show it: one token less.
    for n in [0, 1] if n_usage == 0 else [1, 2, 0]:
        echoed = tokens[: len(tokens) - n]
        for start in range(3):
            if any(not token.replace(_SPACE, " ").strip() for token in echoed[:start]):
                break  # the space before the first word, not BOS
            if start < len(echoed) and spells(echoed[start:], text):
                written = _text(content).partition(text)[2]
                return Echo(tuple(tokens), tuple(values), start, n, tops, written)
    if len(tokens) <= 1:
        raise EchoFault(f"gives log-probabilities of generated tokens only: {_short(tokens)}")
    seen = f"{_short(tokens)} for {text[:_EXCERPT]!r}"
    raise EchoFault(f"gives tokens that don't make up the text: {seen}")


def _object(body: str) -> dict[str, Any]:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise EchoFault(f"gives no JSON object: {body[:_EXCERPT]!r}")
    return content


def _text(content: dict[str, Any]) -> str:
    text = content["choices"][0].get("text")
    return text if isinstance(text, str) else ""


def _tokens(
    content: dict[str, Any],
) -> tuple[list[str], list[float | None], tuple[tuple[float, ...], ...]]:
    """Tokens and their log-probabilities (nats), the generated tokens included, and ``tops_nats``.

    The likeliest tokens are empty where the server sends none, or something else.
    """
    choices = content.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    logprobs = choice.get("logprobs") if isinstance(choice, dict) else None
    if not isinstance(logprobs, dict) or not logprobs:
        raise EchoFault("gives no log-probabilities")
    columns: Iterator[Any]
    if isinstance(entries := logprobs.get("content"), list):  # the form of chats
        rows = [entry if isinstance(entry, dict) else {} for entry in entries]
        columns = ([row.get(name) for row in rows] for name in ("token", "logprob", "top_logprobs"))
    else:
        columns = (logprobs.get(name) for name in ("tokens", "token_logprobs", "top_logprobs"))
    tokens, values, tops = columns
    if not isinstance(tokens, list) or not isinstance(values, list) or not tokens:
        raise EchoFault("gives no log-probabilities")
    if len(tokens) != len(values):
        raise EchoFault(f"gives {len(tokens)} tokens, and {len(values)} log-probabilities")
    if not all(isinstance(token, str) for token in tokens):
        raise EchoFault("gives tokens that are not a text")
    if not all(value is None or type(value) in (int, float) for value in values):
        raise EchoFault("gives log-probabilities that are not numbers")
    nats = [value if value is None else as_nats(value) for value in values]
    return tokens, nats, tuple(map(_top, tops if isinstance(tops, list) else ()))


def _top(entry: Any) -> tuple[float, ...]:
    """Log p of the likeliest tokens at a place, from either form of the protocol."""
    if isinstance(entry, list):
        entry = {i: top.get("logprob") for i, top in enumerate(entry) if isinstance(top, dict)}
    values = entry.values() if isinstance(entry, dict) else ()
    return tuple(as_nats(value) for value in values if type(value) in (int, float))


def _short(tokens: Sequence[str]) -> str:
    return repr("".join(tokens)[:_EXCERPT])


def spells(pieces: Sequence[str], text: str) -> bool:
    """True if tokens make up a text. White space is ignored, as decoders drop and add it.

    A token that is only a part of a character may be U+FFFD, or bytes spelled as by OpenAI.

    >>> spells(["The", "\u2581nurse"], "The nurse"), spells(["The"], "The nurse")
    (True, False)
    >>> spells(["caf", "\\ufffd", "\\ufffd"], "caf\u00e9"), spells(["caf", "\\ufffd"], "cafe")
    (True, False)
    >>> spells(["caf", "bytes:\\\\xc3", "bytes:\\\\xa9"], "caf\u00e9")
    True
    """
    whole = b"".join(map(_bytes, pieces)).decode("utf-8", "replace")
    spelled, expected = "".join(whole.split()), "".join(text.split())
    if spelled == expected:
        return True
    if _PARTIAL not in spelled:
        return False
    # A run of n parts spells 1 to n non-ASCII characters. All its possible ends are followed at
    # once: backtracking would take exponential time.
    ends = {0}
    for part in re.findall(f"{_PARTIAL}+|[^{_PARTIAL}]+", spelled):
        if part[0] == _PARTIAL:
            ends = {i for end in ends for i in _after_parts(expected, end, len(part))}
        else:
            ends = {end + len(part) for end in ends if expected.startswith(part, end)}
    return len(expected) in ends


def _after_parts(text: str, start: int, n_parts: int) -> Iterator[int]:
    """Possible end indices of a run of ``n_parts`` parts of characters, from ``start`` on."""
    for i in range(start, min(start + n_parts, len(text))):
        if text[i].isascii():
            return
        yield i + 1


def _bytes(piece: str) -> bytes:
    if piece.startswith("bytes:"):
        return bytes(int(code, 16) for code in _BYTES.findall(piece))
    return piece.replace(_SPACE, " ").encode("utf-8", "replace")


@dataclass(frozen=True)
class EchoServer:
    """A model at a server that echoes prompts, and the parameters of each request to it."""

    model: str
    server: Server
    parameters: Mapping[str, object] = field(default_factory=PARAMETERS.copy)

    def bodies(
        self, prompts: Sequence[str], changes: Mapping[str, object] | None = None
    ) -> list[str | Failure]:
        """The answer to each prompt, in the order given; ``Failure`` for a refused prompt.

        ``changes``: parameters with another value than in ``parameters``.

        The server's values set concurrency and retries. Raises ``BadInput`` if a request is
        refused for another reason than its prompt, ``Interrupted`` if the server doesn't answer,
        and the errors of ``ChatClient`` (``UsageProblem``, ``MissingComponent``).
        """
        parameters = {**self.parameters, **(changes or {})}

        async def all_bodies() -> list[str | Failure]:
            slots = asyncio.Semaphore(self.server.concurrency)
            async with ChatClient(self.server) as client:
                bodies = (self._body(client, slots, prompt, parameters) for prompt in prompts)
                return await asyncio.gather(*bodies)

        return asyncio.run(all_bodies())

    def software(self) -> str:
        """Name and version of the server's software; empty if they are unknown."""
        return asyncio.run(self._software())

    async def _body(
        self,
        client: ChatClient,
        slots: asyncio.Semaphore,
        prompt: str,
        parameters: Mapping[str, object],
    ) -> str | Failure:
        call = partial(completion, model=self.model, prompt=prompt, parameters=parameters)

        async def attempt() -> str | Failure:
            body = await client.body(self.model, call)
            if isinstance(body, Failure) and body.status in _OF_THE_PROMPT:
                raise _PromptRefused(body)
            return body

        async with slots:
            try:
                return await retried(attempt, self.server, asyncio.Event())
            except _PromptRefused as e:
                return e.failure

    async def _software(self) -> str:
        async with ChatClient(self.server) as client:

            async def page(path: str) -> dict[str, Any]:
                body = await client.body(self.model, partial(_read, path=path))
                with suppress(EchoFault):
                    return _object(body) if isinstance(body, str) else {}
                return {}

            models = (await page("models")).get("data")
            entries = [e for e in models if isinstance(e, dict)] if isinstance(models, list) else []
            entry = next((e for e in entries if e.get("id") == self.model), {})
            version = (await page("/version")).get("version")
            version = version or (await page("/props")).get("build_info")
            parts = (entry.get("owned_by"), version)
            return " ".join(client.clean(part) for part in parts if isinstance(part, str)).strip()


async def _read(client: openai.AsyncOpenAI, path: str) -> str:
    """The body of a server's page; a ``path`` without `/` is relative to the base URL."""
    import httpx2

    parts = urlsplit(str(client.base_url))
    url = f"{parts.scheme}://{parts.netloc}{path}" if path.startswith("/") else f"/{path}"
    response = await client.get(url, cast_to=httpx2.Response)
    return str(response.text)
