"""Flows that are stopped by a signal: status 5, one line, and no process left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from plumbline.pipelines import offline
from tests.chat_server import Say, good_script, serving
from tests.conftest import REPOSITORY
from tests.sockets import is_loopback, listening

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, prefect_home: Callable[[Path], Path]) -> Path:
    """Prefect's directory of all commands here."""
    return prefect_home(tmp_path_factory.mktemp("stop") / "prefect")


def _start(
    directory: Path, home: Path, *arguments: str, in_background: bool = False
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
            env={**inherited, "PYTHONPATH": str(REPOSITORY), "PREFECT_HOME": str(home)},
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
        assert any(b"uvicorn" in command for command in _commands(process)), "Prefect's server"
        addresses = listening(process.pid)
        assert addresses and all(is_loopback(a) for a in addresses), addresses
        send()
        assert process.wait(60) == 5
        assert _commands(process) == []
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    lines = (directory / "err.txt").read_text().splitlines()
    errors = [line for line in lines if line.startswith("error:")]
    assert errors == ["error: stopped (run the same command again to resume)"]
    assert not any(line.startswith("Traceback") for line in lines)


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks into /proc")
@pytest.mark.parametrize("how", ["Ctrl-C", "kill of a background job"])
def test_a_build_that_asks(tmp_path: Path, home: Path, how: str) -> None:
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
        process = _start(tmp_path, home, *build, in_background=job)
        send = process.terminate if job else lambda: os.killpg(process.pid, signal.SIGINT)
        _stop_when(lambda: server.n_asked > 10, process, send, tmp_path)


@pytest.mark.spark
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks into /proc")
def test_a_pipeline_that_counts(tmp_path: Path, home: Path) -> None:
    process = _start(tmp_path, home, "pipeline", "--demo-tokens", "60000")
    said = tmp_path / "out.txt"
    counts = "count closed-world-straight"
    _stop_when(lambda: counts in said.read_text(), process, process.terminate, tmp_path)


def test_one_retry_is_for_the_embedded_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def prepared(**given: str) -> dict[str, str]:
        environment = dict(given)
        with monkeypatch.context() as patch:
            patch.setattr(os, "environ", environment)
            offline.prepare(tmp_path)
        return environment

    assert prepared()["PREFECT_CLIENT_MAX_RETRIES"] == "1"
    assert prepared(PREFECT_CLIENT_MAX_RETRIES="3")["PREFECT_CLIENT_MAX_RETRIES"] == "3"
    elsewhere = prepared(PREFECT_API_URL="http://10.0.0.1:4200/api")
    assert "PREFECT_CLIENT_MAX_RETRIES" not in elsewhere
    assert elsewhere["PREFECT_LOGGING_LEVEL"] == "CRITICAL"


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks into /proc")
def test_what_a_killed_flow_started_ends(tmp_path: Path) -> None:
    """SIGKILL gives a process no time to end its server; one that ignores SIGTERM goes as well."""
    code = (
        "import subprocess, sys, time\n"
        "from plumbline.pipelines.reaper import reaped\n"
        "stubborn = 'import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(90)'\n"
        "with reaped():\n"
        "    for program in ('import time; time.sleep(90)', stubborn):\n"
        "        print(subprocess.Popen([sys.executable, '-S', '-c', program]).pid, flush=True)\n"
        "    time.sleep(90)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment, text=True
    ) as process:
        assert process.stdout is not None
        started = [int(process.stdout.readline()) for _ in range(2)]
        process.kill()
    deadline = time.monotonic() + 30
    while any(map(_lives, started)):
        assert time.monotonic() < deadline, started
        time.sleep(0.1)


def _lives(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits to be seen has no command line."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False
