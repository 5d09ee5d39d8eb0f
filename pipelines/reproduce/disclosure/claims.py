"""What the paper on disclosure says of its own tables, counted in the figures it prints. Pure.

A claim compares printed figures two by two: "3 of 4" are as the page says. It is about the print,
not about any run.
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

_NATURAL, _WRITTEN = ("STS-B", "SNLI"), ("LLM (1)", "LLM (2)")
_TEMPLATE = tuple(("Template", other) for other in (*_NATURAL, *_WRITTEN))
_LARGER = tuple((f"LLAMA2 7B{kind}", f"LLAMA2 13B{kind}") for kind in ("", "-CHAT"))
_ALIGNED = tuple((f"LLAMA2 {size}B", f"LLAMA2 {size}B-CHAT") for size in (7, 13))
_HYPER, _TOLD, _TUNED = (
    ("Original", method) for method in ("Hyperparameter", "Instruction", "Debias Tuning")
)
_BETTER = tuple((method, "Debias Tuning") for method in ("Hyperparameter", "Instruction"))
_ALL = ("GAS", "GLD", "ADD")


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, in our words, and how the printed figures check it."""

    where: str
    text: str
    check: Check

    def line(self, figures: Figures) -> str:
        """How many comparisons are as stated, and which are not.

        >>> figures = {("SNLI", "Original", m, "GLD"): v for m, v in (("a", 0.1), ("b", 0.2))}
        >>> lower = change("falls", ["GLD"], [("a", "b")])
        >>> Claim("section 4", "b has a lower GLD", lower).line(figures)
        'section 4, b has a lower GLD: 0 of 1 (not GLD, SNLI, a to b: 0.1 to 0.2)'
        """
        found = list(self.check(figures))
        others = [what for what, holds in found if not holds]
        not_so = f" (not {'; '.join(others)})" if others else ""
        return f"{self.where}, {self.text}: {len(found) - len(others)} of {len(found)}{not_so}"


def change(
    way: str,
    metrics: Sequence[str],
    pairs: Sequence[tuple[str, str]],
    inputs: Sequence[str] = (*_NATURAL, *_WRITTEN, "Template"),
    models: Sequence[str] = (),
) -> Check:
    """From the first to the second of each pair a metric `rises`, `falls` or `stays`.

    A pair are two methods, or two inputs or models without any method.
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
    """The most that debias tuning lowers a metric on prompts that are no templates."""

    def check(figures: Figures) -> Iterator[tuple[str, bool]]:
        falls = {
            cell: before - figures[(cell[0], "Debias Tuning", *cell[2:])]
            for cell, before in figures.items()
            if cell[1::2] == ("Original", metric) and cell[0] in (*_NATURAL, *_WRITTEN)
        }
        most = max(falls.values())
        yield f"{metric}: {most:.3f}", abs(most - printed) < 5e-4

    return check


def leans(inputs: str, side: str) -> Check:
    """By Table 10, continuations of a set are more of one side."""

    def check(figures: Figures) -> Iterator[tuple[str, bool]]:
        for cell, share in figures.items():
            if cell[0] == inputs and cell[3] == f"GAS ({side})":
                yield f"{cell[2]}: {share:g}", share > 0.5

    return check


def sums(figures: Figures) -> Iterator[tuple[str, bool]]:
    """By Table 10, F and M sum to 1 and Delta is their difference without its sign, as rounded."""
    for cell, f in figures.items():
        if cell[3] == "GAS (F)":
            m, delta = (figures[(*cell[:3], metric)] for metric in ("GAS (M)", "Delta"))
            holds = abs(f + m - 1) < 1e-9 and abs(abs(f - m) - delta) < 1.5e-3
            yield f"{cell[0]}, {cell[2]}: {f:g}, {m:g}, {delta:g}", holds


CLAIMS = (
    Claim("abstract", "tuning lowers GAS by up to 0.889", largest_fall("GAS", 0.889)),
    Claim("abstract", "tuning lowers GLD by up to 0.365", largest_fall("GLD", 0.365)),
    Claim("abstract", "tuning lowers ADD by up to 2.794", largest_fall("ADD", 2.794)),
    Claim(
        "section 4.2",
        "other inputs have a lower GAS than templates",
        change("falls", ["GAS"], _TEMPLATE),
    ),
    Claim(
        "section 4.4",
        "larger models have a higher GAS on natural inputs",
        change("rises", ["GAS"], _LARGER, _NATURAL),
    ),
    Claim(
        "section 4.4",
        "larger models have a lower GLD and ADD on natural inputs",
        change("falls", ["GLD", "ADD"], _LARGER, _NATURAL),
    ),
    Claim(
        "section 4.4",
        "aligned models have a higher GAS, GLD and ADD on natural inputs",
        change("rises", _ALL, _ALIGNED, _NATURAL),
    ),
    Claim(
        "section 4.4",
        "aligned models have a higher (or similar) GAS on written inputs",
        change("rises", ["GAS"], _ALIGNED, _WRITTEN),
    ),
    Claim(
        "section 4.4",
        "aligned models have a higher ADD on written inputs",
        change("rises", ["ADD"], _ALIGNED, _WRITTEN),
    ),
    Claim(
        "section 5.1",
        "decoding changes neither GLD nor ADD",
        change("stays", ["GLD", "ADD"], [_HYPER]),
    ),
    Claim(
        "section 5.1",
        "the best decoding has a lower GAS than the greedy one",
        change("falls", ["GAS"], [_HYPER]),
    ),
    Claim(
        "section 5.2",
        "instructions lower GAS and GLD on written inputs",
        change("falls", ["GAS", "GLD"], [_TOLD], _WRITTEN),
    ),
    Claim(
        "section 5.2",
        "instructions lower GAS on natural inputs",
        change("falls", ["GAS"], [_TOLD], _NATURAL),
    ),
    Claim(
        "section 5.2",
        "instructions lower GLD of the 7B models on natural inputs",
        change("falls", ["GLD"], [_TOLD], _NATURAL, ("LLAMA2 7B", "LLAMA2 7B-CHAT")),
    ),
    Claim(
        "section 5.2",
        "instructions lower ADD of the base models on natural inputs",
        change("falls", ["ADD"], [_TOLD], _NATURAL, ("LLAMA2 7B", "LLAMA2 13B")),
    ),
    Claim(
        "section 5.3",
        "tuning lowers all on natural inputs",
        change("falls", _ALL, [_TUNED], _NATURAL),
    ),
    Claim(
        "section 5.3",
        "tuning is below both other methods on written inputs",
        change("falls", _ALL, _BETTER, _WRITTEN),
    ),
    *(
        Claim(
            "section 5.3.1",
            f"without {loss} {' and '.join(metrics)} {'is' if len(metrics) == 1 else 'are'} higher",
            change("rises", metrics, [("Debias Tuning", f"w/o {loss}")]),
        )
        for loss, metrics in (("L_d", ["GAS", "ADD"]), ("L_g", ["GAS", "ADD"]), ("L_l", ["GLD"]))
    ),
    Claim("appendix C", "F + M = 1 and Delta = |F - M|", sums),
    Claim("appendix C", "most models lean to the female side on LLM (2)", leans("LLM (2)", "F")),
    Claim("appendix C", "most models lean to the male side on SNLI", leans("SNLI", "M")),
)


def lines(printed: Sequence[Printed]) -> list[str]:
    """Each claim with how many of the printed figures it compares are as it says.

    Without all figures of the paper's tables, nothing: a part can't check a claim.

    >>> lines([])
    []
    """
    figures: dict[Cell, float] = {}
    for p in printed:  # Table 3 prints some of Table 1 again
        figures.setdefault((p.inputs, p.method, p.model, p.metric), p.value)
    if not {p.table for p in printed} >= {1, 2, 3, 9, 10}:
        return []
    return [claim.line(figures) for claim in CLAIMS]
