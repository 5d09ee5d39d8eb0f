"""Score texts and continue prompts with vLLM, which runs as a process in its own environment.

Texts are encoded in Plumbline's own process. The vLLM process (``vllm_engine``) gets token ids and
returns log-probabilities or new token ids. It ends when Plumbline ends or is killed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import tokenizers
import torch
from transformers import AutoModelForCausalLM

from plumbline.eval_workers.models import vllm_engine
from plumbline.eval_workers.models.local import devices
from plumbline.eval_workers.models.local.causal_model import CausalModel
from plumbline.eval_workers.models.local.model_files import check_complete, n_embedded
from plumbline.eval_workers.models.local.source import load_part
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.sampling_contract import SamplingOptions
from plumbline.eval_workers.models.scoring_contract import Tokens
from plumbline.warehouse.errors import BadInput, Interrupted, MissingComponent, UsageProblem

#: Environment variable with the path of the environment that has vLLM, or of its Python.
VARIABLE = "PLUMBLINE_VLLM"
#: Command that installs the tested vLLM into an environment of its own, because vLLM pins numba
#: 0.65 and counting needs 0.68. docs/models.md has the same line.
INSTALL = (
    "python3 -m venv ~/.venv-vllm && ~/.venv-vllm/bin/pip install vllm==0.32.0"
    f" && export {VARIABLE}=~/.venv-vllm"
)
_GRACE_S = 10.0
#: Memory for keys and values on a CPU. By default, vLLM would take nine tenths of all memory.
_CPU_CACHE_BYTES = 1 << 30


def interpreter() -> Path:
    """Return the Python interpreter of the environment that has vLLM.

    The variable ``PLUMBLINE_VLLM`` names the interpreter or its environment. The default is
    `.venv-vllm` next to Plumbline's environment. Raises ``MissingComponent`` if nothing is found.
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
    """A vLLM process that scores and continues sequences of token ids.

    The process ends when this object is garbage-collected. ``what`` names the process in errors.
    ``versions`` maps the process's packages to their versions. The process and its workers write
    their output to a log in a temporary directory. If the process dies, the log is copied out of
    that directory.
    """

    def __init__(self, what: str = "--backend vllm") -> None:
        python, self._what = interpreter(), what
        place = tempfile.mkdtemp(prefix=vllm_engine.PLACE)
        self._log, n_threads = Path(place) / "log", str(torch.get_num_threads())
        try:
            with self._log.open("wb") as log:
                self._process = subprocess.Popen(
                    [str(python), "-I", vllm_engine.__file__],  # -I hides Plumbline's modules
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env={"OMP_NUM_THREADS": n_threads, **os.environ, "TMPDIR": place},
                    start_new_session=True,  # Ctrl-C reaches only Plumbline, which ends vLLM
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

        Raises ``BadInput`` if vLLM can't run the model or the process ended by itself, and
        ``Interrupted`` if the process or a worker was killed.
        """
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # if the process has ended, _answer raises the error
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
            raise self._refusal(answer["error"])
        return answer["found"]

    def _refusal(self, error: str) -> BadInput | Interrupted:
        """Return an error that quotes a line from vLLM's message or from the workers' output."""
        printed = self._log.read_text(encoding="utf-8", errors="replace")
        reasons = re.findall(r"Value error, (.*)", error) or error.strip().splitlines()[:1]
        if "root cause" in error:
            reasons = re.findall(r"\b\w+(?:Error|Exception): (.*)", printed)
        if "died unexpectedly" in printed or not reasons:
            return self._killed("lost a worker without an error, as if the worker was killed")
        reason = re.split(r" \[type=|\. ", reasons[0])[0]  # leave out vLLM's list of architectures
        return BadInput(self._what, f"vLLM can't run it: {reason}", "try --backend transformers")

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
        return self._killed(f"was killed by {signal.Signals(-status).name}, see {log}")

    def _killed(self, event: str) -> Interrupted:
        """Return the error for a process that was killed by a user or for lack of memory."""
        fix = "finished work is kept: run the same command again to resume"
        error = Interrupted(self._what, f"vLLM's process {event}", fix)
        error.__cause__ = ConnectionError()  # with this cause, the error counts as transient
        return error


def _end(process: subprocess.Popen[str], place: str) -> None:
    """End a process and its workers by closing the process's input. If that fails, kill them."""
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


class VllmBackend(CausalModel):
    """A causal language model that vLLM runs.

    ``options.batch_tokens`` limits the tokens per pass. A longer text takes several passes.
    ``options.device`` has to match the installed build of vLLM.

    Raises ``MissingComponent`` if vLLM is missing, ``BadInput`` for a model that vLLM can't run,
    ``Interrupted`` if the engine's process is killed. Also raises the errors of ``TextReader``.
    """

    supports = frozenset({"tensor_parallel"})

    def __init__(self, model: str, options: ModelOptions) -> None:
        self._engine = RemoteEngine(f"model {model}")
        super().__init__(model, replace(options, backend="vllm"))

    def versions(self) -> dict[str, str]:
        return {**self._engine.versions, "tokenizers": tokenizers.__version__}

    @property
    def weights(self) -> VllmBackend:
        """Return this object. It passes requests to the process that has the weights."""
        return self

    @cached_property
    def _n_positions(self) -> int:
        """Maximum number of tokens in a sequence, as vLLM reports after it loads the weights."""
        devices.release()
        _ = self._skeleton  # checks for missing weights: vLLM would leave them uninitialised
        device = self._engine.ask("device")
        if self.options.device not in ("auto", device):
            problem, fix = f"the installed vLLM computes on {device} only", f"use --device {device}"
            raise UsageProblem(f"--device {self.options.device}", problem, fix)
        n_positions: int = self._engine.ask(
            "load",
            n_tokens=devices.batch_tokens(self.options, device),
            model=self.source.location,
            revision=None if self.source.is_local else self.source.revision,
            dtype=self.options.dtype,
            tensor_parallel_size=self.options.tensor_parallel,
            **({"kv_cache_memory_bytes": _CPU_CACHE_BYTES} if device == "cpu" else {}),
        )
        return n_positions

    @cached_property
    def _skeleton(self) -> Any:
        """The model with the shapes of its weights, but without their values.

        The shapes are the original ones, before vLLM pads and merges weights. Raises
        ``BadInput`` if weights are missing in the files.
        """
        if self.identity.quantisation:  # vLLM checks quantised weights itself
            with torch.device("meta"):
                return AutoModelForCausalLM.from_config(self.config)
        load: Callable[..., Any] = AutoModelForCausalLM.from_pretrained
        model, info = load_part(self.source, load, device_map="meta", output_loading_info=True)
        check_complete(self.source, info)
        return model

    @property
    def n_parameters(self) -> int:
        """Number of parameters. Tied weights count once."""
        _ = self._n_positions  # reading this property loads the weights, as in other local backends
        return sum(p.numel() for p in self._skeleton.parameters())

    @cached_property
    def n_embedded(self) -> int:
        return n_embedded(self._skeleton)

    @property
    def n_context(self) -> int:
        """Maximum number of tokens in a text, excluding BOS and the token that vLLM generates."""
        limit, configured = self._n_positions - 2, super().n_context
        return limit if configured is None else min(limit, configured)

    def logprobs(self, sequences: Sequence[Tokens]) -> list[list[float]]:
        _ = self._n_positions
        logprobs: list[list[float]] = self._engine.ask(
            "score", sequences=self._after_bos(sequences)
        )
        return logprobs

    def new_tokens(
        self,
        prompts: Sequence[Tokens],
        seeds: Sequence[int],
        options: SamplingOptions,
        ends: Collection[int],
    ) -> list[Tokens]:
        _ = self._n_positions
        settings = {
            "temperature": 0.0 if options.greedy else options.temperature,
            "max_tokens": options.max_new_tokens,
            "stop_token_ids": sorted(ends),
        }
        if not options.greedy:
            settings |= {"top_p": options.top_p or 1.0, "top_k": options.top_k or 0}
        sequences = self._after_bos(prompts)
        new = self._engine.ask("draw", sequences=sequences, seeds=seeds, how=settings)
        return [tuple(ids) for ids in new]

    def _after_bos(self, sequences: Sequence[Tokens]) -> list[list[int]]:
        return [[self.identity.bos_token_id, *ids] for ids in sequences]


open_model = VllmBackend
