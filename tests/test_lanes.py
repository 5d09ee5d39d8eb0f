"""Forward passes at the same time: errors, Ctrl-C, and memory that runs out."""

import signal
import threading
import time

import pytest

from plumbline.eval_workers.models import memory_problems
from plumbline.eval_workers.models.local import devices
from plumbline.eval_workers.models.local.devices import in_lanes, raise_if_stopped
from plumbline.warehouse.errors import BadInput


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
