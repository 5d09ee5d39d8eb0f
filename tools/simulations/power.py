"""How often an effect of the smallest size that a benchmark should find is found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from plumbline.eval_workers.scoring.statistics.cluster_covariances import (
    clustered_variance,
    influences,
    variances,
)
from plumbline.eval_workers.scoring.statistics.power import LEVEL, PairDesign, Spread

ABOUT = (
    "PD (points) and US off a half (shares) of the smallest size by `PairDesign.smallest`, in "
    "clusters with a planted correlation: found is the share of draws whose t test is clear, "
    "promised 0.8."
)
DRAWS = 1000
#: Share of pairs without a preference where PD is planted.
_EVEN = 0.25


def shapes(rng: np.random.Generator) -> Iterator[tuple[str, npt.NDArray[np.int64]]]:
    """Clusters of pairs: sizes of the released sets, frames, few and unequal clusters."""
    yield "490 words by 9", np.arange(4410)[:, None] // 9
    yield (
        "40 occupations, two a pair",
        np.array([rng.choice(40, 2, replace=False) for _ in range(1586)]),
    )
    yield (
        "80 words, one with 60 of 240 pairs",
        np.r_[np.zeros(60, int), 1 + np.arange(180) % 79][:, None],
    )
    yield "20 words by 8 frames", np.stack([np.arange(160) // 8, 20 + np.arange(160) % 8], axis=1)
    yield "40 unequal words", np.repeat(np.arange(40), rng.integers(5, 60, 40))[:, None]
    yield "10 unequal words", np.repeat(np.arange(10), rng.integers(20, 60, 10))[:, None]


def rows(draws: int, seed: int) -> list[Mapping[str, object]]:
    """A line for each measure, shape and correlation."""
    rng = np.random.default_rng(seed)
    every = list(shapes(rng))
    return [
        _row(measure, name, clusters, icc, draws, rng)
        for measure in ("pd", "us")
        for name, clusters in every
        for icc in (0.02, 0.2)
    ]


def _row(
    measure: str,
    name: str,
    clusters: npt.NDArray[np.int64],
    icc: float,
    draws: int,
    rng: np.random.Generator,
) -> Mapping[str, object]:
    design = PairDesign.of(clusters)
    sd = 100 * np.sqrt(1 - _EVEN) if measure == "pd" else 0.5
    smallest = design.smallest(Spread(float(sd), icc)) or np.nan
    if measure == "pd":
        values, null = np.array([-100.0, 0.0, 100.0]), 0.0
        d = min(smallest / 100, 1 - _EVEN)
        shares = np.array([(1 - _EVEN - d) / 2, _EVEN, (1 - _EVEN + d) / 2])
    else:
        values, null = np.array([0.0, 1.0]), 0.5
        shares = np.array([0.5 - smallest, 0.5 + smallest])
    drawn = [_drawn(clusters, icc, shares, rng) for _ in range(draws)]
    figures = values[np.array(drawn).T]
    se = np.sqrt(variances(clustered_variance(influences(figures), clusters)))
    t = np.abs(figures.mean(axis=0) - null) / se
    return {
        "measure": measure,
        "clusters": name,
        "icc": icc,
        "smallest": smallest,
        "found": float((t > stdtrit(design.df, 1 - LEVEL / 2)).mean()),
    }


def _drawn(
    clusters: npt.NDArray[np.int64],
    icc: float,
    shares: npt.NDArray[np.float64],
    rng: np.random.Generator,
) -> npt.NDArray[np.int64]:
    """A value of each pair: that of a cluster of it with probability sqrt(icc), else its own."""
    of_cluster = rng.choice(len(shares), clusters.max() + 1, p=shares)
    own = rng.choice(len(shares), len(clusters), p=shares)
    which = np.floor(rng.random(len(clusters)) / np.sqrt(icc)).astype(int)
    for place in range(clusters.shape[1]):
        own = np.where(which == place, of_cluster[clusters[:, place]], own)
    return own
