"""Preferences of models: US, PD, AuFC, gap and every other metric, by model and benchmark."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from plumbline.pipelines.report.charts import model_charts as charts
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.findings.estimates import finding, side
from plumbline.pipelines.report.findings.models_by_text import TrainingTexts
from plumbline.pipelines.report.findings.sentences import (
    capital,
    points,
    preferences,
    prefers,
    sureness,
    unscored,
)
from plumbline.pipelines.report.metric_tables import (
    by_metric,
    few_pairs,
    metric_columns,
    of_pairs,
    rank_columns,
)
from plumbline.pipelines.report.model import (
    Column,
    Columns,
    Figure,
    Lead,
    Missing,
    PageTable,
    Section,
    counted,
    estimate,
    shown,
    stem,
    table,
)
from plumbline.pipelines.report.rows import Row, Rows, by_set, set_name, sets, sides

PLACE = 100
NAMES = ("preference", "pd", "us", "share")
_TITLE = "What models prefer"
_MEANING = (
    "The log ratio of a pair is the log-probability of the {first} sentence minus that of the "
    "{second} sentence. US is the share of pairs without a preference, PD the share that prefer "
    "the {first} sentence minus the share that prefer the {second} sentence, AuFC the area under "
    "US against epsilon (6 at most; of natural log ratios unless its column names another base), "
    "gap the US of the pairs kept minus that of all. 95% intervals in brackets."
)
_MANY_GROUPS = (
    "Of items with more than two groups: even share, the share of items without a preference "
    "between any two; divergence, how far the groups' shares of preferred sentences are from even, "
    "as a percentage of one group alone."
)
_POWER = (
    "The smallest PD, US off 50% and differences of two models that each benchmark finds with a "
    "power of 80% at the 5% level; a dash where none is large enough"
)
_RANKS = (
    "Ranks: the places that a model may have among all models of its benchmark, the largest figure "
    "first. With 95% confidence all true places are among them."
)
#: Up to this many models of a benchmark are described singly; more are summed up.
ONE_BY_ONE = 4
#: If less than this share of a benchmark's pairs has finite scores, the model gets a warning.
_ENOUGH = 0.9
#: Most models named that can't be told apart from the one with the highest US.
_ALIKE = 3


def sections(facts: Facts) -> Iterator[Section | Missing]:
    """Plots and tables of each benchmark."""
    scores = facts.rows("score")
    if not scores:
        yield Missing(_TITLE, "plumbline score --model ID_OR_PATH --benchmark NAME")
        return
    if not facts.metrics("us"):
        yield Missing(_TITLE, "plumbline measure")
        return
    benchmarks = sets(of_pairs(facts.rows("metric")))
    benchmarks.sort(key=lambda benchmark: (benchmark["benchmark"], benchmark["groups"].count("/")))
    figures = [figure for benchmark in benchmarks for figure in _figures(facts, benchmark)]
    tables = [page_table for benchmark in benchmarks for page_table in _tables(facts, benchmark)]
    if power := facts.rows("power"):
        tables.append(_power(power))
    intro = _meaning(benchmarks)
    if any(row["rank"] is not None for row in facts.rows("metric")):
        intro.append(_RANKS)
    few = few_pairs(facts.metrics("us", subset="all"))
    alerts = [*([f"{few}."] if few else []), *_baselines(facts), *_alerts(scores)]
    yield Section("preference", _TITLE, intro, alerts, figures, tables)


def _meaning(benchmarks: Sequence[Mapping[str, str]]) -> list[str]:
    """Definitions. They name the groups if all benchmarks of two groups have the same."""
    kinds = {benchmark["groups"] for benchmark in benchmarks}
    of_two = [groups for groups in kinds if groups.count("/") == 1]
    named = ("first named group's", "second named group's")
    first, second = of_two[0].split("/") if len(of_two) == 1 else named
    meaning = _MEANING.format(first=first, second=second)
    return [meaning, _MANY_GROUPS] if len(kinds) > len(of_two) else [meaning]


def _baselines(facts: Facts) -> Iterator[str]:
    """A warning for each set of pairs that differ by content words, and its PD less the baseline.

    Only sets of which PD is known are named, with at most ``ONE_BY_ONE`` figures each.
    """
    for row in facts.rows("baseline"):
        benchmark = {name: row[name] for name in ("benchmark", "groups")}
        if not facts.metrics("pd", **benchmark):
            continue
        less = facts.metrics("pd", subset="less baseline", **benchmark)
        figures = [
            f"{r['model']} {shown(r['value'], 1, signed=True)} ({sureness(r, 1, signed=True)})"
            for r in less[:ONE_BY_ONE]
        ]
        without = (
            "PD after subtracting each pair's log ratio in such a sentence: "
            f"{', '.join(figures)}{' and others' if len(less) > ONE_BY_ONE else ''}"
            if figures
            else f"`plumbline score --benchmark {row['benchmark']}` scores such sentences too"
        )
        yield (
            f"{set_name(row)}: {counted(row['n_pairs'], 'pair')} differ by content words, so PD "
            "also tells how frequent these are. The words of the first pair in a neutral sentence: "
            f"“{row['baseline_a']}” and “{row['baseline_b']}”. {without}."
        )


def _alerts(scores: Rows) -> list[str]:
    alerts = []
    for r in scores:
        what = f"{r['model']} on {r['benchmark']}"
        if r["n_not_finite"]:
            alerts.append(f"{what}: {r['n_not_finite']:,} scores are not finite and do not count.")
        if r["n_unknown"]:
            alerts.append(f"{what}: {r['n_unknown']:,} scores belong to no pair of the benchmark.")
        if r["n_pairs"] < _ENOUGH * (r["n_usable"] or 0):
            count = f"only {r['n_pairs']:,} of {counted(r['n_usable'], 'pair')} count"
            rest = ["the figures are of these", *filter(None, [unscored(r)])]
            alerts.append(f"{what}: {count}, {'; '.join(rest)}.")
        if r["n_measured"] is None:
            alerts.append(f"{what}: scored and not measured yet; run `plumbline measure`.")
    return alerts


def _figures(facts: Facts, benchmark: Mapping[str, str]) -> list[Figure]:
    if benchmark["groups"].count("/") > 1:
        return _share_figures(facts, benchmark)
    curve = facts.rows("curve").where(**benchmark)
    bars = facts.metrics("pd", subset="all", **benchmark).only(lambda r: r["n"])
    name, (first, second) = set_name(benchmark), sides(benchmark)
    if not curve or not bars:
        return []
    epsilon = bars[0]["epsilon_nats"]
    return [
        Figure(
            stem("pd", name),
            f"Preference disparity of each model on {name}.",
            f"{name}: percentage points by which pairs that prefer the {first} sentence "
            f"outnumber those that prefer the {second} one, with 95% intervals"
            f"{_same_n(bars)}. Grey: which one can't be told.",
            charts.disparity(bars, model_names(bars)),
            bars,
        ),
        Figure(
            stem("us", name),
            f"Share of pairs without a preference against epsilon, each model on {name}.",
            f"{name}: US against epsilon{_same_n(curve)}. At the dotted line, "
            f"epsilon = {shown(epsilon)}, one sentence is {shown(math.exp(epsilon))} times as "
            "likely as the other.",
            charts.us_curve(curve, model_names(curve), epsilon),
            curve,
        ),
    ]


def _share_figures(facts: Facts, benchmark: Mapping[str, str]) -> list[Figure]:
    """A plot of each group's share of preferred sentences, for items with more than two groups."""
    divergences = facts.metrics("divergence").where(benchmark=benchmark["benchmark"])
    if not divergences:
        return []
    epsilon = divergences[0]["epsilon_nats"]
    rows = facts.rows("group_share", epsilon=epsilon).where(**benchmark)
    if not rows:
        return []
    name, even = set_name(benchmark), 100 / rows[0]["n_groups"]
    return [
        Figure(
            stem("share", name),
            f"Share of preferred sentences of each group on {name}, each model.",
            f"{name}: share of items whose likeliest sentence is that of a group, divided among "
            f"those within epsilon of it, with 95% intervals. The dotted line is an even share, "
            f"{shown(even, 1)}%.",
            charts.shares(rows, model_names(rows)),
            rows,
        )
    ]


def _tables(facts: Facts, benchmark: Mapping[str, str]) -> list[PageTable]:
    name = set_name(benchmark)
    metrics = of_pairs(facts.rows("metric").where(**benchmark))
    everything, subsets = metrics.where(subset="all"), metrics.but(subset="all")
    keys = ("model", "model_key", "corpus", "contrast", "subset")
    unit = "items" if benchmark["groups"].count("/") > 1 else "pairs"
    columns: Columns = [
        "model",
        (unit, "n"),
        *metric_columns(everything),
        *rank_columns(everything),
    ]
    tables = [table(f"{name}, all {unit}", by_metric(everything, *keys), columns)]
    metric_rows = by_metric(subsets, *keys)
    rows = metric_rows.only(lambda r: r["n"])
    if rows:
        left_out = len(metric_rows) - len(rows)
        note = f"; {left_out} without pairs left out" if left_out else ""
        columns = [
            *("model", "subset"),
            ("corpus", lambda r: f"{r['corpus']} ({r['contrast']})" if r["corpus"] else None),
            (unit, "n"),
            *metric_columns(subsets),
        ]
        caption = f"{name}, by subset ({len(rows)} rows{note})"
        tables.append(table(caption, rows, columns, folded=len(rows) > 20, searchable=True))
    return tables


def _power(rows: Rows) -> PageTable:
    def scaled(column: str) -> Column:
        return lambda r: estimate(r, column, 1, scale=100 if r["unit"] == "share" else 1)

    columns: Columns = [
        *("benchmark", "measure"),
        ("smallest, points", scaled("smallest")),
        ("standard deviation", scaled("sd")),
        ("correlation within clusters", "icc", 3),
        ("pairs", "n_pairs"),
        ("clusters", "n_clusters"),
        ("models", "n_models"),
    ]
    return table(_POWER, rows, columns, folded=True)


def leads(facts: Facts) -> Iterator[Lead]:
    """Sentences on which way the models of each benchmark lean."""
    sentences = []
    for set_rows in by_set(facts.metrics("pd", subset="all").only(lambda r: r["n"])):
        if len(set_rows) > ONE_BY_ONE:
            sentences.append(_summed_up(facts, set_rows))
        else:
            sentences += [_one(facts, row) for row in set_rows]
    sentences += [_on_many_groups(facts, row) for row in facts.metrics("divergence", subset="all")]
    yield Lead("Which way, how far, how sure?", sentences)


def _on_many_groups(facts: Facts, row: Row) -> str:
    """A sentence on one model and a benchmark of more than two groups."""
    even = _over_all_pairs(facts, row, "even share")
    share, distance = (shown(100 * r["value"], 1) for r in (even, row))
    return (
        f"{set_name(row)}: {row['model']} finds all sentences of {share}% of {row['n']:,} items "
        f"about equally likely ({sureness(even)}); its preferences are {distance}% "
        f"of the way from even to one group alone ({sureness(row)})."
    )


def _over_all_pairs(facts: Facts, row: Row, metric: str) -> Row:
    """The row of ``metric`` over all pairs, for the model and benchmark of ``row``."""
    same = {column: row[column] for column in ("benchmark", "groups", "model_key")}
    return facts.metrics(metric, subset="all", **same)[0]


def _one(facts: Facts, row: Row) -> str:
    us = _over_all_pairs(facts, row, "us")
    return (
        f"{prefers(row)}, and finds {shown(100 * us['value'], 1)}% of {counted(row['n'], 'pair')} "
        f"about equally likely ({sureness(us)})."
    )


def _summed_up(facts: Facts, rows: Rows) -> str:
    furthest = max(rows, key=lambda r: abs(r["value"]))
    first, second = sides(rows[0])
    others = [r for r in rows if r is not furthest and r["value_low"] is not None]
    far = max((max(abs(r["value_low"]), abs(r["value_high"])) for r in others), default=math.inf)
    way = finding(furthest, null=math.copysign(far, furthest["value"])).verdict
    if len(others) == len(rows) - 1 and way == ("above" if furthest["value"] > 0 else "below"):
        lead = f"{furthest['model']} leans furthest, to the {side(furthest)} sentence by"
    else:
        to = first if furthest["value"] > 0 else second
        lead = (
            f"Which leans furthest can't be told: the largest estimate is {furthest['model']}'s, "
            f"to the {to} sentence by"
        )
    leaning = capital(preferences(TrainingTexts(facts), rows))
    return f"{leaning}. {lead} {points(furthest)}. {_evenest(facts, rows)}"


def _evenest(facts: Facts, rows: Rows) -> str:
    """A sentence on the model with the highest US, and on models that may be as even."""
    us_rows = [_over_all_pairs(facts, row, "us") for row in rows]
    best = max(us_rows, key=lambda r: r["value"])
    set_columns = {name: best[name] for name in ("benchmark", "groups")}
    epsilon, key = best["epsilon_nats"], best["model_key"]
    compared = facts.rows("model_difference", **set_columns, reference_key=key, epsilon=epsilon)
    less = {r["model_key"] for r in compared if finding(r, "us_difference").verdict == "below"}
    alike = [r for r in us_rows if r["model_key"] not in {key, *less}]
    share = (
        f"{shown(100 * best['value'], 1)}% of {counted(best['n'], 'pair')} about equally likely "
        f"({sureness(best)})"
    )
    if not alike:
        return f"{best['model']} is the most even, with {share}."
    alike.sort(key=lambda r: -r["value"])
    named = [f"{r['model']} ({shown(100 * r['value'], 1)}%)" for r in alike[:_ALIKE]]
    if len(alike) > _ALIKE:
        named.append(f"{len(alike) - _ALIKE} more")
    *first, last = named
    listed = f"{', '.join(first)} and {last}" if first else last
    return (
        f"Which is the most even can't be told: {best['model']} finds {share}, and pair by pair "
        f"{listed} can't be told apart from it."
    )


def model_names(rows: Sequence[Row]) -> dict[str, str]:
    """The names of the rows' models by key, with the start of the key if two have one name."""
    by_key = {row["model_key"]: str(row["model"]) for row in rows}
    names = list(by_key.values())
    return {
        key: name if names.count(name) == 1 else f"{name} [{key[:8]}]"
        for key, name in by_key.items()
    }


def _same_n(rows: Sequence[Row]) -> str:
    """The number of pairs in brackets, if it is the same in all rows; else empty."""
    numbers = {r["n"] for r in rows}
    return f" (n = {counted(numbers.pop(), 'pair')})" if len(numbers) == 1 else ""
