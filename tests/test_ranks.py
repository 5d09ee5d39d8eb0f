"""Errors of means over clusters, sets of ranks and power, against other ways to compute them."""

import math

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from plumbline.eval_workers.scoring.measure import measure
from plumbline.eval_workers.scoring.ranks_and_power import (
    MEASURES,
    PairDesign,
    _bonett_price,
    board,
    holm,
    powers,
    spreads_of,
)
from plumbline.eval_workers.scoring.scored_pairs import (
    NO_CLUSTER,
    ScoredPairs,
    clustered_variance,
    difference_variances,
    influences,
    variances,
)
from plumbline.warehouse.query.connection import rows_of, sql
from plumbline.warehouse.run_records import recorded
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import fill, pair, score, scored_by
from tests.test_clustered import one_way, shared


def brute(figures: np.ndarray, clusters: np.ndarray) -> float:
    """The largest of the variances of a mean over clusters, by leaving each out."""
    u, w = figures - figures.mean(), np.ones(len(figures))
    # A row without a cluster of one kind is in none of that kind's.
    ids = [[None if c == NO_CLUSTER else str(c) for c in of] for of in clusters.T.tolist()]
    ways = [one_way(u, w, of) for of in ids]
    return max([*ways, shared(u, w, *ids)] if len(ids) == 2 else ways)


@given(
    st.integers(2, 9), st.sampled_from(["one", "frames", "same", "some"]), st.integers(0, 2**32 - 1)
)
def test_variances_are_those_of_sums_over_clusters(n_words: int, kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    words = rng.integers(n_words, size=(30, 1 if kind == "one" else 2))
    if kind == "frames":
        words[:, 1] += n_words
    if kind == "some":
        words[rng.random(30) < 0.3, 1] = NO_CLUSTER
    figures = rng.integers(-1, 2, (30, 3)).astype(float)
    products = clustered_variance(influences(figures), words)
    assert variances(products) == pytest.approx([brute(x, words) for x in figures.T], abs=1e-12)
    difference = brute(figures[:, 0] - figures[:, 2], words)
    assert difference_variances(products)[0, 2] == pytest.approx(difference, abs=1e-12)
    order = rng.permutation(30)
    again = clustered_variance(influences(figures[order]), words[order])
    assert again == pytest.approx(products, abs=1e-12)


def test_models_are_told_apart_as_by_paired_t_tests_over_words() -> None:
    """With words of one size: scipy's t tests of the words' means, then Holm."""
    rng = np.random.default_rng(11)
    n_words, size, n_models = 30, 6, 7
    ids = np.repeat(np.arange(n_words), size)
    shares = np.linspace(0.2, 0.7, n_models)
    tilt = rng.normal(0, 0.1, (n_words, n_models))
    figures = (rng.random((n_words * size, n_models)) < (shares + tilt)[ids]).astype(float)
    means = figures.reshape(n_words, size, n_models).mean(axis=1)
    tests = []
    for i in range(n_models):
        for j in range(n_models):
            if i != j:
                t = stats.ttest_rel(means[:, i], means[:, j]).statistic
                # CR3 has G / (G - 1) times the variance of the words' means.
                tests.append((stats.t.sf(t * math.sqrt(1 - 1 / n_words), n_words - 1), i, j))
    larger = set()
    for k, (p, i, j) in enumerate(sorted(tests)):
        if p * (len(tests) - k) > 0.05:
            break
        larger.add((i, j))
    found = board(figures, ids[:, None])
    for model in range(n_models):
        assert found["rank_low"][model] == 1 + sum(j == model for _, j in larger)
        assert found["rank_high"][model] == n_models - sum(i == model for i, _ in larger)
    assert len(larger) > n_models
    assert found["rank"].tolist() == stats.rankdata(-figures.mean(axis=0), "min").tolist()


def test_nothing_is_told_apart_below_five_words_or_without_a_difference() -> None:
    figures = np.repeat([[1.0, 0.0]], 40, axis=0)
    figures[:3, 0] = 0
    few, many = (board(figures, (np.arange(40) % n)[:, None]) for n in (4, 20))
    assert (few["rank_low"].tolist(), few["rank_high"].tolist()) == ([1, 1], [2, 2])
    assert (many["rank_low"].tolist(), many["rank_high"].tolist()) == ([1, 2], [1, 2])
    figures[:, 1] = figures[:, 0] - (np.arange(40) < 9)  # the models differ in 9 of 20 clusters
    told = board(figures, (np.arange(40) % 20)[:, None])
    assert (told["rank_low"].tolist(), told["rank_high"].tolist()) == ([1, 1], [2, 2])
    same = board(np.repeat(figures[:, :1], 3, axis=1), np.arange(40)[:, None])
    assert (same["rank_low"].tolist(), same["rank_high"].tolist()) == ([1, 1, 1], [3, 3, 3])


def scored(lean: np.ndarray, clusters: np.ndarray) -> ScoredPairs:
    models = [(f"k{i}", f"m{i}") for i in range(lean.shape[1])]
    return ScoredPairs("b", "f/m", clusters, None, models, lean, np.zeros_like(lean))


def test_power_without_clusters_is_that_of_the_textbook() -> None:
    """Of a t test of independent figures, by scipy's non-central t."""
    design = PairDesign.of(np.arange(300)[:, None])
    assert design.n_alike == 0
    assert PairDesign.of(np.full((10, 1), NO_CLUSTER)).n_alike == 0
    smallest = design.smallest(0.5, 0.7)
    assert smallest is not None
    shift = smallest / (0.5 / math.sqrt(300))
    power = stats.nct.sf(stats.t.ppf(0.975, design.df), design.df, shift)
    assert power == pytest.approx(0.8, abs=0.005)
    assert PairDesign.of(np.arange(40)[:, None] % 4).smallest(0.5, 0.0) is None


@pytest.mark.parametrize("kind", ["words", "frames", "occupations"])
def test_the_correlation_within_clusters_is_found_again(kind: str) -> None:
    """Figures of which a fifth of the variance is that of each of their clusters."""
    rng = np.random.default_rng(8)
    clusters = np.arange(4000)[:, None] % 200
    if kind != "words":
        clusters = rng.integers(200, size=(4000, 2))
        clusters[:, 1] += 200 * (kind == "frames")
    n_places, n_models = clusters.shape[1], 40
    effects = rng.normal(size=(clusters.max() + 1, n_models))
    own = rng.normal(size=(4000, n_models)) * math.sqrt(1 / 0.2 - n_places)
    figures = sum(effects[ids] for ids in clusters.T) + own
    lean = np.sign(figures)
    design = PairDesign.of(clusters)
    sharing = [len(set(a) & set(b)) > 0 for a in clusters[:40].tolist() for b in clusters.tolist()]
    assert design.n_alike == pytest.approx(sum(sharing) / 40 - 1, rel=0.1)
    spread = spreads_of(scored(lean, clusters))["pd"]
    expected = 2 / math.pi * math.asin(0.2)  # of signs of normal figures
    assert spread["icc"] == pytest.approx(expected, abs=0.02)
    assert spread["sd"] == pytest.approx(100)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Three models that scored one benchmark, measured, and another without scores."""
    rng = np.random.default_rng(2)
    store = Store.open(tmp_path_factory.mktemp("ranks") / "warehouse")
    ids = [(f"word{w}", f"{w}-{i}") for w in range(40) for i in range(5)]
    for name in ("scored", "unscored"):
        fill(store, "benchmark_pair", [pair(name, i, word=w, cluster=None) for w, i in ids])
    for model, spread in (("even", 0.3), ("alike", 0.3), ("uneven", 2.0)):
        ratios = rng.normal(0, spread, len(ids))
        rows = [score("scored", i, x, model) for (_, i), x in zip(ids, ratios, strict=True)]
        fill(store, "pair_score", rows[:-1] if model == "even" else rows)
        fill(store, "model", [scored_by(model)], unit=model)
    with recorded(store, "measure", {}) as run_id:
        measure(store, run_id)
    return store


def test_results_of_a_list_are_corrected_by_holm(store: Store) -> None:
    """Each p by its definition: the largest of those that come no later."""
    rows = rows_of(store, "FROM corrected_metric WHERE metric = 'pd' AND subset = 'all'")
    p = [row["p"] for row in rows]
    wanted = [max(min(1.0, q * sum(o >= q for o in p)) for q in p if q <= each) for each in p]
    assert len(rows) == 3 and [row["q"] for row in rows] == pytest.approx(wanted)
    others = rows_of(store, "FROM corrected_metric WHERE metric = 'us'")
    assert {row["q"] for row in others} == {None}
    assert holm(np.array(p)) == pytest.approx(wanted)


def test_ranks_are_of_the_figures_that_are_measured(store: Store) -> None:
    rows = store.read("model_rank").to_pylist()
    assert {row["metric"] for row in rows} == {"us", "aufc", "pd"}
    assert {(row["n_models"], row["n_clusters"], row["n_pairs"]) for row in rows} == {(3, 40, 200)}
    metrics = {
        (r["metric"], r["model_key"]): r["value"]
        for r in store.read("metric_value").to_pylist()
        if r["subset"] == "all"
    }
    for row in rows:
        assert row["value"] == pytest.approx(metrics[row["metric"], row["model_key"]])
        assert row["rank_low"] <= row["rank"] <= row["rank_high"]
    sets = {r["model"]: (r["rank_low"], r["rank_high"]) for r in rows if r["metric"] == "aufc"}
    assert sets == {"even": (1, 2), "alike": (1, 2), "uneven": (3, 3)}


def test_what_a_benchmark_can_find_is_by_its_scores(store: Store) -> None:
    rows = store.read("benchmark_power").to_pylist()
    assert {(row["benchmark"], row["n_models"]) for row in rows} == {("scored", 3)}
    wanted = PairDesign.of(np.repeat(np.arange(40), 5)[:, None])
    for row in rows:
        assert row["smallest"] == pytest.approx(wanted.smallest(row["sd"], row["icc"]))
        assert row["n_alike"] == 4


def test_strata_and_missing_scores_leave_their_pairs_out() -> None:
    figures = np.array([[1.0, 1], [3, np.nan], [10, 4], [14, 2]])
    strata = np.array([0, 0, 1, 1])
    of_pair = influences(figures, strata)
    assert of_pair[:, 0] == pytest.approx(np.array([-1, 1, -2, 2]) / 4)
    assert of_pair[[0, 2, 3], 1] == pytest.approx(np.array([0, 1, -1]) / 3)
    alone = clustered_variance(of_pair, np.arange(4)[:, None])
    known = clustered_variance(of_pair[[0, 2, 3], 1:], np.arange(3)[:, None])
    assert variances(alone)[1] == pytest.approx(variances(known)[0])


@pytest.mark.parametrize(
    ("lean", "known"),
    [
        ([[x, x] for x in (1, -1, 0, 1, 0, -1)], {"pd", "us"}),  # one model twice
        ([[1, 0]] * 6, {"pd", "us"}),  # always the same apart
        ([[0, 0]] * 6, {"us"}),  # no preference anywhere
        ([[x] for x in (1, -1, 0, 1, 0, -1)], {"pd", "us"}),  # one model
        ([[1, 1]], {"pd", "us"}),  # one pair
        ([[1, -1], [-1, 0], [0, 0], [1, 1], [0, 1], [-1, 1]], set(MEASURES)),
    ],
)
def test_no_power_is_told_of_a_spread_that_is_not_known(
    lean: list[list[float]], known: set[str]
) -> None:
    """Two models that agree on every pair don't show that 0.0 points of PD can be found."""
    found = list(powers(scored(np.array(lean, float), np.arange(len(lean))[:, None])))
    assert {row["measure"] for row in found} == known
    assert all(row["smallest"] is None or row["smallest"] > 0 for row in found)


def test_us_is_told_apart_by_the_interval_of_the_comparison() -> None:
    """The macros of `preference_pairwise`, where Student's t alone would tell the models apart."""
    figures = np.zeros((60, 2))
    figures[np.arange(0, 60, 6) + np.arange(10) % 3, 0] = 1  # one pair of each of ten words
    variance = np.full((2, 2), 0.004)
    found = _bonett_price(figures, variance)
    share, n = 10 / 60, (10 / 60 - (10 / 60) ** 2) / 0.004
    macros = sql("views/00_interval_macro")
    with duckdb.connect() as connection:
        connection.execute(macros)
        query = "SELECT bonett_price_centre($s, 0, $n) / bonett_price_se($s, 0, $n)"
        (wanted,) = connection.execute(query, {"s": share, "n": n}).fetchone() or ()
    assert found[0, 1] == pytest.approx(wanted) == pytest.approx(-found[1, 0])
    assert found[0, 1] < share / math.sqrt(0.004)
