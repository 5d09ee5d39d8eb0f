"""Time scoring on a GPU: Plumbline and lm-evaluation-harness, each with transformers and vLLM.

All four load the same random weights of Pythia's shape and score the sentences of all pairs in five
benchmarks. Loading is not timed. Plumbline's times include locks and publishing, as in the command.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from benchmarks import gpu_harness
from benchmarks.scoring import BENCHMARKS
from benchmarks.scoring_model import SHAPES, sentences, write_model
from plumbline.eval_workers.models import open_backend
from plumbline.eval_workers.models.local import devices
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.vllm_backend import interpreter
from plumbline.eval_workers.scoring.pair_scores import PairScores
from plumbline.warehouse.errors import MissingComponent, PlumblineError
from plumbline.warehouse.steps.runner import run_steps
from plumbline.warehouse.storage.store import Store

#: Dense bfloat16 operations per second from data sheets, by a part of the device's name.
_PEAK = {"H200": 989e12, "H100": 989e12, "A100": 312e12, "L40S": 362e12, "A10": 125e12}


@dataclass(frozen=True)
class Way:
    """A way to score: seconds for all pairs once loaded, or why there are none."""

    name: str
    seconds: float | None
    missing: str = ""


@dataclass(frozen=True)
class Outcome:
    """Results of all ways on ``n_pairs`` pairs with ``n_tokens`` tokens, and the device's peak.

    ``operations`` are needed to compute each token once: two for each weight except embeddings.
    """

    ways: tuple[Way, ...]
    n_pairs: int
    n_tokens: int
    operations: float
    device: str
    peak: float | None

    def share(self, way: Way) -> float | None:
        """Share of the device's peak that a way reaches; ``None`` where either is not known."""
        if self.peak is None or way.seconds is None:
            return None
        return self.operations / way.seconds / self.peak


def run(shards: Sequence[Path], directory: Path, shape: str, device: str) -> Outcome:
    """Score in each way that is installed. Raises ``MissingComponent`` without the device."""
    if device == "cuda" and not torch.cuda.is_available():
        fix = "run it where there is one; 6.9 B parameters need 40 GB of its memory"
        raise MissingComponent("benchmark gpu", "torch sees no CUDA device here", fix)
    dtype = "bfloat16" if device == "cuda" else "float32"
    model = write_model(shards, directory / shape, SHAPES[shape], device, dtype)
    found = [sentences(name, directory / "warehouse") for name in BENCHMARKS]
    texts = [text for part, _ in found for text in part]
    ours = open_backend(str(model), ModelOptions(device=device))
    n_tokens = sum(len(ids) for ids in ours.encoded(texts) if not isinstance(ids, str))
    with torch.device("meta"):
        weights = AutoModelForCausalLM.from_config(ours.config).named_parameters()
    n_inner = sum(values.numel() for name, values in weights if "embed" not in name)
    operations = 2.0 * n_tokens * n_inner
    listed = directory / "texts.json"
    listed.write_text(json.dumps(texts), encoding="utf-8")
    how = (str(model), str(listed), dtype, device)
    options = ModelOptions(dtype=dtype, device=device)
    by_vllm = ModelOptions(backend="vllm", dtype=dtype)
    ways = (
        _printed(_ours("plumbline, vLLM", directory, how[0], by_vllm)),
        _printed(_ours("plumbline, transformers", directory, how[0], options)),
        _printed(_harness("lm-evaluation-harness, vLLM", "vllm", how)),
        _printed(_harness("lm-evaluation-harness, HF", "hf", how)),
    )
    name = torch.cuda.get_device_name() if device == "cuda" else "CPU"
    peak = next((value for part, value in _PEAK.items() if part in name), None)
    return Outcome(ways, sum(n for _, n in found), n_tokens, operations, name, peak)


def _printed(way: Way) -> Way:
    """Print and return a result; the others take minutes and may fail."""
    print(f"{way.name}: {way.missing or f'{way.seconds:.1f} s'}", file=sys.stderr, flush=True)
    return way


def _ours(name: str, directory: Path, model: str, options: ModelOptions) -> Way:
    store = Store.open(directory / "warehouse")
    try:
        backend = open_backend(model, options)
        _ = backend.n_parameters  # loads the weights
        start = time.monotonic()
        run_steps(store, backend, [PairScores(n) for n in BENCHMARKS], "bench")
        seconds = time.monotonic() - start
    except PlumblineError as e:
        return Way(name, None, str(e))
    finally:
        devices.release()  # the next way needs nine tenths of the memory
    return Way(name, seconds)


def _harness(name: str, kind: str, how: Sequence[str]) -> Way:
    """Time the harness in its own process, with the Python that has what the backend needs."""
    try:
        python = interpreter() if kind == "vllm" else Path(sys.executable)
    except MissingComponent as e:
        return Way(name, None, str(e))
    command = [str(python), "-I", gpu_harness.__file__, kind, *how]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines: list[Any] = done.stdout.splitlines() or [""]
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()] or [""]
        errors = [line for line in said if "Error" in line]  # later lines may be about the exit
        return Way(name, None, f"{(errors or said)[-1]} ({python})")
    return Way(name, json.loads(lines[-1])["seconds"])
