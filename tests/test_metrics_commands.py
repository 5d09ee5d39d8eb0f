"""`plumbline measure`, `report` and `sql` as commands: help, closing lines, statuses."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from scipy import stats
from typer.testing import CliRunner

from plumbline.pipelines.command.app import app
from plumbline.warehouse.errors import PlumblineError
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import delta, fill, pair, planted, score
from tests.test_metrics import wilson
from tests.test_report import alone

runner = CliRunner()


@pytest.fixture
def scored(store: Store) -> Path:
    return _scored(store, 6)


def _scored(store: Store, n: int) -> Path:
    """Log ratios -1, 0, 1, ...: of each pair by itself, one is within ln 1.65."""
    fill(store, "benchmark_pair", [pair("b", str(i)) for i in range(n)])
    fill(store, "pair_score", [score("b", str(i), i - 1.0) for i in range(n)])
    return store.root


def run(*arguments: object) -> str:
    result = runner.invoke(app, [str(a) for a in arguments], env={"COLUMNS": "200"})
    if isinstance(result.exception, PlumblineError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_measure_prints_what_it_wrote_and_what_is_next(scored: Path) -> None:
    output = run("measure", "--warehouse", scored, "--eta", 0.4)
    # Student's t of 5 degrees; the jackknife's error is that of 25 / 6 rows.
    low, high = wilson(1 / 6, 25 / 6, float(stats.t.ppf(0.975, 5)))
    (line,) = [one for one in output.splitlines() if " b  " in one]
    figures = [float(x) / 100 for x in re.findall(r"[\d.]+", line)[1:4]]
    assert figures == pytest.approx([1 / 6, low, high], abs=0.0005)
    assert "Next: plumbline report" in output
    store = Store.open(scored)
    (record,) = store.read("run").to_pylist()
    assert record["command"] == "measure" and record["status"] == "finished"
    assert {r["run_id"] for r in store.read("metric_value").to_pylist()} == {record["run_id"]}


def test_measure_prints_figures_of_few_clusters_without_an_interval(store: Store) -> None:
    output = run("measure", "--warehouse", _scored(store, 4))
    (line,) = [one for one in output.splitlines() if " b " in one]
    assert line.replace("│", " ").split()[-3:] == ["25.0", "+25.0", "5.00"]
    assert "or other clusters have no interval and no claim: b;" in output
    rows = Store.open(store.root).read("metric_value").to_pylist()
    of_pairs = [r for r in rows if r["metric"] in ("us", "pd", "aufc")]
    assert of_pairs and all(r["value_low"] is r["value_high"] is None for r in of_pairs)


def test_measure_sends_nobody_to_score_what_was_rejected(store: Store) -> None:
    """Pairs that a model can't score are no work for `score`; those not yet tried are."""
    fill(store, "benchmark_pair", [pair("b", str(i), is_natural=i < 8) for i in range(9)])
    fill(store, "pair_score", [score("b", str(i), 1.0) for i in range(5)])
    row = {"stage": "score", "source_file": "f", "reason": "pair 7", "excerpt": "", "run_id": "r"}
    rejects = [{**row, "source_row": k} for k in range(3)]
    fill(store, "reject", [{**one, "subject": "key-m/b"} for one in rejects])
    fill(store, "reject", [{**one, "subject": "key-m/a/b"} for one in rejects])
    first = "m has scores of 5 of the 8 pairs of b; figures are of these. "
    output = run("measure", "--warehouse", store.root)
    assert f"{first}3 were rejected (the reasons are in `reject`)\n" in output
    assert "Fewer than 10 pairs say little: 5 of b\n" in output
    fill(store, "benchmark_pair", [pair("b", str(i)) for i in range(10)])
    output = run("measure", "--warehouse", store.root)
    assert "3 were rejected (the reasons are in `reject`); `plumbline score` does the oth" in output


def test_measure_prints_the_fits(store: Store) -> None:
    fill(store, "planted_word", [planted(f"w{i}", i / 10) for i in range(6)])
    fill(store, "word_delta", [delta(f"w{i}", i / 5) for i in range(6)])
    output = run("measure", "--warehouse", store.root)
    (line,) = [one for one in output.splitlines() if "planted" in one]
    assert "2.00" in line and line.count("1.000") >= 2
    assert "PD points" not in output  # nothing is scored: no empty table


@pytest.mark.parametrize(
    ("bases", "headings"),
    [
        ((), ["AuFC"]),
        ((10,), ["AuFC, base 10"]),
        ((10, 2.5, math.e), ["AuFC", "AuFC, base 10", "AuFC, base 2.5"]),
    ],
)
def test_aufc_is_shown_for_each_log_base(
    scored: Path, tmp_path: Path, bases: tuple[float, ...], headings: list[str]
) -> None:
    output = run("measure", "--warehouse", scored, *(w for b in bases for w in ("--log-base", b)))
    page = alone(Store.open(scored), tmp_path / "report")
    cells = [text for text, _ in page.tables["b, all pairs"][1]]
    rows = Store.open(scored).read("metric_value").to_pylist()
    areas = [r["value"] for r in rows if (r["metric"], r["subset"]) == ("aufc", "all")]
    assert len(areas) == len(headings) == len(cells) - 4
    for area in areas:
        assert f"{area:.2f} (" in output and any(f"{area:.2f} (" in cell for cell in cells[4:])
    assert all(heading in output and heading in page.text for heading in headings)


def test_measure_on_an_empty_warehouse_says_what_to_run(store: Store) -> None:
    assert "plumbline score" in run("measure", "--warehouse", store.root)


@pytest.mark.slow
def test_report_names_the_page(scored: Path, tmp_path: Path) -> None:
    run("measure", "--warehouse", scored)
    output = run("report", "--warehouse", scored, "--out", tmp_path / "page")
    assert "3 pages with 3 plots" in output and "index.html" in output
    assert (tmp_path / "page" / "index.html").is_file()


def test_sql_one_shot(scored: Path) -> None:
    output = run("sql", "SELECT count(*) AS n_scores FROM scored_pair", "--warehouse", scored)
    assert "n_scores" in output and "6" in output and "1 row" in output
