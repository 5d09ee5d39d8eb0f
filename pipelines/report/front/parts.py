"""The first page's three parts: on the models, on the text, and on robustness."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from plumbline.pipelines.report.charts import model_charts as charts
from plumbline.pipelines.report.charts import word_charts as word_charts
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.findings.estimates import finding, side
from plumbline.pipelines.report.findings.models_by_text import TrainingTexts
from plumbline.pipelines.report.findings.sentences import (
    SLOPES_ABOVE,
    capital,
    n_above,
    preferences,
    sureness,
)
from plumbline.pipelines.report.front.headline import SHARED, Headline, headline_pd, known_slopes
from plumbline.pipelines.report.front.matrix import brief
from plumbline.pipelines.report.metric_tables import corpus_name, models_table, predicts_beyond
from plumbline.pipelines.report.model import (
    Columns,
    Figure,
    PageTable,
    count,
    estimate,
    shown,
    stem,
    table,
)
from plumbline.pipelines.report.rows import Row, Rows, set_name
from plumbline.pipelines.report.sections import lean_of_words

#: Most models, words per side, and lines of slopes in a plot.
_MOST_MODELS, _WORDS, _MOST_SLOPES = 40, 10, 12
#: Most combinations of benchmark and text whose slopes are counted separately.
_MOST_COUNTED = 6
#: Nats that no lean in a text can reach.
_MOST_NATS = 1000.0


def models(facts: Facts, head: Headline | None) -> Part | None:
    """The part on models: their log ratios on the benchmark that the page is about."""
    pd_rows = headline_pd(facts)
    if not pd_rows:
        return None
    subject = {column: pd_rows[0][column] for column in ("benchmark", "groups")}
    spread = facts.rows("spread").where(**subject)
    metrics = facts.rows("metric").where(subset="all", metric=("us", "pd"))
    texts = head.texts if head else TrainingTexts(facts)
    return Part(
        "models",
        "The models",
        [
            f"{capital(preferences(texts, pd_rows))}.",
            evenness(metrics.where(metric="us", **subject)),
        ],
        _spread(spread, pd_rows) if spread else None,
        models_table(metrics),
        "preference",
    )


def us_of(facts: Facts, pd_rows: Rows) -> Rows:
    """The rows of US over all pairs of the benchmark of some rows of PD."""
    subject = {column: pd_rows[0][column] for column in ("benchmark", "groups")}
    return facts.metrics("us", subset="all", **subject)


def evenness(us: Rows) -> str:
    """A sentence on the share of pairs that models treat alike."""
    low, high = (shown(100 * f(r["value"] for r in us), 0) for f in (min, max))
    share, note = f"{low}% to {high}%", "US"
    if len(us) == 1:
        share, note = f"{low}%", f"US, {sureness(us[0], 0)}"
    epsilon = us[0]["epsilon_nats"]
    who = "The model treats" if len(us) == 1 else "Depending on the model,"
    are = "" if len(us) == 1 else " are treated"
    return (
        f"{who} {share} of pairs{are} alike, neither sentence being more than "
        f"{shown(math.exp(epsilon))} times as likely as the other (unstereotypical share, {note})."
    )


def _spread(rows: Rows, pd_rows: Rows) -> Figure:
    """Quantiles of each model's log ratios around the band that counts as no preference."""
    left_out = max(len(rows) - _MOST_MODELS, 0)
    more = f" {left_out:,} models with lower medians are not drawn." if left_out else ""
    drawn = sorted(rows, key=lambda r: (r["q50_nats"], r["model"]))[-_MOST_MODELS:]
    first_row, preferred = pd_rows[0], {r["model_key"]: side(r) for r in pd_rows}
    models = [r["model"] for r in drawn]
    names = {r["model_key"]: brief(r["model"], models) for r in drawn[::-1]}
    name = set_name(first_row)
    return Figure(
        stem("spread", name),
        f"Log ratios of the pairs of {name}: median, middle half and nine tenths of each model.",
        f"How much likelier one sentence is, over the pairs of {name}. Dot: median, coloured by "
        "the side of PD where its 95% interval leaves out 0 and q is at most 5%; dark: the middle "
        f"half of pairs; thin: nine in ten; band: no preference.{more}",
        charts.spread(drawn[::-1], names, preferred, first_row),
        rows,
    )


def text(facts: Facts, head: Headline | None) -> Part | None:
    """The part on the words that lean furthest, in the headline's text or else the first text."""
    counts = facts.rows("lean_count")
    if not counts:
        return None
    subject = {"contrast": "she/he"}
    if head:  # a planted lean is of no contrast, but its words are counted near she and he
        subject = {"corpus": head.fit["corpus"], "contrast": head.fit["contrast"] or "she/he"}
    matching = [
        r for r in counts if all(r[k] == subject.get(k, r[k]) for k in ("corpus", "contrast"))
    ]
    lean_count = (matching or counts)[0]
    text_columns = {column: lean_count[column] for column in ("corpus", "contrast")}
    words = facts.rows("word", top=lean_of_words.TOP_WORDS).where(**text_columns)
    deltas = facts.rows("delta", min_pairs=lean_of_words.MIN_PAIRS).where(**text_columns)
    figure = lean_of_words.distribution(facts, deltas) if deltas else None
    furthest = max((abs(r["lean_bound_nats"]) for r in words), default=0.0)
    return Part(
        "text",
        "The text",
        [*lean_of_words.clear_words(facts, lean_count), *_furthest(words)],
        # A larger lean comes from a damaged row.
        _words(facts, words) if words and furthest < _MOST_NATS else figure,
        lean_of_words.words_table(facts, words, folded=True) if words else None,
        "words",
    )


def _furthest(words: Rows) -> Iterator[str]:
    leans = [(r["word"], estimate(r, "delta_nats").text) for r in words if r["place"] == 1]
    named = [f"{word} ({lean.rstrip(')').replace(' (', ', ')})" for word, lean in leans]
    if named:
        which = "Surest" if words[0]["delta_nats_low"] is not None else "Furthest"
        yield f"{which}: {' and '.join(named)}, in nats."


def _words(facts: Facts, rows: Rows) -> Figure:
    """A plot of the words that lean most surely, in colour if their intervals exclude 0."""
    drawn = [r for r in rows if r["place"] <= _WORDS]
    corpus, contrast = drawn[0]["corpus"], drawn[0]["contrast"]
    has_ends = drawn[0]["delta_nats_low"] is not None
    manner = "most surely, 95% intervals" if has_ends else "furthest; without counts, no intervals"
    is_one_sided = any(r["delta_nats"] is None for r in drawn)
    rings = " A ring: the least lean of a word near one side only." if is_one_sided else ""
    return Figure(
        stem("words", corpus, contrast),
        f"The words of {corpus} that lean {manner}.",
        f"{corpus}: the {_WORDS} words a side that lean {manner}.{rings}",
        word_charts.leaning(drawn, contrast, facts.contrast_sides(corpus, contrast)),
        rows,
    )


def robustness(facts: Facts) -> Part | None:
    """The part on all slopes, and on coefficients beside frequency, n-grams and length."""
    slopes = known_slopes(facts)
    if not slopes:
        return None
    controls = facts.rows("control")
    return Part(
        "robustness",
        "Does it hold?",
        [_slopes_above_0(slopes), _beside(controls)],
        _forest(slopes, controls),
        _slopes_table(slopes),
        "follow",
    )


def _slopes_above_0(slopes: Rows) -> str:
    """The numbers of slopes above 0 by benchmark and text; for one slope, its value."""
    if len(slopes) == 1:
        ends = sureness(slopes[0], 2, signed=True)
        return f"The one slope is {shown(slopes[0]['value'], 2, signed=True)} ({ends})."
    groups = slopes.groups(*SHARED)
    counts = [
        f"{_count(group)} on {set_name(group[0])} and {_text_of(group[0])}"
        for group in groups[:_MOST_COUNTED]
    ]
    if len(groups) > _MOST_COUNTED:
        counts.append(f"{_count(slopes)} on all {len(groups)} benchmarks and texts")
    return f"{SLOPES_ABOVE}: {', '.join(counts)}."


def _count(slopes: Rows) -> str:
    below = sum(finding(row).verdict == "below" for row in slopes)
    return n_above(slopes) + (f", {below:,} clearly below" if below else "")


def _beside(controls: Rows) -> str:
    if not controls:
        return (
            "Whether frequency, n-grams or length explain it as well was not asked: that takes the "
            "scores of a neural model and of `plumbline train --preset 5gram` on the same text."
        )
    verdicts = Counter(map(predicts_beyond, controls))
    parts = [f"in {n:,} {words}" for words, n in verdicts.most_common()]
    return f"Of {len(controls):,} comparisons with controls: {'; '.join(parts)}."


def _forest(slopes: Rows, controls: Rows) -> Figure:
    """A plot of all slopes by benchmark and text, and of coefficients with controls held fixed."""
    groups = slopes.groups(*SHARED)[:_MOST_SLOPES]
    shared = [c for c in SHARED if c not in ("subset", "options")]
    drawn = [
        (f"{set_name(g[0])}, {_text_of(g[0])}", g, controls.where(**{c: g[0][c] for c in shared}))
        for g in groups
    ]
    left_out = len(slopes.groups(*SHARED)) - len(groups)
    more = f" {left_out:,} more lines are in the appendix." if left_out else ""
    return Figure(
        "slopes",
        "Slope of the preference on the lean of the text, each model, benchmark and text.",
        f"Every slope of preference on lean: a dot is a model.{more}",
        charts.slopes(drawn),
        slopes,
    )


def _text_of(row: Row) -> str:
    is_planted = row["subset"] == "words, planted delta"
    return f"{row['corpus']} (planted)" if is_planted else str(corpus_name(row))


def _slopes_table(slopes: Rows) -> PageTable:
    columns: Columns = [
        "model",
        "benchmark",
        ("text", _text_of),
        ("slope", lambda r: estimate(r, signed=True)),
        "reliability",
        ("words", lambda r: count(r["n"])),
    ]
    return table("Slopes of preference on lean, 95% intervals in brackets", slopes, columns)


@dataclass(frozen=True)
class Part:
    """One of the page's three parts; ``more`` is the anchor of its section in the appendix."""

    anchor: str
    title: str
    sentences: Sequence[str]
    figure: Figure | None
    table: PageTable | None
    more: str
