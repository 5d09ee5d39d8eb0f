"""Scoring functions Phi, one module each (see ``docs/extend.md``), imported when first used.

A module has the members of ``Phi``. If its items are numbers, it can import ``combine`` and
``distances`` from ``phi.vader``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from plumbline.warehouse.plugins import Registry

Floats: TypeAlias = NDArray[np.float64]


class Phi(Protocol):
    """The interface that each module of this package has.

    The *item* of a text is, for example, its token set or its sentiment. Distances are symmetric,
    0 between an item and itself, and never negative.
    """

    DESCRIPTION: str
    #: Languages whose texts the function can score; ``None`` for any.
    LANGUAGES: tuple[str, ...] | None

    def items(self, texts: Sequence[str]) -> list[Any]:
        """Return one item per text, in the same order."""
        ...

    def combine(self, items: Sequence[Any]) -> Any:
        """Combine the items of several samples of one group (a fold) into a single item."""
        ...

    def distances(self, items: Sequence[Any]) -> Floats:
        """Return the distance between every two items: an array with a row and column for each."""
        ...


SCORING_FUNCTIONS = Registry(
    "scoring function", __name__, ".py", "plumbline.scoring_functions", Phi
)


def find(name: str) -> Phi:
    """Return the scoring function by its name. Raises ``UsageProblem`` if the name is unknown.

    >>> find("jaccard").combine([frozenset({"tea"}), frozenset({"cup"})]) == {"tea", "cup"}
    True
    """
    module: Phi = SCORING_FUNCTIONS.load(name)
    return module
