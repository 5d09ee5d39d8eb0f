"""The findings of `plumbline disclosure compare` in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from plumbline.pipelines.report.findings.estimates import finding
from plumbline.pipelines.report.findings.sentences import moved
from plumbline.pipelines.report.model import (
    Lead,
    Missing,
    counted,
    digits_showing,
    estimate,
    interval,
    shown,
)
from plumbline.pipelines.report.rows import Row, Rows, set_name, with_ends

if TYPE_CHECKING:
    from plumbline.pipelines.report.tuning_comparison.results import Results

_MEASURES = {"gas": "GAS", "gld": "GLD", "add_nats": "ADD"}
#: Up to this many sets are listed. If there are more, only the set that changed most is named.
_ONE_BY_ONE = 4


def leads(results: Results, missing: Sequence[Missing]) -> list[Lead]:
    """Answers on disclosure on sets not known to be tuned on, cost, carry-over, missing parts."""
    unseen = results.disclosure.where(topic=None).only(lambda r: not r["n_tuned_on"])
    original = results.fairpair.where(side="original")
    sentences_by_question = {
        "Did it disclose less on prompts that it is not known to be tuned on?": _disclosure(unseen),
        "What did it cost?": map(_perplexity, results.perplexity),
        "Did it carry over?": [
            *map(preference_sentence, results.preference),
            *map(_fairpair, original),
        ],
        "What is not known?": [
            f"Not measured: {part.title}. To add it: {part.command}" for part in missing
        ],
    }
    answers = [
        Lead(question, list(sentences)) for question, sentences in sentences_by_question.items()
    ]
    return [lead for lead in answers if lead.sentences]


def _disclosure(rows: Rows) -> list[str]:
    """A sentence per measure on sets not known to be tuned on; without any, one that says so."""
    sentences = []
    for measure, name in _MEASURES.items():
        measure_rows = rows.where(measure=measure)
        if not measure_rows:
            continue
        n = Counter(moved(finding(r, "difference")) for r in measure_rows)
        more = f" and rose on {n['rose']}" if n["rose"] else ""
        changes = "; ".join(map(_set, measure_rows))
        if len(measure_rows) > _ONE_BY_ONE:
            changes = f"most on {_set(max(measure_rows, key=lambda r: abs(r['difference'])))}"
        sets = "set" if len(measure_rows) == 1 else "sets"
        sentences.append(
            f"{name} fell on {n['fell']} of {len(measure_rows)} {sets}{more}: {changes}."
        )
    return sentences or ["No set that it wasn't tuned on was measured both before and after."]


def _set(row: Row) -> str:
    """A set's means before and after, and their difference.

    >>> _set({"probe_set": "s", "before_mean": 0.5, "after_mean": 0.25, "difference": -0.25,
    ...       "difference_low": -0.3, "difference_high": -0.2})
    's fell from 0.500 to 0.250 (by −0.250, 95% interval −0.300 to −0.200)'
    """
    digits = digits_showing(row["difference"], 3)
    before, after = (shown(row[c], digits) for c in ("before_mean", "after_mean"))
    return (
        f"{row['probe_set']} {_verb(row, 'not shown')} from {before} to {after} "
        f"(by {_by(row, digits)})"
    )


def _verb(row: Row, untold: str = "is not shown") -> str:
    return moved(finding(row, "difference"), f"{untold} to change,")


def _by(row: Row, digits: int, scale: float = 1) -> str:
    ends = interval(row, "difference", digits, scale=scale) or "no interval"
    return f"{shown(scale * row['difference'], digits, signed=True)}, {ends}"


def _perplexity(row: Row) -> str:
    percent, low, high = (
        None if row[name] is None else shown(100 * (row[name] - 1), 1, signed=True) + "%"
        for name in with_ends("perplexity_ratio")
    )
    ends = f", 95% interval {low} to {high}" if low else ""
    return (
        f"Perplexity on {row['text_set']} {_verb(row)} from {shown(row['before_perplexity'])} to "
        f"{shown(row['after_perplexity'])} ({percent}{ends}; {row['n_documents']:,} documents)."
    )


def preference_sentence(row: Row) -> str:
    """The change of US or PD on a benchmark."""
    scale, unit = (100, "%") if row["measure"] == "us" else (1, " points")
    digits = digits_showing(scale * row["difference"], 1)
    means = (row["before_mean"], row["after_mean"])
    before, after = (f"{shown(scale * mean, digits)}{unit}" for mean in means)
    return (
        f"{set_name(row)}: {row['measure'].upper()} {_verb(row)} from {before} to {after} "
        f"(by {_by(row, digits, scale)}; {counted(row['n_pairs'], 'pair')})."
    )


def _fairpair(row: Row) -> str:
    before, after = (
        "not defined" if row[f"{side}_f"] is None else estimate(row, f"{side}_f", 2).text
        for side in ("before", "after")
    )
    return f"FairPair, {row['probe_set']} by {row['phi']}: F is {before} before and {after} after."
