"""Statistical power of a benchmark: the smallest effect that it finds in four of five cases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from plumbline.eval_workers.scoring.statistics.scored_pairs import (
    NO_CLUSTER,
    ROUNDING,
    Cells,
    Floats,
    Ints,
    ScoredPairs,
    cells,
    clustered_variance,
    degrees_of_freedom,
    difference_variances,
    influences,
    n_clusters,
    variances,
)
from plumbline.warehouse.finding import LEAST_CLUSTERS
from plumbline.warehouse.query.connection import rows_of

#: Chance of finding the smallest effect, and the level of the two-sided test that finds it.
POWER, LEVEL = 0.8, 0.05
#: Measure -> its unit, the largest possible effect, and words for the smallest effect found.
MEASURES = {
    "pd": ("percentage points", 100.0, "a PD of {}"),
    "us": ("share", 0.5, "a US {} off 50%"),
    "us difference": ("share", 1.0, "{} of US between two models"),
    "pd difference": ("percentage points", 200.0, "{} of PD between two models"),
}


@dataclass(frozen=True)
class Spread:
    """How a figure varies over pairs: its standard deviation, and its correlation in a cluster."""

    sd: float
    icc: float


#: Spreads to assume for a benchmark without scores: medians of the 28 released models on five sets.
STATED = {
    "pd": Spread(89.0, 0.088),
    "us": Spread(0.5, 0.044),
    "us difference": Spread(0.57, 0.012),
    "pd difference": Spread(101.0, 0.043),
}


@dataclass(frozen=True)
class PairDesign:
    """Properties of a benchmark that decide its power.

    ``n_alike`` is the mean number of other pairs that share a cluster with a pair.
    """

    n_pairs: int
    n_clusters: int
    n_alike: float
    df: float

    @classmethod
    def of(cls, clusters: Ints) -> PairDesign:
        """Return the design of pairs whose clusters are numbered as for ``clustered_variance``.

        >>> PairDesign.of(np.array([[0], [0], [0], [1], [1], [1]])).n_alike
        2.0
        """
        n, first, second = len(clusters), clusters[:, 0], clusters[:, -1]
        is_two = (first != second) & (second != NO_CLUSTER)
        known = np.concatenate([first, second[is_two]])
        n_sharing = _squares(known[known != NO_CLUSTER])
        n_sharing += int((clusters == NO_CLUSTER).all(axis=1).sum())  # a pair shares with itself
        n_sharing -= _squares(np.sort(clusters[is_two], axis=1))  # twice: pairs that share both
        return cls(n, n_clusters(clusters), n_sharing / n - 1, degrees_of_freedom(clusters))

    def smallest(self, spread: Spread) -> float | None:
        """Return the smallest effect that the benchmark can find, in the unit of ``spread.sd``.

        It is (t at 97.5% + t at 80%) standard errors (Bloom 1995). The standard error for
        independent pairs is multiplied by the root of the design effect, 1 + icc times ``n_alike``
        (Kish 1965). The result is ``None`` if there are fewer clusters than ``LEAST_CLUSTERS``.

        >>> round(PairDesign(400, 400, 0.0, 399.0).smallest(Spread(0.5, 0.0)), 3)
        0.07
        """
        from scipy.special import stdtrit

        if self.n_clusters < LEAST_CLUSTERS:
            return None
        points = stdtrit(self.df, [1 - LEVEL / 2, POWER]).sum()
        design_effect = 1 + max(spread.icc, 0.0) * self.n_alike
        return float(points * spread.sd * np.sqrt(design_effect / self.n_pairs))


def _squares(ids: Ints) -> int:
    """Count how often each id (or row of ids) occurs, and return the sum of the squared counts."""
    return int((np.unique(ids, axis=0, return_counts=True)[1] ** 2).sum())


def measured(pairs: ScoredPairs) -> dict[str, Spread]:
    """Return how PD (in points), US and two models' differences in both vary over the pairs.

    The ``sd`` of PD assumes that PD is 0; the ``sd`` of US assumes that US is a half. The other
    figures are medians over models, or over pairs of models. A measure is left out if its figures
    don't vary or are unknown: a single model, or models that agree on every pair, don't show how
    far two other models would differ. ``icc`` is 0 if no pairs share a cluster.
    """
    clusters, n_pairs = pairs.cells.clusters, len(pairs.lean)
    n_alike, alone = PairDesign.of(clusters).n_alike, np.arange(n_pairs)[:, None]
    sd = {"pd": 100 * np.sqrt(1 - np.median(np.nanmean(pairs.even, axis=0))), "us": 0.5}
    spreads = {}
    for name, figures in (("pd", 100 * pairs.lean), ("us", pairs.even)):
        of_pair = influences(figures, pairs.cells.strata)
        alike, apart = (clustered_variance(of_pair, ids) for ids in (clusters, alone))
        icc = _icc(variances(alike), variances(apart), n_alike)
        spreads[name] = Spread(float(sd[name]), icc)
        if len(pairs.models) > 1:
            two = np.triu_indices(len(pairs.models), 1)
            both, each = (difference_variances(every)[two] for every in (alike, apart))
            # rounding can make the variance of equal figures negative
            deviation = float(np.median(np.sqrt(np.maximum(each, 0) * n_pairs)))
            spreads[f"{name} difference"] = Spread(deviation, _icc(both, each, n_alike))
    return {name: spread for name, spread in spreads.items() if spread.sd**2 > ROUNDING * n_pairs}


def _icc(alike: Floats, apart: Floats, n_alike: float) -> float:
    """Return the ICC (0 to 1) that explains by how much clustering increases the variances."""
    is_known = apart > ROUNDING
    if not n_alike or not is_known.any():
        return 0.0
    return float(np.clip(np.median(alike[is_known] / apart[is_known] - 1) / n_alike, 0, 1))


def powers(every: Iterable[ScoredPairs]) -> list[dict[str, object]]:
    """Return rows of ``benchmark_power``, without ``run_id``, from the spread of models' scores."""
    return [row for p in every for row in _rows(p.cells, measured(p), len(p.models))]


def power_of(root: str | Path, benchmark: str) -> list[dict[str, Any]]:
    """Return a benchmark's rows of ``benchmark_power``; without any, compute them from ``STATED``.

    The list is empty if the benchmark isn't in the warehouse.
    """
    query = "FROM benchmark_power WHERE benchmark = $benchmark"
    measured_rows = rows_of(root, query, {"benchmark": benchmark})
    return measured_rows or [r for pairs in cells(root, benchmark) for r in _rows(pairs, STATED, 0)]


def said(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Describe the rows of ``benchmark_power`` of one benchmark, in one line per pair of groups.

    >>> row = {"groups": "f/m", "measure": "us", "unit": "share", "smallest": 0.05,
    ...        "n_clusters": 491, "n_models": 28}
    >>> said([row])[0].partition(": ")[2]
    'a US 5.0 points off 50% (491 clusters, correlation within them measured on 28 models)'
    """
    ordered = sorted(rows, key=lambda row: (row["groups"], list(MEASURES).index(row["measure"])))
    lines = []
    for groups, measures in groupby(ordered, lambda row: row["groups"]):
        first, *_ = of_groups = list(measures)
        n = first["n_models"]
        source = f"measured on {n:,} model{'s' * (n > 1)}" if n else "as in the released scores"
        lines.append(
            f"{groups}, smallest effects found with {POWER:.0%} power at the {LEVEL:.0%} level: "
            f"{', '.join(filter(None, map(_effect, of_groups))) or 'none'} "
            f"({first['n_clusters']:,} clusters, correlation within them {source})"
        )
    return lines


def _effect(row: Mapping[str, Any]) -> str:
    """Return the smallest effect in words; empty if the benchmark can find none."""
    if row["smallest"] is None:
        return ""
    points = row["smallest"] * (100 if row["unit"] == "share" else 1)
    return MEASURES[row["measure"]][-1].format(f"{points:.1f} points")


def _rows(
    pairs: Cells, spreads: Mapping[str, Spread], n_models: int
) -> Iterator[dict[str, object]]:
    design = PairDesign.of(pairs.clusters)
    for measure, spread in spreads.items():
        unit, most, _ = MEASURES[measure]
        smallest = design.smallest(spread)
        yield {
            "benchmark": pairs.benchmark,
            "groups": pairs.groups,
            "measure": measure,
            "unit": unit,
            "smallest": smallest if smallest is not None and smallest <= most else None,
            **asdict(spread),
            **asdict(design),
            "n_models": n_models,
        }
