"""Commands that are stopped by a signal: status 5, one line, and no process left behind."""

from __future__ import annotations

import ipaddress
import os
import random
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from plumbline.eval_workers.pairs.benchmarks import import_benchmark
from plumbline.pipelines.command.main import main
from plumbline.warehouse.storage.store import Store
from tests.chat_server import Say, good_script, serving
from tests.conftest import REPOSITORY
from tests.tiny_models import save

pytestmark = pytest.mark.slow
_STARTED: list[subprocess.Popen[bytes]] = []


_LISTEN = "0A"


def listening(session: int) -> set[str]:
    """Addresses of the listening TCP sockets that processes of a session hold."""
    inodes: set[str] = set()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            held = [*(entry / "fd").iterdir()] if os.getsid(int(entry.name)) == session else []
        except OSError:
            continue  # it has ended meanwhile
        for link in held:
            with suppress(OSError):  # closed meanwhile
                inodes.add(os.readlink(link).removeprefix("socket:[").removesuffix("]"))
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for row in Path(table).read_text().splitlines()[1:] if Path(table).exists() else ():
            fields = row.split()
            if fields[3] == _LISTEN and fields[9] in inodes:
                found.add(_address(fields[1].split(":")[0]))
    return found


def _address(text: str) -> str:
    """The kernel writes words of four bytes, each in the machine's order."""
    words = [struct.pack("=I", int(text[i : i + 8], 16)) for i in range(0, len(text), 8)]
    return str(ipaddress.ip_address(b"".join(words)))


def is_loopback(address: str) -> bool:
    """Whether only this machine can reach an address."""
    found = ipaddress.ip_address(address)
    mapped = getattr(found, "ipv4_mapped", None)
    return (mapped or found).is_loopback


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    yield
    while _STARTED:
        process = _STARTED.pop()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _start(
    directory: Path, *arguments: str, in_background: bool = False
) -> subprocess.Popen[bytes]:
    """The command as a session of its own, which all that it starts belongs to."""
    # Not as the tests were started, perhaps in the background themselves.
    on_interrupt = "SIG_IGN" if in_background else "default_int_handler"
    code = f"import signal; signal.signal(signal.SIGINT, signal.{on_interrupt})"
    code += "; from plumbline.pipelines.command.main import entry; entry()"
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PREFECT", "PLUMB"))}
    with (directory / "out.txt").open("wb") as out, (directory / "err.txt").open("wb") as err:
        process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            cwd=directory,
            env={**inherited, "PYTHONPATH": str(REPOSITORY)},
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
    _STARTED.append(process)
    return process


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
        config = (
            f'[benchmark.build]\nwords = [{words}]\nmodel = "scripted"\nbase_url = "{server.url}"\n'
        )
        (tmp_path / "mine.toml").write_text(config)
        job = how != "Ctrl-C"
        build = ["benchmark", "build", "demo", "--config", "mine.toml"]
        process = _start(tmp_path, *build, in_background=job)
        send = process.terminate if job else lambda: os.killpg(process.pid, signal.SIGINT)
        _stop_when(lambda: server.n_asked > 10, process, send, tmp_path)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a warehouse that has something to measure and report."""
    place = tmp_path_factory.mktemp("measured")
    model, store = save("gpt2", place / "tiny"), Store.open(place / "out/warehouse")
    import_benchmark(store, "closed-world", None, "r")
    where = ("--warehouse", str(store.root))
    assert main(["score", "--model", str(model), "--benchmark", "closed-world", *where]) == 0
    assert main(["measure", *where]) == 0
    return place


_ENDLESS = "SELECT sum(a.range * b.range) FROM range(1000000) a, range(1000000) b"
_COMMANDS = {
    "report": ("report", "--out", "page"),
    "sql": ("sql", _ENDLESS),
    "score": ("score", "--model", "tiny", "--benchmark", "closed-world", "--dtype", "bfloat16"),
}


def _listens(process: subprocess.Popen[bytes]) -> bool:
    """Whether a process handles SIGTERM: before it does so, nothing of ours has run."""
    try:
        status = Path(f"/proc/{process.pid}/status").read_text()
    except OSError:
        return False
    caught = next((line for line in status.splitlines() if line.startswith("SigCgt")), "SigCgt: 0")
    return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="looks into /proc")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
@pytest.mark.parametrize("name", _COMMANDS)
def test_a_stop_at_any_moment_is_one_line_and_status_5(
    name: str, how: signal.Signals, measured: Path
) -> None:
    """While it imports, queries, draws, writes, or is at its end."""
    chance = random.Random(f"{name} {how}")
    for delay in (0.0, *(chance.uniform(0.05, 3.0) for _ in range(3))):
        process = _start(measured, *_COMMANDS[name])
        while not _listens(process) and process.poll() is None:
            time.sleep(0.001)
        time.sleep(delay)
        os.killpg(process.pid, how) if process.poll() is None else None
        start = time.monotonic()
        status = process.wait(60)
        took = time.monotonic() - start
        said = (measured / "err.txt").read_text()
        assert "Traceback" not in said and took < 5.5, (delay, took, said)
        if status != 0:
            assert status == 5, (delay, status, said)
            line = "error: interrupted; run the same command again to resume"
            assert said.splitlines()[-1] == line and said.count(line) == 1, (delay, said)
        deadline = time.monotonic() + 5
        while _commands(process):
            assert time.monotonic() < deadline, _commands(process)
            time.sleep(0.05)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="looks into /proc")
def test_a_second_stop_ends_a_busy_command_at_once(measured: Path) -> None:
    process = _start(measured, *_COMMANDS["sql"])
    while not _listens(process):
        time.sleep(0.001)
    time.sleep(3)  # deep in a query that looks for no signal
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
    assert process.wait(2) == 5
    assert (measured / "err.txt").read_text().count("error: interrupted") == 1


_COMPILE = """
import os, signal
import numba
from numba.core import event
from plumbline.pipelines.command import stop_signals

class Press(event.Listener):
    def on_start(self, event):
        os.kill(os.getpid(), signal.SIGINT)
    def on_end(self, event): print("compiled", flush=True)

signal.signal(signal.SIGINT, signal.default_int_handler)
stop_signals.listen()
with event.install_listener("numba:compile", Press()):
    numba.njit(lambda x: 2 * x)(1)
while True:
    pass
"""


def test_a_compilation_of_numba_is_not_interrupted() -> None:
    """An exception in LLVM's callbacks was lost, or ended Python."""
    done = subprocess.run(
        [sys.executable, "-c", _COMPILE], cwd=REPOSITORY, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 5 and "compiled" in done.stdout, done.stderr
