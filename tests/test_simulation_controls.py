"""The coefficient of delta beside its controls, in made-up data: errors at their level."""

from __future__ import annotations

import math

import pytest

from tools.simulations.controls import SLOPES, WORDS, rows


@pytest.mark.slow
def test_intervals_of_delta_beside_its_controls() -> None:
    """At most 6% false effects and 94% coverage, but for two standard errors of 300 draws."""
    draws = 300
    error = 2 * math.sqrt(0.06 * 0.94 / draws)
    found = rows(draws, seed=2)
    assert [(r["effect"], r["words"]) for r in found] == [(s, n) for s in SLOPES for n in WORDS]
    for row in found:
        assert float(str(row["contains the truth"])) >= 0.94 - error
        if not row["effect"]:
            assert float(str(row["excludes 0"])) <= 0.06 + error
