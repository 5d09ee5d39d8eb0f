"""Passes side by side on one copy of the weights: same bits, errors, Ctrl-C, and how many."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

from plumbline.eval_workers.models import devices
from plumbline.eval_workers.models.kinds.causal_model import CausalModel
from plumbline.eval_workers.models.local.lanes import in_lanes, raise_if_stopped
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.sampling_contract import SamplingOptions
from tests.tiny_models import SENTENCES, save

_TOGETHER_S = 60
CPU = ModelOptions(device="cpu")


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever the machine has."""
    n_threads = torch.get_num_threads()
    monkeypatch.setattr(devices, "n_cores", lambda: 2)
    devices.limit_threads(2)
    yield
    devices.limit_threads(n_threads)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save("neox", tmp_path_factory.mktemp("lanes") / "neox"))


def _watched(monkeypatch: pytest.MonkeyPatch, backend: CausalModel) -> list[Any]:
    """Thread and number of threads of each pass; the first two wait for each other."""
    seen: list[Any] = []
    both, run = threading.Barrier(2), backend.weights._tree_pass

    def watched(sequences: Any) -> Any:
        seen.append((threading.get_ident(), torch.get_num_threads()))
        if len(seen) <= 2:
            both.wait(_TOGETHER_S)
        return run(sequences)

    monkeypatch.setattr(backend.weights, "_tree_pass", watched)
    return seen


@pytest.mark.usefixtures("two_cores")
def test_lanes_share_the_weights_and_give_the_same_bits(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone, both = (CausalModel(model, replace(CPU, batch_tokens=40)) for _ in range(2))
    alone.weights.takes_lanes = False
    assert both.weights.takes_lanes
    seen = _watched(monkeypatch, both)
    assert both.score(SENTENCES) == alone.score(SENTENCES)
    idents, n_threads = zip(*seen, strict=True)
    assert len(seen) > 2 and len(set(idents)) == 2 and threading.get_ident() not in idents
    assert set(n_threads) == {1}  # neither waits for threads of its own
    assert torch.get_num_threads() == 2
    how = SamplingOptions(temperature=3.0, max_new_tokens=5)
    draws = [how.draw(text, k) for text in ("She", "He said", "They") for k in range(30)]
    assert both.continue_(draws, how) == alone.continue_(draws, how)


@pytest.mark.usefixtures("two_cores")
def test_out_of_memory_ends_the_lanes_before_passes_get_smaller(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = CausalModel(model, replace(CPU, batch_tokens=40))
    expected = backend.score(SENTENCES)
    run, me = backend.weights._tree_pass, threading.get_ident()

    def limited(sequences: Any) -> Any:
        if threading.get_ident() != me:
            raise MemoryError
        return run(sequences)

    monkeypatch.setattr(backend.weights, "_tree_pass", limited)
    with pytest.warns(UserWarning, match="out of memory: going on with one pass at a time"):
        assert backend.score(SENTENCES) == expected
    assert backend.weights.batch_tokens == 40


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
