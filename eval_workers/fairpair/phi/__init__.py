"""Scoring functions Phi, one file each, found by module name and imported only when asked for.

A module offers what ``Phi`` lists. It makes one *item* of a text (a token set, a sentiment), says
how items combine into one of a fold, and how far items lie apart. Distances are symmetric, 0
between an item and itself, and never negative. One whose items are numbers takes everything but
``items`` from ``fairpair.numbers``. Other packages add theirs by entry points of
``plumbline.scoring_functions``: see ``docs/extend.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from plumbline.warehouse.plugins import Registry

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Means:
    """Mean distances of two groups: between them and, over pairs of distinct items, within each.

    NaN without any pair: ``within_left`` of fewer than two items, ``between`` of an empty
    group.
    """

    between: float
    within_left: float
    within_right: float


class Phi(Protocol):
    """What a module of this package offers."""

    DESCRIPTION: str
    #: Languages whose texts it can score; ``None``: any.
    LANGUAGES: tuple[str, ...] | None

    def items(self, texts: Sequence[str]) -> list[Any]:
        """One item a text, in their order."""
        ...

    def combine(self, items: Sequence[Any]) -> Any:
        """The item of a fold, from those of its samples (one at the least)."""
        ...

    def distances(self, items: Sequence[Any]) -> Floats:
        """The distance of every item from every other, items x items."""
        ...

    def means(self, left: Sequence[Any], right: Sequence[Any]) -> Means:
        """Mean distances of two groups, all three at once."""
        ...


SCORING_FUNCTIONS = Registry(
    "scoring function", __name__, ".py", "plumbline.scoring_functions", Phi
)


def find(name: str) -> Phi:
    """The scoring function of a name. Raises ``UsageProblem`` naming those that exist.

    >>> find("jaccard").combine([frozenset({"tea"}), frozenset({"cup"})]) == {"tea", "cup"}
    True
    """
    found: Phi = SCORING_FUNCTIONS.load(name)
    return found


def block_means(distances: Floats, n_left: int) -> Means:
    """Mean distances of two groups from the matrix of both, the left one's items first.

    >>> block_means(np.array([[0.0, 1, 2], [1, 0, 4], [2, 4, 0]]), 2)
    Means(between=3.0, within_left=1.0, within_right=nan)
    """
    between = distances[:n_left, n_left:]
    mean = float(between.mean()) if between.size else float("nan")
    return Means(mean, _within(distances[:n_left, :n_left]), _within(distances[n_left:, n_left:]))


def _within(distances: Floats) -> float:
    n = len(distances)
    return float(distances.sum()) / (n * (n - 1)) if n > 1 else float("nan")
