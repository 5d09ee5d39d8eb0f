"""Claims of FairPair on its own Table 3."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

from plumbline.pipelines.reproduce.printed_claims.claim import Check, Figures, PrintedClaim

#: Tables whose figures the claims compare.
TABLES = (3,)
_LARGER = ("LLaMa", "InstructGPT")


def of_larger(sign: int, metrics: Sequence[str]) -> Check:
    """Check that larger models' figures are above smaller ones', or below if sign is -1."""

    def check(figures: Figures) -> Iterator[tuple[str, bool]]:
        for (cell, value), (other, below) in product(figures.items(), figures.items()):
            alike = (cell[:2], cell[3]) == (other[:2], other[3]) and cell[3] in metrics
            if alike and cell[2] in _LARGER and other[2] not in (*_LARGER, "Average"):
                what = f"{cell[3]}, {cell[1]}, {cell[2]} {value:g}, {other[2]} {below:g}"
                yield what, sign * (value - below) > 0

    return check


def jane_varies_more(figures: Figures) -> Iterator[tuple[str, bool]]:
    """Check that V_gp is above V_pg."""
    for cell, value in figures.items():
        if cell[3] == "V_gp" and cell[2] != "Average":
            other = figures.get((*cell[:3], "V_pg"), math.nan)
            yield f"{cell[1]}, {cell[2]}: V_gp {value:g}, V_pg {other:g}", value > other


def ratios(figures: Figures) -> Iterator[tuple[str, bool]]:
    """Check that F is B squared over V_pg V_gp of the printed means, within their rounding."""
    for cell, f in figures.items():
        if cell[3] == "F" and cell[2] != "Average":
            b, pg, gp = (figures.get((*cell[:3], x), math.nan) for x in ("B", "V_pg", "V_gp"))
            least, most = (
                (b + s * 0.05) ** 2 / ((pg - s * 0.05) * (gp - s * 0.05)) for s in (-1, 1)
            )
            holds = least - 0.005 <= f <= most + 0.005
            yield f"{cell[1]}, {cell[2]}: {f:g}, {b**2 / (pg * gp):.3f}", holds


CLAIMS = (
    PrintedClaim("section 4.1", "larger models vary less", of_larger(-1, ["V_pg", "V_gp"])),
    PrintedClaim("section 4.1", "larger models have a lower B", of_larger(-1, ["B"])),
    PrintedClaim("section 4.1", "larger models have a higher F", of_larger(1, ["F"])),
    PrintedClaim("section 4.1", "what begins with Jane tends to vary more", jane_varies_more),
    PrintedClaim("section 2", "F = B^2 / (V_pg V_gp) of the printed means", ratios),
)
