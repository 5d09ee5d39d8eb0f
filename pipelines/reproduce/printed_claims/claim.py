"""What a paper says of its own tables, counted in the figures it prints. Pure.

A claim compares printed figures: "3 of 4" are as the page says. It is about the print, not about
any run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from plumbline.pipelines.reproduce.beside import Printed

#: Inputs, method, model, metric -> the figure.
Cell = tuple[str, ...]
Figures = Mapping[Cell, float]
#: Each comparison, and whether it is as the page says.
Check = Callable[[Figures], Iterator[tuple[str, bool]]]


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, in our words, and how the printed figures check it."""

    where: str
    text: str
    check: Check

    def line(self, figures: Figures) -> str:
        """How many comparisons are as stated, and which are not.

        >>> figures = {("SNLI", "Original", m, "GLD"): v for m, v in (("a", 0.1), ("b", 0.2))}
        >>> Claim(
        ...     "section 4", "GLD is below 0.15", lambda f: ((f"{v}", v < 0.15) for v in f.values())
        ... ).line(figures)
        'section 4, GLD is below 0.15: 1 of 2 (not 0.2)'
        """
        found = list(self.check(figures))
        others = [what for what, holds in found if not holds]
        not_so = f" (not {'; '.join(others)})" if others else ""
        return f"{self.where}, {self.text}: {len(found) - len(others)} of {len(found)}{not_so}"


def counted(
    claims: Sequence[Claim], tables: Sequence[int], printed: Sequence[Printed]
) -> list[str]:
    """Each claim with how many of the printed figures it compares are as it says.

    Without figures of all ``tables``, nothing: a part can't check a claim. Where two tables print
    a figure, the first counts. A claim without a comparison is left out.

    >>> counted([], [1], [])
    []
    """
    figures: dict[Cell, float] = {}
    for p in printed:
        figures.setdefault((p.inputs, p.method, p.model, p.metric), p.value)
    if not {p.table for p in printed} >= set(tables):
        return []
    return [claim.line(figures) for claim in claims if any(True for _ in claim.check(figures))]
