"""The question of the first page, the sentence that answers it, and how sure the answer is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from plumbline.eval_workers.writing.offline import CAVEAT, SOURCE
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.findings.estimates import finding, side
from plumbline.pipelines.report.findings.models_by_text import TrainingTexts
from plumbline.pipelines.report.findings.sentences import (
    capital,
    following,
    preferences,
    sureness,
    text_name,
)
from plumbline.pipelines.report.front.headline import Headline, headline_pd
from plumbline.pipelines.report.front.parts import evenness, us_of
from plumbline.pipelines.report.model import Lead, counted, estimate, shown, span
from plumbline.pipelines.report.rows import Row, Rows, by_set, set_name, sides, with_ends
from plumbline.pipelines.report.sections.follow import BY_MAX_PMI, of_errors

_NOTHING = (
    "There is nothing to answer from yet: this warehouse holds no metrics. "
    "`plumbline pipeline` computes them."
)
_ASSOCIATION = "This is an association: it doesn't show that the text is the cause."
#: The text on which many models were trained, and the measure on which they are compared.
_COMPARED = """FROM training_text_difference
WHERE measure = 'us' AND subset = 'all' ORDER BY training_text, benchmark, groups;"""


@dataclass(frozen=True)
class Opening:
    """The answer, and sentences (``bounds``) on how sure it is and what it doesn't show."""

    sentence: str
    bounds: str = ""


def title(facts: Facts, head: Headline | None, others: Sequence[Lead]) -> str:
    """The question that the page answers."""
    pd_rows = headline_pd(facts)
    rows = head.about if head else pd_rows or facts.rows("model")
    models = list(dict.fromkeys(str(r["model"]) for r in rows))
    who = models[0] if len(models) == 1 else f"{len(models):,} language models"
    does = "does" if len(models) == 1 else "do"
    if head and _is_planted(head):
        return "Does a model repeat the leans of the text that it was trained on?"
    if head:
        n = len(head.slopes)
        which = "does " + who if n == 1 else f"do {n:,} language models"
        follow = "does it follow" if n == 1 else "do they follow"
        text, name = text_name(head.fit), set_name(head.fit)
        return f"Which way {which} lean on {name}, and {follow} {text}?"
    if models:
        on = f" on {set_name(pd_rows[0])}" if pd_rows else ""
        return f"Which way {does} {who} lean{on}?"
    if others:
        return others[0].question
    corpora = [str(r["corpus"]) for r in facts.rows("ledger")]
    return f"Which way do the words of {', '.join(corpora[:3]) or 'a text'} lean?"


def answer(
    facts: Facts, head: Headline | None, others: Sequence[Lead], of_text: Sequence[str] = ()
) -> Opening:
    """The answer: do models follow their text on a benchmark, and which way do they lean on it?

    Without metrics it is the first sentence of ``others``, else of ``of_text`` (the part on words).
    """
    pd_rows = headline_pd(facts)
    if not pd_rows:
        return Opening(next((lead.sentences[0] for lead in others), next(iter(of_text), _NOTHING)))
    texts = head.texts if head else TrainingTexts(facts)
    leaning = f"{capital(preferences(texts, pd_rows))}."
    elsewhere, (first, second) = _elsewhere(facts, pd_rows), sides(pd_rows[0])
    meaning = f"PD is the % of pairs that prefer {first} less the % that prefer {second}."
    alike = evenness(us_of(facts, pd_rows))
    frames = _frames(facts, pd_rows[0])
    if head is None:
        return Opening(leaning, _joined(meaning, _measured(pd_rows), elsewhere, alike, frames))
    if head.is_cause:
        return Opening(
            _repeats(head),
            _joined(_made(facts, head), _per_nat(facts, head), leaning, meaning, alike, frames),
        )
    follows = f"{capital(following(texts, head.slopes))}."
    more = (follows, _per_nat(facts, head), _fairer(facts, pd_rows[0]), _ASSOCIATION, frames)
    return Opening(leaning, _joined(meaning, elsewhere, alike, *more))


def _joined(*sentences: str) -> str:
    return " ".join(filter(None, sentences))


def _elsewhere(facts: Facts, pd_rows: Rows) -> str:
    """How many models prefer each side on other benchmarks."""
    others = by_set(facts.metrics("pd", subset="all").only(lambda r: r["n"]))
    counts = [
        f"{set_name(rows[0])}: {', '.join(_of_side(rows))}"
        for rows in others
        if set_name(rows[0]) != set_name(pd_rows[0])
    ]
    return f"On other benchmarks: {'; '.join(counts)}." if counts else ""


def _of_side(rows: Rows) -> Iterator[str]:
    preferred = Counter(side(row) or "unclear" for row in rows)
    for name in (*sides(rows[0]), "unclear"):
        if preferred[name]:
            yield f"{preferred[name]} {name}"


def _repeats(head: Headline) -> str:
    """A sentence on whether models repeat the leans of the text that they were trained on."""
    if len(head.about) > 1:
        return f"{capital(following(head.texts, head.slopes))}."
    is_planted, slope = _is_planted(head), finding(head.slope)
    who = "A small model" if is_planted else str(head.slope["model"])
    text = "the text" if is_planted else f"{text_name(head.slope)}, the text"
    verb = slope.pick(above="repeats", below="reverses", untold="is not shown to repeat")
    why = f" ({slope.lack.partition(': ')[2]})" if slope.lack else ""
    return f"{who} {verb} the leans of {text} that it was trained on{why}."


def _is_planted(head: Headline) -> bool:
    return bool(head.fit["subset"] == "words, planted delta")


def _made(facts: Facts, head: Headline) -> str:
    """What was done, for a text whose leans were planted; else empty."""
    if not _is_planted(head):
        return ""
    ledger = facts.rows("ledger").where(corpus=head.fit["corpus"])
    text = f"{ledger[0]['n_tokens']:,} words" if ledger else "a text"
    return (
        f"We wrote {text} in which {head.fit['n']:,} words stand near she or "
        f"he by known amounts, trained on them, and measured both."
    )


def _per_nat(facts: Facts, head: Headline) -> str:
    """A sentence on the slope that is drawn, with its interval."""
    row, n, contrast = head.slope, len(head.about), head.fit["contrast"]
    side_of_text = facts.contrast_sides(head.fit["corpus"], contrast) if contrast else sides(row)
    who = f"{row['model']}, the middle one of {n} models,"
    whose = "the model's preference" if n == 1 else f"the preference of {who}"
    word = "the word that decides a pair's MaxPMI" if row["subset"] == BY_MAX_PMI else "a word"
    moves = finding(row).pick(above="rises by", below="falls by", untold="isn't shown to change:")
    value, low, high = (row[end] for end in with_ends("value"))
    if moves == "falls by":
        row = {**row, "value": -value, "value_low": -high, "value_high": -low}
    is_signed = moves.endswith(":")
    noise = f" {of_errors(head.fit)}." if of_errors(head.fit) else ""
    return (
        f"For each nat (a factor of 2.7) that {word} leans further to {side_of_text[0]} in the "
        f"text, {whose} {moves} {shown(row['value'], 2, signed=is_signed)} nats "
        f"({sureness(row, 2, signed=is_signed)}).{noise}"
    )


def _fairer(facts: Facts, row: Row) -> str:
    """Whether models trained on a text treat more pairs alike than others; empty if unknown."""
    same = {name: row[name] for name in ("benchmark", "groups")}
    for compared in facts.query(_COMPARED).where(**same):
        verbs = {"rose": "treat more", "fell": "treat fewer"}
        fairer = verbs.get(compared["direction"], "aren't shown to treat more or fewer")
        return (
            f"Models trained on {compared['training_text']} {fairer} pairs alike than others: US "
            f"{shown(compared['mean_figure'], 1)}% and {shown(compared['other_figure'], 1)}%, "
            f"difference {estimate(compared, 'difference', 1, signed=True).text} points over "
            f"{compared['n_families']} and {compared['n_other_families']} families."
        )
    return ""


def _frames(facts: Facts, row: Row) -> str:
    """A caveat if a row's benchmark was written from Plumbline's sentence frames; else empty."""
    frame_benchmarks = [r["benchmark"] for r in facts.rows("written_benchmark", source=SOURCE)]
    return f"{row['benchmark']}: {CAVEAT}." if row["benchmark"] in frame_benchmarks else ""


def _measured(rows: Rows) -> str:
    row = rows[0]
    over = finding(row).over
    size = f"{counted(row['n'], 'pair')}{f' of {over}' if over else ''}"
    figures = [r[c] for r in rows for c in with_ends("value") if r[c] is not None]
    what = "PD is" if row["value_low"] is None else "PD and its 95% intervals are"
    return f"{set_name(row)}, {size}: {what} within {span(figures)} points."
