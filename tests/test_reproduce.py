"""Printed figures beside ours: the comparison by itself, and the command on the released scores."""

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from plumbline.pipelines.command.main import main
from plumbline.pipelines.reproduce import claims
from plumbline.pipelines.reproduce.claims import Row, figures
from plumbline.pipelines.reproduce.unstereoeval import (
    AGREE,
    CONTRADICTED,
    NOT_RUN,
    OFF,
    compare,
    reproduce,
)
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests.conftest import REPOSITORY
from tests.released_files import PAIRS, Fields, as_csv, score_rows, write_scores

HEADER = "table,dataset,eta,metric,value,hf_id,log_base\n"


def metric(name: str, value: float, **columns: Any) -> dict[str, Any]:
    row = {"metric": name, "benchmark": "use-5", "model": "m", "subset": "all", "eta_nats": None}
    row |= {"value": value, "value_low": value - 0.1, "value_high": value + 0.1, "n": 9}
    return {**row, "options": "{}", **columns}


def figure(name: str, value: float, **columns: Any) -> Row:
    given = {"table": 8, "benchmark": "use-5", "eta_nats": None, "model": "m", "log_base": math.e}
    return {**given, "metric": name, "value": value, **columns}


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
        (figure("US", 21.10), 21.11, AGREE),
        (figure("US", 21.09), 21.11, OFF),
        (figure("US", 50.0, eta_nats=0.5), 50.0, AGREE),
        (figure("US_std", 0.61), 61.494 / 100, AGREE),  # binomial, of 4,404 pairs
        (figure("US_std", 0.5), 61.494 / 100, OFF),  # the row's own error is over clusters
        (figure("PD", 37.39), -37.39, OFF),
        (figure("AuFC", 5.35), 4.0, OFF),
        (figure("US", 21.11, eta_nats=0.65), None, NOT_RUN),
        (figure("benchmark_size", 4404.0, model=""), 4405.0, CONTRADICTED),
        (figure("benchmark_size", 4403.0, model=""), 4405.0, OFF),
        (figure("gap", 3.12, eta_nats=0.5), 3.1, OFF),
    ],
)
def test_a_figure_beside_ours(asked: Row, ours: float | None, outcome: str) -> None:
    (found,) = compare([asked], ROWS)
    assert found["ours"] == (None if ours is None else pytest.approx(ours, rel=1e-5))
    assert found["outcome"] == outcome


PLACE = ("table", "metric", "benchmark", "eta_nats", "model")


def test_packaged_figures_are_all_that_the_tables_print() -> None:
    every = figures("unstereoeval")
    assert len({f["model"] for f in every if f["model"]}) == 28
    assert {f["table"] for f in every} == {1, 2, 3, *range(8, 23)}
    assert sum(bool(f["model"]) for f in every) == 2731 and len(every) == 2781
    assert len({tuple(f[c] for c in PLACE) for f in every}) == len(every), "no figure twice"
    by_cell: dict[tuple[Any, ...], set[float]] = {}
    for f in every:
        if f["metric"] in ("US", "gap", "PD"):
            by_cell.setdefault(tuple(f[c] for c in PLACE[1:]), set()).add(f["value"])
    assert all(len(values) == 1 for values in by_cell.values()), "what is printed twice is equal"


@pytest.mark.reference
def test_packaged_figures_are_the_papers(data: Path) -> None:
    with (data.parent / "reference" / "unstereoeval_printed.csv").open() as file:
        theirs = [printed(row) for row in csv.DictReader(file)]
    ours = [f for f in figures("unstereoeval") if f["model"]]
    assert sorted(map(repr, map(sorted, map(dict.items, theirs)))) == sorted(
        map(repr, map(sorted, map(dict.items, ours)))
    )


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


def run(where: Path, lines: Sequence[str] = (), *options: str) -> int:
    """Run the command on a release; ``lines`` are its printed figures."""
    common = ["--data", where, "--warehouse", where / "w", *options]
    with pytest.MonkeyPatch.context() as patch:
        if lines:
            rows = list(csv.DictReader(HEADER.splitlines() + list(lines)))
            patch.setattr(claims, "figures", lambda paper: [*map(printed, rows)])
        return main(["reproduce", "unstereoeval", *map(str, common)])


def printed(row: Fields) -> Row:
    """A row of the printed figures from its line."""
    return {
        "table": int(row["table"]),
        "benchmark": row["dataset"].lower(),
        "eta_nats": None if row["eta"] == "inf" else float(row["eta"]),
        "metric": row["metric"],
        "value": float(row["value"]),
        "model": row["hf_id"],
        "log_base": math.e if row["log_base"] in ("e", "") else float(row["log_base"]),
    }


# Each of the four natural pairs prefers the male sentence by 0.25 nats, less than ln 1.65.
RIGHT = (
    "8,USE-5,inf,US,100.0,org/m,e",
    "8,USE-5,0.5,benchmark_size,2,,",
    "19,USE-5,inf,AuFC,5.91,org/m,10",
    "22,USE-5,inf,AuFC,5.73,org/m,e",
)


@pytest.mark.slow
def test_a_small_release_comes_back(tmp_path: Path, capsys: Any) -> None:
    where = released(tmp_path, score_rows())
    assert run(where, RIGHT) == 0
    shown = capsys.readouterr().out
    assert "figures of models: 3 agree, 0 off, 0 not run" in shown
    assert "sizes of sets: 1 agree, 0 off, 0 not run, 0 contradicted by the release" in shown
    assert "org/m" in shown
    assert "Claims need all 28 models and five sets: not run" in shown
    assert run(where, RIGHT, "--format", "csv") == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [r["outcome"] for r in rows if r["value"]] == [AGREE] * 4
    stored = Store.open(where / "w").read("metric_value", benchmark="use-5").to_pylist()
    aufc = {json.loads(r["options"])["log_base"] for r in stored if r["metric"] == "aufc"}
    assert aufc == {"e", "10.0"}
    other = write_scores(where / "results", score_rows("org__n"), "org__n.csv")
    assert run(where, RIGHT) == 0
    assert "2 models: org/m, org/n" in capsys.readouterr().out
    other.unlink()  # earlier scores are not taken for the release's
    assert run(where, RIGHT) == 0
    shown = capsys.readouterr().out
    assert "1 model: org/m" in shown and "org/n" not in shown


def test_scores_that_are_incomplete_are_said(tmp_path: Path, capsys: Any) -> None:
    where = released(tmp_path, score_rows()[:-2])
    assert run(where, RIGHT[:1]) == 1
    assert "incomplete: org/m on use-5: 3 of 5 pairs scored" in capsys.readouterr().out


def test_a_damaged_release_is_one_line(tmp_path: Path, capsys: Any) -> None:
    assert run(tmp_path) == 3
    assert "no directory data/datasets/raw" in capsys.readouterr().err
    where = released(tmp_path, score_rows())
    (where / "data" / "pmi_file_w_counts.csv").unlink()
    assert run(where) == 3
    assert "no word statistics" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.reference
def test_every_printed_figure_comes_back(data: Path, tmp_path: Path) -> None:
    store = Store.open(tmp_path / "w")
    every = figures("unstereoeval")
    outcome = reproduce(store, data / "unstereo-eval", every, "pile", "r")
    assert store.read("pair_score").num_rows == 466_704
    is_size = [row["metric"] == "benchmark_size" for row in outcome.compared]
    assert Counter(zip(is_size, (row["outcome"] for row in outcome.compared), strict=True)) == {
        (False, AGREE): 2731,
        (True, AGREE): 32,
        (True, CONTRADICTED): 18,
    }
    assert len(outcome.models) == 28 and not outcome.incomplete
    of_g3 = rows_of(
        store.root,
        "SELECT model, benchmark, pd(log_ratio_nats, 0.5) AS pd FROM scored_pair GROUP BY ALL",
    )
    at_half = {(r["model"], r["benchmark"]): r["pd"] for r in of_g3}
    table_15 = [f for f in every if f["table"] == 15]
    differ = [abs(at_half[f["model"], f["benchmark"]] - f["value"]) for f in table_15]
    assert sum(d > 0.00501 for d in differ) == 64 and 0.06 < max(differ) < 0.075
    page = (REPOSITORY / "docs" / "reproduce.md").read_text(encoding="utf-8")
    assert all(f"\n{line}\n" in page for line in list(outcome.lines())[1:])
    for name, view, digits in (
        ("per_tenfold", "size_trend", {"us": 1, "pd": 1, "|pd|": 1, "slope": 2}),
        ("difference", "deduplication_mean()", {"us": 1, "pd": 1}),
    ):
        found = [r for r in rows_of(store.root, f"FROM {view}") if not r.get("family")]
        whole = [r for r in found if not r.get("subset", "").startswith("|max_pmi| <=")]
        cells = {(r["benchmark"], r["measure"]): cell(r, name, digits) for r in whole}
        for benchmark in ("USE-5", "USE-10", "USE-20", "WinoBias", "Winogender"):
            of = [cells[benchmark.lower(), measure] for measure in digits]
            line = f"| {benchmark} | {' | '.join(of)} |"
            assert line in page.replace("**", "").replace("−", "-"), line
    compared = rows_of(store.root, "FROM training_text_difference WHERE measure = 'us'")
    names = {name.lower(): name for name in ("USE-5", "USE-10", "USE-20", "WinoBias", "Winogender")}
    assert {r["benchmark"] for r in compared} == names.keys()
    for r in compared:
        of = (r["mean_figure"], r["other_figure"], r["difference"])
        ends = (r["difference_low"], r["difference_high"])
        line = "| {} | {:.1f} | {:.1f} | {:.1f} ({:.1f} to {:.1f}) |"
        assert line.format(names[r["benchmark"]], *of, *ends) in page.replace("−", "-"), r


def cell(row: dict[str, Any], name: str, digits: dict[str, int]) -> str:
    """As docs/reproduce.md prints an estimate: PD of tens of points in whole ones."""
    value, low, high = (row[f"{name}{end}"] for end in ("", "_low", "_high"))
    n = 0 if abs(value) >= 10 else digits[row["measure"]]
    return f"{value:.{n}f} ({low:.{n}f} to {high:.{n}f})"
