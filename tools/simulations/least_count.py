"""Which least count keeps pairs out of the wrong subset: the default of `benchmark constrain`.

A pair's words have true leans and frequencies in the shapes that the words of the released sets
have: leans by Laplace's distribution with the quantiles of the Pile's deltas, counts log-normal as
in 8.4 million words of novels and film reviews, in texts of an eighth, once and ten times the size.
Counts have twice the variance of Poisson's, since co-occurrences come in bursts. In a fourth world
one word of a pair is an occupation, as in WinoBias.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plumbline.jobs.association.max_pmi import TemplateLean, lean

ABOUT = (
    "Pairs in percent, over 12 worlds. Wrong is a pair on the other side of eta by 0.25 nats: of "
    "those kept (worst: in the worst world that keeps 50), and dropped ones of all pairs."
)
DRAWS = 20_000

LEAST_COUNTS = (1, 3, 5, 10, 20, 30)
ETAS = (0.5, 0.65)
#: Words of a pair, and the scale of the leans of one of them that is an occupation.
_WORLDS = ((4, 0.0), (6, 0.0), (11, 0.0), (6, 0.6))
_SIZES = (1 / 8, 1.0, 10.0)
#: Mean absolute lean in nats; share of the co-occurrences that are with the female target.
_LEAN, _FEMALE = 0.23, 0.38
#: By how much a pair has to lie on the other side of eta, in nats.
_CLEARLY = 0.25

Floats = NDArray[np.float64]


class World(NamedTuple):
    """Pairs of a world, one per row: the true leans of their words, the counts, and the deltas."""

    truth: Floats
    n_least: Floats
    delta: Floats


def world(n: int, n_words: int, occupation: float, size: float, seed: int) -> World:
    """Draw ``n`` pairs. A delta is infinite or NaN where a count is 0."""
    rng = np.random.default_rng(seed)
    truth = rng.laplace(0, _LEAN, (n, n_words))
    if occupation:
        truth[:, 0] = rng.laplace(0, occupation, n)
    n_pair = size * rng.lognormal(4.4, 2.1, truth.shape)
    odds = np.exp(truth) * _FEMALE / (1 - _FEMALE)
    # The mean of a Poisson drawn from Gamma(mean) gives the variance 2 x mean.
    female, male = (
        rng.poisson(rng.gamma(n_pair * share)) for share in (odds / (1 + odds), 1 / (1 + odds))
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        delta = np.log(female / male) - np.log(_FEMALE / (1 - _FEMALE))
    return World(truth, np.minimum(female, male), delta)


def worlds(n: int, seed: int) -> list[World]:
    """``n`` pairs of each world, in texts of each size."""
    shapes = [(*of, size) for of in _WORLDS for size in _SIZES]
    return [world(n, *shape, seed=1000 * seed + k) for k, shape in enumerate(shapes)]


def leans(drawn: World, least_count: int) -> list[TemplateLean]:
    """What ``constrain`` finds of each pair."""
    words = [str(i) for i in range(drawn.truth.shape[1])]
    known = drawn.n_least >= least_count
    return [
        lean(words, {w: d for w, d, k in zip(words, deltas, ok, strict=True) if k})
        for deltas, ok in zip(drawn.delta.tolist(), known.tolist(), strict=True)
    ]


def errors(
    drawn: World, found: list[TemplateLean], eta: float, *, ignored: bool
) -> dict[str, float]:
    """Numbers of pairs kept, dropped and on the wrong side; ``ignored``: unknown words pass."""
    truth = np.abs(drawn.truth).max(axis=1)
    most = np.array([np.nan if x.max_pmi_nats is None else abs(x.max_pmi_nats) for x in found])
    passes = np.array([ignored or x.n_words_defined == x.n_words for x in found])
    kept, dropped = (most <= eta) & passes, most > eta
    return {
        "kept": kept.sum(),
        "dropped": dropped.sum(),
        "wrongly kept": (kept & (truth > eta + _CLEARLY)).sum(),
        "wrongly dropped": (dropped & (truth < eta - _CLEARLY)).sum(),
    }


def rows(draws: int, seed: int) -> list[dict[str, Any]]:
    """A line per eta and rule: two where unknown words don't matter, then each least count."""
    drawn_worlds = worlds(draws, seed)
    rules = [(1, True), (10, True), *((k, False) for k in LEAST_COUNTS)]
    found = {k: [leans(drawn, k) for drawn in drawn_worlds] for k in LEAST_COUNTS}
    table = []
    for eta in ETAS:
        for k, ignored in rules:
            done = [
                errors(drawn, of, eta, ignored=ignored)
                for drawn, of in zip(drawn_worlds, found[k], strict=True)
            ]
            unknown = "ignored" if ignored else "leave undecided"
            rule = {"eta": eta, "least count": k, "unknown words": unknown}
            table.append(rule | _summary(done, draws))
    return table


def _summary(done: list[dict[str, float]], draws: int) -> dict[str, float]:
    kept, dropped, wrong, lost = (np.array([one[of] for one in done]) for of in done[0])
    many = kept >= 50
    return {
        "kept": 100 * kept.mean() / draws,
        "undecided": 100 * (1 - (kept + dropped).mean() / draws),
        "wrong of the kept": 100 * wrong.sum() / kept.sum(),
        "worst": 100 * (wrong[many] / kept[many]).max(),
        "wrongly dropped": 100 * lost.mean() / draws,
        "its worst": 100 * lost.max() / draws,
    }
