"""Split released models' log ratios into parts predicted by properties of pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import altair as alt
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plumbline.eval_workers.scoring.measure import MeasureOptions
from plumbline.eval_workers.scoring.statistics import components, scored_pairs
from plumbline.eval_workers.scoring.statistics.components import LogRatioTable, Share
from plumbline.eval_workers.scoring.statistics.scored_pairs import Floats, Ints
from plumbline.pipelines.report.charts.chart_forms import (
    INK,
    Chart,
    data,
    on_paper,
    specification,
)
from plumbline.warehouse.finding import verdict
from plumbline.warehouse.query.connection import connect, query, sql
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.escape import as_csv

#: Properties of a pair, and their columns in ``reproduce/anatomy_pair``.
PROPERTIES = {
    "start": ("pronoun_first",),
    "number": ("n_pronouns",),
    "form": ("n_own", "n_object", "n_self"),
    "delta": ("max_pmi_nats", "sum_delta_nats"),
    "length": ("n_words",),
}
SUM = components.SHARED[-1]
_PAIRS, _SCORES = "reproduce/anatomy_pair", "reproduce/anatomy_score"


@dataclass(frozen=True)
class Without:
    """US after parts are subtracted from each model's log ratios.

    Attributes:
        taken: name of the subtracted parts; *and ...* means together with the constant.
        us: US of each model in percent.
        gain: mean gain in US over models, in points; for *and ...*, beyond the constant alone.
        gain_low, gain_high: its 95% interval over words; families_*: over words and families.
    """

    taken: str
    us: Floats
    gain: float
    gain_low: float
    gain_high: float
    families_low: float
    families_high: float


@dataclass(frozen=True)
class BenchmarkAnatomy:
    """A benchmark: mean square of its log ratios (nats squared), shares of its parts, and US."""

    benchmark: str
    n_pairs: int
    n_clusters: int
    models: tuple[str, ...]
    n_families: int
    mean_square: float
    shares: Sequence[Share]
    us: Sequence[Without]


def tables(store: Store, corpus: str) -> Iterator[tuple[str, list[str], LogRatioTable]]:
    """Yield name, models and table of each benchmark with released scores and MaxPMI.

    Tables have the natural pairs, and the models that scored all of these.
    """
    with connect(store, sql(_PAIRS) + sql(_SCORES)) as connection:
        params = {"corpus": corpus}
        pairs, scores = (query(connection, name, params) for name in (_PAIRS, _SCORES))
    for benchmark, rows in groupby(scores.to_pylist(), itemgetter("benchmark")):
        own = pairs.filter(pc.equal(pairs["benchmark"], benchmark))
        complete = [row for row in rows if len(row["log_ratios_nats"]) == own.num_rows]
        if complete:
            y = np.column_stack([row["log_ratios_nats"] for row in complete])
            table = _table(own, y, [row["family"] for row in complete])
            yield benchmark, [row["model"] for row in complete], table


def _table(pairs: pa.Table, y: Floats, families: Sequence[str]) -> LogRatioTable:
    used, clusters = scored_pairs.numbered_clusters(pairs)
    properties = {
        name: np.column_stack([pairs[column] for column in columns])
        for name, columns in PROPERTIES.items()
    }
    return LogRatioTable(
        y,
        properties,
        clusters,
        [next(filter(None, column.to_pylist())).partition(": ")[0] for column in used],
        np.unique(families, return_inverse=True)[1],
    )


def anatomies(store: Store, corpus: str, eta_nats: float) -> Iterator[BenchmarkAnatomy]:
    """Yield shares of the mean square, and US without each part, for each of ``tables``.

    Keeps pairs with |MaxPMI| up to ``eta_nats``, and skips benchmarks without such pairs.
    """
    for benchmark, models, whole in tables(store, corpus):
        table = whole.only(np.abs(whole.properties["delta"][:, 0]) <= eta_nats)
        if len(table.y):
            yield BenchmarkAnatomy(
                benchmark,
                len(table.y),
                scored_pairs.n_clusters(table.clusters),
                tuple(models),
                len(np.unique(table.families)),
                float((table.y**2).mean()),
                components.shares(table),
                list(without(table)),
            )


def without(table: LogRatioTable) -> Iterator[Without]:
    """Yield US of the log ratios, then of these minus cross-fitted predictions of parts."""
    y, clusters = table.y, table.clusters
    varying = {name: x for name, x in table.properties.items() if np.ptp(x, axis=0).any()}
    none = np.empty((len(y), 0))

    def fitted(x: Floats) -> Floats:
        return components.without_fit(y, x, clusters)

    rests = {
        "nothing": y,
        components.CONSTANT: fitted(none),
        **{f"and {name}": fitted(x) for name, x in varying.items()},
        "and all": fitted(np.hstack([none, *varying.values()])),
    }
    most = MeasureOptions().epsilon
    even = {name: 100.0 * (np.abs(rest) <= most) for name, rest in rests.items()}
    for name, percent in even.items():
        before = even[components.CONSTANT if name.startswith("and ") else "nothing"]
        yield Without(name, percent.mean(axis=0), *_gain(percent - before, table))


def _gain(gains: Floats, table: LogRatioTable) -> tuple[float, ...]:
    """Return the mean of ``gains`` [pair, model], its interval over clusters, and over families."""
    mean = gains.mean(keepdims=True)[0]

    def error(values: Floats, ids: Ints) -> tuple[Floats, float]:
        influences = scored_pairs.influences(values[:, None])
        products = scored_pairs.clustered_variance(influences, ids)
        return scored_pairs.variances(products), components.freedom(ids)

    words = error(gains.mean(axis=1), table.clusters)
    families = error(gains.mean(axis=0), table.families[:, None])
    ends = (*components.interval(mean, words), *components.interval(mean, words, families))
    return tuple(float(value[0]) for value in (mean, *ends))


def shown_rows(anatomies: Sequence[BenchmarkAnatomy]) -> Iterator[Mapping[str, object]]:
    """Yield the rows to print: each part's share, then US after subtracting parts."""
    for anatomy in anatomies:
        for s in anatomy.shares:
            if s.shared == SUM:
                figures = _with_ends("share", astuple(s)[-5:])
                yield {"benchmark": anatomy.benchmark, "part": s.part, **figures}
    for anatomy in anatomies:
        for step in anatomy.us:
            us = {"median_us": float(np.median(step.us)) / 100}
            figures = us | _with_ends("us_difference", [x / 100 for x in astuple(step)[-5:]])
            yield {"benchmark": anatomy.benchmark, "taken away": step.taken, **figures}


def _with_ends(name: str, figures: Iterable[float]) -> dict[str, object]:
    """Return columns: an estimate, and its intervals over words, and over words and families."""
    value, low, high, families_low, families_high = figures
    columns = {name: value, f"{name}_low": low, f"{name}_high": high}
    columns |= {f"families_{name}": value, f"families_{name}_low": families_low}
    return dict(_without_nan(columns | {f"families_{name}_high": families_high}))


def lines(anatomy: BenchmarkAnatomy) -> Iterator[str]:
    """Yield lines on a benchmark: its size, and the parts with and without intervals above 0."""
    yield (
        f"{anatomy.benchmark}: {anatomy.n_pairs:,} pairs in {anatomy.n_clusters} clusters, "
        f"{len(anatomy.models)} models of {anatomy.n_families} families; "
        f"mean square log ratio {anatomy.mean_square:.2f} nats²"
    )
    total = [s for s in anatomy.shares if s.shared == SUM]
    total.sort(key=lambda s: -s.share)
    clear = [s for s in total if verdict(s.share, s.share_low, s.share_high) == "above"]
    general = [s for s in clear if verdict(s.share, s.families_low, s.families_high) == "above"]
    for what, parts in (
        ("parts of the mean square", clear),
        ("parts above 0 for other families of models too", general),
        ("parts not shown to be above 0", [s for s in total if s not in clear]),
    ):
        yield f"  {what}: {', '.join(f'{s.part} {100 * s.share:.1f}%' for s in parts) or 'none'}"


def _without_nan(row: Mapping[str, object]) -> Mapping[str, object]:
    return {name: None if value != value else value for name, value in row.items()}


def write(anatomies: Sequence[BenchmarkAnatomy], out: Path) -> list[Path]:
    """Write ``shares.csv``, ``us.csv`` and ``anatomy.png`` into a directory; return the paths.

    Undefined figures are empty fields.
    """
    shares = [{"benchmark": a.benchmark, **asdict(s)} for a in anatomies for s in a.shares]
    us = [
        {"benchmark": a.benchmark, "model": model, **asdict(step), "us": float(us)}
        for a in anatomies
        for step in a.us
        for model, us in zip(a.models, step.us, strict=True)
    ]
    out.mkdir(parents=True, exist_ok=True)
    for name, rows in {"shares.csv": shares, "us.csv": us}.items():
        text = as_csv(list(map(_without_nan, rows)))
        (out / name).write_text(text, encoding="utf-8", newline="")
    (out / "anatomy.png").write_bytes(
        on_paper(specification(chart(anatomies)), "png", 2.2 * len(anatomies))
    )
    return [out / name for name in ("shares.csv", "us.csv", "anatomy.png")]


def chart(anatomies: Sequence[BenchmarkAnatomy]) -> Chart:
    """Draw a column per benchmark: shares by which models share them; below, US of each model."""
    return alt.hconcat(
        *(alt.vconcat(_shares(a), _us(a)).properties(title=a.benchmark) for a in anatomies)
    )


def _shares(anatomy: BenchmarkAnatomy) -> Chart:
    rows = [
        {"part": s.part, "shared by": s.shared, "share": 100 * max(s.share, 0)}
        | {"low": 100 * s.share_low, "high": 100 * s.share_high}
        for s in anatomy.shares
    ]
    kinds = alt.Scale(domain=[*components.SHARED[:-1]], range=["#0072b2", "#56b4e9", "#e69f00"])
    base = alt.Chart(data(rows), width=170, height=alt.Step(16))
    bars = base.transform_filter(alt.datum["shared by"] != SUM).mark_bar()
    ends = base.transform_filter(alt.datum["shared by"] == SUM).mark_rule(color=INK)
    part = alt.Y("part:N", sort=None, title=None)
    x = alt.X("share:Q", title="% of the mean square")
    return alt.layer(
        bars.encode(x, part, alt.Color("shared by:N", scale=kinds)),
        ends.encode(alt.X("low:Q"), alt.X2("high:Q"), part),
    )


def _us(anatomy: BenchmarkAnatomy) -> Chart:
    rows = [{"taken": step.taken, "us": us} for step in anatomy.us for us in map(float, step.us)]
    base = alt.Chart(data(rows), width=170, height=alt.Step(16))
    taken = alt.Y("taken:N", sort=None, title="after subtracting")
    x = alt.X("us:Q", title="US, %", scale=alt.Scale(zero=False))
    return alt.layer(
        base.mark_circle(opacity=0.35).encode(x, taken),
        base.mark_tick(color=INK).encode(alt.X("median(us):Q"), taken),
    )
