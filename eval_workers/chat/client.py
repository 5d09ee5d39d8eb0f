"""Options for servers that speak OpenAI's protocol, and a client that retries failed requests.

An attempt is one HTTP request, and the ledger has to record every attempt. So ``retried`` repeats
failed requests, and the retries of the package openai are switched off. The package's exceptions
never leave this module, because they contain the request and its key.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from urllib.parse import urlsplit

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.eval_workers.chat.requests import ChatModel, Failure, Reply, Request, TokenLimit
from plumbline.warehouse.errors import BadInput, Interrupted, UsageProblem
from plumbline.warehouse.options import MOST, STRICT
from plumbline.warehouse.text.escape import spellings

if TYPE_CHECKING:
    import httpx2
    import openai

#: Environment variables that may hold the key. The first variable that is set is used.
KEYS = ("PLUMBLINE_API_KEY", "OPENAI_API_KEY")
DEFAULT_URL = "https://api.openai.com/v1"
_HIDDEN = "[key]"
_ERROR_CHARACTERS = 300
#: At level DEBUG, these loggers log headers and bodies, in which a server may repeat the key.
_LOGGERS = ("openai", "httpx2", "httpcore2")
_FILTERED = ("content_filter", "content_policy_violation")
_CHECK = "check the model's name, the key and the options; earlier replies are kept"
_RESUME = "run the same command again to resume"
_Outcome = TypeVar("_Outcome")


#: A reply whose ``Content-Length`` is larger isn't read. Chat models write a few hundred thousand
#: bytes at most.
LARGEST = 16 << 20

#: How often a request is attempted, and how long to wait before the second attempt and at most.
MAX_ATTEMPTS, FIRST_WAIT_S, LONGEST_WAIT_S = 6, 1.0, 60.0

#: Sends a request with the client of the package openai and returns the body of the answer.
Call = Callable[["openai.AsyncOpenAI"], Awaitable[str]]


@dataclass(frozen=True, config=STRICT)
class ServerOptions:
    """A server's address and limits. ``ChatModel`` explains ``token_limit``.

    ``max_requests`` and ``max_tokens`` limit all runs of a build together. ``None`` means no limit.
    The key isn't stored here, but read from the environment. Raises ``UsageProblem`` if
    ``checked_url`` refuses the address.
    """

    base_url: Annotated[str, Field(description="Base URL of the server.")] = DEFAULT_URL
    timeout_s: Annotated[
        float,
        Field(
            gt=0,
            le=86_400,
            allow_inf_nan=False,
            description="Seconds to wait for a reply before the request fails.",
        ),
    ] = 120.0
    concurrency: Annotated[
        int, Field(gt=0, le=1_024, description="Number of requests to send at the same time.")
    ] = 8
    token_limit: Annotated[
        TokenLimit, Field(description="Name of the request parameter that limits a reply's length.")
    ] = "max_tokens"
    max_requests: Annotated[
        int | None, Field(ge=0, le=MOST, description="Maximum number of requests over all runs.")
    ] = None
    max_tokens: Annotated[
        int | None, Field(ge=0, le=MOST, description="Maximum number of tokens over all runs.")
    ] = None

    def __post_init__(self) -> None:
        if self.base_url:
            checked_url(self.base_url)  # refuses secrets, because options are stored with the run


@dataclass(frozen=True, config=STRICT)
class AskingOptions(ServerOptions):
    """Options for requests to one model. ``ChatModel.seed`` explains ``send_seed``."""

    model: Annotated[str, Field(description="Name of the model on the server.")] = ""
    send_seed: Annotated[bool, Field(description="Send a seed with each request.")] = True

    def __post_init__(self) -> None:
        checked_url(self.base_url)  # an empty address is an error here

    def chat_model(self) -> ChatModel:
        return ChatModel(self.model, 0 if self.send_seed else None, self.token_limit)


class ChatClient:
    """A connection to a server. It is an asynchronous context manager.

    Raises ``UsageProblem`` if the URL is invalid or holds a secret, or if OpenAI's own server is
    used without a key. Raises ``MissingComponent`` if the package openai isn't installed.
    """

    def __init__(self, server: ServerOptions) -> None:
        self._server = server
        key = find_key(checked_url(server.base_url))
        self._secrets = spellings(key)
        self._client = _open(key or "none", server)

    async def __aenter__(self) -> ChatClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    async def attempt(self, request: Request) -> Reply | Failure:
        """Send a request once. Return the reply, or a ``Failure`` if there is none."""
        body = await self.body(partial(_call, request))
        if isinstance(body, str):
            return self._reply(request.request_id, body)
        return Reply(request.request_id, "", body.error, refused=True) if body.refused else body

    async def body(self, call: Call) -> str | Failure:
        """Make a call and return the raw body of the answer, or a ``Failure`` if the call fails."""
        import openai

        try:
            return await asyncio.wait_for(call(self._client), self._server.timeout_s)
        except (TimeoutError, openai.APITimeoutError):
            problem = f"no reply within {self._server.timeout_s:g} s"
            return Failure(problem, retry=True, charged=True)
        except openai.APIStatusError as e:
            return self._refusal(e)
        except openai.APIConnectionError as e:
            cause = e.__cause__ or e
            kind = type(cause).__name__
            charged = kind not in ("ConnectError", "ConnectTimeout")
            return Failure(self.clean(f"{kind}: {cause}"), retry=True, charged=charged)

    def _reply(self, request_id: str, body: str) -> Reply | Failure:
        try:
            content = json.loads(body)
            choice = content["choices"][0]
            if (message := choice.get("message")) is None:
                text = _encodable(choice["text"])
            else:
                text = _encodable(message.get("content") or message.get("refusal") or "")
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            problem = f"the reply holds no choice with a message or text: {body}"
            return Failure(self.clean(problem), retry=True, charged=True)
        usage = content.get("usage")
        reason = choice.get("finish_reason")
        return Reply(
            request_id,
            self._hide(text),
            self.clean(str(reason)) if reason is not None else None,
            _count(usage, "prompt_tokens"),
            _count(usage, "completion_tokens"),
        )

    def _refusal(self, error: openai.APIStatusError) -> Failure:
        status, code = error.status_code, str(getattr(error, "code", "") or "")
        message = self.clean(f"status {status}: {_message(error)}")
        if code == "insufficient_quota":
            return Failure(message, retry=False, status=status)
        if status in (408, 409, 429) or status >= 500:
            wait = _retry_after(error.response.headers)
            return Failure(message, retry=True, retry_after_s=wait, status=status)
        refused = status == 400 and code in _FILTERED
        return Failure(message, retry=False, permanent=True, refused=refused, status=status)

    def clean(self, text: str) -> str:
        """Hide the key in a text, and return the text as one printable line of limited length."""
        line = " ".join(self._hide(_encodable(text)).split())
        return "".join(c if c.isprintable() else "?" for c in line[:_ERROR_CHARACTERS])

    def _hide(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, _HIDDEN)
        return text


async def _call(request: Request, client: openai.AsyncOpenAI) -> str:
    parameters = dict(request.parameters)
    if request.endpoint == "completions":
        return await completion(client, request.model, request.prompt, parameters)
    completions: Any = client.chat.completions.with_raw_response
    response = await completions.create(
        model=request.model, messages=request.messages, extra_body=parameters
    )
    return str(response.http_response.text)


async def completion(
    client: openai.AsyncOpenAI, model: str, prompt: str, parameters: Mapping[str, object]
) -> str:
    """Request a completion of a prompt that isn't a chat message. Return the answer's raw body."""
    completions: Any = client.completions.with_raw_response
    response = await completions.create(model=model, prompt=prompt, extra_body=parameters)
    return str(response.http_response.text)


def _open(key: str, server: ServerOptions) -> openai.AsyncOpenAI:
    import openai

    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)

    return openai.AsyncOpenAI(
        api_key=key,
        base_url=server.base_url,
        max_retries=0,
        timeout=server.timeout_s,
        # A redirect could send the texts and the key to another server.
        http_client=openai.DefaultAsyncHttpxClient(
            event_hooks={"response": [_check_length]}, follow_redirects=False
        ),
    )


async def _check_length(response: httpx2.Response) -> None:
    import openai

    if int(response.headers.get("Content-Length", 0)) > LARGEST:
        problem = f"the reply has more than {LARGEST:,} bytes"
        raise openai.APIConnectionError(message=problem, request=response.request)


def checked_url(url: str, option: str = "--base-url") -> str:
    """Check and return an address. Raises ``UsageProblem`` if it is invalid or holds a secret.

    >>> checked_url("http://localhost:8000/v1")
    'http://localhost:8000/v1'
    """
    try:
        parts = urlsplit(url)
        is_whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an unclosed bracket, or a port above 65535
        is_whole = False
    if not is_whole or not (url.isascii() and url.isprintable()) or " " in url:
        raise UsageProblem(option, "is not an http(s) address", f"such as {DEFAULT_URL}")
    if parts.username or parts.password or parts.query or parts.fragment:
        fix = f"put the key into the environment variable {KEYS[0]}"
        raise UsageProblem(option, "may not hold a user, password or query", fix)
    return url


def find_key(base_url: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return the value of the first variable in ``KEYS`` that is set, or "" if none is set.

    Raises ``UsageProblem`` if OpenAI's own server has no key, or if the key is malformed.

    >>> find_key("http://localhost:8000/v1", {"OPENAI_API_KEY": "dummy"})
    'dummy'
    """
    keys = ((name, environment.get(name, "").strip()) for name in KEYS)
    name, key = next((named for named in keys if named[1]), ("", ""))
    if not (key.isascii() and key.isprintable()):
        problem = "isn't a key: it holds a character that no key has, such as a typographic one"
        raise UsageProblem(name, problem, "copy it again")
    if not key and urlsplit(base_url).hostname == urlsplit(DEFAULT_URL).hostname:
        raise UsageProblem(f"server {base_url}", "needs a key", f"set {KEYS[0]}")
    return key


def _message(error: openai.APIStatusError) -> str:
    """Return the server's error message. If there is none, return the body or the status name."""
    body: Any = error.body
    if isinstance(body, dict):
        inner = body.get("error", body)
        message = inner.get("message") if isinstance(inner, dict) else inner
        return str(message or body)
    return str(body or error.response.reason_phrase)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds the answer's headers say to wait; ``None`` if they don't say.

    >>> _retry_after({"retry-after": "2.5"}), _retry_after({"retry-after": "Mon, 01 Jan 2001"})
    (2.5, None)
    """
    with suppress(KeyError, ValueError):
        return max(0.0, float(headers["retry-after"]))
    return None


def _count(usage: Any, name: str) -> int | None:
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if type(value) is int and value >= 0 else None


def _encodable(text: str) -> str:
    """Replace each lone surrogate, which JSON can hold but UTF-8 can't, with `?`."""
    return text.encode("utf-8", "replace").decode()


async def retried(
    attempt: Callable[[], Awaitable[_Outcome | Failure]], base_url: str, stopped: asyncio.Event
) -> _Outcome:
    """Attempt a request until it succeeds, and wait after each failure.

    The wait doubles after each failure, up to ``LONGEST_WAIT_S``. If the server asks for a
    longer wait, that is used, up to the same limit. A wait ends early if ``stopped`` is set. Raises
    ``BadInput`` if the request is refused. Raises ``Interrupted`` if the last attempt fails, or if
    the server asks for a wait beyond the limit. Also raises the errors of ``attempt``.
    """
    name = f"server {base_url}"
    for n_attempts in itertools.count(1):
        outcome = await attempt()
        if not isinstance(outcome, Failure):
            return outcome
        if outcome.permanent:
            raise BadInput(name, f"refuses the request: {outcome.error}", _CHECK)
        if not outcome.retry or n_attempts == MAX_ATTEMPTS:
            tries = f"{n_attempts} attempts" if n_attempts > 1 else "one attempt"
            fix = f"is it running at this address? then {_RESUME}"
            raise Interrupted(name, f"no reply after {tries}: {outcome.error}", fix)
        asked_s = outcome.retry_after_s or 0.0
        if asked_s > LONGEST_WAIT_S:
            raise Interrupted(name, f"asks to wait {asked_s:.0f} s ({outcome.error})", _RESUME)
        doubled_s = min(FIRST_WAIT_S * 2.0 ** (n_attempts - 1), LONGEST_WAIT_S)
        with suppress(TimeoutError):
            wait_s = max(doubled_s, asked_s) * random.uniform(1.0, 1.25)
            await asyncio.wait_for(stopped.wait(), wait_s)
    raise AssertionError("the last attempt returns or raises")
