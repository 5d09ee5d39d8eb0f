"""Scoring functions Phi, one file each (see ``docs/extend.md``), imported when first used.

A module has the members of ``Phi``. If its items are numbers, all functions except ``items`` come
from ``fairpair.numbers``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from plumbline.eval_workers.fairpair.numbers import Floats, Means, block_means
from plumbline.warehouse.plugins import Registry

__all__ = ["SCORING_FUNCTIONS", "Floats", "Means", "Phi", "block_means", "find"]


class Phi(Protocol):
    """Members of a module of this package.

    An *item* of a text is, for example, its token set or sentiment. Distances are symmetric, 0
    between an item and itself, and never negative.
    """

    DESCRIPTION: str
    #: Languages whose texts the function can score; ``None`` for any.
    LANGUAGES: tuple[str, ...] | None

    def items(self, texts: Sequence[str]) -> list[Any]:
        """One item per text, in their order."""
        ...

    def combine(self, items: Sequence[Any]) -> Any:
        """The item of a fold (samples of one group, taken together), from its samples' items."""
        ...

    def distances(self, items: Sequence[Any]) -> Floats:
        """The distance of every item from every other, an array of shape (items, items)."""
        ...

    def means(self, left: Sequence[Any], right: Sequence[Any]) -> Means:
        """Mean distances between two groups and within each."""
        ...


SCORING_FUNCTIONS = Registry(
    "scoring function", __name__, ".py", "plumbline.scoring_functions", Phi
)


def find(name: str) -> Phi:
    """The scoring function of a name. Raises ``UsageProblem`` with the known names for others.

    >>> find("jaccard").combine([frozenset({"tea"}), frozenset({"cup"})]) == {"tea", "cup"}
    True
    """
    module: Phi = SCORING_FUNCTIONS.load(name)
    return module
