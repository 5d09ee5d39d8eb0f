"""`vllm serve` on this machine: started for a model's first request, stopped with this process."""

from __future__ import annotations

import socket
import threading
import time
import urllib.request
from contextlib import suppress
from typing import TYPE_CHECKING

from plumbline.warehouse.text.escape import say

if TYPE_CHECKING:
    from plumbline.eval_workers.vllm.vllm_client import VllmProcess

#: The ``base_url`` that means: start a server on this machine for each requested model.
SERVED_HERE = "vllm"
_POLL_S = 0.5
#: Memory for keys and values on a CPU, in GiB; vLLM would take nine tenths of all memory.
_CPU_CACHE_GIB = "1"

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
    from plumbline.eval_workers.vllm.vllm_client import VllmProcess

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
