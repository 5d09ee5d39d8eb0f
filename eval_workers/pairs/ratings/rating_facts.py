"""Facts about the ratings of a benchmark, as texts for its card."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plumbline.eval_workers.pairs.ratings.rater_agreement import FEWEST_PAIRS
from plumbline.warehouse.query.connection import rows_of

Row = dict[str, Any]

_FIGURES = """
SELECT s.*, a.alpha, a.alpha_low, a.alpha_high, a.n_pairs AS n_rated
FROM rating_share AS s
JOIN rating_agreement AS a
    ON a.benchmark = s.benchmark AND a.design IS NOT DISTINCT FROM s.design
    AND a.question = s.question AND a.without_rater = ''
WHERE s.benchmark = $benchmark
ORDER BY s.design NULLS FIRST, s.question
"""
_UNLIKE = "FROM rater_agreement WHERE benchmark = $benchmark AND is_unlike ORDER BY question, rater"
_RATERS = """
SELECT design, list(DISTINCT rater ORDER BY rater) AS raters FROM rating
WHERE benchmark = $benchmark GROUP BY design ORDER BY design NULLS FIRST
"""
#: No row if the pairs' own verdict calls none unnatural: there is then nothing to compare.
_VERDICT = "FROM rating_verdict WHERE benchmark = $benchmark AND n_people_only + n_neither > 0"


def people_say(root: Path, benchmark: str) -> dict[str, str]:
    """Facts for a card: raters, their answers and their agreement; empty without ratings."""
    about = {"benchmark": benchmark}
    figures = rows_of(root, _FIGURES, about)
    if not figures:
        return {}
    facts = {}
    # Each design has lines of its own.
    for group in rows_of(root, _RATERS, about):
        rows = [row for row in figures if row["design"] == group["design"]]
        design = f" [{group['design']}]" if len(figures) > len(rows) else ""
        who = f"{_raters(len(group['raters']))} ({', '.join(group['raters'])})"
        n_pairs = max((row["n_pairs"] for row in rows), default=0)
        facts[f"Judged by people{design}"] = f"{who}, {n_pairs:,} pairs"
        for row in rows:
            facts[f"People on `{row['question']}`{design}"] = _of_question(row)
    if unlike := rows_of(root, _UNLIKE, about):
        facts["Answers unlike the others'"] = "; ".join(
            f"{row['rater']} on `{row['question']}` (alpha {row['alpha_of_all']:.2f}, "
            f"{row['alpha_without']:.2f} without)"
            for row in unlike
        )
    for row in (verdicts := rows_of(root, _VERDICT, about)):
        design = f" [{row['design']}]" if len(verdicts) > 1 else ""
        facts[f"People (majority) and the pairs' own verdict{design}"] = _verdict(row)
    return facts


def _of_question(row: Row) -> str:
    least, most = row["n_raters_least"], row["n_raters_most"]
    each = _raters(most) if least == most else f"{least} to {most} raters"
    mean, majority, five = (_share(row, name) for name in ("mean", "majority", "five"))
    at_least = f"at least five for {five} of {row['n_pairs_five']:,} pairs"
    return (
        f"mean share of yes over {row['n_pairs']:,} pairs: {mean}; a majority of {each} said yes "
        f"for {majority}, {row['five_missing'] or at_least}; {_alpha(row)}"
    )


def _raters(n: int) -> str:
    return f"{n} rater" if n == 1 else f"{n} raters"


def _share(row: Row, name: str) -> str:
    share, low, high = (row[f"{name}_share{end}"] for end in ("", "_low", "_high"))
    if share is None:
        return "–"
    ends = "no interval: too few words" if low is None else f"{100 * low:.1f} to {100 * high:.1f}"
    return f"{100 * share:.1f}% ({ends})"


def _alpha(row: Row) -> str:
    if row["alpha"] is None:
        return "Krippendorff's alpha undefined, as all answers are the same or no pair has two"
    if row["n_rated"] < FEWEST_PAIRS:
        pairs = f"{row['n_rated']} pair{'' if row['n_rated'] == 1 else 's'}"
        interval = f" (no interval: {pairs} with two answers, {FEWEST_PAIRS} are needed)"
    elif row["alpha_low"] is None:
        interval = " (no interval: answers are too much alike to resample)"
    else:
        interval = f" ({row['alpha_low']:.2f} to {row['alpha_high']:.2f})"
    return f"Krippendorff's alpha {row['alpha']:.2f}{interval}"


def _verdict(row: Row) -> str:
    kappa = "" if row["kappa"] is None else f"; Cohen's kappa {row['kappa']:.2f}"
    return (
        f"{row['n_both']:,} pairs natural to both, {row['n_people_only']:,} to people only, "
        f"{row['n_model_only']:,} to the verdict only, {row['n_neither']:,} to neither, "
        f"{row['n_tied']:,} undecided{kappa}"
    )
