"""Claims of FairPair and of the paper on disclosure, checked with the figures that they print.

Neither paper released results. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from plumbline.pipelines.reproduce.beside_runs import Printed

#: Inputs, method, model, metric -> the figure.
Cell = tuple[str, ...]
Figures = Mapping[Cell, float]
#: Yields each comparison as text, with True if the paper's claim holds for it.
Check = Callable[[Figures], Iterator[tuple[str, bool]]]
#: Most comparisons that a line names.
_MOST_WRONG = 3


@dataclass(frozen=True)
class PrintedClaim:
    """A claim that a paper makes in words, and its check with the paper's printed figures."""

    where: str
    text: str
    check: Check

    def line(self, figures: Figures) -> str:
        """The claim, the number of comparisons in which it holds, and the first of the others.

        >>> figures = {("SNLI", "Original", m, "GLD"): v for m, v in (("a", 0.1), ("b", 0.2))}
        >>> PrintedClaim(
        ...     "section 4", "GLD is below 0.15", lambda f: ((f"{v}", v < 0.15) for v in f.values())
        ... ).line(figures)
        'section 4, GLD is below 0.15: 1 of 2 (not 0.2)'
        """
        comparisons = list(self.check(figures))
        wrong = [what for what, holds in comparisons if not holds]
        n, n_all = len(comparisons) - len(wrong), len(comparisons)
        more = [f"{len(wrong) - _MOST_WRONG} more"] * (len(wrong) > _MOST_WRONG)
        not_so = f" (not {'; '.join([*wrong[:_MOST_WRONG], *more])})" if wrong else ""
        return f"{self.where}, {self.text}: {n} of {n_all}{not_so}"


def counted(
    claims: Sequence[PrintedClaim], tables: Sequence[int], printed: Sequence[Printed]
) -> list[str]:
    """One line per claim, with the number of comparisons in which it holds.

    Empty unless ``printed`` has figures of all ``tables``. A figure that two tables print has the
    value of the first. Claims without a comparison are left out.

    >>> counted([], [1], [])
    []
    """
    figures: dict[Cell, float] = {}
    for p in printed:
        figures.setdefault((p.inputs, p.method, p.model, p.metric), p.value)
    if not {p.table for p in printed} >= set(tables):
        return []
    return [claim.line(figures) for claim in claims if any(True for _ in claim.check(figures))]


#: Tables of FairPair whose figures its claims compare.
FAIRPAIR_TABLES = (3,)
_LARGE_MODELS = ("LLaMa", "InstructGPT")


def of_larger(sign: int, metrics: Sequence[str]) -> Check:
    """Check that figures of larger models are above those of smaller ones; sign -1: below."""

    def check(figures: Figures) -> Iterator[tuple[str, bool]]:
        for (cell, value), (other, below) in product(figures.items(), figures.items()):
            alike = (cell[:2], cell[3]) == (other[:2], other[3]) and cell[3] in metrics
            if alike and cell[2] in _LARGE_MODELS and other[2] not in (*_LARGE_MODELS, "Average"):
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
    """Check that F is B^2 / (V_pg V_gp) of the printed means, up to their rounding."""
    for cell, f in figures.items():
        if cell[3] == "F" and cell[2] != "Average":
            b, pg, gp = (figures.get((*cell[:3], x), math.nan) for x in ("B", "V_pg", "V_gp"))
            least, most = (
                (b + s * 0.05) ** 2 / ((pg - s * 0.05) * (gp - s * 0.05)) for s in (-1, 1)
            )
            holds = least - 0.005 <= f <= most + 0.005
            yield f"{cell[1]}, {cell[2]}: {f:g}, {b**2 / (pg * gp):.3f}", holds


FAIRPAIR_CLAIMS = (
    PrintedClaim("section 4.1", "larger models vary less", of_larger(-1, ["V_pg", "V_gp"])),
    PrintedClaim("section 4.1", "larger models have a lower B", of_larger(-1, ["B"])),
    PrintedClaim("section 4.1", "larger models have a higher F", of_larger(1, ["F"])),
    PrintedClaim("section 4.1", "texts that begin with Jane tend to vary more", jane_varies_more),
    PrintedClaim("section 2", "F = B^2 / (V_pg V_gp) of the printed means", ratios),
)


#: Tables of the paper on disclosure whose figures its claims compare.
DISCLOSURE_TABLES = (1, 2, 3, 9, 10)

_NATURAL, _WRITTEN = ("STS-B", "SNLI"), ("LLM (1)", "LLM (2)")
_TEMPLATE = tuple(("Template", other) for other in (*_NATURAL, *_WRITTEN))
_LARGER = tuple((f"LLAMA2 7B{kind}", f"LLAMA2 13B{kind}") for kind in ("", "-CHAT"))
_ALIGNED = tuple((f"LLAMA2 {size}B", f"LLAMA2 {size}B-CHAT") for size in (7, 13))
_HYPER, _INSTRUCTED, _TUNED = (
    ("Original", method) for method in ("Hyperparameter", "Instruction", "Debias Tuning")
)
_BETTER = tuple((method, "Debias Tuning") for method in ("Hyperparameter", "Instruction"))
_ALL = ("GAS", "GLD", "ADD")


def change(
    way: str,
    metrics: Sequence[str],
    pairs: Sequence[tuple[str, str]],
    inputs: Sequence[str] = (*_NATURAL, *_WRITTEN, "Template"),
    models: Sequence[str] = (),
) -> Check:
    """Check how metrics change from the first of a pair to its second: rises, falls or stays.

    A pair has two methods; or two inputs or two models, by the method `Original`.
    """

    def check(figures: Figures) -> Iterator[tuple[str, bool]]:
        for old, new in pairs:
            for cell, before in figures.items():
                prompts, method, model, metric = cell
                if old not in cell or (old != method and method != "Original"):
                    continue
                after = figures.get(tuple(new if part == old else part for part in cell))
                is_meant = metric in metrics and prompts in inputs and model in (models or (model,))
                if after is None or not is_meant:
                    continue
                holds = {"rises": after > before, "falls": after < before, "stays": after == before}
                rest = (part for part in (metric, prompts, model) if part != old)
                what = f"{', '.join(rest)}, {old} to {new}: {before:g} to {after:g}"
                yield what, holds[way]

    return check


def largest_fall(metric: str, printed: float) -> Check:
    """Check that ``printed`` is a metric's largest fall by debias tuning; not on templates."""

    def check(figures: Figures) -> Iterator[tuple[str, bool]]:
        falls = [
            before - after
            for cell, before in figures.items()
            if cell[1::2] == ("Original", metric) and cell[0] in (*_NATURAL, *_WRITTEN)
            for after in [figures.get((cell[0], "Debias Tuning", *cell[2:]))]
            if after is not None
        ]
        if falls:
            yield f"{metric}: {max(falls):.3f}", abs(max(falls) - printed) < 5e-4

    return check


def leans(inputs: str, side: str) -> Check:
    """Check in Table 10 that most gendered continuations of ``inputs`` are of ``side``, F or M."""

    def check(figures: Figures) -> Iterator[tuple[str, bool]]:
        for cell, share in figures.items():
            if cell[0] == inputs and cell[3] == f"GAS ({side})":
                yield f"{cell[2]}: {share:g}", share > 0.5

    return check


def sums(figures: Figures) -> Iterator[tuple[str, bool]]:
    """Check that, in Table 10, F and M sum to 1 and Delta is their absolute difference."""
    for cell, f in figures.items():
        if cell[3] == "GAS (F)":
            m, delta = (figures.get((*cell[:3], x), math.nan) for x in ("GAS (M)", "Delta"))
            holds = abs(f + m - 1) < 1e-9 and abs(abs(f - m) - delta) < 1.5e-3
            yield f"{cell[0]}, {cell[2]}: {f:g}, {m:g}, {delta:g}", holds


DISCLOSURE_CLAIMS = (
    PrintedClaim("section 1", "tuning lowers GAS by up to 0.889", largest_fall("GAS", 0.889)),
    PrintedClaim("section 1", "tuning lowers GLD by up to 0.365", largest_fall("GLD", 0.365)),
    PrintedClaim("section 1", "tuning lowers ADD by up to 2.794", largest_fall("ADD", 2.794)),
    *(
        PrintedClaim(
            "abstract and section 7",
            f"{what} raises bias in most cases, without templates",
            change("rises", _ALL, pairs, (*_NATURAL, *_WRITTEN)),
        )
        for what, pairs in (("size", _LARGER), ("alignment", _ALIGNED))
    ),
    PrintedClaim(
        "section 4.2",
        "other inputs have a lower GAS than templates",
        change("falls", ["GAS"], _TEMPLATE),
    ),
    PrintedClaim(
        "section 4.4",
        "larger models have a higher GAS on natural inputs",
        change("rises", ["GAS"], _LARGER, _NATURAL),
    ),
    PrintedClaim(
        "section 4.4",
        "larger models have a lower GLD and ADD on natural inputs",
        change("falls", ["GLD", "ADD"], _LARGER, _NATURAL),
    ),
    PrintedClaim(
        "section 4.4",
        "aligned models have a higher GAS, GLD and ADD on natural inputs",
        change("rises", _ALL, _ALIGNED, _NATURAL),
    ),
    PrintedClaim(
        "section 4.4",
        "aligned models have a higher GAS on written inputs (the page: or similar)",
        change("rises", ["GAS"], _ALIGNED, _WRITTEN),
    ),
    PrintedClaim(
        "section 4.4",
        "aligned models have a higher ADD on written inputs",
        change("rises", ["ADD"], _ALIGNED, _WRITTEN),
    ),
    PrintedClaim(
        "section 5.1",
        "decoding changes neither GLD nor ADD",
        change("stays", ["GLD", "ADD"], [_HYPER]),
    ),
    PrintedClaim(
        "section 1",
        "decoding, at its best, lowers GAS",
        change("falls", ["GAS"], [_HYPER]),
    ),
    PrintedClaim(
        "section 5.2",
        "instructions lower GAS, GLD and ADD in most cases, without templates",
        change("falls", _ALL, [_INSTRUCTED], (*_NATURAL, *_WRITTEN)),
    ),
    PrintedClaim(
        "section 5.2",
        "instructions lower GAS and GLD on written inputs",
        change("falls", ["GAS", "GLD"], [_INSTRUCTED], _WRITTEN),
    ),
    PrintedClaim(
        "section 5.2",
        "instructions lower GAS on natural inputs",
        change("falls", ["GAS"], [_INSTRUCTED], _NATURAL),
    ),
    PrintedClaim(
        "section 5.2",
        "instructions lower GLD of the 7B models on natural inputs",
        change("falls", ["GLD"], [_INSTRUCTED], _NATURAL, ("LLAMA2 7B", "LLAMA2 7B-CHAT")),
    ),
    PrintedClaim(
        "section 5.2",
        "instructions lower ADD of the base models on natural inputs",
        change("falls", ["ADD"], [_INSTRUCTED], _NATURAL, ("LLAMA2 7B", "LLAMA2 13B")),
    ),
    PrintedClaim(
        "section 5.3",
        "tuning lowers all on natural inputs",
        change("falls", _ALL, [_TUNED], _NATURAL),
    ),
    PrintedClaim(
        "section 5.3",
        "tuning is below both other methods on written inputs",
        change("falls", _ALL, _BETTER, _WRITTEN),
    ),
    *(
        PrintedClaim(
            "section 5.3.1",
            f"without {loss} {' and '.join(metrics)} {'is' if len(metrics) == 1 else 'are'} higher",
            change("rises", metrics, [("Debias Tuning", f"w/o {loss}")]),
        )
        for loss, metrics in (("L_d", ["GAS", "ADD"]), ("L_g", ["GAS", "ADD"]), ("L_l", ["GLD"]))
    ),
    PrintedClaim("appendix C", "F + M = 1 and Delta = |F - M|", sums),
    PrintedClaim(
        "appendix C", "most models lean to the female side on LLM (2)", leans("LLM (2)", "F")
    ),
    PrintedClaim("appendix C", "most models lean to the male side on SNLI", leans("SNLI", "M")),
)
