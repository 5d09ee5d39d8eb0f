"""The plots of sweeps, each from plain rows of its view to PNG bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plumbline.pipelines.report.model import Row
from plumbline.pipelines.report.plot import FEMALE, LINE, MALE, NEUTRAL, looks, one_plot, short

_PARAMETERS = {"temperature": "temperature", "top_p": "top-p", "top_k": "top-k"}
_CURVES = {"gas": ("any gendered word", LINE), "gas_f": ("female", FEMALE), "gas_m": ("male", MALE)}
_MEASURES = {"gas": "GAS (share)", "gld": "GLD (share)", "add_nats": "ADD (nats)"}


def decoding(rows: Sequence[Row], title: str) -> bytes:
    """Shares of gendered continuations by each value of each parameter, greedy as a dotted line."""
    at: list[tuple[float, Row]] = []
    x = 0.0
    groups = []
    for name in _PARAMETERS:
        here = sorted((r for r in rows if r["parameter"] == name), key=lambda r: r["setting"])
        if here:
            groups.append((name, [(x + i, row) for i, row in enumerate(here)]))
            at += groups[-1][1]
            x += len(here) + 0.6
    greedy = next((r for r in rows if r["parameter"] == "greedy"), None)
    with one_plot(title, "", "share of continuations") as (ax, png):
        for column, (label, colour) in _CURVES.items():
            for i, (_, points) in enumerate(groups):
                drawn = [(x, row) for x, row in points if row[column] is not None]
                xs = [x for x, _ in drawn]
                line: Any = {"label": label} if i == 0 else {}
                ax.plot(xs, [r[column] for _, r in drawn], "o-", color=colour, ms=4, **line)
                if column == "gas":
                    low, high = ([r[f"gas_{e}"] for _, r in drawn] for e in ("low", "high"))
                    ax.fill_between(xs, low, high, color=NEUTRAL, alpha=0.15, linewidth=0)
            if greedy is not None and greedy[column] is not None:
                ax.axhline(greedy[column], color=colour, linewidth=1, linestyle=":")
        best = [(x, row["gas"]) for x, row in at if row["is_best"]]
        ring: Any = {"ms": 10, "mfc": "none", "color": LINE, "label": "lowest GAS"}
        if best:
            ax.plot([x for x, _ in best], [y for _, y in best], "o", **ring)
        ax.plot([], [], ":", color=NEUTRAL, label="greedy")
        ax.set_ylim(bottom=0)
        ax.set_xticks([x for x, _ in at], [f"{row['setting']:g}" for _, row in at])
        ax.grid(False, axis="x")
        for name, points in groups:
            middle = (points[0][0] + points[-1][0]) / 2
            where: Any = {"xycoords": ("data", "axes fraction"), "annotation_clip": False}
            ax.annotate(_PARAMETERS[name], (middle, -0.13), ha="center", **where)
        ax.figure.legend(loc="outside lower center", ncols=3, fontsize=9.5)
    return png[0]


def instructions(rows: Sequence[Row], title: str) -> bytes:
    """GAS, GLD and ADD with their intervals, a line an instruction; none, the reference, first."""
    keys = list(dict.fromkeys(row["instruction_key"] for row in rows))
    keys.sort(key=lambda key: key != "none")
    looked = looks(len(_MEASURES))
    with one_plot(title, "lower: less disclosed", "", 1.7 + 0.55 * len(keys)) as (ax, png):
        labels = {}
        for row in rows:
            told = f"{row['form']}: {row['instruction']}" if row["instruction"] else "none"
            labels[row["instruction_key"]] = short(told, 40)
        for i, (measure, label) in enumerate(_MEASURES.items()):
            found = {r["instruction_key"]: r for r in rows if r["measure"] == measure}
            colour = looked[i]["color"]
            ax.plot([], [], "os^"[i], color=colour, label=label)
            for y, key in enumerate(keys):
                one = found.get(key)
                if one is None or one["figure"] is None:
                    continue
                place = y + (i - 1) * 0.2
                ax.plot([one["figure"]], [place], "os^"[i], color=colour, ms=5)
                if one["figure_low"] is not None:
                    ax.plot([one["figure_low"], one["figure_high"]], [place] * 2, color=colour)
        ax.set_yticks(range(len(keys)), [labels[key] for key in keys], fontsize=9)
        ax.set_ylim(len(keys) - 0.5, -0.5)
        ax.set_xlim(left=0)
        ax.grid(False, axis="y")
        ax.figure.legend(loc="outside lower center", ncols=3, fontsize=9.5)
    return png[0]
