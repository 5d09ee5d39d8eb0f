"""Starts, calls and stops vLLM as a process in its own environment.

The process runs ``vllm_engine``, or `vllm serve` for a model's first request. It ends when this
process ends or is killed.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import weakref
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from plumbline.eval_workers.vllm import vllm_engine
from plumbline.warehouse.errors import BadInput, Interrupted, MissingComponent
from plumbline.warehouse.text.escape import say

#: Environment variable: path of the Python that has vLLM, or of its environment.
VARIABLE = "PLUMBLINE_VLLM"
#: Installs the tested vLLM into an environment of its own: vLLM pins numba 0.65, counting needs
#: 0.68. README and docs/models.md have the same line.
INSTALL = (
    "python3 -m venv ~/.venv-vllm && ~/.venv-vllm/bin/pip install vllm==0.32.0"
    f" && export {VARIABLE}=~/.venv-vllm"
)
#: The ``base_url`` that means: start a server on this machine for each requested model.
SERVED_HERE = "vllm"
_POLL_S = 0.5
#: Memory for keys and values on a CPU, in GiB; vLLM would take nine tenths of all memory.
_CPU_CACHE_GIB = "1"
_GRACE_S = 10.0
_RESUME = "finished work is kept: run the same command again to resume"
_MEND = "its last lines say why; a model that is asked to chat needs a chat template"


class EngineFailed(Exception):
    """An error raised by vLLM: its message, and the name of its type as ``kind``."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


def killed(what: str, event: str) -> Interrupted:
    """The error for a vLLM process that was killed by a user or for lack of memory.

    >>> str(killed("model m", "was killed by SIGKILL")).partition(" (")[0]
    "model m: vLLM's process was killed by SIGKILL"
    """
    error = Interrupted(what, f"vLLM's process {event}", _RESUME)
    error.__cause__ = ConnectionError()  # a transient error
    return error


def interpreter(environment: Mapping[str, str] = os.environ) -> Path:
    """The Python that has vLLM: ``PLUMBLINE_VLLM``, else this one or that of `make setup-vllm`.

    Raises ``MissingComponent`` if none of them has vLLM.

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
    prepared = Path(sys.prefix).with_name(".venv-vllm") / "bin" / "python"
    if not prepared.is_file():
        raise MissingComponent("--backend vllm", "vLLM is not installed", INSTALL)
    return prepared


class VllmProcess:
    """A process that runs ``vllm_engine``; it ends when nothing refers to this object.

    ``popen`` is the process. It and its workers have a temporary directory of their own, with a log
    of their output, which is copied if the process dies.
    """

    def __init__(self, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        python = interpreter()
        place = tempfile.mkdtemp(prefix=vllm_engine.PLACE)
        self._log = Path(place) / "log"
        try:
            with self._log.open("wb") as log:
                self.popen = subprocess.Popen(
                    # -I: nothing of this environment is imported there.
                    [str(python), "-I", vllm_engine.__file__, *arguments],
                    stdin=subprocess.PIPE,
                    stdout=log if arguments else subprocess.PIPE,
                    stderr=log,
                    env={**(environment or {}), **os.environ, "TMPDIR": place},
                    start_new_session=True,  # Ctrl-C reaches this process, which ends it
                    text=True,
                )
        except OSError as e:
            shutil.rmtree(place, ignore_errors=True)
            problem, fix = f"{python} can't be run: {e.strerror}", "name an environment with vLLM"
            raise MissingComponent(VARIABLE, problem, fix) from e
        self.close = weakref.finalize(self, _end, self.popen, place)

    def printed(self) -> str:
        """Output of vLLM and its workers so far."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def death(self, what: str) -> BadInput | Interrupted:
        """The error for the ended process: ``Interrupted`` if it was killed, else ``BadInput``."""
        status = self.popen.wait()
        descriptor, log = tempfile.mkstemp(prefix=vllm_engine.PLACE, suffix=".log")
        os.close(descriptor)
        shutil.copyfile(self._log, log)
        self.close()
        if status >= 0:
            return BadInput(what, f"vLLM's process ended with {status}, see {log}", _MEND)
        return killed(what, f"was killed by {signal.Signals(-status).name}, see {log}")


class RemoteEngine(VllmProcess):
    """A process that scores and continues token ids; ``versions``: of its packages, by name.

    ``what`` names the process in the error if it ends too early.
    """

    def __init__(
        self, what: str = "--backend vllm", environment: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(environment=environment)
        self._what = what
        self.versions: dict[str, str] = self._answer()
        if not set(vllm_engine.DISTRIBUTIONS) & set(self.versions):
            problem = f"{interpreter()} has no vLLM"
            raise MissingComponent("--backend vllm", problem, INSTALL)

    def ask(self, name: str, **arguments: Any) -> Any:
        """The result of a method of ``vllm_engine.VllmEngine``.

        Raises ``EngineFailed`` for errors of vLLM, ``Interrupted`` if the process was killed,
        ``BadInput`` if it ended by itself.
        """
        assert self.popen.stdin is not None
        with suppress(BrokenPipeError):  # the missing answer reports that the process has ended
            self.popen.stdin.write(json.dumps([name, arguments]) + "\n")
            self.popen.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self.popen.stdout is not None
        line = self.popen.stdout.readline()
        if not line.endswith("\n"):
            raise self.death(self._what)
        answer = json.loads(line)
        if "error" in answer:
            raise EngineFailed(answer["error"], answer["kind"])
        return answer["found"]


def _end(process: subprocess.Popen[str], place: str) -> None:
    """End a process and its workers by closing its input; kill it after a grace period."""
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


#: Model -> the process of its server and the server's address.
_running: dict[str, tuple[VllmProcess, str]] = {}
_starting = threading.Lock()


def address(model: str) -> str:
    """Address of a model's server on this machine; the first call starts it and waits for it.

    ``model`` is a hub id or directory, and the model's name in requests. Raises
    ``MissingComponent`` without vLLM, and the error of ``VllmProcess.death`` if the server ends
    instead of answering.
    """
    with _starting:
        if model in _running and _running[model][0].popen.poll() is not None:
            _running.pop(model)[0].close()  # the server died; its requests are sent again
        if model not in _running:
            _running[model] = _start(model)
        return _running[model][1]


def _start(model: str) -> tuple[VllmProcess, str]:
    port = _free_port()
    say(f"starting vllm serve {model}", err=True)
    process = VllmProcess(
        *("--model", model, "--served-model-name", model),
        *("--host", "127.0.0.1", "--port", str(port)),
        environment={"VLLM_CPU_KVCACHE_SPACE": _CPU_CACHE_GIB},
    )
    while not _answers(f"http://127.0.0.1:{port}/health"):
        if process.popen.poll() is not None:
            raise process.death(f"model {model}")
        time.sleep(_POLL_S)
    return process, f"http://127.0.0.1:{port}/v1"


def stop() -> None:
    """Stop all servers that were started here, to free their memory."""
    while _running:
        _running.popitem()[1][0].close()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _answers(url: str) -> bool:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with suppress(OSError), opener.open(url, timeout=5):
        return True
    return False
