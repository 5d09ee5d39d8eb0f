"""Printed rows and sentences, CSV files and plot of ``reproduce anatomy``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np

from plumbline.eval_workers.scoring.statistics.components import AVERAGE, SHARED, Share
from plumbline.pipelines.report.charts.chart_forms import data
from plumbline.pipelines.report.charts.theme import INK, Chart, on_paper
from plumbline.pipelines.reproduce.anatomy.benchmark_anatomy import BenchmarkAnatomy
from plumbline.warehouse.finding import verdict
from plumbline.warehouse.text.escape import as_csv

_COLORS = ("#0072b2", "#56b4e9", "#e69f00")


def shown_rows(anatomies: Sequence[BenchmarkAnatomy]) -> Iterator[Mapping[str, object]]:
    """Printed rows: each part's share over all models, then US after subtracting parts."""
    for anatomy in anatomies:
        for s in anatomy.shares:
            if (s.order, s.shared) == (AVERAGE, SHARED[-1]):
                yield {
                    "benchmark": anatomy.benchmark,
                    "part": s.part,
                    **_interval("share", s.share, s.share_low, s.share_high),
                    **_interval("families_share", s.share, s.families_low, s.families_high),
                }
    for anatomy in anatomies:
        for step in anatomy.us:
            gain = step.gain / 100
            over_words = (step.gain_low / 100, step.gain_high / 100)
            over_families = (step.families_low / 100, step.families_high / 100)
            yield {
                "benchmark": anatomy.benchmark,
                "taken away": step.taken,
                "median_us": float(np.median(step.us)) / 100,
                **_interval("us_difference", gain, *over_words),
                **_interval("families_us_difference", gain, *over_families),
            }


def _interval(name: str, value: float, low: float, high: float) -> Mapping[str, object]:
    """An estimate and the ends of its interval as columns; None instead of NaN."""
    return _without_nan({name: value, f"{name}_low": low, f"{name}_high": high})


def lines(anatomy: BenchmarkAnatomy) -> Iterator[str]:
    """Sentences on a benchmark: shares with intervals above 0, gains whose intervals exclude 0."""
    yield (
        f"{anatomy.benchmark}: {anatomy.n_pairs:,} pairs in {anatomy.n_clusters} clusters, "
        f"{len(anatomy.models)} models of {anatomy.n_families} families; "
        f"mean square log ratio {anatomy.mean_square:.2f} nats²"
    )
    shares = sorted((s for s in anatomy.shares if s.order == AVERAGE), key=lambda s: -s.share)
    totals = [s for s in shares if s.shared == SHARED[-1]]
    clear = list(filter(_is_clear, totals))
    yield f"  percent of the mean square by part: {_listed(map(_percent, clear))}"
    yield f"  parts not shown to be above 0: {_listed(s.part for s in totals if s not in clear)}"
    general = [s for s in clear if verdict(s.share, s.families_low, s.families_high) == "above"]
    yield f"  parts above 0 for other families of models too: {_listed(s.part for s in general)}"
    sharers = ("shared by all models", "shared in a family", "a model's own")
    for shared, who in zip(SHARED, sharers, strict=False):
        clear_shares = [s for s in shares if s.shared == shared and _is_clear(s)]
        yield f"  {who}: {_listed(map(_percent, clear_shares))}"
    yield f"  points of US gained by subtracting a part: {_listed(_gains(anatomy, 'above'))}"
    yield f"  points of US lost by subtracting a part: {_listed(_gains(anatomy, 'below'))}"


def _is_clear(share: Share) -> bool:
    return verdict(share.share, share.share_low, share.share_high) == "above"


def _gains(anatomy: BenchmarkAnatomy, side: str) -> Iterator[str]:
    for step in anatomy.us[1:]:
        if verdict(step.gain, step.gain_low, step.gain_high) == side:
            ends = _ends(step.gain_low, step.gain_high)
            is_general = verdict(step.gain, step.families_low, step.families_high) == side
            remark = "; for other families too" if is_general else ""
            yield f"{step.taken} {step.gain:+.1f} ({ends}{remark})"


def as_rows(anatomies: Sequence[BenchmarkAnatomy]) -> dict[str, list[Mapping[str, object]]]:
    """Rows of the two CSV files by name; None instead of NaN."""
    share_rows = [{"benchmark": a.benchmark, **asdict(s)} for a in anatomies for s in a.shares]
    us_rows = [
        {"benchmark": a.benchmark, "model": model, **asdict(step), "us": float(us)}
        for a in anatomies
        for step in a.us
        for model, us in zip(a.models, step.us, strict=True)
    ]
    tables = {"shares.csv": share_rows, "us.csv": us_rows}
    return {name: list(map(_without_nan, rows)) for name, rows in tables.items()}


def _without_nan(row: Mapping[str, Any]) -> Mapping[str, object]:
    return {name: None if value != value else value for name, value in row.items()}


def write(anatomies: Sequence[BenchmarkAnatomy], out: Path) -> list[Path]:
    """Write ``shares.csv``, ``us.csv`` and ``anatomy.png`` into a directory; returns the paths."""
    out.mkdir(parents=True, exist_ok=True)
    for name, rows in as_rows(anatomies).items():
        (out / name).write_text(as_csv(rows), encoding="utf-8", newline="")
    (out / "anatomy.png").write_bytes(on_paper(chart(anatomies), "png", 2.2 * len(anatomies)))
    return [out / name for name in ("shares.csv", "us.csv", "anatomy.png")]


def chart(anatomies: Sequence[BenchmarkAnatomy]) -> Chart:
    """A column per benchmark: shares by the models that share them; below, US of each model."""
    panels = [
        alt.vconcat(_shares(one), _us(one)).properties(title=one.benchmark) for one in anatomies
    ]
    return alt.hconcat(*panels)


def _shares(anatomy: BenchmarkAnatomy) -> Chart:
    shares = [s for s in anatomy.shares if s.order == AVERAGE]
    rows = [
        {"part": s.part, "shared by": s.shared, "share": 100 * max(s.share, 0)}
        | {"low": 100 * s.share_low, "high": 100 * s.share_high}
        for s in shares
    ]
    kinds = alt.Scale(domain=[*SHARED[:-1]], range=_COLORS)
    base = alt.Chart(data(rows), width=170, height=alt.Step(16))
    bars = base.transform_filter(alt.datum["shared by"] != SHARED[-1]).mark_bar()
    ends = base.transform_filter(alt.datum["shared by"] == SHARED[-1]).mark_rule(color=INK)
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


def _percent(share: Share) -> str:
    ends = _ends(share.share_low, share.share_high, 100)
    return f"{share.part} {100 * share.share:.1f} ({ends})"


def _ends(low: float, high: float, scale: float = 1) -> str:
    return "no interval" if np.isnan(low) else f"{scale * low:.1f} to {scale * high:.1f}"


def _listed(words: Iterable[str]) -> str:
    return ", ".join(words) or "nothing"
