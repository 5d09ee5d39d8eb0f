"""Commands that a signal stops or whose streams are closed: one line, no process left behind."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from plumbline.eval_workers.pairs.benchmarks import import_benchmark
from plumbline.pipelines.command.main import main
from plumbline.warehouse.storage.store import Store
from tests.conftest import REPOSITORY, in_session
from tests.steps import python
from tests.tiny_models import save

pytestmark = pytest.mark.slow
_STARTED: list[subprocess.Popen[bytes]] = []


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    yield
    while _STARTED:
        process = _STARTED.pop()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _start(directory: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """The command as a session of its own, which all that it starts belongs to."""
    # Not as the tests were started, perhaps in the background themselves.
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
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
            line = "error: interrupted; finished steps are kept: run the same command again"
            assert said.splitlines()[-1] == line and said.count(line) == 1, (delay, said)
        deadline = time.monotonic() + 5
        while left := [line for line in in_session(process.pid).values() if line]:
            assert time.monotonic() < deadline, left
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
    done = python(_COMPILE, timeout=60)
    assert done.returncode == 5 and "compiled" in done.stdout, done.stderr


_ENTRY = (sys.executable, "-c", "from plumbline.pipelines.command.main import entry; entry()")


def _shell(script: str, place: Path, *words: str | bytes) -> subprocess.CompletedProcess[bytes]:
    """A line of bash in which ``"$@"`` is the command with these words."""
    return subprocess.run(
        ["bash", "-c", script, "bash", *_ENTRY, *words],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=120,
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("streams")
    import_benchmark(Store.open(place / "out/warehouse"), "closed-world", None, "r")
    return place


@pytest.mark.slow
@pytest.mark.parametrize("streams", [">&-", "2>&-", "<&-", ">&- 2>&- <&-", "| (exit 0)"])
@pytest.mark.parametrize(
    "words",
    [(), ("--version",), ("benchmark", "show"), ("sql", "FROM benchmark_pair"), ("runs",)],
    ids=" ".join,
)
def test_a_stream_that_is_closed_stops_no_command(
    words: tuple[str, ...], streams: str, place: Path
) -> None:
    done = _shell(f'set -o pipefail; "$@" {streams}', place, *words)
    assert (done.returncode, done.stderr) == (0, b"")
