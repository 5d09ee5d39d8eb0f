"""A web server of files and a hub of data sets, which can be away in several ways."""

import hashlib
import json
import os
import re
import socket
import struct
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from tests.conftest import REPOSITORY

_COMMIT = "0123456789abcdef0123456789abcdef01234567"
#: How it can be away: nobody listens, a proxy says so, connections end before an answer.
AWAY = ("refused", "503", "dropped", "reset")


class _Handler(BaseHTTPRequestHandler):
    datasets: Mapping[str, Path]
    top: Path
    away: str

    def do_GET(self) -> None:
        if self.away == "503":
            self._answer(503, b"")
        elif self.away:
            if self.away == "reset":  # a close that throws away what is on its way
                linger = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.connection.close()
            self.close_connection = True
        elif (self.top / self.path.lstrip("/")).is_file():
            self._answer(200, (self.top / self.path.lstrip("/")).read_bytes())
        elif "datasets/" in self.path:
            self._of_dataset()
        else:
            self._answer(404, b"{}", **{"X-Error-Code": "RepoNotFound"})

    do_HEAD = do_POST = do_PUT = do_GET

    def _of_dataset(self) -> None:
        """A list of a data set's files, what is known of one, or bytes of one."""
        path = unquote(urlsplit(self.path).path).lstrip("/")
        datasets = self.datasets
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
            is_broken = "broken" in self.path  # the connection breaks off in the middle
            self.wfile.write(body[: len(body) // 2] if is_broken else body)

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
def hub(
    datasets: Mapping[str, Path] | None = None, away: str = "", top: Path = Path("/nowhere")
) -> Iterator[str]:
    """The address of a server of data sets by name and of files in ``top``, or of one ``away``."""
    own = {"datasets": datasets or {}, "away": away, "top": top}
    handler = type("Handler", (_Handler,), own)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    with ExitStack() as stop:
        stop.callback(server.server_close)
        stop.callback(server.shutdown)
        if away == "refused":
            stop.close()
        yield f"http://127.0.0.1:{server.server_address[1]}"


def environment(url: str, home: Path) -> dict[str, str]:
    """This process's environment with this hub in place of the real one, and nothing cached."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PREFECT_", "HF_"))}
    kept |= {"PYTHONPATH": str(REPOSITORY), "HF_HOME": str(home), "HF_ENDPOINT": url}
    return kept | {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_XET": "1"}
