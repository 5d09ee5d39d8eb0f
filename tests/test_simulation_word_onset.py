"""Onsets of words: few are wrong while all words drift together."""

from __future__ import annotations

import pytest

from tools.simulations.word_onset import row

pytestmark = pytest.mark.slow
DRAWS = 150


@pytest.mark.parametrize("is_shared", [True, False])
@pytest.mark.parametrize("lean", [0.0, 2.0])
@pytest.mark.parametrize(("n_words", "n_pairs"), [(200, 4), (200, 12), (20, 4)])
def test_wrong_onsets(n_words: int, n_pairs: int, is_shared: bool, lean: float) -> None:
    found = row(DRAWS, 2, n_words, n_pairs, is_shared, lean)
    assert found["wrong, relative"] <= 0.05 + 2 * (0.05 * 0.95 / DRAWS) ** 0.5
    assert found["wrong, raw"] > 0.5
    if lean and n_pairs == 12:
        assert found["found, relative"] > 0.95
