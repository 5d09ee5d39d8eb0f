"""Plots as SVG: what is drawn stands where the ticks say, and stays text whatever it is called."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.pipelines.report.plots.svg import Panel, round_ticks, svg

NAMES = "{http://www.w3.org/2000/svg}"


def drawn(panel: Panel, title: str = "t") -> ElementTree.Element:
    return ElementTree.fromstring(svg(title, [panel]))


def texts(root: ElementTree.Element) -> list[str]:
    return [e.text or "" for e in root.iter(f"{NAMES}text")]


@given(st.floats(-100, 100), st.floats(1e-6, 1e6), st.integers(2, 12))
def test_ticks_are_round_evenly_spaced_and_within(start: float, size: float, n: int) -> None:
    low, high = start * size, (start + 1) * size
    at = [tick for tick, _ in round_ticks(low, high, n)]
    room = 1e-6 * max(size, abs(low), abs(high))
    assert len(at) <= n + 2 and all(low - room <= tick <= high + room for tick in at)
    if len(at) > 2:
        step = at[1] - at[0]
        assert np.allclose(np.diff(at), step, rtol=1e-6, atol=0)
        mantissa = step / 10.0 ** math.floor(math.log10(step * (1 + 1e-6)))
        assert min(abs(mantissa - m) for m in (1, 2, 5)) < 1e-3


@pytest.mark.parametrize("is_log", [False, True])
def test_a_mark_stands_where_the_tick_of_its_value_does(is_log: bool) -> None:
    panel = Panel("x", "y")
    panel.x.is_log = is_log
    values = [0.2, 1, 7, 50]
    panel.x.ticks = [(value, f"is {value}") for value in values]
    panel.marks(values, [1, 2, 3, 4], "#123456", "o")
    root = drawn(panel)
    marks = [float(e.get("cx", "")) for e in root.iter(f"{NAMES}circle")]
    ticks = [float(e.get("x", "")) for e in root.iter(f"{NAMES}text") if "is " in (e.text or "")]
    assert marks == pytest.approx(ticks, abs=0.11) and marks == sorted(marks)
    gaps = np.diff(np.log(values) if is_log else values)
    assert np.diff(marks) / gaps == pytest.approx(
        np.full(3, (marks[3] - marks[0]) / gaps.sum()), rel=0.02
    )
    heights = [float(e.get("cy", "")) for e in root.iter(f"{NAMES}circle")]
    assert heights == sorted(heights, reverse=True), "up is more"


def test_a_legend_takes_the_rows_it_needs_and_names_each_once() -> None:
    panel = Panel("x", "y")
    for i in range(30):
        panel.line([0, 1], [0, i], "#123456", label=f"a model with a long name, number {i}")
    root = drawn(panel)
    entries = [e for e in root.iter(f"{NAMES}text") if "number" in (e.text or "")]
    assert len({e.text for e in entries}) == len(entries) == 30
    places = [(float(e.get("x", "")), float(e.get("y", ""))) for e in entries]
    assert len(set(places)) == 30 and all(0 < x < 640 and 0 < y < 420 for x, y in places)


@given(st.text(), st.text())
def test_any_name_gives_a_picture_that_can_be_read(title: str, label: str) -> None:
    panel = Panel(label, label)
    panel.marks([1.0], [2.0], "#123456", label=label)
    panel.y.ticks = [(2.0, label)]
    lines = ["".join(c for c in line if c.isprintable()) for line in title.split("\n")]
    assert {*lines} - {""} <= {*texts(drawn(panel, title))}


def test_a_panel_of_nothing_and_of_one_point_has_axes() -> None:
    assert "0.0" in texts(drawn(Panel("x", "y")))
    one = Panel("x", "y")
    one.cloud([3.0], [3.0], "#123456", 5, 0.5)
    assert "3.0" in texts(drawn(one))
