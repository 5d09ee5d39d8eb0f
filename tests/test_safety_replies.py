"""Chat servers that send without end, or little that unpacks to much: a line, and no memory."""

from __future__ import annotations

import asyncio
import gzip
import json
import resource
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from plumbline.eval_workers.chat import bounded
from plumbline.eval_workers.chat.client import ChatClient, Failure
from plumbline.eval_workers.chat.ledger import ServerAnswer
from plumbline.eval_workers.chat.requests import Request
from tests.chat_server import Say, completion, serving

_PART = b"a" * (1 << 16)
#: More than any test machine should give away; what is sent in vain stops here.
_ENDLESS = 8 << 30


@contextmanager
def answering(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """The address of a server that answers every request so."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            with suppress(BrokenPipeError, ConnectionResetError):
                answer(self)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def head(handler: BaseHTTPRequestHandler, status: int, **headers: str) -> None:
    handler.send_response(status)
    for name, value in {"Content-Type": "application/json", **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()


def endless(handler: BaseHTTPRequestHandler, status: int = 200) -> None:
    head(handler, status)
    handler.wfile.write(b'{"choices": [{"message": {"content": "')
    for _ in range(_ENDLESS // len(_PART)):
        handler.wfile.write(_PART)


def endless_refusal(handler: BaseHTTPRequestHandler) -> None:
    endless(handler, 400)


def bomb(handler: BaseHTTPRequestHandler) -> None:
    """A gigabyte of a thousandth that size."""
    head(handler, 200, Content_Encoding="gzip")
    handler.wfile.write(gzip.compress(b"a" * (1 << 20)) * 1024)


def too_long(handler: BaseHTTPRequestHandler) -> None:
    body = completion("a" * bounded.LARGEST, "")
    head(handler, 200, Content_Length=str(len(body)))
    handler.wfile.write(body)


def asked(url: str) -> ServerAnswer | Failure:
    async def ask() -> ServerAnswer | Failure:
        async with ChatClient(url, timeout_s=60, environment={}) as client:
            return await client.attempt(Request("m", "Write.", (), "generate", "tea", "she", 1, 16))

    return asyncio.run(ask())


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (endless, "more than 16,777,216 bytes"),
        (endless_refusal, "more than 16,777,216 bytes"),
        (too_long, "more than 16,777,216 bytes"),
        (bomb, "packed (gzip), which was not asked for"),
    ],
)
def test_a_reply_without_end_is_no_reply(
    answer: Callable[[BaseHTTPRequestHandler], None], said: str
) -> None:
    with answering(answer) as url:
        before = peak_mb()
        outcome = asked(url)
        assert isinstance(outcome, Failure) and said in outcome.error and "\n" not in outcome.error
        assert outcome.retry and outcome.charged
        assert peak_mb() - before < 200


def test_a_long_reply_is_read_whole_and_nothing_packed_is_asked_for() -> None:
    text, accepted = "tea " * 1_000_000, []

    def long(handler: BaseHTTPRequestHandler) -> None:
        accepted.append(handler.headers["Accept-Encoding"])
        body = completion(text, "")
        assert len(body) < bounded.LARGEST
        head(handler, 200, Content_Length=str(len(body)), Content_Encoding="identity")
        handler.wfile.write(body)

    with answering(long) as url:
        outcome = asked(url)
    assert isinstance(outcome, ServerAnswer) and outcome.text == text
    assert accepted == ["identity"] and json.dumps(text) in completion(text, "").decode()


def test_texts_and_keys_are_not_sent_on_to_another_server() -> None:
    """Within one server a redirect is followed; to another port, host or protocol none is."""
    with serving(lambda *_: Say("ran")) as other:
        with serving(lambda *_: Say("", 307, headers={"Location": f"{other.url}/x"})) as server:
            outcome = asked(server.url)
            there = other.url.removesuffix("/v1")
            assert isinstance(outcome, Failure) and outcome.lasting and not outcome.retry
            assert f"{server.url} sends requests on to {there}, which nothing" in outcome.error
            assert "--base-url" in outcome.error and server.n_asked == 1
        assert not other.bodies and not other.keys

        def moved(prompt: str, count: int) -> Say:
            path = "/v1/new/chat/completions"
            return Say("ran") if count > 1 else Say("", 307, headers={"Location": path})

        with serving(moved) as server:
            outcome = asked(server.url)
            assert isinstance(outcome, ServerAnswer) and outcome.text == "ran"
            assert "/v1/new/chat/completions" in server.paths
