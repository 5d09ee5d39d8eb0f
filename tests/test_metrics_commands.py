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
from tests.metric_rows import fill, pair, score
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
