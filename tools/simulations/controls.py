"""How often ``plumbline measure`` is right about delta beside its controls, in made-up data.

A delta is related to its n-gram log ratios (0.5) and to its frequency (0.5); a log ratio is the
n-gram log ratio plus something of the word's own and of the pair's own, and, in a second set, 0.3
nats per nat of delta. Words have 1 to 12 pairs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from plumbline.eval_workers.scoring.statistics.controls import Effect, effects

ABOUT = (
    "The coefficient of delta beside frequency, n-grams and length, with and without an effect: "
    "how often its 95% interval excludes 0 and contains the truth, and how often each verdict is "
    "given."
)
DRAWS = 1_000
SLOPES, WORDS = (0.0, 0.3), (20, 40, 100, 300)
VERDICTS = ("predicts", "does not", "cannot be told")


def study(n_words: int, slope: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Predictors (pairs x 4), log ratios and words of one study."""
    draw = np.random.default_rng([seed, n_words])
    delta, of_ngram, of_frequency, own = draw.standard_normal((4, n_words))
    n_pairs = draw.integers(1, 13, n_words)
    word = np.repeat(np.arange(n_words), n_pairs)
    frequency = 0.5 * delta + of_frequency
    ngram = (0.5 * delta + of_ngram)[word] + draw.standard_normal(len(word))
    length = draw.integers(6, 20, len(word)).astype(float)
    x = np.column_stack([delta[word], frequency[word], ngram, length])
    y = slope * delta[word] + ngram + 0.5 * own[word] + draw.standard_normal(len(word))
    return x, y, word


def of_delta(n: int, n_words: int, slope: float, first_seed: int = 0) -> Iterator[Effect]:
    """The effect of delta in each of ``n`` studies."""
    for seed in range(first_seed, first_seed + n):
        yield effects(*study(n_words, slope, seed))[0]


def rows(draws: int, seed: int) -> list[dict[str, object]]:
    """A row per effect of delta, in nats per nat, and number of words."""
    return [_row(draws, n_words, slope, seed) for slope in SLOPES for n_words in WORDS]


def _row(draws: int, n_words: int, slope: float, seed: int) -> dict[str, object]:
    found = list(of_delta(draws, n_words, slope, seed * draws))
    ends = np.array([effect.coefficient[1:] for effect in found if effect.coefficient])
    verdicts = Counter(effect.verdict for effect in found)
    return {
        "effect": slope,
        "words": n_words,
        "excludes 0": float((ends[:, 0] * ends[:, 1] > 0).mean()),
        "contains the truth": float(((ends[:, 0] <= slope) & (slope <= ends[:, 1])).mean()),
        **{verdict: verdicts[verdict] / draws for verdict in VERDICTS},
    }
