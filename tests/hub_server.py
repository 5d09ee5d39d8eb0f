"""A hub of models and data sets on a real socket, which can be away in several ways."""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
import struct
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from tests.conftest import REPOSITORY

_COMMIT = "0123456789abcdef0123456789abcdef01234567"
#: How it can be away: nobody listens, a proxy says so, connections end before an answer.
AWAY = ("refused", "503", "dropped", "reset")


@dataclass
class Hub:
    """A server of models and data sets by name, from directories.

    A model may have revisions: ``NAME@REVISION`` is the name of one.

    ``away`` is one of ``AWAY`` or empty.
    """

    models: Mapping[str, Path]
    away: str = ""
    datasets: Mapping[str, Path] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    _server: ThreadingHTTPServer | None = None
    _port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def commit(self, model: str, revision: str) -> str:
        """The commit of a revision, which may be named by its commit."""
        if f"{model}@{revision}" not in self.models:
            return revision if len(revision) == 40 else _COMMIT
        return hashlib.sha1(revision.encode()).hexdigest()

    def directory(self, model: str, revision: str) -> Path | None:
        """Where a revision of a model lies."""
        for name, path in self.models.items():
            base, _, own = name.partition("@")
            if base == model and own and revision in (own, self.commit(model, own)):
                return path
        return self.models.get(model)

    def start(self) -> None:
        """Listen, on the same port each time."""
        hub = self

        class Handler(_Handler):
            told = hub

        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

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
        elif "datasets/" in self.path:
            self._of_dataset()
        else:
            path = urlsplit(self.path).path
            if what := re.fullmatch(r"/api/models/(.+?)/(refs|(revision|tree)/([^/]+))", path):
                return self._of_revisions(what[1], unquote(what[4] or ""), what[3] == "tree")
            model, _, place = self.path.lstrip("/").partition("/resolve/")
            revision, _, name = place.partition("/")
            directory = self.told.directory(model, unquote(revision))
            commit = {"X-Repo-Commit": self.told.commit(model, unquote(revision))}
            if directory and name and (directory / name).is_file():
                self._answer(200, (directory / name).read_bytes(), **commit)
            else:
                known = any(f"/{m.partition('@')[0]}/" in self.path for m in self.told.models)
                lacks = "EntryNotFound" if known else "RepoNotFound"
                self._answer(404, b"{}", **{"X-Error-Code": lacks}, **commit)

    do_HEAD = do_POST = do_PUT = do_GET

    def _of_revisions(self, model: str, revision: str, as_tree: bool) -> None:
        """The revisions of a model, or the files of one."""
        names = [n.partition("@")[2] for n in self.told.models if n.startswith(f"{model}@")]
        if not revision and names:
            refs = [(n, self.told.commit(model, n)) for n in names]
            branches = [{"name": n, "ref": f"refs/heads/{n}", "targetCommit": c} for n, c in refs]
            found = {"branches": branches, "tags": [], "converts": []}
            return self._answer(200, json.dumps(found).encode())
        directory = self.told.directory(model, revision)
        if directory is None:
            return self._answer(404, b"{}", **{"X-Error-Code": "RepoNotFound"})
        if as_tree:
            entries = _entries(directory, directory.iterdir())
            return self._answer(200, json.dumps(entries).encode())
        files = [{"rfilename": path.name} for path in sorted(directory.iterdir())]
        info = {"id": model, "sha": self.told.commit(model, revision), "siblings": files}
        return self._answer(200, json.dumps({"_id": "0", "private": False, **info}).encode())

    def _of_dataset(self) -> None:
        """A list of a data set's files, what is known of one, or bytes of one."""
        path = unquote(urlsplit(self.path).path).lstrip("/")
        datasets = self.told.datasets
        name = next((name for name in datasets if f"datasets/{name}" in path), "")
        if not name:
            return self._answer(404, b"{}", **{"X-Error-Code": "RepoNotFound"})
        top, (_, _, rest) = datasets[name], path.partition(f"datasets/{name}/")
        what, _, inside = rest.partition("/")
        _revision, _, inner = inside.partition("/")
        if what == "resolve" and (top / inner).is_file():
            return self._answer(200, (top / inner).read_bytes())
        if what == "tree":
            return self._answer(200, json.dumps(_entries(top, (top / inner).iterdir())).encode())
        if what == "paths-info":
            body = self.rfile.read(int(self.headers["Content-Length"]))
            asked = body.decode()
            named = json.loads(asked)["paths"] if asked[:1] == "{" else parse_qs(asked)["paths"]
            found = [top / one for one in named if (top / one).exists()]
            return self._answer(200, json.dumps(_entries(top, found)).encode())
        info = {"_id": "0", "id": name, "sha": _COMMIT, "private": False, "siblings": []}
        lacks = {"X-Error-Code": "EntryNotFound"}
        known = what in ("", "revision")
        return self._answer(*((200, json.dumps(info).encode()) if known else (404, b"{}")), **lacks)

    def _answer(self, status: int, body: bytes, **headers: str) -> None:
        bounds = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if status == 200 and bounds:
            status, size = 206, len(body)
            low, high = int(bounds[1]), min(int(bounds[2]), len(body) - 1)
            headers["Content-Range"] = f"bytes {low}-{high}/{size}"
        self.send_response(status)
        etag = f'"{hashlib.sha256(body).hexdigest()}"'
        for name, value in {"X-Repo-Commit": _COMMIT, "ETag": etag, **headers}.items():
            self.send_header(name, value)
        if status == 206:
            body = body[low : high + 1]
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def _entries(top: Path, paths: Iterable[Path]) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for path in sorted(paths):
        entry: dict[str, object] = {"path": path.relative_to(top).as_posix(), "oid": "0" * 40}
        kind = "directory" if path.is_dir() else "file"
        size = 0 if path.is_dir() else path.stat().st_size
        if kind == "file":
            entry["oid"] = hashlib.sha1(path.read_bytes()).hexdigest()
        found.append({**entry, "type": kind, "size": size})
    return found


@contextmanager
def hub(models: Mapping[str, Path], datasets: Mapping[str, Path] | None = None) -> Iterator[Hub]:
    """Serve saved models, and data sets, by these names."""
    server = Hub(models, datasets=datasets or {})
    server.start()
    try:
        yield server
    finally:
        server.stop()


def environment(server: Hub, home: Path) -> dict[str, str]:
    """This process's environment with this hub in place of the real one, and nothing cached."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PREFECT_", "HF_"))}
    kept |= {"PYTHONPATH": str(REPOSITORY), "HF_HOME": str(home), "HF_ENDPOINT": server.url}
    return kept | {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_XET": "1"}
