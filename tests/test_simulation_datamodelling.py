"""The interval of a datamodelling score covers what it promises."""

from __future__ import annotations

import pytest

from tools.simulations import datamodelling as simulation

pytestmark = pytest.mark.slow


def test_intervals_cover_and_equal_methods_do_not_differ() -> None:
    """With 60 draws a row, two Monte Carlo errors are 6 points; fewer over all rows together."""
    rows = simulation.rows(60, seed=2)
    held, differ = (
        [float(str(row[name])) for row in rows] for name in ("contains the truth", "differ")
    )
    assert min(held) >= 0.85 and 0.93 <= sum(held) / len(held) <= 0.99
    assert max(differ) <= 0.15 and sum(differ) / len(differ) <= 0.07
