"""Simulate how often 95% intervals over clusters of pairs contain the true figure.

``python -m tools.simulations`` prints the shares that docs/methods.md summarises. A world draws the
log ratios of pairs from effects of words, of frames or second occupations, and of pairs. Its true
figures, over all words (frames, occupations) like these, are known. Each draw goes through the SQL
that `plumbline measure` uses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.stats import norm

from plumbline.warehouse.query.connection import sql

DRAWS = 1000
_EPSILON = float(np.log(1.65))
_MOST_ROWS = 4_000_000
Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Shape:
    """Which pairs are alike: the clusters of each pair, and its stratum."""

    name: str
    first: Integers
    second: Integers | None = None
    stratum: Integers | None = None
    is_dyadic: bool = False


@dataclass(frozen=True)
class World:
    """Normal log ratios: ``centre`` plus effects of words, of frames or occupations, and of pairs.

    The deviations are the effects' standard deviations. ``tilt`` is added in one stratum and
    subtracted in the other.
    """

    centre: float = 0.0
    word: float = 0.0
    second: float = 0.0
    pair: float = 1.0
    tilt: float = 0.0

    def spread(self, shape: Shape) -> float:
        """Return the standard deviation of a log ratio over words, frames and pairs like these."""
        second = self.second if shape.second is not None else 0.0
        return float(np.sqrt(self.word**2 + second**2 + self.pair**2))


def _sizes(rng: np.random.Generator, n_clusters: int, n_pairs: int, skew: float) -> Integers:
    """Assign ``n_pairs`` to ``n_clusters`` of unequal size, none of them empty."""
    weight = rng.gamma(1 / skew**2, size=n_clusters) if skew else np.ones(n_clusters)
    rest = rng.choice(n_clusters, n_pairs - n_clusters, p=weight / weight.sum())
    return np.sort(np.concatenate([np.arange(n_clusters), rest]))


def shapes(rng: np.random.Generator) -> list[Shape]:
    """Return shapes like the five released sets, our frames, and few clusters of unequal size."""
    crossed = np.arange(80)
    schema = np.repeat(np.arange(60), 4)
    # half of the people in the schemas are named by their occupation, a quarter are "someone"
    person = np.where(
        np.arange(240) % 4 < 2, schema, np.where(np.arange(240) % 4 == 2, 60, 61 + schema // 3)
    )
    dyads = np.array([rng.choice(40, 2, replace=False) for _ in range(400)])
    twins = np.repeat(dyads, 4, axis=0)[:1586]
    return [
        Shape("USE-5", _sizes(rng, 491, 4405, 0.4)),
        Shape("USE-20", _sizes(rng, 493, 4839, 0.3)),
        Shape("WinoBias", twins[:, 0], twins[:, 1], np.arange(1586) % 2, is_dyadic=True),
        Shape("Winogender", person, schema),
        Shape("20 words by 4 frames", crossed // 4, crossed % 4),
        *(Shape(f"{n} unequal clusters", _sizes(rng, n, 20 * n, 0.7)) for n in (5, 10, 40)),
    ]


def worlds(shape: Shape) -> list[tuple[str, World]]:
    """Return worlds for a shape. They differ in which effects are strong, and in US and PD."""
    tilt = 0.5 if shape.stratum is not None else 0.0
    found = [
        ("independent pairs", World(0.3, 0, 0, 1, tilt)),
        ("words", World(0.3, 0.8, 0, 0.6, tilt)),
        ("words, near an end", World(2.2, 0.8, 0, 0.6, tilt)),
        ("words, most even", World(0.0, 0.15, 0, 0.15, tilt / 5)),
    ]
    if shape.second is not None:
        found += [
            ("both", World(0.3, 0.6, 0.6, 0.5, tilt)),
            ("second alone", World(0.3, 0, 0.8, 0.6, tilt)),
            ("both, near an end", World(2.2, 0.6, 0.6, 0.5, tilt)),
        ]
    return found


def drawn(shape: Shape, world: World, draws: int, rng: np.random.Generator) -> Floats:
    """Draw log ratios, one row per draw and one column per pair."""
    n = shape.first.size
    word = rng.normal(0, 1, (draws, int(shape.first.max()) + 1)) * world.word
    made = world.centre + word[:, shape.first] + rng.normal(0, world.pair, (draws, n))
    if shape.second is not None:
        second = rng.normal(0, 1, (draws, int(shape.second.max()) + 1)) * world.second
        if shape.is_dyadic and world.word == world.second:
            second = word  # an occupation has one effect, in either place
        made += second[:, shape.second]
    if shape.stratum is not None:
        made += np.where(shape.stratum == 0, world.tilt, -world.tilt)
    return made


def truths(shape: Shape, world: World) -> dict[str, float]:
    """Return US, PD (a share) and AuFC over all words, frames and pairs like these."""
    sd = world.spread(shape)
    tilts = [world.tilt, -world.tilt] if shape.stratum is not None else [0.0]
    shares = (
        [np.mean(shape.stratum == 0), np.mean(shape.stratum == 1)]
        if shape.stratum is not None
        else [1.0]
    )

    def mean(of: Floats) -> float:
        return float(np.dot(shares, of))

    centres = world.centre + np.array(tilts)
    epsilons = np.linspace(0, 6, 101)[:, None]
    even = norm.cdf((epsilons - centres) / sd) - norm.cdf((-epsilons - centres) / sd)
    us = norm.cdf((_EPSILON - centres) / sd) - norm.cdf((-_EPSILON - centres) / sd)
    pd = norm.sf((_EPSILON - centres) / sd) - norm.cdf((-_EPSILON - centres) / sd)
    return {"us": mean(us), "pd": mean(pd), "aufc": mean(np.trapezoid(even, dx=0.06, axis=0))}


def figures(ratios: Floats, others: Floats) -> dict[str, Floats]:
    """Return what each pair adds to US, PD (a share), AuFC, and differences of two models."""
    (even, lean), (other_even, other_lean) = map(_leaning, (ratios, others))
    first = np.maximum(np.ceil(np.abs(ratios) / 0.06), 0)
    area = 0.03 * np.maximum(201 - 2 * first - (first == 0), 0)
    differences = {"us difference": other_even - even, "pd difference": other_lean - lean}
    return {"us": even, "pd": lean, "aufc": area, **differences}


def _leaning(ratios: Floats) -> tuple[Floats, Floats]:
    even = (np.abs(ratios) <= _EPSILON).astype(float)
    return even, np.sign(ratios) * (1 - even)


def like(ratios: Floats, shape: Shape, world: World, rng: np.random.Generator) -> Floats:
    """Draw log ratios of another model in the same world, correlated 0.6 with these."""
    centre = world.centre + (
        0.0 if shape.stratum is None else np.where(shape.stratum == 0, world.tilt, -world.tilt)
    )
    own = drawn(shape, world, len(ratios), rng)
    made: Floats = centre + 0.6 * (ratios - centre) + 0.8 * (own - centre)
    return made


_ENDS = """
WITH figure AS (
    SELECT draw AS subject, cluster_1, cluster_2, stratum, numerator, 1 AS denominator FROM draws
)
SELECT
    value, t,
    CASE $kind
        WHEN 'us' THEN wilson_low(value, n_star, t)
        WHEN 'aufc' THEN mean_low(value, se, skewed_t(t, n_clusters), 0, 6)
        WHEN 'pd difference' THEN mean_low(value, se, t, -2, 2)
        ELSE bonett_price(share_above, share_below, n_star, -t)
    END AS low,
    CASE $kind
        WHEN 'us' THEN wilson_high(value, n_star, t)
        WHEN 'aufc' THEN mean_high(value, se, skewed_t(t, n_clusters), 0, 6)
        WHEN 'pd difference' THEN mean_high(value, se, t, -2, 2)
        ELSE bonett_price(share_above, share_below, n_star, t)
    END AS high
FROM clustered('figure')
ORDER BY subject
"""


def intervals(shape: Shape, kind: str, figure: Floats) -> Floats:
    """Return the interval of each draw as two columns; NaN if there is none."""
    connection = duckdb.connect()
    connection.execute(sql("views/00_interval_macro") + sql("views/07_clustered_interval"))
    n_draws, n = figure.shape
    other = "" if shape.is_dyadic else "second "
    columns = {
        "draw": np.repeat(np.arange(n_draws), n),
        "numerator": figure.ravel(),
        "cluster_1": _labels("", shape.first, n_draws),
        "cluster_2": None if shape.second is None else _labels(other, shape.second, n_draws),
        "stratum": None if shape.stratum is None else _labels("", shape.stratum, n_draws),
    }
    nulls = pa.nulls(n_draws * n, pa.string())
    draws = pa.table({k: nulls if v is None else v for k, v in columns.items()})
    connection.register("draws", draws)
    found = connection.execute(_ENDS, {"kind": kind}).fetchnumpy()
    return np.ma.column_stack([found["low"], found["high"]]).filled(np.nan).astype(float)


def _labels(prefix: str, clusters: Integers, n_draws: int) -> pa.Array:
    names = pa.array([f"{prefix}{k}" for k in range(int(clusters.max()) + 1)])
    return pa.DictionaryArray.from_arrays(pa.array(np.tile(clusters, n_draws)), names)


def coverage(shape: Shape, world: World, draws: int, rng: np.random.Generator) -> dict[str, float]:
    """Return the share of draws whose interval contains the truth, and mean widths, by figure."""
    draws = max(50, min(draws, _MOST_ROWS // shape.first.size))
    truth = {**truths(shape, world), "us difference": 0.0, "pd difference": 0.0}
    ratios = drawn(shape, world, draws, rng)
    line: dict[str, float] = {}
    for kind, figure in figures(ratios, like(ratios, shape, world, rng)).items():
        low, high = intervals(shape, kind, figure).T
        # there is no interval if a difference is the same in all pairs; that is no false claim
        held = np.isnan(low) | ((low <= truth[kind] + 1e-9) & (truth[kind] - 1e-9 <= high))
        line[kind] = 100 * float(held.mean())
        if "difference" not in kind:
            line[f"{kind} width"] = float(np.nanmean(high - low))
    return line


def main(draws: int = DRAWS, seed: int = 1) -> None:
    """Print the percentage of draws whose interval contains the truth, for each world."""
    rng = np.random.default_rng(seed)
    for shape in shapes(rng):
        for name, world in worlds(shape):
            line = coverage(shape, world, draws, rng)
            cells = ", ".join(f"{figure} {value:.3g}" for figure, value in line.items())
            print(f"{shape.name}, {name}: {cells}", flush=True)


if __name__ == "__main__":
    main()
