"""Calibration on halves of one side: the method finds nothing where nothing is."""

from __future__ import annotations

import numpy as np

from plumbline.eval_workers.fairpair.fairpair_options import FigureOptions
from plumbline.eval_workers.fairpair.figures.calibration import (
    CalibrationOptions,
    calibrate_set,
    halved,
)
from plumbline.warehouse.storage.store import Store
from tests.fairpair_rows import sampled_set
from tests.metric_rows import fill

FEW = FigureOptions(n_permutations=39, n_resamples=100)


def test_halves_of_one_side_differ_by_chance_alone(store: Store) -> None:
    """Even where the sides do differ, in every prompt, half against half finds the level."""
    sampled = sampled_set(store, n_prompts=20, n_samples=40, planted=range(20))
    options = CalibrationOptions(n_splits=10, measure=FEW)
    assert calibrate_set(store, sampled, "jaccard", options, "r") == 20
    rows = store.read("fairpair_calibration").to_pylist()
    assert [r["n_prompts"] for r in rows] == [20] * 20 and {r["alpha"] for r in rows} == {0.05}
    # 400 tests at 5%: 20 expected, 4.4 their standard deviation.
    assert 6 <= sum(r["n_below"] for r in rows) <= 35
    assert sum(r["n_found"] for r in rows) <= 8
    assert abs(np.mean([r["fairpair_f"] for r in rows]) - 1) < 0.01
    assert sum(r["fairpair_f_low"] <= 1 <= r["fairpair_f_high"] for r in rows) >= 16
    assert sum(r["n_holding"] for r in rows) >= 0.93 * sum(r["n_intervals"] for r in rows) > 0


def test_all_samples_are_split_and_both_halves_are_as_many() -> None:
    seen = []

    class Spy:
        def distances(self, items: list[int]) -> np.ndarray:
            seen.append(items)
            return np.ones((len(items), len(items))) - np.eye(len(items))

    rng = np.random.default_rng(0)
    first, _ = (halved(Spy(), range(9), FEW, rng) for _ in range(2))
    assert first.figures.n_pg == first.figures.n_gp == 4 and first.figures.fairpair_f == 1
    assert [len(set(items)) for items in seen] == [8, 8] and seen[0] != seen[1]


def test_the_texts_that_nobody_perturbed_are_split(store: Store) -> None:
    """Of one side all perturbations are valid, of the other one in each prompt."""
    sampled = sampled_set(store, failing=0)
    rows = store.read("perturbed_continuation").to_pylist()
    for row in rows:
        row["is_valid"] = row["side"] == "perturbed" or row["sample"] == 0
    fill(store, "perturbed_continuation", rows)
    calibrate_set(store, sampled, "jaccard", CalibrationOptions(1, measure=FEW), "r")
    found = store.read("fairpair_calibration").to_pylist()
    n_prompts = {row["side"]: (row["n_prompts"], row["n_left_out"]) for row in found}
    # Texts about Jane, each with a valid perturbation, are compared on the side of John.
    assert n_prompts == {"original": (3, 0), "perturbed": (0, 3)}


def test_the_same_seed_gives_the_same_rows_and_replaces_them(store: Store) -> None:
    sampled = sampled_set(store)
    runs = []
    for seed in (1, 1, 2):
        measure = FigureOptions(n_permutations=19, n_resamples=20, seed=seed)
        calibrate_set(store, sampled, "jaccard", CalibrationOptions(2, measure=measure), "r")
        runs.append(store.read("fairpair_calibration").to_pylist())
    assert runs[0] == runs[1] != runs[2] and len(runs[2]) == 4


def test_prompts_with_too_few_samples_are_counted(store: Store) -> None:
    sampled = sampled_set(store, n_samples=3)
    calibrate_set(store, sampled, "vader", CalibrationOptions(1, measure=FEW), "r")
    for row in store.read("fairpair_calibration").to_pylist():
        assert (row["n_prompts"], row["n_left_out"], row["fairpair_f"]) == (0, 3, None)
        assert row["n_below"] == row["n_intervals"] == 0
