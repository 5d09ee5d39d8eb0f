"""A finding: a figure with its interval, and the one rule for what may be said of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

Verdict: TypeAlias = Literal["above", "below", "within", "cannot be told"]
T = TypeVar("T")

#: Share of false ones among figures that are said to differ from their null value.
ALPHA = 0.05
#: Fewer clusters (words, frames, families) than this bear no statement beyond themselves.
LEAST_CLUSTERS = 5


def verdict(
    estimate: float | None,
    low: float | None,
    high: float | None,
    *,
    null: float = 0.0,
    small: float | None = None,
    p: float | None = None,
    q: float | None = None,
    n_clusters: int | None = None,
) -> Verdict:
    """What may be said of a figure.

    ``above`` and ``below``: the interval leaves ``null`` out on that side and ``q``, where there
    is one, is at most ``ALPHA``. ``within``: the interval lies within ``small`` of ``null``, less
    than which counts as nothing. Else it ``cannot be told``, as for fewer than ``LEAST_CLUSTERS``
    clusters, NaN, and a figure or an end that is missing. Without either end a test alone
    decides, on the side of the estimate: ``q``, else ``p``.

    >>> verdict(0.3, 0.1, 0.5), verdict(0.3, 0.1, 0.5, q=0.2), verdict(0.3, 0.1, 0.5, n_clusters=4)
    ('above', 'cannot be told', 'cannot be told')
    >>> verdict(0.01, -0.05, 0.07, small=0.1), verdict(1.5, None, None, null=1.0, p=0.01)
    ('within', 'above')
    """
    if estimate is None or (n_clusters is not None and n_clusters < LEAST_CLUSTERS):
        return "cannot be told"
    test = q
    if low is None and high is None:
        test = p if q is None else q
        if test is None:
            return "cannot be told"
        low = high = estimate
        small = None  # no interval shows that a figure is small
    if low is None or high is None or any(map(math.isnan, (estimate, low, high))):
        return "cannot be told"
    if test is None or test <= ALPHA:
        if low > null:
            return "above"
        if high < null:
            return "below"
    if small is not None and null - small < low and high < null + small:
        return "within"
    return "cannot be told"


@dataclass(frozen=True)
class Finding:
    """A figure about a subject.

    Attributes:
        subject: whose figure it is, such as a model on a benchmark.
        measure: what it is a figure of, such as ``pd``.
        estimate: the figure in its unit. None where it is undefined.
        low, high: ends of its 95% interval. None where there is none.
        null: the value of no effect.
        small: figures that are less than this from ``null`` count as nothing. None: all count.
        p: of its own test. ``q``: p corrected for the number of tests. None where there is none.
        n_clusters: how many things of the kind ``clusters`` it is over, of two kinds (``frame,
            word``) of the one with fewer. None where nobody counted.
        query: SQL that gives it.
    """

    subject: str
    measure: str
    estimate: float | None
    low: float | None = None
    high: float | None = None
    unit: str = ""
    null: float = 0.0
    small: float | None = None
    p: float | None = None
    q: float | None = None
    n_clusters: int | None = None
    clusters: str = "cluster"
    query: str = ""

    @property
    def verdict(self) -> Verdict:
        """What may be said of it, by the one rule: function ``verdict``."""
        return verdict(
            self.estimate,
            self.low,
            self.high,
            null=self.null,
            small=self.small,
            p=self.p,
            q=self.q,
            n_clusters=self.n_clusters,
        )

    def pick(self, *, above: T, below: T, untold: T, within: T | None = None) -> T:
        """What to say: one of these by the verdict; ``untold`` where ``within`` is None.

        >>> Finding("m", "slope", 0.3, 0.1, 0.5).pick(above="follows", below="turns", untold="?")
        'follows'
        """
        if self.verdict == "within":
            return untold if within is None else within
        return {"above": above, "below": below, "cannot be told": untold}[self.verdict]

    @property
    def over(self) -> str:
        """What the interval is over; empty where nobody counted.

        >>> Finding("m", "pd", 2.0, n_clusters=40, clusters="word").over
        '40 words'
        >>> Finding("m", "pd", 2.0, n_clusters=20, clusters="frame, word").over
        'frames and words, 20 of the fewer'
        """
        if self.n_clusters is None:
            return ""
        names = [f"{c[:-1]}ies" if c.endswith("y") else f"{c}s" for c in self.clusters.split(", ")]
        if len(names) > 1:
            return f"{' and '.join(names)}, {self.n_clusters:,} of the fewer"
        return f"{self.n_clusters:,} {self.clusters if self.n_clusters == 1 else names[0]}"

    @property
    def lack(self) -> str:
        """Why there is no interval, where too few clusters are the reason; else empty.

        >>> Finding("m", "pd", 2.0, n_clusters=3, clusters="word").lack
        'cannot be told: 3 words'
        """
        is_few = self.n_clusters is not None and self.n_clusters < LEAST_CLUSTERS
        return f"cannot be told: {self.over}" if is_few else ""
