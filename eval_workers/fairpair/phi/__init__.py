"""Scoring functions, which measure how different texts are.

Each function is a module that has the members of ``Phi``. ``docs/extend.md`` says how to add one.
A module whose items are numbers can import ``combine`` and ``distances`` from ``phi.vader``.
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

    A module turns each text into an *item*, such as the set of its words or a number, and compares
    the items. Distances are symmetric and never negative; they are 0 between equal items.
    """

    DESCRIPTION: str
    #: Languages whose texts the function can score; ``None`` for any.
    LANGUAGES: tuple[str, ...] | None

    def items(self, texts: Sequence[str]) -> list[Any]:
        """Return one item for each text, in the texts' order."""
        ...

    def combine(self, items: Sequence[Any]) -> Any:
        """Combine the items of a fold (several samples of one group) into a single item."""
        ...

    def distances(self, items: Sequence[Any]) -> Floats:
        """Return a square array with the distance between every two items."""
        ...


#: The scoring functions by name: ``SCORING_FUNCTIONS.load("jaccard")`` is a ``Phi``.
SCORING_FUNCTIONS = Registry(
    "scoring function", __name__, ".py", "plumbline.scoring_functions", Phi
)
