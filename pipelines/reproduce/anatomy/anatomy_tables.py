"""Rows, sentences, CSV and a figure of ``reproduce anatomy``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from plumbline.eval_workers.scoring.statistics.components import AVERAGE, SHARED, Share
from plumbline.pipelines.reproduce.anatomy.benchmark_anatomy import BenchmarkAnatomy
from plumbline.warehouse.query.finding import verdict
from plumbline.warehouse.text.csv_rows import as_csv

_COLORS = ("#0072b2", "#56b4e9", "#e69f00")


def shown_rows(anatomies: Sequence[BenchmarkAnatomy]) -> Iterator[Mapping[str, object]]:
    """Printed rows: each part's share over all models, and US without parts."""
    for a in anatomies:
        for s in a.shares:
            if (s.order, s.shared) == (AVERAGE, SHARED[-1]):
                words = _ended("share", s.share, s.share_low, s.share_high)
                wide = _ended("families_share", s.share, s.families_low, s.families_high)
                yield {"benchmark": a.benchmark, "part": s.part, **words, **wide}
    for a in anatomies:
        for step in a.us:
            gain = step.gain / 100
            ends = (step.gain_low / 100, step.gain_high / 100)
            wide_ends = (step.families_low / 100, step.families_high / 100)
            yield {
                "benchmark": a.benchmark,
                "taken away": step.taken,
                "median_us": float(np.median(step.us)) / 100,
                **_ended("us_difference", gain, *ends),
                **_ended("families_us_difference", gain, *wide_ends),
            }


def _ended(name: str, value: float, low: float, high: float) -> Mapping[str, object]:
    """An estimate with the ends of its interval; None instead of NaN."""
    return _without_nan({name: value, f"{name}_low": low, f"{name}_high": high})


def lines(of: BenchmarkAnatomy) -> Iterator[str]:
    """Sentences on a benchmark: only findings that an interval shows."""
    yield (
        f"{of.benchmark}: {of.n_pairs:,} pairs in {of.n_clusters} clusters, {len(of.models)} "
        f"models of {of.n_families} families; mean square log ratio {of.mean_square:.2f} nats²"
    )
    parts = sorted((s for s in of.shares if s.order == AVERAGE), key=lambda s: -s.share)
    whole = [s for s in parts if s.shared == SHARED[-1]]
    shown = list(filter(_is_shown, whole))
    yield f"  percent of it goes with {_listed(map(_percent, shown))}"
    yield f"  not shown to differ from 0: {_listed(s.part for s in whole if s not in shown)}"
    wide = [s for s in shown if verdict(s.share, s.families_low, s.families_high) == "above"]
    yield f"  shown for other families of models too: {_listed(s.part for s in wide)}"
    whose = ("shared by all models", "shared in a family", "a model's own")
    for shared, words in zip(SHARED, whose, strict=False):
        some = [s for s in parts if s.shared == shared and _is_shown(s)]
        yield f"  {words}: {_listed(map(_percent, some))}"
    yield f"  points of US gained without: {_listed(_gains(of, 'above'))}"
    yield f"  points of US lost without: {_listed(_gains(of, 'below'))}"


def _is_shown(of: Share) -> bool:
    return verdict(of.share, of.share_low, of.share_high) == "above"


def _gains(of: BenchmarkAnatomy, side: str) -> Iterator[str]:
    for step in of.us[1:]:
        if verdict(step.gain, step.gain_low, step.gain_high) == side:
            ends = _ends(step.gain_low, step.gain_high)
            wide = verdict(step.gain, step.families_low, step.families_high) == side
            also = "; other families too" if wide else ""
            yield f"{step.taken} {step.gain:+.1f} ({ends}{also})"


def as_rows(anatomies: Sequence[BenchmarkAnatomy]) -> dict[str, list[Mapping[str, object]]]:
    """Rows of the two CSV files by name; None instead of NaN."""
    of_shares = [{"benchmark": a.benchmark, **asdict(s)} for a in anatomies for s in a.shares]
    of_us = [
        {"benchmark": a.benchmark, "model": model, **asdict(step), "us": float(us)}
        for a in anatomies
        for step in a.us
        for model, us in zip(a.models, step.us, strict=True)
    ]
    tables = {"shares.csv": of_shares, "us.csv": of_us}
    return {name: list(map(_without_nan, rows)) for name, rows in tables.items()}


def _without_nan(row: Mapping[str, Any]) -> Mapping[str, object]:
    return {name: None if value != value else value for name, value in row.items()}


def write(anatomies: Sequence[BenchmarkAnatomy], out: Path) -> list[Path]:
    """Write ``shares.csv``, ``us.csv`` and ``anatomy.png`` into a directory; returns the paths."""
    out.mkdir(parents=True, exist_ok=True)
    for name, rows in as_rows(anatomies).items():
        (out / name).write_text(as_csv(rows), encoding="utf-8", newline="")
    draw(anatomies, out / "anatomy.png")
    return [out / name for name in ("shares.csv", "us.csv", "anatomy.png")]


def draw(anatomies: Sequence[BenchmarkAnatomy], path: Path) -> None:
    """Write a PNG: shares of each benchmark by who shares them, and every model's US."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1.5 + 2.4 * len(anatomies), 6.8), layout="constrained")
    axes = figure.subplots(2, len(anatomies), squeeze=False, sharex="row")
    for of, shares, us in zip(anatomies, *axes, strict=True):
        _draw_shares(shares, of)
        _draw_us(us, of)
    axes[0, 0].set_title(
        f"Shares of the mean square of log ratios\n{anatomies[0].benchmark}", **_TITLE
    )
    axes[1, 0].set_title("US of each model, less what goes with", **_TITLE)
    keys = axes[0, 0].get_legend_handles_labels()
    figure.legend(*keys, loc="outside lower center", ncols=3, fontsize=8, title="shared by")
    figure.savefig(path, dpi=130)


_TITLE: dict[str, Any] = {"loc": "left", "fontsize": 9}


def _draw_shares(axes: Any, of: BenchmarkAnatomy) -> None:
    shares = [s for s in of.shares if s.order == AVERAGE]
    parts = list(dict.fromkeys(s.part for s in shares))
    left = np.zeros(len(parts))
    for shared, color in zip(SHARED, _COLORS, strict=False):
        width = np.array([max(100 * s.share, 0) for s in shares if s.shared == shared])
        axes.barh(parts, width, left=left, color=color, height=0.65, label=shared)
        left += width
    whole = [s for s in shares if s.shared == SHARED[-1]]
    ends = np.array([[100 * s.share_low, 100 * s.share_high] for s in whole]).T
    axes.hlines(parts, *ends, color="k", linewidth=1.2)
    axes.plot([100 * s.share for s in whole], parts, "k|", markersize=7)
    axes.set_title(of.benchmark, **_TITLE)
    axes.set_xlabel("% (95% interval over words)", fontsize=8)
    _plain(axes)


def _draw_us(axes: Any, of: BenchmarkAnatomy) -> None:
    for row, step in enumerate(of.us):
        axes.plot(step.us, [row] * len(step.us), "o", color=_COLORS[0], alpha=0.35, markersize=3.5)
        axes.plot(np.median(step.us), row, "k|", markersize=10)
    axes.set_yticks(range(len(of.us)), [step.taken for step in of.us])
    axes.set_xlabel("US, % (bar: median)", fontsize=8)
    _plain(axes)


def _plain(axes: Any) -> None:
    axes.invert_yaxis()
    axes.tick_params(labelsize=7, length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.grid(axis="x", color="0.9")
    axes.set_axisbelow(True)


def _percent(share: Share) -> str:
    ends = _ends(share.share_low, share.share_high, 100)
    return f"{share.part} {100 * share.share:.1f} ({ends})"


def _ends(low: float, high: float, scale: float = 1) -> str:
    return "no interval" if np.isnan(low) else f"{scale * low:.1f} to {scale * high:.1f}"


def _listed(words: Iterable[str]) -> str:
    return ", ".join(words) or "nothing"
