"""What people said of a benchmark, in the words of its card."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plumbline.eval_workers.ratings.agreement import FEWEST_PAIRS
from plumbline.warehouse.query.connection import rows_of

Row = dict[str, Any]

_FIGURES = """
SELECT s.*, q.position, q.wording, a.alpha, a.alpha_low, a.alpha_high, a.n_pairs AS n_rated
FROM rating_share AS s
JOIN rating_question AS q USING (benchmark, question)
JOIN rating_agreement AS a
    ON a.benchmark = s.benchmark AND a.question = s.question AND a.without_rater = ''
WHERE s.benchmark = $benchmark
ORDER BY q.position
"""
_UNLIKE = "FROM rater_agreement WHERE benchmark = $benchmark AND is_unlike ORDER BY question, rater"
_RATERS = "SELECT DISTINCT rater FROM rating WHERE benchmark = $benchmark ORDER BY rater"
#: Without a pair that the verdict calls unnatural there is nothing to compare.
_VERDICT = "FROM rating_verdict WHERE benchmark = $benchmark AND n_people_only + n_neither > 0"


def people_say(root: Path, benchmark: str) -> dict[str, str]:
    """Facts for a card: who judged, what they found, how far they agree; empty without ratings."""
    about = {"benchmark": benchmark}
    figures = rows_of(root, _FIGURES, about)
    if not figures:
        return {}
    raters = [row["rater"] for row in rows_of(root, _RATERS, about)]
    n_pairs = max(row["n_pairs"] for row in figures)
    who = f"{_raters(len(raters))} ({', '.join(raters)})"
    said = {"Judged by people": f"{who}, {n_pairs:,} pairs"}
    for row in figures:
        said[f"People on `{row['question']}` ({row['wording']})"] = _of_question(row)
    if unlike := rows_of(root, _UNLIKE, about):
        said["Answers unlike the others'"] = "; ".join(map(_unlike, unlike))
    for row in rows_of(root, _VERDICT, about):
        said["People (majority) and the pairs' own verdict"] = _verdict(row)
    return said


def _of_question(row: Row) -> str:
    least, most = row["n_raters_least"], row["n_raters_most"]
    each = _raters(most) if least == most else f"{least} to {most} raters"
    parts = [f"yes by a majority of {each} for {_share(row, 'majority', row['n_pairs'])}"]
    if row["n_pairs_five"]:
        parts.append(f"by at least five for {_share(row, 'five', row['n_pairs_five'])}")
    return f"{', '.join(parts)}; {_alpha(row)}"


def _raters(n: int) -> str:
    return f"{n} rater" if n == 1 else f"{n} raters"


def _share(row: Row, of: str, n_pairs: int) -> str:
    share, low, high = (row[f"{of}_share{end}"] for end in ("", "_low", "_high"))
    ends = "no interval: too few words" if low is None else f"{100 * low:.1f} to {100 * high:.1f}"
    return f"{100 * share:.1f}% of {n_pairs:,} pairs ({ends})"


def _alpha(row: Row) -> str:
    if row["alpha"] is None:
        return "Krippendorff's alpha undefined, as all answers are the same or no pair has two"
    interval = ""
    if row["n_rated"] < FEWEST_PAIRS:
        pairs = f"{row['n_rated']} pair{'' if row['n_rated'] == 1 else 's'}"
        interval = f" (no interval: {pairs} with two answers, {FEWEST_PAIRS} are needed)"
    elif row["alpha_low"] is None:
        interval = " (no interval: answers are too much alike to resample)"
    else:
        interval = f" ({row['alpha_low']:.2f} to {row['alpha_high']:.2f})"
    return f"Krippendorff's alpha {row['alpha']:.2f}{interval}"


def _unlike(row: Row) -> str:
    with_and_without = f"alpha {row['alpha_of_all']:.2f}, {row['alpha_without']:.2f} without"
    return f"{row['rater']} on `{row['question']}` ({with_and_without})"


def _verdict(row: Row) -> str:
    kappa = "" if row["kappa"] is None else f"; Cohen's kappa {row['kappa']:.2f}"
    return (
        f"{row['n_both']:,} pairs natural to both, {row['n_people_only']:,} to people only, "
        f"{row['n_model_only']:,} to the verdict only, {row['n_neither']:,} to neither, "
        f"{row['n_tied']:,} undecided{kappa}"
    )
