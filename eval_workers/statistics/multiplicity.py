"""p-values corrected for their number."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """p-values that bound the chance of any false find (Holm 1979); ``None`` stays ``None``.

    >>> holm([0.01, None, 0.04, 0.03])
    [0.03, None, 0.06, 0.06]
    """
    adjusted, most = list(p_values), 0.0
    order = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    for rank, (p, i) in enumerate(order):
        most = max(most, min(1.0, p * (len(order) - rank)))
        adjusted[i] = most
    return adjusted
