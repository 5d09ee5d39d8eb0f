"""The sections about models: what they prefer, and whether they follow the text."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence

from plumbline.pipelines.measure import area_headings, heading
from plumbline.pipelines.report import draw
from plumbline.pipelines.report.corpora import fit_cells, stem
from plumbline.pipelines.report.facts import TOP_PAIRS, Facts
from plumbline.pipelines.report.model import (
    Cell,
    Figure,
    Missing,
    Row,
    Section,
    Table,
    count,
    estimate,
    number,
    shown,
    text,
)

#: Scatter plots drawn; the table below them holds every fit.
MAX_FITS = 8
_SUBSETS = {
    "words, planted delta": "planted delta of the word, in nats",
    "words, measured delta": "measured delta of the word, in nats",
    "pairs, max_pmi": "MaxPMI of the pair, in nats",
}
_PREFERENCES = ("n", "us", "pd", "aufc", "gap")
_FITTED = ("slope", "correlation", "rank correlation")
_SWAPPED = "words, swapped on straight"


def constraint(facts: Facts) -> Section | Missing:
    """How many pairs a limit on MaxPMI keeps."""
    title = "Pairs whose words hardly lean"
    if not facts.kept:
        return Missing(title, "plumbline constrain --corpus NAME --benchmark NAME")
    figures = []
    for corpus, contrast in sorted({(r["corpus"], r["contrast"]) for r in facts.kept}):
        rows = [r for r in facts.kept if (r["corpus"], r["contrast"]) == (corpus, contrast)]
        plot = draw.kept_against_eta(rows, f"Pairs kept, by {corpus} ({contrast})")
        alt = f"Share of pairs with |MaxPMI| up to eta, against eta, by the words of {corpus}."
        kept = [
            f"{r['benchmark']} {shown(100 * r['n_kept'] / r['n'], 1)}%"
            for r in rows
            if r["eta_nats"] == 0.5
        ]
        caption = f"Share of pairs kept, by {corpus} ({contrast}). At 0.5: {', '.join(kept)}."
        of = facts.sql("kept", {"corpus": corpus, "contrast": contrast})
        figures.append(Figure(stem("kept", corpus, contrast), alt, caption, plot, rows, of))
    intro = [
        "MaxPMI is the largest lean among the words of a pair's template. A pair is kept at eta "
        "when its MaxPMI is at most eta to either side; what a model prefers there cannot come "
        "from single words that lean in this text."
    ]
    return Section("constraint", title, intro, (), figures)


def preference(facts: Facts) -> Section | Missing:
    """US, PD, AuFC and gap of every model and benchmark."""
    title = "What models prefer"
    if not facts.score:
        return Missing(title, "plumbline score --model ID_OR_PATH --benchmark NAME")
    if not facts.metrics("us"):
        return Missing(title, "plumbline measure")
    figures, tables = [], []
    for benchmark in sorted({r["benchmark"] for r in facts.score}):
        figures += _benchmark_figures(facts, benchmark)
        tables += _benchmark_tables(facts, benchmark)
    intro = [
        "The log ratio of a pair is the log-probability of the sentence with the female pronouns "
        "minus that of the one with the male ones. US is the share of pairs without a preference, "
        "PD the share of pairs that prefer the female sentence minus the share that prefer the "
        "male one, AuFC the area under US against epsilon (6 at most; of natural log ratios unless "
        "its column names another base), gap the US of the pairs kept minus that of all. 95% "
        "intervals in brackets."
    ]
    return Section("preference", title, intro, _score_alerts(facts), figures, tables)


def _score_alerts(facts: Facts) -> list[str]:
    alerts = []
    for r in facts.score:
        what = f"{r['model']} on {r['benchmark']}"
        if r["n_not_finite"]:
            alerts.append(f"{what}: {r['n_not_finite']:,} scores are not finite and do not count.")
        if r["n_unknown"]:
            alerts.append(f"{what}: {r['n_unknown']:,} scores belong to no pair of the benchmark.")
        if r["n_measured"] != r["n_pairs"]:
            alerts.append(f"{what}: metrics are older than the scores; run `plumbline measure`.")
    return alerts


def _benchmark_figures(facts: Facts, benchmark: str) -> list[Figure]:
    curve = [r for r in facts.curve if r["benchmark"] == benchmark]
    bars = [r for r in facts.metrics("pd", benchmark=benchmark, subset="all") if r["n"]]
    if not curve or not bars:
        return []
    epsilon = bars[0]["epsilon_nats"]
    n = curve[0]["n"]
    return [
        Figure(
            stem("pd", benchmark),
            f"Preference disparity of each model on {benchmark}.",
            f"{benchmark}: percentage points by which pairs that prefer the female sentence "
            f"outnumber those that prefer the male one, with 95% intervals (n = {n:,} pairs).",
            draw.pd_bars(bars, benchmark),
            bars,
            facts.sql("metric", {"benchmark": benchmark, "metric": "pd", "subset": "all"}),
        ),
        Figure(
            stem("us", benchmark),
            f"Share of pairs without a preference against epsilon, each model on {benchmark}.",
            f"{benchmark}: US against epsilon (n = {n:,} pairs). At the dotted line, "
            f"epsilon = {shown(epsilon)}, one sentence is {shown(math.exp(epsilon))} times as "
            "likely as the other.",
            draw.us_against_epsilon(curve, benchmark, epsilon),
            curve,
            facts.sql("curve", {"benchmark": benchmark}),
        ),
    ]


def _benchmark_tables(facts: Facts, benchmark: str) -> list[Table]:
    found: dict[tuple[str, ...], dict[str, Row]] = {}
    for r in facts.metric:
        if r["benchmark"] == benchmark and r["metric"] in _PREFERENCES:
            key = (r["model"], r["model_key"], r["corpus"], r["contrast"], r["subset"])
            found.setdefault(key, {})[heading(r)] = r
    areas = area_headings(r for of in found.values() for r in of.values())
    everything = {k: v for k, v in found.items() if k[4] == "all"}
    subsets = {k: v for k, v in found.items() if k[4] != "all" and v["n"]["n"]}
    empty = sum(k[4] != "all" and not v["n"]["n"] for k, v in found.items())
    headings = ["model", "pairs", "US %", "PD points", *areas]
    rows = [[text(k[0]), *_metric_cells(v, areas)] for k, v in everything.items()]
    where = {"benchmark": benchmark, "metric": _PREFERENCES}
    of_all = facts.sql("metric", {**where, "subset": "all"})
    tables = [Table(f"{benchmark}, all pairs", headings, rows, sql=of_all)]
    headings = ["model", "subset", "corpus", *headings[1:], "gap in US points"]
    rows = [
        [
            *(text(k[0]), text(k[4]), text(f"{k[2]} ({k[3]})" if k[2] else None)),
            *_metric_cells(v, areas),
            estimate(v.get("gap"), 1, scale=100, signed=True),
        ]
        for k, v in subsets.items()
    ]
    if rows:
        left_out = f"; {empty} without pairs left out" if empty else ""
        caption = f"{benchmark}, by subset ({len(rows)} rows{left_out})"
        query = facts.sql("metric", where, {"subset": "all"})
        tables.append(Table(caption, headings, rows, len(rows) > 20, query, searchable=True))
    return tables


def _metric_cells(of: dict[str, Row], areas: Sequence[str]) -> list[Cell]:
    return [
        count(of["n"]["n"]),
        estimate(of["us"], 1, scale=100),
        estimate(of["pd"], 1, signed=True),
        *(estimate(of.get(area), 2) for area in areas),
    ]


def follow(facts: Facts) -> Section | Missing:
    """How far the preference of models follows the lean of the text."""
    title = "Does the model follow the text?"
    if not facts.score:
        return Missing(title, "plumbline score --model ID_OR_PATH --benchmark NAME")
    fits = [r for r in facts.fit if r["subset"] in _SUBSETS]
    slopes = [r for s in _SUBSETS for r in facts.metrics("slope", subset=s)]
    if not slopes:
        return Missing(title, "plumbline corpus associate --corpus NAME; plumbline measure")
    fits = _in_order(fits, facts)
    figures = [_follow_figure(facts, fit) for fit in fits[:MAX_FITS]]
    rows = [
        [text(r[c]) for c in ("model", "benchmark", "corpus")]
        + [text(r["subset"] + (f" ({r['contrast']})" if r["contrast"] else ""))]
        + [*fit_cells(facts, r), count(r["n"])]
        for r in slopes
    ]
    headings = ["model", "benchmark", "corpus", "against", "slope", "correlation"]
    headings += ["rank correlation", "words or pairs"]
    caption = "Log ratio on the lean of the text, 95% intervals in brackets"
    intro = [
        "Pairs made for the same word are not independent, so the point of a plot is a word: the "
        "mean log ratio of its pairs against its lean in the text. A slope of 0 means the model "
        "takes no notice of that lean. On the planted lean of its own corpus, a slope of 1 is that "
        "of a perfect learner. Measured leans carry the noise of counting, which flattens a slope. "
        "Where the words of all pairs were taken because they do not lean, or there are none, a "
        "point is a pair, against its MaxPMI."
    ]
    if len(fits) > MAX_FITS:
        intro.append(f"Plotted are {MAX_FITS} of {len(fits)} fits; the table holds all.")
    query = facts.sql("metric", {"metric": _FITTED, "subset": tuple(_SUBSETS)})
    table = Table(caption, headings, rows, folded=len(rows) > 30, sql=query)
    return Section("follow", title, intro, (), [f for f in figures if f], [table])


def _in_order(fits: list[Row], facts: Facts) -> list[Row]:
    """What a model learned from first, planted before measured, each benchmark before the next.

    So the first few fits show every benchmark once, whatever the number of models.
    """
    trained = {(r["model"], r["trained_on"]) for r in facts.model if r["trained_on"]}
    kinds = {s: i for i, s in enumerate(_SUBSETS)}
    seen: Counter[tuple[str, str, str]] = Counter()
    keyed = []
    for i, fit in enumerate(fits):
        group = (fit["subset"], fit["benchmark"], fit["corpus"])
        seen[group] += 1
        is_foreign = (fit["model"], fit["corpus"]) not in trained
        keyed.append((is_foreign, kinds[fit["subset"]], seen[group], i))
    return [fits[i] for *_, i in sorted(keyed)]


def _follow_figure(facts: Facts, fit: Row) -> Figure | None:
    points = facts.points(fit)
    if not draw.is_drawable(points):
        return None
    note = _fit_note(facts, fit)
    labels = {
        "title": f"{fit['model']} on {fit['benchmark']}, text: {fit['corpus']}",
        "x": _SUBSETS[fit["subset"]],
        "y": "log ratio in nats (> 0 prefers female)",
        "note": note.replace("), ", ")\n"),
        "identity": "perfect learner" if fit["subset"] == "words, planted delta" else "",
    }
    alt = f"Log ratio of {fit['model']} on {fit['benchmark']} against the {fit['subset']}: {note}."
    name = stem("follow", fit["model"], fit["benchmark"], fit["corpus"], fit["subset"])
    caption = f"{labels['title']}; against the {labels['x']}. {note}."
    plot = draw.fitted(points, fit, labels)
    return Figure(name, alt, caption, plot, points, facts.sql("point", fit))


def _fit_note(facts: Facts, fit: Row) -> str:
    slope, correlation, _ = fit_cells(facts, fit)
    return f"Slope {slope.text}, correlation {correlation.text}, n = {fit['n']:,}"


def swapped(facts: Facts) -> Section | Missing:
    """The model of the swapped world against that of the straight one."""
    title = "Swap the leans of the text, and the model?"
    fits = [r for r in facts.fit if r["subset"] == _SWAPPED]
    if not fits:
        return Missing(title, "plumbline pipeline")
    figures, rows = [], []
    for fit in fits:
        other = json.loads(fit["options"])["swapped_model"]
        points = facts.points(fit)
        cells = fit_cells(facts, fit)
        row = [text(fit["benchmark"]), text(fit["model"]), text(other), *cells, count(fit["n"])]
        rows.append(row)
        if draw.is_drawable(points):
            note = _fit_note(facts, fit)
            labels = {
                "title": f"{fit['benchmark']}: the same words, two texts",
                "x": f"{fit['model']}: log ratio in nats",
                "y": f"{other}: log ratio in nats",
                "note": note.replace("), ", ")\n"),
                "identity": "",
            }
            name = stem("swapped", fit["benchmark"], fit["model"], other)
            alt = f"Mean log ratio of words under {other} against {fit['model']}: {note}."
            caption = f"{fit['benchmark']}: a point is a word, its mean log ratio under each model."
            plot, query = draw.fitted(points, fit, labels), facts.sql("point", fit)
            figures.append(Figure(name, alt, caption, plot, points, query))
    headings = ["benchmark", "straight model", "swapped model", "slope", "correlation"]
    headings += ["rank correlation", "words"]
    intro = [
        "Two texts differ only in that she and he changed places. If the text is where the lean "
        "comes from, the preference turns round: the correlation is negative."
    ]
    caption = "Swapped on straight model, 95% intervals in brackets"
    query = facts.sql("metric", {"metric": _FITTED, "subset": _SWAPPED})
    table = Table(caption, headings, rows, sql=query)
    return Section("swapped", title, intro, (), figures, [table])


def pairs(facts: Facts) -> Section | Missing:
    """The pairs with the strongest preferences, both ways."""
    title = "The most skewed pairs"
    if not facts.pair:
        return Missing(title, "plumbline score --model ID_OR_PATH --benchmark NAME")
    tables = []
    for benchmark in sorted({r["benchmark"] for r in facts.pair}):
        of = [r for r in facts.pair if r["benchmark"] == benchmark]
        rows = [
            [
                text(r["model"]),
                number(r["log_ratio_nats"], signed=True),
                text(r["sentence_f" if r["log_ratio_nats"] > 0 else "sentence_m"]),
                text(r["sentence_m" if r["log_ratio_nats"] > 0 else "sentence_f"]),
            ]
            for r in of
        ]
        headings = ["model", "log ratio", "preferred sentence", "the other"]
        n_models = len({r["model_key"] for r in of})
        caption = f"{benchmark}, {n_models} model{'' if n_models == 1 else 's'}"
        query = facts.sql("pair", {"benchmark": benchmark})
        tables.append(Table(caption, headings, rows, n_models > 2, query, searchable=True))
    intro = [f"The {TOP_PAIRS} pairs with the largest log ratios to each side, for every model."]
    return Section("pairs", title, intro, (), (), tables)
