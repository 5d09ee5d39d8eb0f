"""Claims of the paper on disclosure on its own tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from plumbline.pipelines.reproduce.printed_claims.claim import Check, Figures, PrintedClaim

#: Tables whose figures the claims compare.
TABLES = (1, 2, 3, 9, 10)

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
    """Check how metrics change from first to second of a pair; ``way``: rises, falls or stays.

    A pair is two methods, or two inputs or models under `Original`.
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
    """Check that ``printed`` is a metric's largest fall by debias tuning, without templates."""

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
    """Check that by Table 10 more than half of a set's gendered continuations are of ``side``."""

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


CLAIMS = (
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
