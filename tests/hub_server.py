"""A hub on a real socket, which can be away in several ways and comes back."""

from __future__ import annotations

import hashlib
import os
import socket
import struct
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.conftest import REPOSITORY

_COMMIT = "0123456789abcdef0123456789abcdef01234567"
#: How it can be away: nobody listens, a proxy says so, connections end before an answer.
AWAY = ("refused", "503", "dropped", "reset")


@dataclass
class Hub:
    """A server of models by name, from directories; ``away`` is one of ``AWAY`` or empty."""

    models: Mapping[str, Path]
    away: str = ""
    asked: list[str] = field(default_factory=list)
    _server: ThreadingHTTPServer | None = None
    _port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Listen, on the same port each time."""
        hub = self

        class Handler(_Handler):
            told = hub

        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def go(self, away: str) -> None:
        """Be away from now on."""
        self.away = away
        if away == "refused":
            self.stop()

    def come_back(self) -> None:
        self.away = ""
        if self._server is None:
            self.start()


class _Handler(BaseHTTPRequestHandler):
    told: Hub

    def do_GET(self) -> None:
        self.told.asked.append(self.path)
        if self.told.away == "503":
            self._answer(503, b"")
        elif self.told.away:
            if self.told.away == "reset":  # a close that throws away what is on its way
                linger = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.connection.close()
            self.close_connection = True
        else:
            model, _, place = self.path.lstrip("/").partition("/resolve/")
            directory, name = self.told.models.get(model), place.partition("/")[2]
            if directory and name and (directory / name).is_file():
                self._answer(200, (directory / name).read_bytes())
            else:
                known = any(f"/{model}/" in self.path for model in self.told.models)
                lacks = "EntryNotFound" if known else "RepoNotFound"
                self._answer(404, b"{}", **{"X-Error-Code": lacks})

    do_HEAD = do_GET

    def _answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        etag = f'"{hashlib.sha256(body).hexdigest()}"'
        for name, value in {"X-Repo-Commit": _COMMIT, "ETag": etag, **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def hub(models: Mapping[str, Path]) -> Iterator[Hub]:
    """Serve saved models by these names."""
    server = Hub(models)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def environment(server: Hub, home: Path) -> dict[str, str]:
    """This process's environment with this hub in place of the real one, and nothing cached."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PREFECT_", "HF_"))}
    kept |= {"PYTHONPATH": str(REPOSITORY), "HF_HOME": str(home), "HF_ENDPOINT": server.url}
    return kept | {"HF_HUB_DISABLE_TELEMETRY": "1"}
