"""Lasting changes: few are false where curves have memory, and the stated power is the real one."""

from __future__ import annotations

import pytest

from tools.simulations.lasting_changes import row

pytestmark = pytest.mark.slow
DRAWS = 150


def errors(share: float) -> float:
    """Two Monte Carlo standard errors of a share."""
    return float(2 * (share * (1 - share) / DRAWS) ** 0.5)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
@pytest.mark.parametrize(("n_curves", "n_steps"), [(1, 16), (1, 96), (4, 24), (4, 48)])
def test_false_finds(n_curves: int, n_steps: int, rho: float) -> None:
    found = row(DRAWS, 2, n_curves, n_steps, rho)
    assert found["false finds"] <= 0.05 + errors(0.05)
    if n_steps > 24 and rho < 0.9:
        power = found["stated power"]
        assert found["shift of 3 found"] == pytest.approx(power, abs=0.05 + errors(power))
    if rho:
        assert found["by random orders"] > 0.15


def test_few_checkpoints_have_no_verdict() -> None:
    assert row(20, 2, 2, 8, 0.0)["with a verdict"] == 0
