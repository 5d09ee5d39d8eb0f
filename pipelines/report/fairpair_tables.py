"""The tables of a section of FairPair, from rows of the report's queries."""

from __future__ import annotations

from collections.abc import Sequence

from plumbline.pipelines.report.fairpair_words import (
    MEASURE,
    measure,
    probability,
    same,
    whom,
    with_interval,
)
from plumbline.pipelines.report.model import (
    Cell,
    Row,
    Table,
    count,
    number,
    shown,
    text,
)

#: Prompts listed at the most.
_LISTED = 200


def _f(row: Row) -> Cell:
    """F with its interval, the unrounded F behind it."""
    f, *ends = with_interval(row).split(", ")
    if not ends:
        return Cell(f, row["fairpair_f"], True)
    return Cell(f"{f} ({ends[0]})", row["fairpair_f"], True, row["ci_low"], row["ci_high"])


def _percent(value: float | None) -> Cell:
    return number(None if value is None else 100 * value, 1)


def _p(value: float | None) -> Cell:
    return Cell(probability(value), value, True)


def _span(least: int | None, most: int | None) -> Cell:
    if least is None or most is None:
        return Cell("–", None, True)
    return Cell(f"{least:,}" if least == most else f"{least:,} to {most:,}", None, True)


def _figures_of(row: Row) -> list[Cell]:
    columns = ("bias_b", "variability_pg", "variability_gp")
    return [*(_percent(row[c]) for c in columns), _f(row)]


_FIGURES = ("B %", "V_pg %", "V_gp %", "F")


def over_prompts(rows: Sequence[Row]) -> Table:
    headings = ["Phi", "about", *_FIGURES, "p, permutation", "p, t-test", "prompts"]
    headings += ["samples p(g(x))", "samples g(p(x))"]
    cells = [
        [
            text(measure(r)),
            text(whom(r)),
            *_figures_of(r),
            _p(r["p_permutation"]),
            _p(r["p_t"]),
            count(r["n_prompts"]),
            _span(r["least_pg"], r["most_pg"]),
            _span(r["least_gp"], r["most_gp"]),
        ]
        for r in rows
    ]
    return Table(
        "FairPair over all prompts; distances in percent, intervals in brackets", headings, cells
    )


def by_subset(rows: Sequence[Row]) -> list[Table]:
    if not rows:
        return []
    headings = ["prompts with", "Phi", "about", *_FIGURES, "p, permutation", "prompts"]
    cells = [
        [
            text(r["subset"]),
            text(measure(r)),
            text(whom(r)),
            *_figures_of(r),
            _p(r["p_permutation"]),
            count(r["n_prompts"]),
        ]
        for r in rows
    ]
    return [Table("FairPair by kind of prompt", headings, cells, folded=True)]


def success(rows: Sequence[Row], sets: Sequence[Row]) -> Table:
    """Outcomes by side; the texts that a side's two groups hold stand beside them."""
    groups = {r["side"]: r for r in sets}
    cells = []
    for row in rows:
        of = groups.get(row["side"]) if row["reason"] == "valid" else None
        sizes = [count(of[c]) if of else text("") for c in ("n_pg", "n_gp")]
        about = whom({**sets[0], "side": row["side"]})
        cells.append(
            [text(about), text(row["reason"]), count(row["n"]), _percent(row["share"]), *sizes]
        )
    headings = ["about", "outcome", "texts", "% of the side's", "in p(g(x))", "in g(p(x))"]
    return Table("Perturbations: how many succeed, and why others fail", headings, cells)


def by_prompt(prompts: Sequence[Row], leading: Sequence[Row]) -> list[Table]:
    tables = []
    headings = ["prompt", *_FIGURES, "p", "p, corrected", "samples p(g(x))", "samples g(p(x))"]
    headings += ["no F because"]
    for row in leading:
        of = [p for p in prompts if same(p, row, MEASURE)]
        cells = [
            [
                text(p["prompt"]),
                *_figures_of(p),
                _p(p["p_permutation"]),
                _p(p["p_adjusted"]),
                count(p["n_pg"]),
                count(p["n_gp"]),
                text(p["reason"]),
            ]
            for p in of[:_LISTED]
        ]
        which_ones = f"the {_LISTED} of {len(of):,}" if len(of) > _LISTED else f"all {len(of):,}"
        caption = f"Prompt by prompt, clearest difference first: {measure(row)}, {which_ones}"
        tables.append(Table(caption, headings, cells, folded=True, searchable=True))
    return tables


def calibration(rows: Sequence[Row], sets: Sequence[Row]) -> list[Table]:
    """Shown for what has been measured; halves have half the samples, so wider intervals."""
    if not rows:
        return []
    headings = [
        "Phi",
        "halves of texts about",
        "splits",
        "prompts",
        "F",
        "sets whose interval holds 1",
    ]
    headings += ["prompts with p at or below the level", "level", "after correction"]
    headings += ["prompts whose interval holds 1"]
    cells = []
    for r in rows:
        about = whom({**sets[0], "side": r["side"]}).split(" instead of ")[0]
        cells.append(
            [
                text(measure(r)),
                text(about),
                count(r["n_splits"]),
                count(r["n_prompts"]),
                _calibrated(r),
                text(f"{r['n_sets_holding']:,} of {r['n_sets_with']:,}"),
                _share(r["n_below"], r["n_tests"]),
                _percent(r["alpha"]),
                count(r["n_found"]),
                _share(r["n_holding"], r["n_intervals"]),
            ]
        )
    caption = (
        "Calibration: what the method finds between random halves of one prompt's own samples, "
        "where nothing is to be found (F should be 1, the share of prompts the level)"
    )
    return [Table(caption, headings, cells)]


def _calibrated(row: Row) -> Cell:
    """F and its interval's ends, means over splits; so close to 1 that it takes four digits."""
    if row["value"] is None:
        return Cell("–", None, True)
    low, high = (shown(row[end], 4) for end in ("ci_low", "ci_high"))
    words = f"{shown(row['value'], 4)} ({low} to {high})"
    return Cell(words, row["value"], True, row["ci_low"], row["ci_high"])


def _share(n: int, of: int) -> Cell:
    if not of:
        return Cell("–", None, True)
    return Cell(f"{shown(100 * n / of, 1)}% of {of:,}", 100 * n / of, True)
