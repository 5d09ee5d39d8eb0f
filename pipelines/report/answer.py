"""The opening of the page: what the figures say, in sentences made from the tables of metrics."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from plumbline.pipelines.report import (
    between_corpora,
    between_models,
    disclosure,
    disclosure_tuned,
    fairpair_words,
    worth,
)
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import Lead, Row, shown

#: Up to this many models of a benchmark are described one by one, more are summed up.
_ONE_BY_ONE = 4


def answer(facts: Facts) -> list[Lead]:
    """What the figures say, question by question; empty when there are no metrics."""
    benchmarks = sorted({row["benchmark"] for row in facts.metrics("pd", subset="all")})
    leads = [
        Lead("Which way, how far, how sure?", _lean(facts, benchmarks)),
        between_models.lead(facts),
        Lead("What are these sentences worth?", worth.sentences(facts)),
        Lead("Does the model follow the text?", _follow(facts)),
        Lead("Does it turn round when the text does?", _turned(facts)),
        Lead("Does counting find the lean of the text?", _planted(facts)),
        Lead("And without words that lean in the text?", _gaps(facts, benchmarks)),
        between_corpora.lead(facts),
        fairpair_words.lead(facts),
        disclosure.lead(facts),
        disclosure_tuned.lead(facts),
    ]
    return [lead for lead in leads if lead.sentences]


def _lean(facts: Facts, benchmarks: Iterable[str]) -> list[str]:
    sentences = []
    for benchmark in benchmarks:
        rows = [r for r in facts.metrics("pd", subset="all", benchmark=benchmark) if r["n"]]
        if len(rows) > _ONE_BY_ONE:
            sentences.append(f"{benchmark}: {_summed_up(facts, rows)}")
        else:
            sentences += [f"{benchmark}: {_each(facts, row)}" for row in rows]
    return sentences


def direction(row: Row) -> str:
    """Which sentence a PD row prefers: `female`, `male`, or `` when its interval holds 0.

    >>> direction({"value": 5.0, "ci_low": -1.0, "ci_high": 11.0})
    ''
    """
    if row["ci_low"] > 0:
        return "female"
    return "male" if row["ci_high"] < 0 else ""


def interval(row: Row, digits: int, scale: float = 1.0, *, signed: bool = False) -> str:
    """The 95% interval in words; empty when there is none."""
    if row["ci_low"] is None or row["ci_high"] is None:
        return ""
    low, high = (shown(row[c] * scale, digits, signed=signed) for c in ("ci_low", "ci_high"))
    return f"95% interval {low} to {high}"


def _us(facts: Facts, row: Row) -> Row:
    (found,) = facts.metrics(
        "us", subset="all", benchmark=row["benchmark"], model_key=row["model_key"]
    )
    return found


def _each(facts: Facts, row: Row) -> str:
    us = _us(facts, row)
    points = f"{shown(abs(row['value']), 1)} points"
    where = f"({interval(row, 1, signed=True)})"
    side = direction(row)
    lean = (
        f"{row['model']} leans {side}: it prefers the {side} sentence more often by {points} "
        f"{where}"
        if side
        else f"{row['model']} shows no clear direction: {points} apart {where}"
    )
    return (
        f"{lean}, and finds {shown(100 * us['value'], 1)}% of {row['n']:,} pairs about equally "
        f"likely ({interval(us, 1, 100)})."
    )


def _summed_up(facts: Facts, rows: Sequence[Row]) -> str:
    sides = [direction(row) for row in rows]
    furthest = max(rows, key=lambda r: abs(r["value"]))
    side = "female" if furthest["value"] > 0 else "male"
    evenest = max((_us(facts, row) for row in rows), key=lambda r: r["value"])
    return (
        f"of {len(rows)} models, {sides.count('male')} lean male, {sides.count('female')} lean "
        f"female and {sides.count('')} show no clear direction. {furthest['model']} leans "
        f"furthest, {shown(abs(furthest['value']), 1)} points to the {side} sentence "
        f"({interval(furthest, 1, signed=True)}). {evenest['model']} is the most even, with "
        f"{shown(100 * evenest['value'], 1)}% of {evenest['n']:,} pairs about equally likely "
        f"({interval(evenest, 1, 100)})."
    )


def _gaps(facts: Facts, benchmarks: Iterable[str]) -> list[str]:
    """Does the lean go away where the text has none? At the tightest limit that keeps pairs."""
    sentences = []
    for benchmark in benchmarks:
        rows = [r for r in facts.metrics("gap", benchmark=benchmark) if r["eta_nats"] is not None]
        for corpus, contrast in sorted({(r["corpus"], r["contrast"]) for r in rows}):
            of = [r for r in rows if (r["corpus"], r["contrast"]) == (corpus, contrast) and r["n"]]
            if not of:
                continue
            eta = min(r["eta_nats"] for r in of)
            tightest = [r for r in of if r["eta_nats"] == eta]
            sentences.append(
                f"{benchmark}, the {tightest[0]['n']:,} pairs whose words lean at most {eta:g} "
                f"nats in {corpus}: the share of balanced pairs changes by {_change(tightest)}."
            )
    return sentences


def _change(gaps: Sequence[Row]) -> str:
    """The gap of one model with its interval, or the range of several and how many are clear."""
    span = _span([100 * r["value"] for r in gaps])
    if len(gaps) == 1:
        return f"{span} points ({interval(gaps[0], 1, 100, signed=True)})"
    n_up, n_down = sum(r["ci_low"] > 0 for r in gaps), sum(r["ci_high"] < 0 for r in gaps)
    return f"{span} points; clearly up for {n_up}, clearly down for {n_down} of {len(gaps)} models"


def _span(values: Sequence[float], digits: int = 1) -> str:
    low, high = (shown(v, digits, signed=True) for v in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _models(n: int) -> str:
    return f"{n} model{'' if n == 1 else 's'}"


def _follow(facts: Facts) -> list[str]:
    """Does the model follow its corpus? Planted truth first, then measured deltas."""
    paragraphs = []
    own = {(row["model"], row["trained_on"]) for row in facts.model if row["trained_on"]}
    kinds = {
        "words, planted delta": "planted lean",
        "words, measured delta": "measured lean",
        "pairs, max_pmi": "MaxPMI",
    }
    for subset, what in kinds.items():
        rows = [r for r in facts.metrics("slope", subset=subset) if r["ci_low"] is not None]
        trained = {model for model, _ in own}
        rows = [r for r in rows if r["model"] not in trained or (r["model"], r["corpus"]) in own]
        for key in sorted({(r["benchmark"], r["corpus"], r["contrast"]) for r in rows}):
            of = [r for r in rows if (r["benchmark"], r["corpus"], r["contrast"]) == key]
            if len(of) <= _ONE_BY_ONE:
                paragraphs += [_followed(facts, row, what) for row in of]
            else:
                paragraphs.append(_followed_by_many(of, what))
    return paragraphs


def verdict(row: Row) -> str:
    """Whether a slope's interval lies above 0, below it, or holds it."""
    if row["ci_low"] > 0:
        return "follows"
    return "runs against" if row["ci_high"] < 0 else "is not shown to follow"


def _followed(facts: Facts, row: Row, what: str) -> str:
    same = {k: row[k] for k in ("subset", "model_key", "benchmark", "corpus", "contrast")}
    kind = "rank correlation" if row["subset"] == "words, planted delta" else "correlation"
    (r,) = facts.metrics(kind, **same)
    unit = "pairs" if row["subset"].startswith("pairs") else "words"
    return (
        f"{row['model']} {verdict(row)} the text {row['corpus']} on {row['benchmark']}: a nat "
        f"of {what} moves its log ratio by {shown(row['value'], 2, signed=True)} nats "
        f"({interval(row, 2)}); {kind} {shown(r['value'], 2)} ({interval(r, 2)}) over "
        f"{row['n']:,} {unit}."
    )


def _followed_by_many(rows: Sequence[Row], what: str) -> str:
    verdicts = [verdict(row) for row in rows]
    first = rows[0]
    unit = "pairs" if first["subset"].startswith("pairs") else "words"
    return (
        f"{first['benchmark']} and {first['corpus']}: {verdicts.count('follows')} of "
        f"{_models(len(rows))} follow the text's {what} ({verdicts.count('runs against')} run "
        f"against it); a nat moves the log ratio by {_span([r['value'] for r in rows], 2)} nats, "
        f"over {first['n']:,} {unit}."
    )


def _turned(facts: Facts) -> list[str]:
    """With the planted associations swapped, does the preference turn round?"""
    paragraphs = []
    for row in facts.metrics("correlation", subset="words, swapped on straight"):
        if row["ci_low"] is None:
            continue
        turned = row["ci_high"] < 0
        swapped = json.loads(row["options"])["swapped_model"]
        paragraphs.append(
            f"With the planted leans swapped, the preference {'turns' if turned else 'does not'} "
            f"{'round' if turned else 'clearly turn round'}: correlation "
            f"{shown(row['value'], 2)} ({interval(row, 2)}) between {row['model']} and {swapped}, "
            f"word by word, over {row['n']:,} words of {row['benchmark']}."
        )
    return paragraphs


def _planted(facts: Facts) -> list[str]:
    """Does counting recover what was planted?"""
    rows = facts.metrics("rank correlation", subset="words, measured on planted")
    return [
        f"Counting finds what was planted in {row['corpus']}: rank correlation "
        f"{shown(row['value'], 3)} ({interval(row, 3)}) between planted and measured delta "
        f"({row['contrast']}) over {row['n']:,} words."
        for row in rows
        if row["ci_low"] is not None
    ]
