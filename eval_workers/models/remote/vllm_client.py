"""Start, call and stop ``vllm_engine``, which runs as a process in an environment that has vLLM.

The engine's process ends when this process ends or is killed.
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
from pathlib import Path
from typing import Any

from plumbline.eval_workers.models.remote import vllm_engine
from plumbline.warehouse.errors import BadInput, Interrupted, MissingComponent

#: Environment variable with the path of the Python that has vLLM, or of its environment.
VARIABLE = "PLUMBLINE_VLLM"
#: Command that installs the tested vLLM into an environment of its own, because vLLM pins numba
#: 0.65 and counting needs 0.68. docs/models.md has the same line.
INSTALL = (
    "python3 -m venv ~/.venv-vllm && ~/.venv-vllm/bin/pip install vllm==0.32.0"
    f" && export {VARIABLE}=~/.venv-vllm"
)
_GRACE_S = 10.0
_RESUME = "finished work is kept: run the same command again to resume"


class EngineFailed(Exception):
    """An error raised by vLLM, with its message."""


def killed(what: str, event: str) -> Interrupted:
    """Return the error for a vLLM process that a user killed, or that ran out of memory.

    >>> str(killed("model m", "was killed by SIGKILL")).partition(" (")[0]
    "model m: vLLM's process was killed by SIGKILL"
    """
    error = Interrupted(what, f"vLLM's process {event}", _RESUME)
    error.__cause__ = ConnectionError()  # a transient error
    return error


def interpreter() -> Path:
    """Return the Python interpreter of the environment that has vLLM.

    ``PLUMBLINE_VLLM`` names it. The default is in `.venv-vllm` next to this environment. Raises
    ``MissingComponent`` if there is no such interpreter.
    """
    if named := os.environ.get(VARIABLE):
        path = Path(named) / "bin" / "python" if Path(named).is_dir() else Path(named)
        if not path.is_file():
            problem, fix = f"no Python in {named}", "name an environment with vLLM"
            raise MissingComponent(VARIABLE, problem, fix)
        return path
    prepared = Path(sys.prefix).with_name(".venv-vllm") / "bin" / "python"
    if not prepared.is_file():
        raise MissingComponent("--backend vllm", "vLLM is not installed", INSTALL)
    return prepared


class RemoteEngine:
    """A vLLM process that scores and continues token ids.

    The process ends when nothing refers to this object. ``what`` names the process in errors.
    ``versions`` maps the process's packages to their versions. The process and its workers share a
    temporary directory, which has a log of their output. If the process dies, the log is copied out
    of that directory.
    """

    def __init__(
        self, what: str = "--backend vllm", environment: Mapping[str, str] | None = None
    ) -> None:
        python, self._what = interpreter(), what
        place = tempfile.mkdtemp(prefix=vllm_engine.PLACE)
        self._log = Path(place) / "log"
        try:
            with self._log.open("wb") as log:
                self._process = subprocess.Popen(
                    [str(python), "-I", vllm_engine.__file__],  # -I: our modules can't be imported
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env={**(environment or {}), **os.environ, "TMPDIR": place},
                    start_new_session=True,  # Ctrl-C reaches this process, which ends it
                    text=True,
                )
        except OSError as e:
            shutil.rmtree(place, ignore_errors=True)
            problem, fix = f"{python} can't be run: {e.strerror}", "name an environment with vLLM"
            raise MissingComponent(VARIABLE, problem, fix) from e
        self.close = weakref.finalize(self, _end, self._process, place)
        self.versions: dict[str, str] = self._answer()
        if not set(vllm_engine.DISTRIBUTIONS) & set(self.versions):
            raise MissingComponent("--backend vllm", f"{python} has no vLLM", INSTALL)

    def ask(self, name: str, **arguments: Any) -> Any:
        """Call a method of ``vllm_engine.VllmEngine`` and return its result.

        Raises ``EngineFailed`` for errors of vLLM, ``Interrupted`` if the process was killed, and
        ``BadInput`` if the process ended by itself.
        """
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # _answer then finds that the process has ended
            self._process.stdin.write(json.dumps([name, arguments]) + "\n")
            self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.endswith("\n"):
            raise self._death()
        answer = json.loads(line)
        if "error" in answer:
            raise EngineFailed(answer["error"])
        return answer["found"]

    def printed(self) -> str:
        """Return what vLLM and its workers have printed so far."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def _death(self) -> BadInput | Interrupted:
        """Return ``Interrupted`` if the process was killed, ``BadInput`` if it ended by itself."""
        status = self._process.wait()
        descriptor, log = tempfile.mkstemp(prefix=vllm_engine.PLACE, suffix=".log")
        os.close(descriptor)
        shutil.copyfile(self._log, log)
        self.close()
        if status >= 0:
            problem = f"vLLM's process ended with status {status}, see {log}"
            return BadInput(self._what, problem, "its last lines say why")
        return killed(self._what, f"was killed by {signal.Signals(-status).name}, see {log}")


def _end(process: subprocess.Popen[str], place: str) -> None:
    """End a process and its workers by closing the process's input. Kill it if that fails."""
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
