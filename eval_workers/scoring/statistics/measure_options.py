"""Options of metrics."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.warehouse.options import STRICT


@dataclass(frozen=True, config=STRICT)
class MeasureOptions:
    """Values of the metrics' ``$params``.

    ln 1.65 is UnStereoEval's epsilon. Each ``eta`` gives a subset of pairs; another subset has all
    pairs with a defined MaxPMI. The paper's Table 19 has AuFC with logarithms of base 10; its
    Tables 8-11 compute every standard deviation of US with one benchmark's number of pairs.

    >>> round(MeasureOptions().epsilon, 4)
    0.5008
    """

    epsilon: Annotated[
        float,
        Field(
            ge=0,
            le=1_000,
            description="Largest |log ratio| that doesn't count as a preference, in nats.",
        ),
    ] = math.log(1.65)
    eta: Annotated[
        tuple[Annotated[float, Field(ge=0, le=1_000)], ...],
        Field(description="Constraint on |MaxPMI| in nats; repeat for several."),
    ] = (0.5, 0.65, 0.8, 1.0)
    log_base: Annotated[
        tuple[Annotated[float, Field(gt=1, le=1_000_000)], ...],
        Field(description="Base of AuFC's log ratios; repeat for several."),
    ] = (math.e,)

    def params(self) -> dict[str, object]:
        """The options as DuckDB parameters; repeated etas count once, in ascending order.

        >>> MeasureOptions(eta=(0.8, 0.5, 0.8)).params()["etas"]
        [0.5, 0.8]
        """
        return {
            "epsilon_nats": self.epsilon,
            "etas": sorted(set(self.eta)),
            "log_bases": sorted(set(self.log_base)),
        }
