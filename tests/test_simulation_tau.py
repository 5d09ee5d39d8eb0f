"""The interval of Kendall's tau between two word pairs, in texts whose documents come in bursts."""

from __future__ import annotations

import math

import pytest

from tools.simulations.tau import rows


@pytest.mark.slow
def test_the_interval_of_tau_over_documents_contains_the_mean_tau() -> None:
    draws = 100
    error = 2 * math.sqrt(0.05 * 0.95 / draws)
    found = rows(draws, seed=2)
    assert len(found) == 5
    for row in found:
        assert float(str(row["documents: coverage"])) >= 0.93 - error, row
