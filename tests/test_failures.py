"""Of several models one that fails stops no other, and the status says whether to try again."""

from __future__ import annotations

import pytest

from plumbline.pipelines.command.failures import Failures
from plumbline.warehouse.errors import BadInput, Interrupted, PlumblineError

_BAD = BadInput("model a", "is damaged")


def _away() -> Interrupted:
    error = Interrupted("model b", "the hub is away")
    error.__cause__ = ConnectionRefusedError()
    return error


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ([_BAD, None], BadInput),
        ([_away(), None], Interrupted),
        ([_BAD, _away()], Interrupted),
        ([None, None], None),
    ],
)
def test_the_others_are_done(
    errors: list[PlumblineError | None], expected: type[PlumblineError] | None
) -> None:
    failures, done = Failures(len(errors)), []
    for k, error in enumerate(errors):
        with failures.collected(f"m{k}"):
            if error is not None:
                raise error
            done.append(k)
    assert len(done) == errors.count(None) and len(failures.lines) == len(errors) - len(done)
    if expected is None:
        return failures.check()
    with pytest.raises(expected, match=r"models: . of 2 failed: m.*same command tries these again"):
        failures.check()


def test_a_stop_a_defect_and_the_failure_of_an_only_model_end_the_command() -> None:
    stops = (Interrupted("lock", "taken"), KeyboardInterrupt(), ZeroDivisionError("a defect"))
    for n, error in (*((3, stop) for stop in stops), (1, _BAD)):
        with pytest.raises(type(error)), Failures(n).collected("m"):
            raise error
