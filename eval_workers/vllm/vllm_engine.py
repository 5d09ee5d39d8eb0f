"""vLLM as a process in the environment that has it: started, asked and stopped here.

See ``vllm_process`` for what the process does. It ends with this one, however this one ends.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from plumbline.eval_workers.vllm import vllm_process
from plumbline.warehouse.errors import BadInput, Interrupted, MissingComponent

#: Names the Python that has vLLM, or its environment.
VARIABLE = "PLUMBLINE_VLLM"
_GRACE_S = 10.0
_RESUME = "finished work is kept: run the same command again to resume"
_MEND = "its last lines say why; a model that is asked to chat needs a chat template"


class EngineFailed(Exception):
    """What vLLM raised: its message, and the kind of error."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


class EngineDied(ConnectionError):
    """The process was killed: another try may well succeed."""


def killed(what: str, how: str) -> Interrupted:
    """The line for a process of vLLM that somebody killed, or a system without memory.

    >>> str(killed("model m", "was killed by SIGKILL")).partition(" (")[0]
    "model m: vLLM's process was killed by SIGKILL"
    """
    line = Interrupted(what, f"vLLM's process {how}", _RESUME)
    line.__cause__ = EngineDied()
    return line


def interpreter(environment: Mapping[str, str] = os.environ) -> Path:
    """The Python that has vLLM: of ``PLUMBLINE_VLLM``, this one, or that of `make setup-vllm`.

    Raises ``MissingComponent`` where there is none.

    >>> interpreter({"PLUMBLINE_VLLM": "/nowhere"})
    Traceback (most recent call last):
    ...
    plumbline.warehouse.errors.MissingComponent: PLUMBLINE_VLLM: no Python in /nowhere (name an \
environment with vLLM)
    """
    if named := environment.get(VARIABLE):
        path = Path(named) / "bin" / "python" if Path(named).is_dir() else Path(named)
        if not path.is_file():
            problem, fix = f"no Python in {named}", "name an environment with vLLM"
            raise MissingComponent(VARIABLE, problem, fix)
        return path
    if find_spec("vllm") is not None:
        return Path(sys.executable)
    beside = Path(sys.prefix).with_name(".venv-vllm") / "bin" / "python"
    if not beside.is_file():
        fix = f"run `make setup-vllm`, or name an environment that has it in {VARIABLE}"
        raise MissingComponent("--backend vllm", "vLLM is not installed", fix)
    return beside


class VllmProcess:
    """``vllm_process`` with some arguments; closed with the last reference to it.

    ``popen`` is the process, which has a temporary directory of its own. What it and its workers
    print is kept in a file without a name, which gets one if the process dies.
    """

    def __init__(self, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        python = interpreter()
        self._place = tempfile.mkdtemp(prefix=vllm_process.PLACE)
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        self.popen = subprocess.Popen(
            # -I: nothing of this environment is imported there.
            [str(python), "-I", vllm_process.__file__, *arguments],
            stdin=subprocess.PIPE,
            stdout=self._log if arguments else subprocess.PIPE,
            stderr=self._log,
            env={**(environment or {}), **os.environ, "TMPDIR": self._place},
            start_new_session=True,  # Ctrl-C reaches this process, which ends it
            text=True,
        )
        self.close = weakref.finalize(self, _end, self.popen, self._place)

    def printed(self) -> str:
        """What vLLM and its workers have printed."""
        n_bytes = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), n_bytes, 0).decode("utf-8", "replace")

    def death(self, what: str) -> BadInput | Interrupted:
        """The line for its end: somebody killed it, or it gave up, which it does each time."""
        status = self.popen.wait()
        self.close()
        number, log = tempfile.mkstemp(prefix=vllm_process.PLACE, suffix=".log", text=True)
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(self.printed())
        if status >= 0:
            problem, fix = f"vLLM's process ended with {status}, see {log}", _MEND
            return BadInput(what, problem, fix)
        return killed(what, f"was killed by {signal.Signals(-status).name}, see {log}")


class RemoteEngine:
    """A process that scores and continues token ids; ``versions`` of what computes in it.

    ``what`` it is started for is named when it ends too early.
    """

    def __init__(
        self, what: str = "--backend vllm", environment: Mapping[str, str] | None = None
    ) -> None:
        self._what = what
        self._process = VllmProcess(environment=environment)
        self.versions: dict[str, str] = self._answer()
        if not set(vllm_process.DISTRIBUTIONS) & set(self.versions):
            problem = f"{interpreter()} has no vLLM"
            raise MissingComponent("--backend vllm", problem, "make setup-vllm")

    def ask(self, name: str, **arguments: Any) -> Any:
        """What ``vllm_process.Engine`` finds; raises ``EngineFailed`` for what vLLM raises there,
        ``Interrupted`` when it was killed, ``BadInput`` when it ended by itself.
        """
        assert self._process.popen.stdin is not None
        with suppress(BrokenPipeError):  # it is gone, as its missing answer says
            self._process.popen.stdin.write(json.dumps([name, arguments]) + "\n")
            self._process.popen.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self._process.popen.stdout is not None
        line = self._process.popen.stdout.readline()
        if not line.endswith("\n"):
            raise self._process.death(self._what)
        answer = json.loads(line)
        if "error" in answer:
            raise EngineFailed(answer["error"], answer["kind"])
        return answer["found"]

    def printed(self) -> str:
        """What vLLM and its workers have printed."""
        return self._process.printed()


def _end(process: subprocess.Popen[str], place: str) -> None:
    """End a process, which sees that its input does, and with it its workers."""
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.close()
    try:
        process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
    shutil.rmtree(place, ignore_errors=True)
