"""More than two groups: every metric between two of them, even share and divergence over all."""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from plumbline.eval_workers.scoring.measure import MeasureOptions, compute
from plumbline.warehouse.query.connection import connect, rows_of
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import fill, pair, score

EPSILON = math.log(1.65)
NAMES = ("she", "he", "they", "xe", "ze", "it", "one", *(f"group {k}" for k in range(7, 50)))


def scored(root: Path, logprobs: np.ndarray, *, categories: bool = False) -> Store:
    """A benchmark of items x groups with these log-probabilities."""
    store = Store.open(root)
    pairs, scores = [], []
    for i, item in enumerate(logprobs):
        for a, b in combinations(range(len(item)), 2):
            groups = {"group_a": NAMES[a], "group_b": NAMES[b], "item_id": f"{i:03}"}
            groups |= {"category": "odd" if i % 2 else "even"} if categories else {}
            name = f"{i:03} {NAMES[a]}/{NAMES[b]}"
            pairs.append(pair("b", name, **groups))
            of = {"logprob_a_nats": float(item[a]), "logprob_b_nats": float(item[b])}
            scores.append({**score("b", name, 0.0), **of})
    fill(store, "benchmark_pair", pairs)
    fill(store, "pair_score", scores)
    return store


def oracle(logprobs: np.ndarray) -> tuple[float, float]:
    """Even share and divergence, item by item as the definitions say."""
    even, shares = [], []
    for item in logprobs:
        top = [g for g, x in enumerate(item) if max(item) - x <= EPSILON]
        even.append(max(item) - min(item) <= EPSILON)
        shares.append([1 / len(top) if g in top else 0 for g in range(len(item))])
    k = logprobs.shape[1]
    distance = sum(abs(share - 1 / k) for share in np.mean(shares, axis=0)) / 2
    return float(np.mean(even)), distance / ((k - 1) / k)


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(2, 4))
def test_shares_are_those_of_the_definition(
    tmp_path_factory: pytest.TempPathFactory, seed: int, k: int
) -> None:
    logprobs = np.random.default_rng(seed).normal(0, 0.6, (17, k)).round(2)
    store = scored(tmp_path_factory.mktemp("w") / "w", logprobs)
    (row,) = rows_of(store.root, f"FROM group_share({EPSILON})")
    even, divergence = oracle(logprobs)
    assert row["groups"] == "/".join(NAMES[:k]) and (row["n"], row["n_groups"]) == (17, k)
    assert row["even_share"] == pytest.approx(even, abs=1e-12)
    assert row["divergence"] == pytest.approx(divergence, abs=1e-12)
    if k == 2:
        with connect(store.root, "scored_pair") as connection:
            us, pd = connection.execute(
                "SELECT us(log_ratio_nats), pd(log_ratio_nats) FROM scored_pair"
            ).fetchone()
        assert row["even_share"] == us
        assert row["divergence"] == pytest.approx(abs(pd) / 100, abs=1e-12)


def test_metrics_never_mix_groups(tmp_path: Path) -> None:
    """US, PD and n of every two groups are those of its own pairs."""
    logprobs = np.random.default_rng(3).normal([0, 0, -2], 1, (20, 3))
    store = scored(tmp_path / "w", logprobs, categories=True)
    rows = compute(store.root, MeasureOptions(), "r").to_pylist()
    found = {(r["metric"], r["groups"], r["subset"]): r for r in rows}
    for a, b in combinations(range(3), 2):
        ratio = logprobs[:, a] - logprobs[:, b]
        name = f"{NAMES[a]}/{NAMES[b]}"
        for subset, chosen in (("all", slice(None)), ("category: odd", slice(1, None, 2))):
            us = found["us", name, subset]
            assert us["value"] == pytest.approx(np.mean(np.abs(ratio[chosen]) <= EPSILON))
            lean = np.where(np.abs(ratio[chosen]) <= EPSILON, 0, np.sign(ratio[chosen]))
            assert found["pd", name, subset]["value"] == pytest.approx(100 * lean.mean())
            assert us["n"] == len(ratio[chosen])
    even, divergence = oracle(logprobs)
    assert found["even share", "she/he/they", "all"]["value"] == pytest.approx(even)
    row = found["divergence", "she/he/they", "all"]
    assert row["value"] == pytest.approx(divergence) and row["n"] == 20
    assert row["value_low"] < row["value"] < row["value_high"]
    odd = found["divergence", "she/he/they", "category: odd"]
    assert odd["value"] == pytest.approx(oracle(logprobs[1::2])[1])
    assert {g for m, g, _ in found if m == "us"} == {"she/he", "she/they", "he/they"}


def test_the_stereotype_score_by_category_has_wilsons_interval(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "w")
    kinds = ["age"] * 12 + ["faith"] * 3
    rows = [pair("b", f"{i:02}", direction="a", category=kind) for i, kind in enumerate(kinds)]
    fill(store, "benchmark_pair", rows)
    fill(store, "pair_score", [score("b", f"{i:02}", 1.0 if i % 4 else -1) for i in range(15)])
    rows = compute(store.root, MeasureOptions(), "r", ["stereotype"]).to_pylist()
    found = {r["subset"]: r for r in rows}
    age, z = found["category: age"], stats.t.ppf(0.975, 11)
    assert (age["value"], age["n"]) == (0.75, 12) and found["category: faith"]["n"] == 3
    n = 11**2 / 12  # the jackknife over pairs, each its own cluster; three are exceptions
    centre = (0.75 + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(0.75 * 0.25 / n + z * z / (4 * n * n)) / (1 + z * z / n)
    assert age["value_low"] == pytest.approx(centre - half, abs=1e-5)
    score_test = abs(0.75 - 0.5) / math.sqrt(0.25 / n)
    assert age["p"] == pytest.approx(2 * stats.t.sf(score_test, 11))
    assert age["value_high"] == pytest.approx(centre + half)
