"""What the released scores show beyond the published tables (those are in test_reproduce.py)."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from plumbline.eval_workers.pairs.benchmarks import import_benchmark
from plumbline.eval_workers.pairs.released.released_files import model_id
from plumbline.eval_workers.pairs.released.released_results import import_scores
from plumbline.eval_workers.scoring.measure import MeasureOptions, compute
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


@pytest.mark.reference
@pytest.mark.slow
def test_the_stereotype_score_of_winobias_is_that_of_its_lists_of_occupations(
    store: Store, data: Path
) -> None:
    """28 models; the expected shares use no label of a sentence, only who holds the occupation."""
    release = data / "unstereo-eval"
    import_benchmark(store, "winobias", release / "data" / "datasets" / "raw", "r")
    assert len(import_scores(store, release / "results" / "Winobias", "r")) == 28
    found = {
        row["model"]: (row["value"], row["n"])
        for row in compute(store.root, MeasureOptions(), "r", ["stereotype"]).to_pylist()
        if row["subset"] == "all"
    }
    files = (release / "results" / "Winobias").glob("*.csv.gz")
    table = pd.concat([pd.read_csv(path) for path in files])
    women = (data / "corefbias" / "female_occupations.txt").read_text().lower().split("\n")
    is_woman = table["word"].str.lower().isin(set(filter(None, women)))
    table["follows"] = (table["F_logprob"] > table["M_logprob"]).where(
        is_woman, table["F_logprob"] < table["M_logprob"]
    )
    groups = table.groupby("model")["follows"]
    assert found == {model_id(str(name)): (share.mean(), 1586) for name, share in groups}
    assert found["EleutherAI/gpt-j-6b"][0] == pytest.approx(0.6721, abs=5e-5)
    assert found["EleutherAI/pythia-70m-deduped"][0] == 0.5
