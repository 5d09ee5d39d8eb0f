"""Run one step on a model, as the commands do; other processes; a shard that takes a while."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from plumbline.eval_workers.disclosure.word_probabilities import ProbeStep, load_words
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.sampling_contract import SamplingOptions
from plumbline.eval_workers.models.scoring_contract import NONE
from plumbline.eval_workers.scoring.continuations import Continuations
from plumbline.eval_workers.scoring.model_step import run_on_model
from plumbline.eval_workers.scoring.pair_scores import PairScores
from plumbline.warehouse.input.shards import write_jsonl_zst
from plumbline.warehouse.steps.step import StepCounts
from plumbline.warehouse.storage.store import Store
from tests.conftest import REPOSITORY


def score_sets(
    store: Store,
    names: Sequence[str],
    model: str,
    options: ModelOptions,
    run_id: str = "run",
    **how: Any,
) -> list[StepCounts]:
    steps = [PairScores(name, **how) for name in names]
    return run_on_model(store, model, options, steps, run_id)


def sample_set(
    store: Store, name: str, model: str, options: ModelOptions, sampling: SamplingOptions, n: int
) -> StepCounts:
    return run_on_model(store, model, options, [Continuations(name, sampling, n)], "run")[0]


def probe_set(
    store: Store, name: str, model: str, options: ModelOptions, word_list: str
) -> StepCounts:
    step = ProbeStep(name, load_words(store, word_list), NONE)
    return run_on_model(store, model, options, [step], "run")[0]


def python(
    code: str, *words: str, env: Mapping[str, str] = os.environ, **how: Any
) -> subprocess.CompletedProcess[str]:
    """What a Python of its own does, which finds the tests."""
    command = [sys.executable, "-c", code, *words]
    env = {**env, "PYTHONPATH": str(REPOSITORY)}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, **how)


@contextmanager
def another(code: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has said "in"; killed at the end."""
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "in\n"
        try:
            yield process
        finally:
            process.kill()


def shown(monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> list[tuple[str, int, int]]:
    """What the progress bars of a module show from now on: note or step, done, all."""
    seen: list[tuple[str, int, int]] = []

    @contextmanager
    def progress(what: str, unit: str) -> Iterator[Callable[..., None]]:
        def update(n_done: int, n_all: int, /, note: str = "") -> None:
            seen.append((note or what, n_done, n_all))

        yield update

    monkeypatch.setattr(module, "progress", progress)
    return seen


def write_slow_shard(path: Path) -> None:
    """A small file of so much text that counting it takes seconds: time to interrupt it."""
    write_jsonl_zst(path, ["She saw the word that he left for her. " * 2000] * 5000)
