"""Boards of models: at most one in twenty has a wrong set of ranks."""

from __future__ import annotations

import math

import pytest

from tools.simulations import ranks

pytestmark = pytest.mark.slow


def test_sets_of_ranks_are_right_for_all_models_of_a_board() -> None:
    draws = 200
    most = 0.05 + 2 * math.sqrt(0.05 * 0.95 / draws)
    rows = ranks.rows(draws, seed=3)
    assert {row["models"] for row in rows} == {5, 12, 28}
    assert [row for row in rows if row["wrong"] > most] == []
    # They say something where models are apart: on forty words not half of the ranks remain.
    apart = [r for r in rows if r["US"] == "threes, apart" and r["words"] == "40"]
    assert all(row["ranks in a set"] < 0.7 * row["models"] for row in apart)
