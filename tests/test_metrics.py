"""US, PD, AuFC, gap and n against brute force in plain Python, and their intervals."""

import json
import math
import tempfile
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from plumbline.eval_workers.scoring.measure import MeasureOptions, compute
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import association, fill, interval, pair, score

Metrics = dict[tuple[str, str], dict[str, Any]]
EPSILON = math.log(1.65)

# Ratios on and around every kind of limit: zero, epsilon, the grid of AuFC, beyond its end.
_ratios = st.one_of(
    st.sampled_from([0.0, EPSILON, -EPSILON, EPSILON + 1e-6, 0.06, -0.06, 6.0, -6.0, 6.01, 30.0]),
    st.floats(-8, 8).map(lambda x: round(x, 3)),
)
_pairs = st.lists(
    st.tuples(
        _ratios,
        st.one_of(st.none(), st.sampled_from([0.5, -0.5, 0.51, -0.65, 0.8]), st.floats(-2, 2)),
        st.booleans(),  # pronoun first
        st.sampled_from([True, None, False]),  # natural
    ),
    min_size=1,
    max_size=25,
)


def build(store: Store, pairs: list[Any], benchmark: str = "b") -> None:
    rows = list(enumerate(pairs))
    fill(
        store,
        "benchmark_pair",
        [pair(benchmark, str(i), pronoun_first=p[2], is_natural=p[3]) for i, p in rows],
    )
    fill(store, "pair_score", [score(benchmark, str(i), p[0]) for i, p in rows])
    fill(store, "pair_association", [association(benchmark, str(i), p[1]) for i, p in rows])


def by_benchmark(root: Path) -> dict[str, Metrics]:
    rows = compute(root, MeasureOptions(), "r").to_pylist()
    found: dict[str, Metrics] = {}
    for row in rows:
        found.setdefault(row["benchmark"], {})[row["metric"], row["subset"]] = row
    assert sum(map(len, found.values())) == len(rows)
    return found


def at_most(x: float, limit: float) -> bool:
    return abs(x) <= limit or math.isclose(abs(x), limit, rel_tol=0, abs_tol=1e-9)


def members(pairs: list[Any]) -> dict[str, list[float]]:
    natural = [p for p in pairs if p[3] is not False]
    subsets = {
        "all": [p[0] for p in natural],
        "pronoun first": [p[0] for p in natural if p[2]],
        "pronoun later": [p[0] for p in natural if not p[2]],
        "max_pmi defined": [p[0] for p in natural if p[1] is not None],
    }
    for eta in (0.5, 0.65, 0.8, 1.0):
        kept = [p[0] for p in natural if p[1] is not None and at_most(p[1], eta)]
        subsets[f"|max_pmi| <= {eta}"] = kept
    return subsets


def share(ratios: list[float], epsilon: float) -> float:
    return sum(at_most(r, epsilon) for r in ratios) / len(ratios)


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(st.lists(_pairs, min_size=5, max_size=8))
def test_metrics_equal_brute_force(made: list[list[Any]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        store = Store.open(Path(directory) / "w")
        for number, pairs in enumerate(made):
            build(store, pairs, f"b{number}")
        found = by_benchmark(store.root)
    for number, pairs in enumerate(made):
        check_metrics(pairs, found.get(f"b{number}", {}))


def check_metrics(pairs: list[Any], found: Metrics) -> None:
    figures = [
        r[c] for r in found.values() for c in ("value", "value_se", "value_low", "value_high")
    ]
    assert all(x is None or math.isfinite(x) for x in figures)
    subsets = members(pairs)
    if not subsets["all"]:
        assert not found
        return
    for subset, ratios in subsets.items():
        n = len(ratios)
        assert found["n", subset]["value"] == n
        for metric in ("us", "pd", "aufc"):
            row = found[metric, subset]
            assert row["n"] == n
            assert (row["value"] is None) == (n == 0)
            assert (row["value_se"] is None) == (n < 2)
            assert row["n_clusters"] == n
            varies = metric != "aufc" or (row["value_se"] or 0) > 1e-9
            assert (row["value_low"] is None) == (n < 5 or not varies)
            values = json.loads(row["cluster_values"] or "[]")
            assert len(values) == (n if n < 5 else 0)
            assert row["value_low"] is None or row["value_low"] <= row["value"] <= row["value_high"]
        if n == 0:
            continue
        us = share(ratios, EPSILON)
        assert found["us", subset]["value"] == pytest.approx(us)
        signs = [0 if at_most(r, EPSILON) else math.copysign(1, r) for r in ratios]
        assert found["pd", subset]["value"] == pytest.approx(100 * np.mean(signs), abs=1e-9)
        grid = np.linspace(0, 6, 101)
        area = np.trapezoid([share(ratios, e) for e in grid], grid)
        assert found["aufc", subset]["value"] == pytest.approx(area, abs=1e-9)
        areas = [np.trapezoid([float(at_most(r, e)) for e in grid], grid) for r in ratios]
        evens = [float(at_most(r, EPSILON)) for r in ratios]
        for metric, each in (("us", evens), ("pd", [100 * x for x in signs]), ("aufc", areas)):
            if n > 1:  # each pair is its own cluster: the jackknife over pairs
                error = np.std(each) / math.sqrt(n) * n / (n - 1)
                assert found[metric, subset]["value_se"] == pytest.approx(error, abs=1e-9)
        if found["aufc", subset]["value_low"] is not None:  # skewed: wider, the fewer clusters
            ends = interval(areas, (0, 6), times=math.sqrt(1 + 1 / n))[::2]
            row = found["aufc", subset]
            assert (row["value_low"], row["value_high"]) == pytest.approx(ends, rel=1e-3, abs=1e-3)
        if "max_pmi" in subset:
            gap = us - share(subsets["all"], EPSILON)
            assert found["gap", subset]["value"] == pytest.approx(gap, abs=1e-12)
            assert found["gap", subset]["n"] == n
            assert n >= 5 or found["gap", subset]["value_low"] is None


def test_wilson_interval_equals_scipy(store: Store) -> None:
    shares = [(0, 30), (30, 30), (7, 31)]
    for count, total in shares:
        pairs = [(0.0 if i < count else 2.0, 0.1, False, None) for i in range(total)]
        build(store, pairs, f"{count} of {total}")
    found = by_benchmark(store.root)
    for count, total in shares:
        row = found[f"{count} of {total}"]["us", "all"]
        low, _, high = interval([1.0] * count + [0.0] * (total - count), (0, 1), total)
        assert row["value_low"] == pytest.approx(low, abs=1e-5)
        assert row["value_high"] == pytest.approx(high, abs=1e-5)
        independent = stats.binomtest(count, total).proportion_ci(method="wilson")
        assert row["value_high"] - row["value_low"] == pytest.approx(
            independent.high - independent.low, rel=0.09
        )
        assert row["interval"] == "Wilson 95%"


def test_the_error_of_a_gap_is_that_of_resampled_pairs(store: Store) -> None:
    rng, n = np.random.default_rng(2), 600
    is_within = rng.random(n) < 0.3
    is_even = rng.random(n) < np.where(is_within, 0.8, 0.5)
    each = zip(is_even, is_within, strict=True)
    build(store, [(0.0 if a else 2.0, 0.1 if b else 2.0, False, None) for a, b in each])
    row = by_benchmark(store.root)["b"]["gap", "|max_pmi| <= 0.65"]
    drawn = rng.integers(0, n, (4000, n))
    even, within = is_even[drawn], is_within[drawn]
    gaps = (even & within).sum(axis=1) / within.sum(axis=1) - even.mean(axis=1)
    assert row["value"] == pytest.approx(is_even[is_within].mean() - is_even.mean(), abs=1e-12)
    assert row["value_se"] == pytest.approx(gaps.std(), rel=0.05)
    ends = (row["value_low"], row["value_high"])
    assert ends == pytest.approx(np.quantile(gaps, [0.025, 0.975]), abs=0.25 * gaps.std())


def test_p_is_two_sided_as_the_interval_is(store: Store) -> None:
    for n_b in (6, 9, 12):
        ratios = [2.0] * 14 + [-2.0] * n_b + [0.0] * 10
        build(store, [(ratio, 0.1, False, None) for ratio in ratios], str(n_b))
    found = by_benchmark(store.root)
    for benchmark in found.values():
        row = benchmark["pd", "all"]
        low, high = row["value_low"], row["value_high"]
        error = (high - low) / 2 / stats.t.ppf(0.975, row["df"])
        p = 2 * stats.t.sf(abs(low + high) / 2 / error, row["df"])
        assert row["p"] == pytest.approx(p, rel=1e-3)


NAMES = ("she", "he", "they")


def scored_items(root: Path, logprobs: np.ndarray) -> Store:
    """A benchmark of items x groups with these log-probabilities, in two categories."""
    store = Store.open(root)
    pairs, scores = [], []
    for i, item in enumerate(logprobs):
        for a, b in combinations(range(len(item)), 2):
            groups = {"group_a": NAMES[a], "group_b": NAMES[b], "item_id": f"{i:03}"}
            groups["category"] = "odd" if i % 2 else "even"
            name = f"{i:03} {NAMES[a]}/{NAMES[b]}"
            pairs.append(pair("b", name, **groups))
            of = {"logprob_a_nats": float(item[a]), "logprob_b_nats": float(item[b])}
            scores.append({**score("b", name, 0.0), **of})
    fill(store, "benchmark_pair", pairs)
    fill(store, "pair_score", scores)
    return store


def test_metrics_never_mix_groups(tmp_path: Path) -> None:
    logprobs = np.random.default_rng(3).normal([0, 0, -2], 1, (20, 3))
    store = scored_items(tmp_path / "w", logprobs)
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
    assert {g for m, g, _ in found if m == "us"} == {"she/he", "she/they", "he/they"}
