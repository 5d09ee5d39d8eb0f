"""Commands that are stopped by a signal: status 5, one line, and no process left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chat_server import Say, good_script, serving
from tests.conftest import REPOSITORY
from tests.sockets import is_loopback, listening

pytestmark = pytest.mark.slow


def _start(
    directory: Path, *arguments: str, in_background: bool = False
) -> subprocess.Popen[bytes]:
    """The command as a session of its own, which all that it starts belongs to."""
    code = "from plumbline.pipelines.cli.main import entry; entry()"
    if in_background:
        code = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); {code}"
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PREFECT", "PLUMB"))}
    with (directory / "out.txt").open("wb") as out, (directory / "err.txt").open("wb") as err:
        return subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            cwd=directory,
            env={**inherited, "PYTHONPATH": str(REPOSITORY)},
            stdout=out,
            stderr=err,
            start_new_session=True,
        )


def _commands(process: subprocess.Popen[bytes]) -> list[bytes]:
    """Command lines of what lives of a session; what has ended and waits to be seen has none."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if os.getsid(int(entry.name)) == process.pid:
                found.append((entry / "cmdline").read_bytes())
        except OSError:
            continue  # it has ended meanwhile
    return [command for command in found if command]


def _stop_when(
    ready: Callable[[], bool],
    process: subprocess.Popen[bytes],
    send: Callable[[], None],
    directory: Path,
) -> None:
    try:
        deadline = time.monotonic() + 180
        while not ready():
            said = (directory / "err.txt").read_text()[-3000:]
            assert process.poll() is None and time.monotonic() < deadline, said
            time.sleep(0.05)
        addresses = listening(process.pid)
        assert all(is_loopback(a) for a in addresses), addresses
        send()
        assert process.wait(60) == 5
        assert _commands(process) == []
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    lines = (directory / "err.txt").read_text().splitlines()
    errors = [line for line in lines if line.startswith("error:")]
    assert errors == ["error: interrupted; run the same command again to resume"]
    assert not any(line.startswith("Traceback") for line in lines)


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks into /proc")
@pytest.mark.parametrize("how", ["Ctrl-C", "kill of a background job"])
def test_a_build_that_asks(tmp_path: Path, how: str) -> None:
    """A terminal's Ctrl-C reaches all processes at once; a background job ignores SIGINT."""

    def slow(prompt: str, count: int) -> Say:
        time.sleep(0.2)
        return good_script(prompt, count)

    words = ", ".join(f'"th{chr(97 + k)}ng"' for k in range(26))
    with serving(slow) as server:
        config = f'words = [{words}]\nmodel = "scripted"\nbase_url = "{server.url}"\n'
        (tmp_path / "mine.toml").write_text(config)
        job = how != "Ctrl-C"
        build = ["benchmark", "build", "demo", "--config", "mine.toml"]
        process = _start(tmp_path, *build, in_background=job)
        send = process.terminate if job else lambda: os.killpg(process.pid, signal.SIGINT)
        _stop_when(lambda: server.n_asked > 10, process, send, tmp_path)


@pytest.mark.spark
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks into /proc")
def test_a_pipeline_that_counts(tmp_path: Path) -> None:
    process = _start(tmp_path, "pipeline", "--demo-tokens", "60000")
    said = tmp_path / "out.txt"
    counts = "count closed-world-straight"
    _stop_when(lambda: counts in said.read_text(), process, process.terminate, tmp_path)
