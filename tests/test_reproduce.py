"""Printed figures beside ours: the comparison by itself, and the command on the released scores."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from pipelines.reproduce.compare import (
    AGREES,
    CONTRADICTED,
    NOT_IMPORTED,
    OFF,
    OURS_ALONE,
    compare,
    starts,
)
from pipelines.reproduce.figures import Figure, packaged, read, unprinted
from warehouse.errors import BadInput

HEADER = "table,dataset,eta,metric,value,hf_id,log_base\n"


def metric(name: str, value: float, **columns: Any) -> dict[str, Any]:
    row = {"metric": name, "benchmark": "use-5", "model": "m", "subset": "all", "eta_nats": None}
    row |= {"value": value, "sd": 0.005, "ci_low": value - 0.1, "ci_high": value + 0.1, "n": 9}
    return {**row, "options": "{}", **columns}


def figure(name: str, value: float | None, **columns: Any) -> Figure:
    known = {"table": 8, "benchmark": "use-5", "eta_nats": None, "model": "m", "log_base": math.e}
    return Figure(**{**known, "metric": name, "value": value, **columns})


ROWS = [
    metric("us", 0.2111),
    metric("us", 0.5, eta_nats=0.5, subset="|max_pmi| <= 0.5"),
    metric("us", 0.9, subset="pronoun first"),
    metric("pd", -37.39),
    metric("aufc", 5.35, options='{"log_base": "10.0"}'),
    metric("aufc", 4.0, options='{"log_base": "e"}'),
    metric("n", 4405.0),
    metric("n", 4400.0, model="other"),
    metric("gap", 0.031, eta_nats=0.5, subset="|max_pmi| <= 0.5"),
]


@pytest.mark.parametrize(
    ("asked", "ours", "outcome"),
    [
        (figure("US", 21.11), 21.11, AGREES),
        (figure("US", 21.10), 21.11, AGREES),
        (figure("US", 21.09), 21.11, OFF),
        (figure("US", 50.0, eta_nats=0.5), 50.0, AGREES),
        (figure("US_std", 0.5), 0.5, AGREES),
        (figure("PD", -37.39), -37.39, AGREES),
        (figure("PD", 37.39), -37.39, OFF),
        (figure("AuFC", 5.35, log_base=10.0), 5.35, AGREES),
        (figure("AuFC", 5.35), 4.0, OFF),
        (figure("US", 21.11, model="another"), None, NOT_IMPORTED),
        (figure("US", 21.11, eta_nats=0.65), None, NOT_IMPORTED),
        (figure("benchmark_size", 4404.0, model=""), 4405.0, CONTRADICTED),
        (figure("benchmark_size", 4404.0, model="", table=9), 4405.0, OFF),
        (figure("benchmark_size", 4403.0, model=""), 4405.0, OFF),
        (figure("gap", None, eta_nats=0.5), 3.1, OURS_ALONE),
    ],
)
def test_a_figure_beside_ours(asked: Figure, ours: float | None, outcome: str) -> None:
    (found,) = compare([asked], ROWS)
    assert found.ours == (None if ours is None else pytest.approx(ours))
    assert found.outcome == outcome


def test_a_contradicted_figure_is_off_when_ours_is_not_the_releases() -> None:
    (found,) = compare([figure("benchmark_size", 4404.0, model="")], [metric("n", 4406.0)])
    assert found.outcome == OFF and "4,405" in found.note


def test_intervals_and_splits_come_along() -> None:
    *sizes, gap = compare(unprinted(["m"], ["use-5"], [0.5]), ROWS)
    assert [s.ours for s in sizes] == [4405.0, None]
    assert gap.ci == pytest.approx((-6.9, 13.1)) and "0.65" in gap.note
    rows = [
        metric(name, value, subset=f"pronoun {start}")
        for name, value in (("us", 0.25), ("pd", -10.0))
        for start in ("first", "later")
    ]
    found = starts([*rows, metric("us", 0.1, subset="pronoun later", n=0, model="empty")])
    assert [(s.start, s.us, s.pd, s.n) for s in found] == [
        ("pronoun first", 25.0, -10.0, 9),
        ("pronoun later", 25.0, -10.0, 9),
    ]


def test_packaged_figures_are_those_of_twenty_models() -> None:
    figures = packaged()
    assert len({f.model for f in figures if f.model}) == 20
    assert {f.table for f in figures} == {1, *range(8, 12), *range(15, 23)}


@pytest.mark.reference
def test_packaged_figures_are_the_papers(data: Path) -> None:
    theirs = read(data.parent / "reference" / "unstereoeval_tables.csv")
    ours = [f for f in packaged() if f.table != 1]
    assert sorted(map(repr, ours)) == sorted(map(repr, theirs))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("table,dataset\n", "no column eta"),
        (f"{HEADER}8,USE-5,inf,US,x,m,e\n", "row 1"),
        (f"{HEADER}8,USE-5,inf,UX,1,m,e\n", "expected one of"),
        (f"{HEADER}8,USE-5,inf,US,nan,m,e\n", "finite"),
        (f"{HEADER}8,USE-5\n", "row 1"),
    ],
)
def test_a_file_that_holds_no_figures_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "published.csv"
    path.write_text(text)
    with pytest.raises(BadInput, match=message):
        read(path)
    with pytest.raises(BadInput, match="--published"):
        read(tmp_path / "none.csv")
