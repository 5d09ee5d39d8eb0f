"""Processes and passes side by side: the same rows, deaths, Ctrl-C, devices, threads."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from plumbline.eval_workers.models import devices, memory_problems
from plumbline.eval_workers.models.devices import in_lanes, raise_if_stopped
from plumbline.eval_workers.models.local.causal_model import CausalModel
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.scoring_contract import TextScore
from plumbline.eval_workers.scoring import pair_scores
from plumbline.eval_workers.scoring.pair_scores import ScoredBenchmark, score_benchmarks
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.steps import helper_processes as helpers
from plumbline.warehouse.storage.store import Store
from tests.conftest import REPOSITORY
from tests.test_score import _pairs, _rows, _score

TEMPLATES = [
    f"The {who} said {{pronoun}} sold {n} loaves to {{pronoun1}} guests."
    for who in ("cook", "nurse", "clerk")
    for n in range(20)
]

#: A helper with small chunks that logs its number and what it scored, and may die.
_HELPER = """
import os, pathlib, signal, sys
from plumbline.eval_workers.scoring import pair_scores
from plumbline.warehouse.steps import helper_processes as helpers
from plumbline.eval_workers.models.local.causal_model import CausalModel

pair_scores.CHUNK_TEXTS = 8
log, compute = pathlib.Path(sys.argv[1]) / f"{os.getpid()}.log", CausalModel.score
log.touch()

def logged(self, texts):
    if sys.argv[2] == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    while sys.argv[2] == "hangs":
        signal.pause()
    with log.open("a") as file:
        file.writelines(f"{text}\\n" for text in texts)
    return compute(self, texts)

CausalModel.score = logged
sys.exit(helpers.main())
"""


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where helpers log."""
    directory = tmp_path / "logs"
    directory.mkdir()
    n_threads = devices.torch.get_num_threads()
    monkeypatch.setattr(pair_scores, "CHUNK_TEXTS", 8)
    yield directory
    devices.limit_threads(n_threads)


def start_helpers(monkeypatch: pytest.MonkeyPatch, logs: Path, how: str = "works") -> None:
    command = (sys.executable, "-c", _HELPER, str(logs), how)
    monkeypatch.setattr(helpers, "_HELPER", command)


def score_with(
    store: Store,
    model: Path,
    n_workers: int,
    may_go_on: Callable[[], bool],
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[ScoredBenchmark, list[str]]:
    """Score with helpers; the command itself waits at its first chunk until it ``may_go_on``."""
    compute, said = CausalModel.score, []

    def patient(self: CausalModel, texts: Sequence[str]) -> list[TextScore]:
        end = time.monotonic() + 120
        while not may_go_on() and not said and time.monotonic() < end:
            time.sleep(0.05)
        return compute(self, texts)

    monkeypatch.setattr(CausalModel, "score", patient)
    (done,) = score_benchmarks(
        *(store, str(model), ["demo"], ModelOptions(device="cpu"), "run"),
        n_workers=n_workers,
        say=said.append,
    )
    monkeypatch.setattr(CausalModel, "score", compute)
    return done, said


@pytest.mark.slow
def test_four_workers_publish_the_rows_of_one(
    store: Store, model: Path, logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _pairs(store, TEMPLATES)
    start_helpers(monkeypatch, logs)

    def all_are_there() -> bool:
        return len(list(logs.glob("*.log"))) == 3 and any(p.stat().st_size for p in logs.iterdir())

    done, said = score_with(store, model, 4, all_are_there, monkeypatch)
    assert (done.n_scored, done.n_new, said) == (60, 60, [])
    helped = [text for path in logs.iterdir() for text in path.read_text().splitlines()]
    assert 0 < len(helped) == len(set(helped)) < 120
    alone = Store.open(tmp_path / "alone")
    _pairs(alone, TEMPLATES)
    devices.limit_threads(4)  # each of the four had one or a few
    _score(alone, model)
    assert _rows(store) == _rows(alone) and len(_rows(store)) == 60
    assert not list((store.root / "_work").rglob("*.*"))


@pytest.mark.slow
def test_a_helper_that_dies_is_told_and_its_work_is_done(
    store: Store, model: Path, logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _pairs(store, TEMPLATES)
    start_helpers(monkeypatch, logs, "dies")
    done, said = score_with(store, model, 2, lambda: False, monkeypatch)
    (line,) = said
    assert line.startswith("worker 2 failed: ")
    assert done.n_new == 60


def test_files_of_the_working_directory_are_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("runpy", "json", "plumbline"):
        (tmp_path / f"{name}.py").write_text("open('imported', 'w')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    ran = subprocess.run(helpers._HELPER, input="", capture_output=True, text=True, check=False)
    assert "helper_processes.py" in ran.stderr and not (tmp_path / "imported").exists()


_COMMAND = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # not as a background job inherits it
from plumbline.eval_workers.scoring import pair_scores
from plumbline.warehouse.steps import helper_processes as helpers
from plumbline.eval_workers.models.local.causal_model import CausalModel
from plumbline.pipelines.command.main import main

CausalModel.score = lambda self, texts: time.sleep(100)

pair_scores.CHUNK_TEXTS = 8
helpers._HELPER = (sys.executable, "-c", sys.argv[1], sys.argv[2], "hangs")
sys.exit(main(sys.argv[3:]))
"""


def _is_alive(pid: int) -> bool:
    try:  # a dead child that its parent has not asked after yet still has its number
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 5), (signal.SIGKILL, -9)])
def test_stopped_nothing_is_left_behind(
    store: Store, model: Path, logs: Path, number: int, status: int
) -> None:
    """Both the command and its helper hold a chunk for as long as it takes."""
    _pairs(store, TEMPLATES)
    arguments = ["score", "--model", str(model), "--benchmark", "demo", "--workers", "2"]
    arguments += ["--warehouse", str(store.root), "--device", "cpu"]
    command = subprocess.Popen(
        [sys.executable, "-c", _COMMAND, _HELPER, str(logs), *arguments],
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 120
    while not list(logs.iterdir()) and time.monotonic() < end:
        time.sleep(0.05)
    (log,) = logs.iterdir()
    time.sleep(1)
    command.send_signal(number)
    _, error = command.communicate(timeout=60)
    assert command.returncode == status, error
    while _is_alive(int(log.stem)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not _is_alive(int(log.stem))
    (run,) = store.read("run").to_pylist()
    if status == 5:
        assert "interrupted; run the same command again to resume" in error
        assert run["status"] == "interrupted"
        assert not list((store.root / "_work").rglob("*.claim"))
    else:
        assert run["status"] == "running"
    assert '"workers": 2' in run["config"]


def test_each_worker_has_its_devices_and_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    set_threads: list[int] = []
    monkeypatch.setattr(devices, "limit_threads", set_threads.append)
    monkeypatch.setattr(devices, "visible", lambda: ["4", "5", "6", "7"])
    monkeypatch.setattr(devices, "n_cores", lambda: 9)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    options = ModelOptions(backend="vllm", tensor_parallel=2)
    found = devices.worker_environments(options, 2)
    assert [e["CUDA_VISIBLE_DEVICES"] for e in found] == ["4,5", "6,7"]
    assert [e["OMP_NUM_THREADS"] for e in found] == ["4", "4"] and set_threads == [4]
    with pytest.raises(UsageProblem, match=r"--workers 3: needs 6 CUDA devices, 2 for each, 4 vis"):
        devices.worker_environments(options, 3)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # the user's own choice stays
    on_cpu = devices.worker_environments(ModelOptions(device="cpu"), 8)
    assert len(on_cpu) == 8 and {e["OMP_NUM_THREADS"] for e in on_cpu} == {"1"}
    assert all("CUDA_VISIBLE_DEVICES" not in e for e in on_cpu)


@pytest.mark.parametrize(
    ("given", "n_devices", "names"),
    [(None, 2, ["0", "1"]), ("3, GPU-7", 2, ["3", "GPU-7"]), ("", 0, []), ("-1", 0, [])],
)
def test_visible_devices(
    monkeypatch: pytest.MonkeyPatch, given: str | None, n_devices: int, names: list[str]
) -> None:
    monkeypatch.setattr(devices.torch.cuda, "device_count", lambda: n_devices)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if given is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", given)
    assert devices.visible() == names


def test_memory_that_runs_out_is_one_line() -> None:
    for error in (
        MemoryError(),
        devices.torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"),
    ):
        with pytest.raises(BadInput, match="model m: takes more"), memory_problems("m"):
            raise error
    with pytest.raises(RuntimeError, match="shapes"), memory_problems("m"):
        raise RuntimeError("shapes do not match")


def test_an_error_ends_all_lanes() -> None:
    done: list[int] = []

    def work(item: int) -> None:
        if item == 3:
            raise ValueError("item 3")
        time.sleep(0.001)
        done.append(item)

    with pytest.raises(ValueError, match="item 3"):
        in_lanes(work, range(10_000), 4)
    assert {0, 1, 2} <= set(done) and len(done) < 9_999
    assert threading.active_count() < 5


@pytest.mark.parametrize("n_steps", [1, 1000])
def test_ctrl_c_ends_the_lanes_after_their_step(n_steps: int) -> None:
    """It comes to the calling thread, while each lane is in the middle of a pass."""
    begun: list[int] = []
    started = time.monotonic()
    main = threading.get_ident()

    def work(item: int) -> None:
        begun.append(item)
        for _ in range(n_steps):
            time.sleep(0.2)
            raise_if_stopped()

    def press() -> None:
        while len(begun) < 2:
            time.sleep(0.01)
        signal.pthread_kill(main, signal.SIGINT)

    presser = threading.Thread(target=press)
    # What a shell starts in the background ignores Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        presser.start()
        with pytest.raises(KeyboardInterrupt):
            in_lanes(work, range(100), 2)
    finally:
        signal.signal(signal.SIGINT, before)
    presser.join()
    assert sorted(begun) == [0, 1] and time.monotonic() - started < 10
    raise_if_stopped()  # the calling thread is no lane
