"""Tasks are tried again where the same call may succeed a moment later, and nowhere else."""

from __future__ import annotations

import errno
from types import SimpleNamespace

import huggingface_hub.errors
from prefect.states import Failed

from plumbline.pipelines.flows import run_command
from plumbline.warehouse.errors import (
    BadInput,
    Interrupted,
    MissingComponent,
    UsageProblem,
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
    condition = run_command.retry_condition_fn
    assert condition is not None and run_command.retries == 2
    for error in (*MAY_PASS, *STAYS):
        assert condition(run_command, None, Failed(data=error)) is (error in MAY_PASS)  # type: ignore[arg-type]
