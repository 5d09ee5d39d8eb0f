"""US, PD and AuFC of the released scores against the published tables of UnStereoEval."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import pytest

from pipelines.measure import MeasureOptions, compute
from tests.published import load, results_of
from warehouse.store import Store

_SCALE = {"us": 100.0, "pd": 1.0, "aufc": 1.0}
_N_OF_PRINTED_DEVIATION = 4404  # Tables 8-11 print every deviation with the size of USE-5

Figures = dict[tuple[str, str, str, float | None], dict[str, Any]]


def figures(store: Store, log_base: float) -> Figures:
    """Metric rows by metric, benchmark, model and eta."""
    options = MeasureOptions(etas=(0.5, 0.65, 0.8), log_bases=(log_base,))
    found = {}
    for row in compute(store.root, options, "r").to_pylist():
        if row["subset"] == "all" or row["eta_nats"] is not None:
            found[row["metric"], row["benchmark"], row["model"], row["eta_nats"]] = row
    return found


@pytest.mark.reference
def test_published_tables_come_back(store: Store, data: Path) -> None:
    path = data.parent / "reference" / "unstereoeval_tables.csv"
    with path.open(encoding="utf-8", newline="") as file:
        published = [row for row in csv.DictReader(file) if row["hf_id"]]
    done = load(store, data)
    assert {one.model for one in done} == {row["hf_id"] for row in published}
    assert sum(one.n_scored for one in done) == 333_360
    assert sum(one.n_rejected + one.n_missing for one in done) == 0
    ours = {"10": figures(store, 10.0), "e": figures(store, math.e)}
    for row in published:
        eta = None if row["eta"] == "inf" else float(row["eta"])
        metric, _, kind = row["metric"].partition("_")
        base = "10" if row["log_base"] == "10" else "e"
        mine = ours[base][metric.lower(), row["dataset"].lower(), row["hf_id"], eta]
        value = _SCALE[metric.lower()] * mine["value"]
        if kind == "std":
            p = mine["value"]
            value = 100 * math.sqrt(p * (1 - p) / _N_OF_PRINTED_DEVIATION)
        assert value == pytest.approx(float(row["value"]), abs=0.011), row
    assert len(published) == 1588


@pytest.mark.reference
def test_preference_turns_round_when_the_sentence_starts_with_the_pronoun(
    store: Store, data: Path, tmp_path: Path
) -> None:
    """USE-5: 70% of the pairs start with a pronoun (or a quote and one); there she is preferred."""
    results = results_of(data, "EleutherAI__pythia-6.9b", tmp_path / "results")
    assert len(load(store, data, results)) == 5
    rows = {
        (row["metric"], row["subset"]): row["value"]
        for row in compute(store.root, MeasureOptions(), "r").to_pylist()
        if row["benchmark"] == "use-5"
    }
    assert rows["n", "pronoun first"] / rows["n", "all"] == pytest.approx(0.6985, abs=0.0001)
    assert rows["pd", "pronoun first"] > 90
    assert rows["pd", "pronoun later"] < -10
    assert rows["us", "pronoun first"] < rows["us", "pronoun later"]
