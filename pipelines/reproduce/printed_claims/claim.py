"""Claims of a paper on its own tables, checked with the figures it prints, not with a run. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from plumbline.pipelines.reproduce.beside_runs import Printed

#: Inputs, method, model, metric -> the figure.
Cell = tuple[str, ...]
Figures = Mapping[Cell, float]
#: Yields each comparison as text, with True if the paper's claim holds for it.
Check = Callable[[Figures], Iterator[tuple[str, bool]]]


@dataclass(frozen=True)
class PrintedClaim:
    """A statement of the paper, in our words, and its check with printed figures."""

    where: str
    text: str
    check: Check

    def line(self, figures: Figures) -> str:
        """The claim, with the number of comparisons that hold, and the ones that don't.

        >>> figures = {("SNLI", "Original", m, "GLD"): v for m, v in (("a", 0.1), ("b", 0.2))}
        >>> PrintedClaim(
        ...     "section 4", "GLD is below 0.15", lambda f: ((f"{v}", v < 0.15) for v in f.values())
        ... ).line(figures)
        'section 4, GLD is below 0.15: 1 of 2 (not 0.2)'
        """
        comparisons = list(self.check(figures))
        wrong = [what for what, holds in comparisons if not holds]
        n, n_all = len(comparisons) - len(wrong), len(comparisons)
        not_so = f" (not {'; '.join(wrong)})" if wrong else ""
        return f"{self.where}, {self.text}: {n} of {n_all}{not_so}"


def counted(
    claims: Sequence[PrintedClaim], tables: Sequence[int], printed: Sequence[Printed]
) -> list[str]:
    """A line per claim with the number of comparisons that hold.

    Empty unless there are figures of all ``tables``. If two tables print a figure, the first
    counts. A claim without a comparison is left out.

    >>> counted([], [1], [])
    []
    """
    figures: dict[Cell, float] = {}
    for p in printed:
        figures.setdefault((p.inputs, p.method, p.model, p.metric), p.value)
    if not {p.table for p in printed} >= set(tables):
        return []
    return [claim.line(figures) for claim in claims if any(True for _ in claim.check(figures))]
