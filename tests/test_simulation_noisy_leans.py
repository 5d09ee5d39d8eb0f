"""Slopes on leans counted in a sample of a closed world, simulated and counted for real."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from plumbline.eval_workers.pairs.closed_world_corpus.corpus_writer import WorldOptions, write_world
from plumbline.eval_workers.pairs.closed_world_corpus.truth import planted_words
from plumbline.jobs.association.associations import associate
from plumbline.jobs.count_corpus import CountRequest, count_corpus
from plumbline.jobs.evidence.explanation import explain
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests import fits
from tests.metric_rows import fill, pair, score
from tools.simulations import noisy_leans as simulation

DRAWS = 100


def test_the_simulated_correction_is_that_of_the_view() -> None:
    """`tests/test_metrics_fit.py` compares the view with the same points left out one by one."""
    rng = np.random.default_rng(0)
    x, y, error = rng.normal(size=20), rng.normal(size=20), rng.uniform(0.1, 0.4, 20)
    share, bounds = simulation.corrected(x, y, error)
    expected, known = fits.corrected(x, y, error)
    assert share == pytest.approx(expected)
    assert bounds.figure + bounds.half == pytest.approx(known.high)


@pytest.mark.slow
@pytest.mark.parametrize(("n_tokens", "n"), simulation.SAMPLES)
def test_a_corrected_slope_holds_the_planted_one(n_tokens: int, n: int) -> None:
    found = simulation.of_sample(np.random.default_rng(2), n_tokens, n, DRAWS)
    covered = found["corrected"]
    assert isinstance(covered, float) and covered >= 92.5 - 200 * np.sqrt(0.95 * 0.05 / DRAWS)


@pytest.mark.slow
def test_a_corrected_slope_on_a_counted_sample(store: Store, tmp_path: Path) -> None:
    """60,000 words of the world, counted: the model followed what was planted by 0.8."""
    world = write_world(WorldOptions(60_000, n_shards=1), tmp_path)
    count_corpus(store, CountRequest("sample", world.shards))
    associate(store, "sample")
    planted = {word.word: word.delta_nats for word in planted_words(0)}
    known = rows_of(store.root, "FROM word_delta WHERE contrast = 'she/he'")
    words = sorted({row["word"] for row in known} & set(planted))[::6]
    explain(store, "sample", words, "she/he")
    noise = np.random.default_rng(1).normal(0, 0.5, len(words))
    fill(store, "benchmark_pair", [pair("b", word, word=word) for word in words])
    means = [0.8 * planted[word] + e for word, e in zip(words, noise.tolist(), strict=True)]
    fill(store, "pair_score", [score("b", w, y) for w, y in zip(words, means, strict=True)])
    (fit,) = rows_of(store.root, "FROM fit WHERE subset = 'words, measured delta'")
    assert fit["n"] == len(words) > 80 and fit["error_over"] == "document"
    assert 0.6 < fit["reliability"] < 0.9
    assert fit["slope_high"] < 0.8 and fit["corrected_low"] < 0.8 < fit["corrected_high"]
