"""Intervals of leans hold the planted lean as often as they say, with rare targets too."""

from __future__ import annotations

import math

import pytest

from tools.simulations import word_bounds


@pytest.mark.slow
def test_bounds_cover_the_planted_lean() -> None:
    draws = 1000
    for row in word_bounds.rows(draws, 7):
        error = math.sqrt(0.95 * 0.05 / draws)
        assert row["coverage"] > 0.95 - 2 * error, row
        if row["lean"] == 0:
            assert row["clear"] < row["expected clear"] + 2 * error, row
