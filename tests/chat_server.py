"""A chat server on a real socket that answers by script and remembers what it was asked."""

import json
import re
import socket
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.conftest import REPOSITORY


@dataclass(frozen=True)
class Say:
    """One answer: a completion holding ``text``, or ``body`` as it is, or a way to fail."""

    text: str = ""
    status: int = 200
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    cut: bool = False
    finish: str = "stop"


#: Given the prompt, and how often it has been asked (from 1): the answer.
Script = Callable[[str, int], Say]
#: Given the whole body of a request: the answer.
Sampler = Callable[[dict[str, Any]], Say]


def completion(
    text: str | None, prompt: str, usage: bool = True, *, chat: bool = True, finish: str = "stop"
) -> bytes:
    """The body of a completion; tokens are counted as words."""
    said = {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
    content: dict[str, Any] = {
        "id": "chat-1",
        "object": "chat.completion" if chat else "text_completion",
        "created": 1,
        "model": "scripted",
        "choices": [{"index": 0, **said, "finish_reason": finish}],
    }
    if usage:
        n_in, n_out = len(prompt.split()), len((text or "").split())
        tokens = {"prompt_tokens": n_in, "completion_tokens": n_out}
        content["usage"] = {**tokens, "total_tokens": n_in + n_out}
    return json.dumps(content).encode()


def as_json(text: str, form: dict[str, Any]) -> str:
    """A reply in prose in the form that ``response_format`` asks for."""
    lines = [re.sub(r"^\d+\. ", "", line) for line in text.splitlines()]
    values = {"sentences": lines, "sentence": text, "verdict": text.strip(".").lower()}
    name = form["json_schema"]["name"]
    return json.dumps({name: values[name]})


class ChatServer:
    """What was asked: whole bodies, keys and times."""

    def __init__(self, script: Script | None, sampler: Sampler | None, knows_schemas: bool) -> None:
        self.script = script
        self.sampler = sampler
        self.knows_schemas = knows_schemas
        self.asked: Counter[str] = Counter()
        self.bodies: list[dict[str, Any]] = []
        self.paths: set[str] = set()
        self.keys: set[str] = set()
        self.times: list[float] = []
        self.url = ""
        #: What a GET of a path gets; 404 for any other.
        self.pages: dict[str, dict[str, Any]] = {}
        self._lock = threading.Lock()

    @property
    def n_asked(self) -> int:
        """Requests that arrived, repeated ones too."""
        return sum(self.asked.values())

    def handle(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        chat = handler.path.endswith("/chat/completions")
        prompt = body["messages"][-1]["content"] if chat else body["prompt"]
        identity = json.dumps(body, sort_keys=True)
        with self._lock:
            self.asked[identity] += 1
            self.bodies.append(body)
            self.paths.add(handler.path)
            self.keys.add(handler.headers.get("Authorization", ""))
            self.times.append(time.monotonic())
            count = self.asked[identity]
        try:
            say = self.script(prompt, count) if self.script else self.sampler(body)
            if self.knows_schemas and "response_format" in body:
                say = replace(say, text=as_json(say.text, body["response_format"]))
            time.sleep(say.delay_s)
            self._send(handler, say, prompt, chat)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def _send(self, handler: BaseHTTPRequestHandler, say: Say, prompt: str, chat: bool) -> None:
        body = say.body
        if body is None:
            error = json.dumps({"error": {"message": say.text, "code": None}}).encode()
            told = completion(say.text, prompt, chat=chat, finish=say.finish)
            body = told if say.status == 200 else error
        handler.send_response(say.status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(body)))
        for name, value in say.headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body[: len(body) // 2] if say.cut else body)
        handler.wfile.flush()
        if say.cut:
            linger = struct.pack("ii", 1, 0)
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            handler.close_connection = True


@contextmanager
def serving(
    script: Script | None = None, *, sampler: Sampler | None = None, knows_schemas: bool = False
) -> Iterator[ChatServer]:
    """A server on a port of its own, until the end of the block.

    If it knows schemas, it says the same as JSON where a request asks for that.
    """
    server = ChatServer(script, sampler, knows_schemas)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            server.handle(self)

        def do_GET(self) -> None:
            page = server.pages.get(self.path)
            body = json.dumps(page).encode()
            self.send_response(404 if page is None else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Listener(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Clients that are killed hang up; any other error is the script's."""
            if not isinstance(sys.exc_info()[1], ConnectionError):
                super().handle_error(request, client_address)

    listener = Listener(("127.0.0.1", 0), Handler)
    server.url = f"http://127.0.0.1:{listener.server_address[1]}/v1"
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        listener.shutdown()
        thread.join()
        listener.server_close()


_VERBS = ("polished", "painted", "carried", "repaired", "described", "dropped", "borrowed", "sold")
_PLACES = ("yesterday", "in silence", "before lunch", "near Rome", "with care", "all night")


def good_script(prompt: str, count: int) -> Say:
    """A well-behaved model: numbered lists, revisions that do, likely pairs."""
    if "likely" in prompt:
        return Say("Likely.")
    word = re.search(r'(?:word|mention) "(.+?)"|letter for letter: (\w+)|\(a\) (\w+)', prompt)
    pronoun = "she" if re.search(r"\bshe\b", prompt) else "he"
    seed = next(filter(None, word.groups())) if word else "thing"
    n = re.search(r"write (\d+)", prompt)
    if n is None:
        return Say(f"{pronoun.capitalize()} found the {seed} at last.")
    start = 0 if pronoun == "she" else 3
    lines = [
        f"{k + 1}. {pronoun.capitalize()} {_VERBS[(start + k) % 8]} the {seed}"
        f" {_PLACES[(start + 2 * k) % 6]}."
        for k in range(int(n.group(1)))
    ]
    return Say("\n".join(lines))


def in_prose(path: Path) -> Path:
    """Our wordings in a file of their own, whose requests ask for prose instead of JSON."""
    ours = (REPOSITORY / "eval_workers/writing/prompts.toml").read_text("utf-8")
    path.write_text(ours.replace("as_json = true", "as_json = false"), "utf-8")
    return path
