"""What an intervention's interval over seeds covers: this text's response, and no other text's."""

from __future__ import annotations

import math
from itertools import islice

import numpy as np
import pytest
from scipy import stats

from plumbline.eval_workers.pairs.closed_world_corpus.corpus_writer import WorldOptions, documents
from plumbline.eval_workers.pairs.closed_world_corpus.truth import planted_words
from plumbline.eval_workers.training.interventions.exchange import gender_exchange
from tools.simulations import dose_response as simulation


def test_an_exchange_turns_whose_a_document_is_and_leaves_its_words() -> None:
    """So that the learner may turn a document's sign instead of its text."""
    exchange = gender_exchange()
    planted = {w.word for w in planted_words(3)}
    for text, _ in islice(documents(WorldOptions(seed=3), 0), 500):
        side, words = simulation.seen(text)
        turned, after = simulation.seen(exchange.apply(text).text)
        assert turned == -side
        assert [w for w in after if w in planted] == [w for w in words if w in planted]


def test_the_lean_of_the_whole_world_is_the_planted_one() -> None:
    words, world = planted_words(3), simulation.world(3)
    planted = sum(w.delta_nats * (w.p_she - w.p_he) for w in words)
    planted /= len({w.word_class for w in words})
    she, he = (world.sums[world.side == side].sum(axis=0) for side in (1, -1))
    assert simulation.planted_lean(she, he) == pytest.approx(planted, rel=0.05)


def test_doses_are_nested_and_the_response_is_proportional() -> None:
    world, draw = simulation.world(3), np.random.default_rng(0)
    text = simulation.World(world.side[:3000], world.sums[:3000])
    found = simulation.leans(text, 200, draw)
    # Without a dose and with the whole dose, the same documents have changed their sides.
    np.testing.assert_allclose(found[:, 0], -found[:, -1])
    means = found.mean(axis=0)
    np.testing.assert_allclose(means, means[0] * (1 - 2 * simulation.DOSES), atol=0.1)
    slopes = [stats.linregress(simulation.DOSES, lean).slope for lean in found[:5]]
    assert simulation.responses(found[:5]) == pytest.approx(slopes)
    ends = stats.ttest_1samp(slopes, 0).confidence_interval(0.95)
    assert simulation.half_width(np.array(slopes)) == pytest.approx((ends.high - ends.low) / 2)


@pytest.mark.slow
def test_the_interval_covers_this_text_and_no_other() -> None:
    """Rows share their studies, so that false findings are a mean over rows."""
    draws = 200
    error = 2 * math.sqrt(0.05 * 0.95 / draws)
    rows = [
        {name: float(str(value)) for name, value in row.items() if name != "learner"}
        for row in simulation.rows(draws, seed=1)
    ]
    for found in rows:
        assert abs(found["this text"] - 0.95) <= error + 0.01
        assert found["texts as unlike as seeds"] < found["this text"]
        if found["seeds"] >= 5:
            assert found["texts as unlike as seeds"] < 0.8 < found["placebo: small"]
    for name in ("placebo: excludes 0", "large placebo: small"):
        assert np.mean([found[name] for found in rows]) <= 0.05 + error
