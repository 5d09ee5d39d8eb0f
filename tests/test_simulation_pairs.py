"""Intervals over clusters of pairs hold what they say: the simulation with fewer draws."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tools.simulations import coverage, shapes, worlds

DRAWS = 300


@pytest.mark.slow
def test_intervals_hold_the_truth_in_every_world() -> None:
    rng = np.random.default_rng(3)
    error = 100 * math.sqrt(0.075 * 0.925 / DRAWS)
    for shape in shapes(rng):
        for name, world in worlds(shape):
            line = coverage(shape, world, DRAWS, rng)
            for figure in ("us", "pd", "aufc"):
                assert line[figure] >= 92.5 - 2 * error, (shape.name, name, figure)
            for figure in ("us difference", "pd difference"):
                assert line[figure] >= 94 - 2 * error, (shape.name, name, figure)
