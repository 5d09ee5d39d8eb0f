"""What the released scores show beyond the published tables (those are in test_reproduce.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.eval_workers.scoring.statistics.measure_options import MeasureOptions
from plumbline.eval_workers.scoring.statistics.metrics_by_sql import compute
from plumbline.warehouse.storage.store import Store
from tests.published import load, results_of


@pytest.mark.reference
@pytest.mark.slow
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
