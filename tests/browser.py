"""A headless Chromium driven through its DevTools protocol, for tests of the report."""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_PATIENCE = 60.0


def program() -> str | None:
    """The browser's path, or ``None`` where there is none."""
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page; ``events`` are all that the browser told of it."""

    def __init__(self, socket: Any) -> None:
        self._socket, self._last = socket, 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, **params: object) -> dict[str, Any]:
        """One command and its result."""
        self._last += 1
        message: dict[str, object] = {"id": self._last, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        self._socket.send(json.dumps(message))
        while True:
            answer = self._receive()
            if answer.get("id") == self._last:
                assert "error" not in answer, (method, answer["error"])
                return dict(answer["result"])

    def _receive(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._socket.recv(timeout=_PATIENCE))
        if "method" in answer:
            self.events.append(answer)
        return answer

    def attach(self) -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        found = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = found["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def open(self, page: Path) -> None:
        """Load a file and wait until it is there."""
        self.events.clear()
        self.call("Page.navigate", url=page.resolve().as_uri())
        while not any(e["method"] == "Page.loadEventFired" for e in self.events):
            self._receive()

    def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression; promises are awaited."""
        how = {"returnByValue": True, "awaitPromise": True, "userGesture": True}
        found = self.call("Runtime.evaluate", expression=expression, **how)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def resize(self, width: int, height: int = 800) -> None:
        size: dict[str, object] = {"width": width, "height": height, "deviceScaleFactor": 1}
        self.call("Emulation.setDeviceMetricsOverride", mobile=False, **size)

    def colours(self, scheme: str) -> None:
        """Set the colour scheme that the reader prefers: ``light`` or ``dark``."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=features)


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """A browser with a profile of its own, ended with the block."""
    from websockets.sync.client import connect

    path = program()
    assert path is not None
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"]
    options += ["--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage"]
    process = subprocess.Popen(
        [path, *options, f"--user-data-dir={profile}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        port, place = _door(profile, process)
        with connect(f"ws://127.0.0.1:{port}{place}", max_size=None) as socket:
            driven = Browser(socket)
            driven.attach()
            yield driven
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _door(profile: Path, process: subprocess.Popen[bytes]) -> tuple[str, str]:
    """Port and path that the browser listens at, once it has written them down."""
    file, end = profile / "DevToolsActivePort", time.monotonic() + _PATIENCE
    while time.monotonic() < end and process.poll() is None:
        lines = file.read_text().splitlines() if file.is_file() else []
        if len(lines) == 2:
            return lines[0], lines[1]
        time.sleep(0.1)
    raise AssertionError("the browser did not start")


def violations(page: Browser) -> list[str]:
    """What axe-core finds wrong with the open page: rule, and the first element of each."""
    package = find_spec("axe_playwright_python")
    assert package is not None and package.origin is not None
    page.ask((Path(package.origin).parent / "axe.min.js").read_text(encoding="utf-8"))
    found = page.ask("axe.run().then((r) => r.violations.map((v) => [v.id, v.nodes[0].html]))")
    return [f"{rule}: {element}" for rule, element in found]
