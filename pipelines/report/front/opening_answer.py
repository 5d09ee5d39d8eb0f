"""The question of the first page, the sentence that answers it, and how sure the answer is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plumbline.eval_workers.writing.offline import CAVEAT, SOURCE
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.findings.estimates import finding
from plumbline.pipelines.report.findings.models_by_text import TrainingTexts
from plumbline.pipelines.report.findings.sentences import (
    SLOPES_ABOVE,
    by_training_text,
    capital,
    following,
    n_above,
    preferences,
    sureness,
    text_name,
)
from plumbline.pipelines.report.front.headline import Headline, headline_pd
from plumbline.pipelines.report.model import Lead, counted, shown, span
from plumbline.pipelines.report.rows import Row, Rows, by_set, set_name, sides, with_ends
from plumbline.pipelines.report.sections.follow import BY_MAX_PMI, of_errors

_NOTHING = (
    "There is nothing to answer from yet: this warehouse holds no metrics. "
    "`plumbline pipeline` computes them."
)
_OWN_TEXT = "{} was trained on this text alone."
_PLANTED = "These leans were written into the text: this checks the instrument."
_ASSOCIATION = "An association: it doesn't show that the text is the cause."


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
    does = "Does" if len(models) == 1 else "Do"
    if head:
        text, name = text_name(head.fit), set_name(head.fit)
        its = "its" if len(models) == 1 else "their"
        verb = f"follow {text}, {its} text," if head.own else f"agree with {text}"
        return f"{does} {who} {verb} on {name}?"
    if models:
        on = f" on {set_name(pd_rows[0])}" if pd_rows else ""
        return f"Which way {does.lower()} {who} lean{on}?"
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
    texts = head.texts if head else TrainingTexts(facts)
    leaning = preferences(texts, pd_rows) if pd_rows else ""
    if head:
        sentences = [capital(following(texts, head.slopes)), capital(leaning)]
        return Opening(_as_sentences(sentences), f"{_bounds(head)}{_frames(facts, head.fit)}")
    if pd_rows:
        return Opening(f"{capital(leaning)}.", f"{_measured(pd_rows)}{_frames(facts, pd_rows[0])}")
    return Opening(next((lead.sentences[0] for lead in others), next(iter(of_text), _NOTHING)))


def _frames(facts: Facts, row: Row) -> str:
    """A caveat if a row's benchmark was written from Plumbline's sentence frames; else empty."""
    frame_benchmarks = [r["benchmark"] for r in facts.rows("written_benchmark", source=SOURCE)]
    return f" {row['benchmark']}: {CAVEAT}." if row["benchmark"] in frame_benchmarks else ""


def _measured(rows: Rows) -> str:
    row = rows[0]
    over = finding(row).over
    size = f"{counted(row['n'], 'pair')}{f' of {over}' if over else ''}"
    figures = [r[c] for r in rows for c in with_ends("value") if r[c] is not None]
    return f"{set_name(row)}, {size}: PD and its 95% intervals are within {span(figures)} points."


def _bounds(head: Headline) -> str:
    """Sentences on the drawn fit's slope: interval, models, and what it doesn't show."""
    row, n = head.slope, len(head.about)
    first = str(row["contrast"] or "").partition("/")[0] if "/" in (row["contrast"] or "") else ""
    toward = first or sides(row)[0]
    slopes_span = span([r["value"] for r in head.about], 2)
    among = f" in the middle one of {n} models, whose estimates run {slopes_span}" if n > 1 else ""
    cause = _OWN_TEXT.format("Each" if n > 1 else "It") if head.is_cause else _ASSOCIATION
    if row["subset"] == "words, planted delta":
        cause = f"{cause} {_PLANTED}"
    word = "the word that decides a pair's MaxPMI" if row["subset"] == BY_MAX_PMI else "a word"
    sentences = [
        f"Per nat (2.7 times) that {word} leans more to {toward} in the text, the preference "
        f"changes by {shown(row['value'], 2, signed=True)} nats "
        f"({sureness(row, 2, signed=True)}){among}; {row['n']:,} words of {set_name(row)}",
        of_errors(head.fit),
        by_training_text(head.texts, head.slopes),
        _elsewhere(head),
    ]
    return f"{_as_sentences(sentences)} {cause}"


def _as_sentences(sentences: Sequence[str]) -> str:
    return " ".join(f"{sentence}." for sentence in sentences if sentence)


def _elsewhere(head: Headline) -> str:
    """How many slopes are above 0 on other benchmarks; for one model, on which clearly."""
    keys = {r["model_key"] for r in head.about}
    groups = by_set(head.elsewhere.only(lambda r: r["model_key"] in keys))
    counts = [f"{n_above(slopes)} on {set_name(slopes[0])}" for slopes in groups]
    what = f"{SLOPES_ABOVE} on other benchmarks"
    if len(keys) == 1:
        counts = [set_name(slopes[0]) for slopes in groups if finding(slopes[0]).verdict == "above"]
        counts = counts or ["none"] if groups else []
        what = "Slopes clearly above 0 on other benchmarks"
    return f"{what}: {', '.join(counts)}" if counts else ""
