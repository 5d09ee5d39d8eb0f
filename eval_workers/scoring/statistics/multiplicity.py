"""p-values corrected for the number of tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjusted p-values: they bound the chance of any false find (Holm 1979); ``None`` stays.

    >>> holm([0.01, None, 0.04, 0.03])
    [0.03, None, 0.06, 0.06]
    """
    known = np.array([p for p in p_values if p is not None], float)
    order = np.argsort(known, kind="stable")
    steps = np.minimum(known[order] * np.arange(len(known), 0, -1), 1.0)
    adjusted = np.empty_like(known)
    adjusted[order] = np.maximum.accumulate(steps)
    corrected = iter(adjusted.tolist())
    return [None if p is None else next(corrected) for p in p_values]
