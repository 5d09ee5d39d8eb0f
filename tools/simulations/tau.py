"""What the interval of Kendall's tau between two word pairs covers, with planted co-occurrences.

A document has more or fewer of each word than others (gamma, shape ``_SHAPE``), and of *she*
beside *he*: both pairs meet a word in the same windows, so that they share both. A word has a lean
with each pair, alike by ``alike``; sources, ten documents each, have leans of their own, shared by
the words of a topic, of which there are ten.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from plumbline.jobs.counting.cluster_counts import ClusterCounts
from plumbline.pipelines.reproduce.tau_interval import kendall, tau_errors, tau_interval

ABOUT = (
    "How often the 95% interval of Kendall's tau between two pairs' deltas contains the mean tau "
    "of texts of the same size: documents (or sources) drawn again, and the formula for "
    "independent words (Fieller, Hartley and Pearson 1957)."
)
DRAWS = 400
_SIDES = [(0, 1), (2, 3)]
#: Gamma shape of a document's share of a word with one side: bursts.
_SHAPE = 0.5
#: name: words, documents, of which ten make a source if True, mean count of a word by document,
#: correlation of the two pairs' leans.
_WORLDS = {
    "common words": (200, 200, False, 0.5, 0.5),
    "rare words": (400, 200, False, 0.03, 0.5),
    "pairs not alike": (200, 200, False, 0.2, 0.0),
    "few words": (60, 100, False, 0.3, 0.8),
    "30 sources": (1_000, 300, True, 0.1, 0.5),
}


def rows(draws: int, seed: int) -> list[dict[str, object]]:
    """A row per world."""
    return [_row(name, draws, np.random.default_rng([seed, k])) for k, name in enumerate(_WORLDS)]


def _row(name: str, draws: int, draw: np.random.Generator) -> dict[str, object]:
    n_words, _, in_sources, *_ = _WORLDS[name]
    leans = _leans(name, draw)
    taus, ends, old = [], [], []
    for _ in range(draws):
        counts = _counts(name, leans, draw)
        whole = counts.sum(axis=0)
        common = np.flatnonzero((whole > 0).all(axis=0))
        tau = kendall(*(whole[f, common] / whole[m, common] for f, m in _SIDES))
        if in_sources:
            counts = counts.reshape(-1, 10, 4, n_words).sum(axis=1)
        cluster, target, word = np.nonzero(counts)
        found = ClusterCounts("", len(counts), cluster, word, target, counts[cluster, target, word])
        (error,) = tau_errors(found, _SIDES, [common] * 2, [(0, 1)])
        taus.append(tau)
        ends.append(tau_interval(tau, error, len(counts)))
        half = 1.959963984540054 * np.sqrt(0.437 / (len(common) - 4))
        old.append(np.tanh(np.arctanh(tau) + np.array([-half, half])))
    truth = np.mean(taus)
    return {
        "world": name,
        "tau": float(truth),
        "documents: coverage": _coverage(ends, truth),
        "documents: width": float(np.diff(ends).mean()),
        "words: coverage": _coverage(old, truth),
        "words: width": float(np.diff(old).mean()),
    }


def _coverage(ends: object, truth: object) -> float:
    low, high = np.array(ends).T
    return float(((low <= truth) & (truth <= high)).mean())


def _leans(name: str, draw: np.random.Generator) -> NDArray[np.float64]:
    """Leans of the words with each pair, float64[2, word]."""
    n_words, *_, alike = _WORLDS[name]
    first, own = draw.normal(size=(2, n_words))
    return np.stack([first, alike * first + np.sqrt(1 - alike**2) * own])


def _counts(name: str, leans: NDArray[np.float64], draw: np.random.Generator) -> NDArray[np.int64]:
    """Co-occurrences, int64[document, target, word]; targets 0 and 2 are on one side."""
    n_words, n_documents, in_sources, mean, _ = _WORLDS[name]
    shape = n_documents, 2, n_words
    bursts = draw.gamma(_SHAPE, 1 / _SHAPE, shape)  # of the sides, which both pairs share
    if in_sources:
        of_source = np.exp(1.5 * draw.normal(size=(n_documents // 10, 2, 10)))
        bursts *= of_source.repeat(10, axis=0).repeat(n_words // 10, axis=2)
    of_target = np.exp(np.stack([leans, -leans], axis=1) / 2).reshape(4, n_words)
    rate = mean * bursts[:, [0, 1, 0, 1]] * of_target
    found: NDArray[np.int64] = draw.poisson(rate)
    return found
