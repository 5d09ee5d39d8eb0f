"""How often `onsets` says wrongly from when on a word leans, while all words drift together.

A tenth of the words leans to either side from the sixth of eight checkpoints on, all of it or
nothing. Their pairs stand in frames that all words share, or each in a sentence of its own, and all
of these drift by about two nats while the model learns.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import stats

from plumbline.eval_workers.scoring.statistics.change_points import onsets

ABOUT = "Onsets of words, raw and relative to the other words of their frames; leans in nats."
DRAWS = 200
N_STEPS, FIRST = 8, 5
Floats = npt.NDArray[np.float64]


def rows(draws: int, seed: int) -> list[dict[str, object]]:
    """A row for each number of words and pairs, kind of sentences, and lean."""
    worlds = [
        (n_words, n_pairs, is_shared, lean)
        for n_words, n_pairs in ((200, 4), (200, 12), (20, 4))
        for is_shared in (True, False)
        for lean in (0.0, 1.0, 2.0)
    ]
    return [row(draws, seed, *world) for world in worlds]


def row(
    draws: int, seed: int, n_words: int, n_pairs: int, is_shared: bool, lean: float
) -> dict[str, object]:
    """Mean shares of a world: of wrong onsets among those said, and of leaning words found."""
    rng = np.random.default_rng(seed)
    leans = np.zeros(n_words)
    leans[: n_words // 10], leans[-(n_words // 10) :] = lean, -lean
    worlds = [log_ratios(rng, leans, n_pairs, is_shared) for _ in range(draws)]
    raw = np.array([judged(ratios, leans) for ratios in worlds])
    new = np.array([judged(above_others(ratios, is_shared), leans) for ratios in worlds])
    world = {"words": n_words, "pairs": n_pairs, "frames": "shared" if is_shared else "own"}
    names = ("said", "wrong", "found")
    told = {
        f"{name}, {kind}": float(mean)
        for kind, of in (("raw", raw), ("relative", new))
        for name, mean in zip(names, of.mean(axis=0), strict=True)
    }
    return {**world, "lean": lean, **told}


def log_ratios(rng: np.random.Generator, leans: Floats, n_pairs: int, is_shared: bool) -> Floats:
    """Words x steps x pairs: drift of sentences, lean of words, noise of pairs and steps."""
    n = len(leans)
    drift = np.linspace(0, 1, N_STEPS)[:, None] * rng.normal(
        2, 0.5, (1 if is_shared else n, 1, n_pairs)
    )
    leaning = leans[:, None, None] * (np.arange(N_STEPS) >= FIRST)[:, None]
    noise = rng.normal(0, 0.5, (n, 1, n_pairs)) + rng.normal(0, 0.3, (n, N_STEPS, n_pairs))
    return np.asarray(drift + leaning + noise)


def above_others(ratios: Floats, is_shared: bool) -> Floats:
    """Log ratios less the mean of other words' pairs, as in view `checkpoint_word`."""
    if is_shared:
        return (ratios - ratios.mean(axis=0)) * len(ratios) / (len(ratios) - 1)
    of_word = ratios.mean(axis=2, keepdims=True)
    return np.asarray(ratios - (of_word.sum(axis=0) - of_word) / (len(ratios) - 1))


def judged(ratios: Floats, leans: Floats) -> tuple[float, float, float]:
    """Words with an onset; the share of these that is wrong; the share of leaning words in time."""
    means = ratios.mean(axis=2)
    places, _ = onsets(means, stats.ttest_1samp(ratios, 0, axis=2).pvalue)
    is_right = (places >= FIRST) & (leans * means[:, -1] > 0)
    n_said, n_right = int((places >= 0).sum()), int(is_right.sum())
    n_leaning = np.count_nonzero(leans)
    return n_said, (n_said - n_right) / max(n_said, 1), n_right / max(n_leaning, 1)
