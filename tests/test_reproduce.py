"""Printed figures beside ours: the comparison by itself, and the command on the released scores."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import pytest

from plumbline.pipelines.cli.main import main
from plumbline.pipelines.reproduce.compare import (
    AGREES,
    CONTRADICTED,
    NOT_IMPORTED,
    OFF,
    OURS_ALONE,
    compare,
    starts,
)
from plumbline.pipelines.reproduce.figures import PrintedFigure, packaged, read, unprinted
from plumbline.pipelines.reproduce.run import reproduce, summary
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.storage.store import Store
from tests.released_files import PAIRS, Fields, as_csv, score_rows, write_scores

HEADER = "table,dataset,eta,metric,value,hf_id,log_base\n"


def metric(name: str, value: float, **columns: Any) -> dict[str, Any]:
    row = {"metric": name, "benchmark": "use-5", "model": "m", "subset": "all", "eta_nats": None}
    row |= {"value": value, "sd": 0.005, "ci_low": value - 0.1, "ci_high": value + 0.1, "n": 9}
    return {**row, "options": "{}", **columns}


def figure(name: str, value: float | None, **columns: Any) -> PrintedFigure:
    known = {"table": 8, "benchmark": "use-5", "eta_nats": None, "model": "m", "log_base": math.e}
    return PrintedFigure(**{**known, "metric": name, "value": value, **columns})


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
def test_a_figure_beside_ours(asked: PrintedFigure, ours: float | None, outcome: str) -> None:
    (found,) = compare([asked], ROWS)
    assert found.ours == (None if ours is None else pytest.approx(ours))
    assert found.outcome == outcome


def test_a_contradicted_figure_is_off_when_ours_is_not_the_releases() -> None:
    (found,) = compare([figure("benchmark_size", 4404.0, model="")], [metric("n", 4406.0)])
    assert found.outcome == OFF and "4,405" in found.note


def test_intervals_and_splits_come_along() -> None:
    *sizes, gap = compare(unprinted(["m"], ["use-5"], [0.5]), ROWS)
    assert [s.ours for s in sizes] == [4405.0, None]
    assert gap.ci == pytest.approx((-6.9, 13.1)) and gap.figure.table == 1 and not gap.note
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


def test_table_3_prints_preference_disparity_at_another_limit() -> None:
    (pd,) = compare([figure("PD", -37.39, table=3)], ROWS)
    assert pd.outcome == AGREES and "prints the PD at 0.5" in pd.note


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


def released(where: Path, table: list[Fields]) -> Path:
    """A small release: five pairs of USE-5, four words, the scores of one model."""
    raw = where / "data" / "datasets" / "raw"
    raw.mkdir(parents=True)
    pairs = [
        {"": str(i), "word": word, "template": template, "is_natural": natural}
        for i, (template, word, natural) in enumerate(PAIRS)
    ]
    (raw / "USE-5.csv").write_text(as_csv(pairs))
    words = [("tea", 0.25, 60), ("key", -0.75, 30), ("drank", 0.1, 10)]
    statistics = [
        {"": str(i), "word": w, "pmi_diff": str(d), "counts": str(n), "freq": str(n / 100)}
        for i, (w, d, n) in enumerate(words)
    ]
    (where / "data" / "pmi_file_w_counts.csv").write_text(as_csv(statistics))
    write_scores(where / "results", table)
    return where


def printed(where: Path, *figures: str) -> Path:
    path = where / "published.csv"
    path.write_text(HEADER + "".join(f"{line}\n" for line in figures))
    return path


def run(where: Path, *arguments: object) -> int:
    common = ["--data", where, "--warehouse", where / "w", "--out", where / "figures.csv"]
    return main(["reproduce", "unstereoeval", *map(str, [*common, *arguments])])


# Each of the four natural pairs prefers the male sentence by 0.25 nats, less than ln 1.65.
RIGHT = (
    "8,USE-5,inf,US,100.0,org/m,e",
    "8,USE-5,0.5,benchmark_size,2,,",
    "19,USE-5,inf,AuFC,5.91,org/m,10",
    "22,USE-5,inf,AuFC,5.73,org/m,e",
)


def test_a_small_release_comes_back(tmp_path: Path, capsys: Any) -> None:
    where = released(tmp_path, score_rows())
    assert run(where, "--published", printed(where, *RIGHT)) == 0
    shown = capsys.readouterr().out
    assert "4 figures: agrees" in shown and "org/m" in shown and "pronoun first" in shown
    rows = list(csv.DictReader((where / "figures.csv").open()))
    assert [r["outcome"] for r in rows if r["value"]] == [AGREES] * 4
    stored = Store.open(where / "w").read("metric_value", benchmark="use-5").to_pylist()
    aufc = {json.loads(r["options"])["log_base"] for r in stored if r["metric"] == "aufc"}
    assert aufc == {"e", "10.0"}
    assert run(where, "--published", printed(where, *RIGHT)) == 0  # the second time as well


def test_a_figure_that_is_off_is_said(tmp_path: Path, capsys: Any) -> None:
    where = released(tmp_path, score_rows())
    assert run(where, "--published", printed(where, *RIGHT[1:], RIGHT[0].replace("100", "99"))) == 1
    assert "1 figures: off" in capsys.readouterr().out


def test_scores_that_are_incomplete_are_said(tmp_path: Path, capsys: Any) -> None:
    where = released(tmp_path, score_rows()[:-2])
    assert run(where, "--published", printed(where, RIGHT[0])) == 1
    assert "incomplete: org/m on use-5: 3 of 5 pairs scored" in capsys.readouterr().out


def test_a_damaged_release_is_one_line(tmp_path: Path, capsys: Any) -> None:
    assert run(tmp_path) == 3
    assert "no directory data/datasets/raw" in capsys.readouterr().err
    where = released(tmp_path, score_rows())
    (where / "data" / "pmi_file_w_counts.csv").unlink()
    assert run(where) == 3
    assert "no word statistics" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path, capsys: Any) -> None:
    where = released(tmp_path, score_rows())
    assert run(where, "--published", printed(where, *RIGHT), "--out", tmp_path) == 2
    assert "can't be written: Is a directory" in capsys.readouterr().err


def test_earlier_scores_are_not_taken_for_the_releases(tmp_path: Path, capsys: Any) -> None:
    where = released(tmp_path, score_rows())
    asked = printed(where, *RIGHT)
    other = write_scores(where / "results", score_rows("org__n"), "org__n.csv")
    assert run(where, "--published", asked) == 0
    assert "2 models: org/m, org/n" in capsys.readouterr().out
    other.unlink()
    assert run(where, "--published", asked) == 0
    shown = capsys.readouterr().out
    assert "1 models: org/m" in shown and "org/n" not in shown


@pytest.mark.slow
@pytest.mark.reference
def test_every_printed_figure_comes_back(data: Path, tmp_path: Path) -> None:
    store = Store.open(tmp_path / "w")
    outcome = reproduce(store, data / "unstereo-eval", packaged(), "pile", lambda step: None)
    assert store.read("pair_score").num_rows == 333_360
    assert summary(outcome)[AGREES] == 1606
    assert summary(outcome)[CONTRADICTED] == 3
    assert set(summary(outcome)) == {AGREES, CONTRADICTED, OURS_ALONE}
    assert outcome.max_pmi == (15_810, 15_810)
    assert len(outcome.models) == 20 and not outcome.incomplete
