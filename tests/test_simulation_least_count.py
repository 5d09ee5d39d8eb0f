"""The default least count keeps the errors of constraints below the levels of docs/methods.md."""

from __future__ import annotations

import math

import pytest

from plumbline.jobs.counting.corpus_options import LEAST_COUNT
from tools.simulations import least_count as simulation

pytestmark = pytest.mark.slow

#: Levels: pairs wrongly kept of those kept, and pairs wrongly dropped of all; see the simulation.
KEPT, DROPPED = 0.05, 0.10


def within(n_wrong: float, n: float, level: float) -> bool:
    """Whether a rate is at most a level, up to two Monte Carlo standard errors."""
    return n_wrong <= level * n + 2 * math.sqrt(level * (1 - level) * n)


@pytest.mark.parametrize("eta", simulation.ETAS)
def test_the_default_keeps_the_levels_in_every_world_and_the_old_rule_does_not(eta: float) -> None:
    n = 5_000
    drawn = simulation.worlds(n, seed=3)

    def keeps(least_count: int, *, ignored: bool = False) -> bool:
        found = [
            simulation.errors(one, simulation.leans(one, least_count), eta, ignored=ignored)
            for one in drawn
        ]
        return all(
            within(of["wrongly kept"], of["kept"], KEPT)
            and within(of["wrongly dropped"], n, DROPPED)
            for of in found
        )

    assert keeps(LEAST_COUNT)
    assert not keeps(1) and not keeps(1, ignored=True) and not keeps(LEAST_COUNT, ignored=True)
