"""Tasks are tried again where the same call may succeed a moment later, and nowhere else."""

from __future__ import annotations

import errno
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub.errors
import pytest
from prefect.states import Failed

from plumbline.pipelines import stages as task_retries
from plumbline.pipelines.stages import RETRY, Stages, may_pass
from plumbline.warehouse.errors import (
    BadInput,
    Interrupted,
    MissingComponent,
    UsageProblem,
    disk_problems,
)


def raised_from(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


def answered(status: int) -> Exception:
    error = OSError("the hub's answer")
    error.response = SimpleNamespace(status_code=status)  # type: ignore[attr-defined]
    return error


MAY_PASS = [
    TimeoutError(),
    OSError(errno.ENETUNREACH, "unreachable"),
    answered(429),
    answered(503),
    raised_from(BadInput("model m", "can't be loaded"), ConnectionResetError()),
    raised_from(Interrupted("model m", "the hub is away"), ConnectionRefusedError()),
]
STAYS = [
    answered(404),
    BadInput("shard 3", "truncated"),
    raised_from(UsageProblem("model m", "no such model"), ConnectionResetError()),
    Interrupted("stopped"),
    raised_from(Interrupted("stopped"), KeyboardInterrupt()),  # type: ignore[arg-type]
    MissingComponent("torch", "is not installed"),
    PermissionError(errno.EACCES, "denied"),
    ValueError("a defect"),
    huggingface_hub.errors.OfflineModeIsEnabled(),
]


def test_only_what_may_pass_is_tried_again() -> None:
    for error in (*MAY_PASS, *STAYS):
        assert may_pass(error) is (error in MAY_PASS)
        assert RETRY["retry_condition_fn"](None, None, Failed(data=error)) is (error in MAY_PASS)


def test_a_stale_handle_under_the_warehouse_may_pass_and_a_full_disk_stays(tmp_path: Path) -> None:
    for number, expected in ((errno.ESTALE, True), (errno.ENOSPC, False)):
        with pytest.raises(BadInput) as caught, disk_problems(tmp_path):
            raise OSError(number, "said the disk")
        assert may_pass(caught.value) is expected


def test_only_a_stage_that_may_pass_is_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_retries, "_DELAY_S", 0)

    def work(errors: list[Exception]) -> str:
        if errors:
            raise errors.pop()
        return "done"

    stages = Stages()
    assert stages.retried("passes", work, [ConnectionResetError(), TimeoutError()]) == "done"
    with pytest.raises(ConnectionResetError):
        stages.run("once", work, [ConnectionResetError()])
    with pytest.raises(FileNotFoundError):
        stages.retried("does not pass", work, [FileNotFoundError()])


def test_the_same_stages_are_tasks_of_a_flow() -> None:
    """Named by the stage; one that may be tried again has retries."""
    from plumbline.pipelines.flows import retried_stage, stage

    assert (stage.retries, retried_stage.retries) == (0, 2)
    assert stage.task_run_name == retried_stage.task_run_name == "{name}"
    assert retried_stage.fn("double", lambda n: 2 * n, (4,)) == 8
