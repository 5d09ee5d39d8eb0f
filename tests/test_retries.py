"""Tasks are tried again where the same call may succeed a moment later, and nowhere else."""

from __future__ import annotations

import errno
from pathlib import Path
from types import SimpleNamespace

import pytest
from prefect.states import Failed

from plumbline.pipelines.retries import RETRY, may_pass
from plumbline.warehouse.errors import BadInput, Interrupted, UsageProblem, disk_problems


def raised_from(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


def answered(status: int) -> Exception:
    error = OSError("the hub's answer")
    error.response = SimpleNamespace(status_code=status)  # type: ignore[attr-defined]
    return error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (TimeoutError(), True),
        (OSError(errno.ENETUNREACH, "unreachable"), True),
        (answered(429), True),
        (answered(503), True),
        (raised_from(BadInput("model m", "can't be loaded"), ConnectionResetError()), True),
        (answered(404), False),
        (answered(401), False),
        (BadInput("shard 3", "truncated"), False),
        (UsageProblem("benchmark", "there is none"), False),
        (raised_from(UsageProblem("model m", "no such model"), ConnectionResetError()), False),
        (raised_from(Interrupted("stopped"), ConnectionRefusedError()), False),
        (PermissionError(errno.EACCES, "denied"), False),
        (ValueError("a defect"), False),
    ],
)
def test_only_what_may_pass_is_tried_again(error: Exception, expected: bool) -> None:
    assert may_pass(error) is expected
    assert RETRY["retry_condition_fn"](None, None, Failed(data=error)) is expected


def test_a_stale_handle_under_the_warehouse_may_pass_and_a_full_disk_stays(tmp_path: Path) -> None:
    for number, expected in ((errno.ESTALE, True), (errno.ENOSPC, False)):
        with pytest.raises(BadInput) as caught, disk_problems(tmp_path):
            raise OSError(number, "said the disk")
        assert may_pass(caught.value) is expected


def test_being_asked_to_stay_offline_is_no_outage() -> None:
    errors = pytest.importorskip("huggingface_hub.errors")
    assert isinstance(errors.OfflineModeIsEnabled(), ConnectionError)
    assert not may_pass(errors.OfflineModeIsEnabled())


def test_tasks_that_ask_nobody_are_not_tried_again() -> None:
    from plumbline.pipelines import benchmark_flow, disclosure_flow, fairpair_flow, flow

    again = [flow.count, flow.import_benchmark, flow.score]
    again += [benchmark_flow.opinion, fairpair_flow.sample, disclosure_flow.measure]
    assert {task.retries for task in again} == {2}
    once = [flow.measure, flow.report, flow.train, benchmark_flow.write, fairpair_flow.score]
    assert {task.retries for task in once} == {0}
