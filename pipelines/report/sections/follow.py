"""Sections on models that follow their text or turn round with it, and on planted leans."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence

from plumbline.pipelines.report.charts import chart_forms as charts
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.findings.estimates import finding
from plumbline.pipelines.report.findings.models_by_text import TrainingTexts
from plumbline.pipelines.report.findings.sentences import (
    by_training_text,
    capital,
    following,
    sureness,
)
from plumbline.pipelines.report.metric_tables import (
    CONTROL_COLUMNS,
    FIT,
    IN_BRACKETS,
    by_metric,
    corpus_name,
    metric_columns,
    predicts_beyond,
)
from plumbline.pipelines.report.model import (
    Columns,
    Figure,
    Lead,
    Missing,
    PageTable,
    Section,
    estimate,
    shown,
    span,
    stem,
    table,
)
from plumbline.pipelines.report.rows import Row, Rows, set_name, sides
from plumbline.pipelines.report.sections.preference import ONE_BY_ONE

PLACE = 200
NAMES = ("follow", "swapped", "planted")
#: Greatest number of scatter plots; the table below them has every fit.
MAX_FITS = 8
#: Least reliability of leans for a verdict on their slope (view `fit`).
LEAST_RELIABLE = 0.3
#: Subset of fits of benchmarks whose pairs were made for no word, or for words that were chosen
#: because they don't lean. Points are the words that decide MaxPMI.
BY_MAX_PMI = "words, max_pmi"
#: Subset -> the name of its lean on an axis and in a sentence, in the page's order.
LEANS = {
    "words, planted delta": ("planted delta of the word, in nats", "planted lean"),
    "words, measured delta": ("measured delta of the word, in nats", "measured lean"),
    BY_MAX_PMI: ("MaxPMI of the word's pairs, in nats", "MaxPMI"),
}
_SWAPPED, _PLANTED = "words, swapped on straight", "words, measured on planted"


def sections(facts: Facts) -> Iterator[Section | Missing]:
    """Fits of preference on lean, of swapped on straight model, and of measured on planted lean."""
    yield _follow(facts)
    yield _swapped(facts)
    yield _planted(facts)


def _follow(facts: Facts) -> Section | Missing:
    title = "Does the model follow the text?"
    if not facts.rows("score"):
        return Missing(title, "plumbline score --model ID_OR_PATH --benchmark NAME")
    rows = facts.rows("metric").where(subset=tuple(LEANS))
    if not rows:
        return Missing(title, "plumbline corpus associate --corpus NAME; plumbline measure")
    fits = _in_order(facts)
    intro = [
        "Pairs made for the same word are not independent, so a point of a plot is a word: the "
        "mean log ratio of its pairs against its lean in the text. A slope of 0 means the model "
        "takes no notice of that lean. On the planted lean of its own corpus, a slope of 1 is that "
        "of a perfect learner. The text that a model was trained on here is counted without error; "
        "any other text is taken as a sample of its kind, and the errors of its leans flatten a "
        "slope. Reliability is the share of the leans' variance that isn't error; the "
        "corrected slope is the slope divided by it. A slope on leans with a reliability below "
        "0.3 gets no verdict. If the words of all pairs were chosen because they do not lean, "
        "or pairs were made for no word, a point is the word that decides its pairs' MaxPMI."
    ]
    if len(fits) > MAX_FITS:
        intro.append(f"Plotted are {MAX_FITS} of {len(fits)} fits; the table holds all.")
    figures = [figure for fit in fits[:MAX_FITS] for figure in _follow_figure(facts, fit)]
    columns: Columns = [
        *("model", "benchmark", "corpus"),
        ("against", lambda r: r["subset"] + (f" ({r['contrast']})" if r["contrast"] else "")),
    ]
    tables = [_table(rows, f"Log ratio on the lean of the text, {IN_BRACKETS}", columns)]
    if controls := facts.rows("control"):
        caption = "The lean of the text beside frequency, n-grams and length"
        tables.append(table(caption, controls, CONTROL_COLUMNS, folded=len(controls) > 30))
    return Section("follow", title, intro, (), figures, tables)


def _table(rows: Rows, caption: str, columns: Columns) -> PageTable:
    fits = by_metric(rows, *FIT)
    fits.sort(key=lambda r: [*LEANS, r["subset"]].index(r["subset"]))
    columns = [*columns, *metric_columns(rows), ("words", "n")]
    return table(caption, fits, columns, folded=len(fits) > 30)


def _in_order(facts: Facts) -> list[Row]:
    """Fits to plot: models' own texts first, planted before measured leans, benchmarks in turn.

    Of one kind of lean and one text, each benchmark comes once before any comes with another model.
    """
    fits, training_texts = facts.rows("fit").where(subset=tuple(LEANS)), own_texts(facts)
    seen: Counter[tuple[str, ...]] = Counter()
    keyed = []
    for i, fit in enumerate(fits):
        group = (fit["subset"], fit["benchmark"], fit["groups"], fit["corpus"])
        seen[group] += 1
        is_foreign = (fit["model"], fit["corpus"]) not in training_texts
        keyed.append((is_foreign, list(LEANS).index(fit["subset"]), seen[group], i))
    return [fits[i] for *_, i in sorted(keyed)]


def own_texts(facts: Facts) -> set[tuple[str, str]]:
    """Each model trained in this warehouse, with its training corpus."""
    return {(row["model"], row["trained_on"]) for row in facts.rows("model") if row["trained_on"]}


def _follow_figure(facts: Facts, fit: Row) -> list[Figure]:
    note, name = _note(facts, fit), set_name(fit)
    lean, _ = LEANS[fit["subset"]]
    title = f"{fit['model']} on {name}, text: {fit['corpus']}"
    return _figure(
        facts,
        fit,
        stem("follow", fit["model"], name, fit["corpus"], fit["subset"]),
        f"Log ratio of {fit['model']} on {name} against the {fit['subset']}: {note}.",
        f"{title}; against the {lean}. {note}.",
        (lean, f"log ratio in nats (> 0 prefers {sides(fit)[0]})"),
    )


def drawable_points(facts: Facts, fit: Row) -> Rows:
    """The points of a fit if there are two or more and all are finite; else none."""
    points = facts.points(fit)
    is_finite = all(math.isfinite(p["x_nats"]) and math.isfinite(p["y_nats"]) for p in points)
    return points if len(points) > 1 and is_finite else Rows()


def _figure(
    facts: Facts, fit: Row, name: str, alt: str, caption: str, axes: tuple[str, str]
) -> list[Figure]:
    """A chart of a fit's points and line; empty if the points can't be drawn."""
    if points := drawable_points(facts, fit):
        return [Figure(name, alt, caption, charts.fitted(points, fit, *axes), points)]
    return []


def _estimates(facts: Facts, fit: Row, *names: str) -> list[str]:
    rows = facts.rows("metric").where(**{column: fit[column] for column in FIT})
    by_name = {row["metric"]: row for row in rows}
    return [estimate(by_name.get(name)).text for name in names]


def _note(facts: Facts, fit: Row) -> str:
    slope, correlation = _estimates(facts, fit, "slope", "correlation")
    about = f"Slope {slope}, correlation {correlation}, n = {fit['n']:,}"
    return f"{about}. {noise}" if (noise := of_errors(fit)) else about


def of_errors(fit: Row) -> str:
    """The reliability of a fit's leans and its corrected slope, if known.

    >>> row = {"reliability": 0.4, "error_over": "co-occurrences", "corrected": None}
    >>> of_errors(row)
    'Reliability of the leans at most 0.40'
    >>> of_errors({**row, "corrected": 2, "corrected_low": 1, "corrected_high": 3})
    'Reliability of the leans at most 0.40, corrected slope 2.00 (1.00 to 3.00)'
    >>> of_errors({**row, "reliability": 0.2})
    'Reliability of the leans at most 0.20: too noisy to judge a slope'
    """
    share = fit["reliability"]
    if share is None or fit["error_over"] == "exact":
        return ""
    most = "at most " if fit["error_over"] == "co-occurrences" else ""
    about = f"Reliability of the leans {most}{shown(share, 2)}"
    if share < LEAST_RELIABLE:
        return f"{about}: too noisy to judge a slope"
    if fit["corrected"] is None:
        return about
    slope, low, high = (shown(fit[f"corrected{end}"], 2) for end in ("", "_low", "_high"))
    return f"{about}, corrected slope {slope} ({low} to {high})"


def _swapped(facts: Facts) -> Section | Missing:
    title = "Does the model turn round if the leans of its text are swapped?"
    fits = facts.rows("fit").where(subset=_SWAPPED)
    if not fits:
        return Missing(title, "plumbline pipeline")
    figures = []
    for fit in fits:
        name, straight, other = set_name(fit), fit["model"], _swapped_model(fit)
        note = _note(facts, fit)
        figures += _figure(
            facts,
            fit,
            stem("swapped", name, straight, other),
            f"Mean log ratio of words under {other} against {straight}: {note}.",
            f"{name}: a point is a word, its mean log ratio under each model.",
            (f"{straight}: log ratio in nats", f"{other}: log ratio in nats"),
        )
    intro = [
        "Two texts differ only in that she and he changed places. If the text is where the lean "
        "comes from, the preference turns round: the correlation is negative."
    ]
    columns: Columns = [
        "benchmark",
        ("straight model", "model"),
        ("swapped model", _swapped_model),
    ]
    rows = facts.rows("metric").where(subset=_SWAPPED)
    tables = [_table(rows, f"Swapped on straight model, {IN_BRACKETS}", columns)]
    return Section("swapped", title, intro, (), figures, tables)


def _swapped_model(row: Row) -> str:
    return str(json.loads(row["options"])["swapped_model"])


def _planted(facts: Facts) -> Section | Missing:
    title = "Planted against measured lean"
    fits = facts.rows("fit").where(subset=_PLANTED)
    if not fits:
        return Missing(title, "plumbline pipeline")
    figures = []
    for fit in fits:
        (rank,) = _estimates(facts, fit, "rank correlation")
        note = f"rank correlation {rank}, n = {fit['n']:,} words"
        figures += _figure(
            facts,
            fit,
            stem("planted", fit["corpus"], fit["contrast"]),
            f"Measured against planted delta of the words of {fit['corpus']}: {note}.",
            f"{fit['corpus']}, {fit['contrast']}: each point is a word; {note}.",
            ("planted delta in nats", "measured delta in nats"),
        )
    intro = [
        "The corpus writer chose each word's lean; counting knows nothing of that choice. If "
        "counting works, the points lie on a line of slope 1, but for the noise of finite counts."
    ]
    rows = facts.rows("metric").where(subset=_PLANTED)
    caption = f"Measured on planted delta, {IN_BRACKETS}"
    tables = [_table(rows, caption, ["corpus", "contrast"])]
    return Section("planted", title, intro, (), figures, tables)


def leads(facts: Facts) -> Iterator[Lead]:
    """Three questions: following the text, turning round with it, and counting."""
    yield Lead("Does the model follow the text?", [*_follows(facts), *_beyond(facts)])
    yield Lead("Does it turn round when the text does?", list(_turns(facts)))
    yield Lead("Does counting find the lean of the text?", list(_counting_finds(facts)))


def _follows(facts: Facts) -> Iterator[str]:
    """Sentences on whether models follow a text, first those on planted leans."""
    for subset, (_, lean) in LEANS.items():
        slopes = facts.rows("slope").where(subset=subset)
        keys = ("benchmark", "groups", "corpus", "contrast")
        groups = slopes.groups(*keys)
        groups.sort(key=lambda group: [group[0][c] for c in keys])
        for group in groups:
            if len(group) > ONE_BY_ONE:
                yield _many_follow(facts, group, lean)
            else:
                yield from (_one_follows(facts, row, lean) for row in group)


def _beyond(facts: Facts) -> Iterator[str]:
    """Sentences on whether a text's lean predicts beyond its controls, by benchmark and corpus."""
    for group in facts.rows("control").groups(
        "subset", "benchmark", "groups", "corpus", "contrast"
    ):
        for verdict, n in Counter(map(predicts_beyond, group)).items():
            models = _of_models(n, group)
            yield f"{set_name(group[0])} and {corpus_name(group[0])}: {models}, {verdict}."


def _of_models(n: int, rows: Sequence[Row]) -> str:
    """The words for ``n`` of the models in ``rows``, which have one row each.

    >>> _of_models(2, [{"model": "a"}, {"model": "b"}]), _of_models(1, [{"model": "a"}])
    ('for both models', 'for a')
    """
    if len(rows) == 1:
        return f"for {rows[0]['model']}"
    if n < len(rows):
        return f"for {n} of {len(rows)} models"
    return "for both models" if n == 2 else f"for all {n} models"


def _one_follows(facts: Facts, row: Row, lean: str) -> str:
    keys = ("subset", "model_key", "benchmark", "groups", "corpus", "contrast")
    kind = "rank correlation" if row["subset"] == "words, planted delta" else "correlation"
    (correlation,) = facts.metrics(kind, **{key: row[key] for key in keys})
    fits = facts.rows("fit").where(**{column: row[column] for column in FIT})
    noise = of_errors(fits[0]) if fits else ""  # none if its options are spelled differently
    return (
        f"{capital(following(TrainingTexts(facts), Rows([row])))}: a nat of {lean} moves its log "
        f"ratio by {shown(row['value'], 2, signed=True)} nats ({sureness(row, 2)}); {kind} "
        f"{shown(correlation['value'], 2)} ({sureness(correlation, 2)}) over {row['n']:,} words."
        f"{f' {noise}.' if noise else ''}"
    )


def _many_follow(facts: Facts, rows: Rows, lean: str) -> str:
    texts = TrainingTexts(facts)
    sentences = [capital(following(texts, rows)), by_training_text(texts, rows)]
    # Models that weren't trained on the text share its leans' reliability; for the others it is 1.
    reliabilities = {r["reliability"] for r in rows} - {None, 1}
    reliability = (
        f"; reliability of the leans {shown(min(reliabilities), 2)}" if reliabilities else ""
    )
    return (
        f"{'. '.join(filter(None, sentences))}. A nat of {lean} moves the log ratio by "
        f"{span([r['value'] for r in rows], 2)} nats, over {rows[0]['n']:,} words{reliability}."
    )


def _turns(facts: Facts) -> Iterator[str]:
    for row in facts.metrics("correlation", subset=_SWAPPED):
        if row["value_low"] is not None:
            turns = finding(row).pick(
                above="does not turn round",
                below="turns round",
                untold="is not shown to turn round",
            )
            yield (
                f"With the planted leans swapped, the preference {turns}: correlation "
                f"{shown(row['value'], 2)} ({sureness(row, 2)}) between {row['model']} and "
                f"{_swapped_model(row)}, word by word, over {row['n']:,} words of {set_name(row)}."
            )


def _counting_finds(facts: Facts) -> Iterator[str]:
    for row in facts.metrics("rank correlation", subset=_PLANTED):
        if row["value_low"] is not None:
            finds = finding(row).pick(
                above="finds", below="turns round", untold="is not shown to find"
            )
            yield (
                f"Counting {finds} what was planted in {row['corpus']}: rank correlation "
                f"{shown(row['value'], 3)} ({sureness(row, 3)}) between planted and measured delta "
                f"({row['contrast']}) over {row['n']:,} words."
            )
