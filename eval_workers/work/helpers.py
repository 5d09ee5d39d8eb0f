"""Further worker processes of one command: their shares of the machine, their start and end.

A helper is ``work.worker`` in a fresh interpreter. It computes chunks and publishes nothing, so its
death loses one chunk at most. Its standard input is a pipe that closes when the command ends: no
helper outlives the command.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from plumbline.warehouse.cores import n_cores
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.fresh_python import command
from plumbline.warehouse.storage.locks import temporary_directory

if TYPE_CHECKING:
    from plumbline.eval_workers.models.model_options import ModelOptions
    from plumbline.eval_workers.work.step import Step

#: Seconds that a helper has to stop, and seconds until its death is reported. If the command itself
#: ends with an error in this time, only this error is shown.
_GRACE_S = 5.0
_PATIENCE_S = 1.0
#: Backends whose workers need devices of their own.
_OF_DEVICES = ("transformers", "vllm")
_HELPER = tuple(command("plumbline.eval_workers.work.worker_process"))


@dataclass(frozen=True)
class Job:
    """A helper's work as data, sent to it as a line of JSON."""

    warehouse: str
    model: str
    options: ModelOptions
    steps: tuple[Step[Any], ...]

    def to_json(self) -> bytes:
        """One line of JSON; a step is the names of its module and class, and its fields."""
        steps = []
        for step in self.steps:
            kind = type(step)
            values = TypeAdapter(kind).dump_python(step, mode="json")
            steps.append([kind.__module__, kind.__name__, values])
        fields = {"warehouse": self.warehouse, "model": self.model}
        return json.dumps({**fields, "options": asdict(self.options), "steps": steps}).encode()

    @classmethod
    def from_json(cls, line: bytes) -> Job:
        """The job that ``to_json`` wrote."""
        from plumbline.eval_workers.models.model_options import ModelOptions

        fields = json.loads(line)
        steps = [
            TypeAdapter(getattr(import_module(module), name)).validate_json(json.dumps(values))
            for module, name, values in fields["steps"]
        ]
        options = ModelOptions(**fields["options"])
        return cls(fields["warehouse"], fields["model"], options, tuple(steps))


def device_shares(visible: Sequence[str], per_worker: int, n_workers: int) -> list[str]:
    """``CUDA_VISIBLE_DEVICES`` of each worker: its own devices, in order.

    Raises ``UsageProblem`` for too few devices.

    >>> device_shares(["0", "1", "2", "3"], 2, 2)
    ['0,1', '2,3']
    >>> device_shares(["3"], 1, 2)
    Traceback (most recent call last):
    ...
    plumbline.warehouse.errors.UsageProblem: --workers 2: needs 2 CUDA devices, 1 visible (give \
fewer workers)
    """
    needed = per_worker * n_workers
    if needed > len(visible):
        each = f", {per_worker} for each" if per_worker > 1 else ""
        problem = f"needs {needed} CUDA devices{each}, {len(visible)} visible"
        raise UsageProblem(f"--workers {n_workers}", problem, "give fewer workers")
    return [",".join(visible[i : i + per_worker]) for i in range(0, needed, per_worker)]


@contextmanager
def helpers(job: Job, n_workers: int, top: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Run ``n_workers - 1`` further processes on a job for the length of the block.

    This process is the first worker: it gets its share of the threads, and the first visible
    devices. The helpers' logs are in ``top`` until the block ends. ``say`` gets a line for each
    helper that fails. Raises ``UsageProblem`` for too few CUDA devices.
    """
    if n_workers == 1:
        yield
        return
    environments = _environments(job, n_workers)
    stopping = threading.Event()
    with temporary_directory(top, "helpers-") as logs:
        running = []
        try:
            for number, environment in enumerate(environments[1:], 2):
                log = logs / f"{number}.log"
                running.append(_start(job, environment, log))
                watch = (running[-1], number, log, stopping, say)
                threading.Thread(target=_watch, args=watch, daemon=True).start()
            yield
        finally:
            stopping.set()
            _stop(running)


def _environments(job: Job, n_workers: int) -> list[dict[str, str]]:
    """The environment of each worker. Without ``OMP_NUM_THREADS`` limits threads here too."""
    from plumbline.eval_workers.models import devices

    environment = dict(os.environ)
    if "OMP_NUM_THREADS" not in environment:
        n_threads = max(1, n_cores() // n_workers)
        devices.limit_threads(n_threads)
        environment["OMP_NUM_THREADS"] = str(n_threads)
    uses_devices = job.options.backend in _OF_DEVICES
    visible = devices.visible() if uses_devices and job.options.device != "cpu" else []
    if not visible:
        return [environment] * n_workers
    shares = device_shares(visible, job.options.tensor_parallel, n_workers)
    return [{**environment, "CUDA_VISIBLE_DEVICES": share} for share in shares]


def _start(job: Job, environment: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as file:
        process = subprocess.Popen(
            _HELPER,
            stdin=subprocess.PIPE,
            stdout=file,
            stderr=file,
            env=environment,
            start_new_session=True,  # Ctrl-C reaches the command, which stops its helpers
        )
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # it died at once; its watcher reports it
        process.stdin.write(job.to_json() + b"\n")
        process.stdin.flush()
    return process


def _watch(
    process: subprocess.Popen[bytes],
    number: int,
    log: Path,
    stopping: threading.Event,
    say: Callable[[str], None],
) -> None:
    """Wait for a helper's end; report it by a line if it failed and isn't being stopped."""
    status = process.wait()
    if status == 0 or stopping.wait(_PATIENCE_S):
        return
    lines = log.read_text("utf-8", "replace").split("\n") if log.exists() else []
    last = next((line for line in reversed(lines) if line.strip()), "")
    end = f"killed by {signal.Signals(-status).name}" if status < 0 else f"ended with {status}"
    reason = f": {last.strip()}" if last and status > 0 else ""
    say(f"worker {number} {end}{reason}; the others take over its work")


def _stop(running: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in running:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
    for process in running:
        try:
            process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdin is not None:
            with suppress(BrokenPipeError):
                process.stdin.close()
