"""The coverage of the intervals of fits that docs/methods.md promises, with fewer draws."""

from __future__ import annotations

import numpy as np
import pytest

from tests import fits
from tools.simulations import fits as simulation

DRAWS = 1000


def test_the_simulated_intervals_are_those_of_the_views() -> None:
    """`tests/test_metrics_fit.py` compares the views with the same matrices."""
    rng = np.random.default_rng(0)
    x, y = simulation.drawn(rng, 0.5, ("heavy", "unequal"), 3, 12)
    found = (simulation.line, simulation.pearson, simulation.spearman)
    of = [function(x, y) for function in found]
    for k in range(3):
        line, df = fits.slope(x[k], y[k])
        pearson = fits.correlation(x[k], y[k], fits.pearson, df)
        spearman = fits.correlation(x[k], y[k], fits.spearman, 10)
        assert of[0].figure[k] + of[0].half[k] == pytest.approx(line.high)
        for bounds, known in zip(of[1:], (pearson, spearman), strict=True):
            high = np.tanh(bounds.figure[k] + bounds.half[k])
            assert high == pytest.approx(known.high, abs=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("slope", simulation.SLOPES)
def test_intervals_hold_the_truth_as_often_as_they_say(slope: float) -> None:
    """92.5% in every world and at most 97.5% from 40 words, within two Monte Carlo errors."""
    rng = np.random.default_rng(3)
    off = 200 * np.sqrt(0.95 * 0.05 / DRAWS)
    for shape in simulation.SHAPES:
        for world in simulation.fits(rng, slope, shape, DRAWS):
            for name in ("slope", "correlation", "rank correlation"):
                covered = world[name]
                assert isinstance(covered, float) and covered >= 92.5 - off, world
                assert world["words"] == 10 or covered <= 97.5 + off, world
