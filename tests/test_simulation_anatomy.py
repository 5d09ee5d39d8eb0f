"""Shares of the mean square of log ratios, in worlds whose shares are planted."""

from __future__ import annotations

import math

import numpy as np
import pytest

from plumbline.eval_workers.scoring.statistics.components import AVERAGE, products, shares
from tools.simulations.anatomy import WORLDS, drawn, planted, rows


@pytest.mark.parametrize("name", WORLDS)
def test_parts_are_unbiased(name: str) -> None:
    """Over 30 draws each part's mean product is that planted, within three and a half errors."""
    world, errors = WORLDS[name], []
    for seed in range(30):
        table, truth = drawn(world, np.random.default_rng([7, seed]))
        found = products(table)
        errors.append([np.trace(found[part, AVERAGE] - truth[part]) for part in truth])
    error = np.array(errors)
    t = error.mean(axis=0) / (error.std(axis=0, ddof=1) / math.sqrt(len(error)))
    assert np.abs(t).max() < 3.5


def test_planted_shares_come_back() -> None:
    world = WORLDS["as USE"]
    table, _ = drawn(world, np.random.default_rng(3))
    found = [s for s in shares(table) if s.order == AVERAGE and s.shared == "sum"]
    assert {s.part for s in found} == set(world.planted)
    assert sum(s.share for s in found) == pytest.approx(1)
    for s in found:
        assert s.families_low <= planted(world)[s.part][-1] <= s.families_high, s
    (number,) = (s for s in found if s.part == "number")
    assert number.share_low < 0 < number.share_high < 0.01


@pytest.mark.slow
def test_intervals_contain_the_planted_shares() -> None:
    draws = 20
    for row in rows(draws, seed=2):
        # 200 draws: 94.5% or more of all parts, 83.5% or more of each.
        error = 3 * math.sqrt(0.835 * 0.165 / draws)
        assert float(str(row["these models: coverage"])) >= 0.88, row
        assert float(str(row["other families: coverage"])) >= 0.88, row
        assert float(str(row["lowest part"])) >= 0.835 - error, row
        # A share with two occupations in a pair has an error of 0.09.
        assert float(str(row["largest bias"])) < 3 * 0.09 / math.sqrt(draws), row
