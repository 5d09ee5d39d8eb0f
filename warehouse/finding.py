"""Figures with intervals, and the rule that decides whether a figure clearly shows an effect."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

Verdict: TypeAlias = Literal["above", "below", "within", "cannot be told"]
T = TypeVar("T")

#: False discovery rate: expected share of false positives among figures reported as clear.
ALPHA = 0.05
#: With fewer clusters (words, documents, prompts, families), there is no interval and no verdict.
#: The SQL macro ``t_over`` has the same number.
LEAST_CLUSTERS = 5
#: Reports warn about benchmarks with fewer pairs than this.
LEAST_PAIRS = 10


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
    """Decide whether a figure is clearly above or below ``null``, or clearly close to it.

    Return ``above`` or ``below`` if the whole interval is above or below ``null``. If ``q`` is
    given, ``q`` must also be at most ``ALPHA``. Return ``within`` if all values in the interval are
    less than ``small`` away from ``null``. Otherwise return ``cannot be told``.

    Also return ``cannot be told`` for fewer than ``LEAST_CLUSTERS`` clusters, for NaN, and if the
    estimate or one end is missing. If both ends are missing, compare the estimate with ``null``.
    Return ``above`` or ``below`` only if ``q`` (or ``p`` if ``q`` is missing) is at most ``ALPHA``.
    """
    if estimate is None or (n_clusters is not None and n_clusters < LEAST_CLUSTERS):
        return "cannot be told"
    test = q
    if low is None and high is None:
        test = p if q is None else q
        low = high = None if test is None else estimate
        small = None  # only an interval can show that the figure is close to null
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
    """A figure with its 95% interval. The estimate or an end is ``None`` if it is undefined.

    Attributes:
        null: value that the figure has if there is no effect.
        p: p-value of a test of the figure, or None if there is no test.
        q: ``p`` corrected for the number of tests, or None if it isn't corrected.
        n_clusters: number of clusters that the interval was computed from, or None if unknown.
        clusters: kind of the clusters, such as ``word``. For two kinds (``frame, word``),
            ``n_clusters`` is the smaller of the two numbers.
        n_by_kind: number of clusters of each kind, in the order of ``clusters``. Empty if unknown.
    """

    estimate: float | None
    low: float | None = None
    high: float | None = None
    null: float = 0.0
    p: float | None = None
    q: float | None = None
    n_clusters: int | None = None
    clusters: str = "cluster"
    n_by_kind: tuple[int, ...] = ()

    @property
    def verdict(self) -> Verdict:
        ends, tests = (self.estimate, self.low, self.high), {"p": self.p, "q": self.q}
        return verdict(*ends, null=self.null, n_clusters=self.n_clusters, **tests)

    def pick(self, *, above: T, below: T, untold: T) -> T:
        """Return ``above`` if the verdict is "above", ``below`` if it is "below", else ``untold``.

        >>> Finding(0.3, 0.1, 0.5).pick(above="follows", below="turns", untold="?")
        'follows'
        """
        return {"above": above, "below": below}.get(self.verdict, untold)

    @property
    def over(self) -> str:
        """The clusters that the interval was computed from, as text. Empty if they are unknown.

        >>> Finding(2.0, n_clusters=40, clusters="word").over
        '40 words'
        >>> Finding(2.0, n_clusters=20, clusters="frame, word").over
        '20 or more sentence frames and words'
        >>> Finding(2.0, n_clusters=20, clusters="frame, word", n_by_kind=(20, 40)).over
        '20 sentence frames and 40 words'
        """
        if self.n_clusters is None:
            return ""
        kinds = self._kinds
        if len(kinds) == len(self.n_by_kind):
            return " and ".join(map("{:,} {}".format, self.n_by_kind, kinds))
        or_more = " or more" if len(kinds) > 1 else ""
        return f"{self.n_clusters:,}{or_more} {' and '.join(kinds)}"

    @property
    def _kinds(self) -> list[str]:
        names = self.clusters.replace("frame", "sentence frame").split(", ")
        return [f"{name[:-1]}ies" if name.endswith("y") else f"{name}s" for name in names]

    @property
    def lack(self) -> str:
        """Text that says there are too few clusters for a verdict. Empty if there are enough.

        >>> Finding(2.0, n_clusters=4, clusters="frame, word").lack
        'too few sentence frames or words: 4'
        """
        is_few = self.n_clusters is not None and self.n_clusters < LEAST_CLUSTERS
        return f"too few {' or '.join(self._kinds)}: {self.n_clusters}" if is_few else ""
