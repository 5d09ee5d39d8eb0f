"""Slopes and correlations between preference and corpus, against numpy and scipy."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from plumbline.eval_workers.scoring.measure import MeasureOptions, compute, measure
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import (
    association,
    corpus_row,
    delta,
    fill,
    pair,
    planted,
    score,
    scored_by,
    trained,
)

Floats = npt.NDArray[np.float64]
Figure = Callable[[Floats, Floats, Floats], float]


@dataclass(frozen=True)
class Interval:
    """A figure with its standard error and 95% interval."""

    value: float
    se: float
    low: float
    high: float


def line_through(x: Floats, y: Floats) -> tuple[Interval, float]:
    """Slope with HC3 errors, and its degrees of freedom, of a quadratic form in the noise."""
    n = len(x)
    design = np.column_stack([np.ones(n), x])
    inverse = np.linalg.pinv(design)
    off = np.eye(n) - design @ inverse
    weight = (inverse[1] / np.diag(off)) ** 2
    se = float(np.sqrt(weight @ (off @ y) ** 2))
    form = off @ np.diag(weight) @ off
    df = float(np.trace(form) ** 2 / np.trace(form @ form))
    value = float(inverse[1] @ y)
    half = stats.t.ppf(0.975, df) * se
    return Interval(value, se, value - half, value + half), df


def pearson(x: Floats, y: Floats, w: Floats) -> float:
    """Correlation of points that are weighed."""
    x, y = x - np.average(x, weights=w), y - np.average(y, weights=w)
    return float((w @ (x * y)) / np.sqrt((w @ x**2) * (w @ y**2)))


def spearman(x: Floats, y: Floats, w: Floats) -> float:
    """Correlation of the ranks of points that are weighed; ties share their mean rank."""
    ranks = [(v[:, None] > v) @ w + (v[:, None] == v) @ w / 2 for v in (x, y)]
    return pearson(ranks[0], ranks[1], w)


def correlation(x: Floats, y: Floats, figure: Figure, df: float) -> Interval:
    """A correlation on Fisher's z scale: each point's influence by a step of its weight, as HC3."""
    n, step = len(x), 1e-6

    def z(w: Floats) -> float:
        return float(np.arctanh(figure(x, y, w / w.sum())))

    nudges = np.eye(n) * step
    moved = np.array([z(np.full(n, 1 / n) + e) - z(np.full(n, 1 / n) - e) for e in nudges])
    along = stats.rankdata(x) if figure is spearman else x
    centred = along - along.mean()
    h = 1 / n + centred**2 / (centred @ centred)
    se = float(np.sqrt(np.sum((moved / (2 * step) / n / (1 - h)) ** 2)))
    r, half = figure(x, y, np.full(n, 1 / n)), stats.t.ppf(0.975, df) * se
    low, high = (float(np.tanh(np.arctanh(r) + k * half)) for k in (-1, 1))
    return Interval(r, (1 - r**2) * se, low, high)


def corrected(x: Floats, y: Floats, error: Floats) -> tuple[float, Interval]:
    """Reliability of x, and the slope over it with the interval of points left out one by one."""

    def both(keep: npt.NDArray[np.bool_]) -> tuple[float, float]:
        share = 1 - np.mean(error[keep] ** 2) / np.var(x[keep], ddof=1)
        return float(share), float(stats.linregress(x[keep], y[keep]).slope / share)

    n = len(x)
    without = np.array([both(np.arange(n) != i)[1] for i in range(n)])
    se = float(np.sqrt((n - 1) / n * np.sum((without - without.mean()) ** 2)))
    (share, value), (_, df) = both(np.ones(n, bool)), line_through(x, y)
    half = stats.t.ppf(0.975, df) * se
    return share, Interval(value, se, value - half, value + half)


Rows = list[dict[str, Any]]
#: A warehouse, the figures that went into it, and what is measured from it.
World = tuple[Store, dict[str, np.ndarray], Rows]
WORDS = [f"word{i}" for i in range(40)]


def figures_of(store: Store) -> Rows:
    return compute(store.root, MeasureOptions(), "r").to_pylist()


def find(rows: Rows, metric: str, subset: str, model: str) -> Rows:
    wanted = (metric, subset, model)
    return [row for row in rows if (row["metric"], row["subset"], row["model"]) == wanted]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Two corpora and two models of a made-up closed world; some words have several pairs."""
    store = Store.open(tmp_path_factory.mktemp("world") / "w")
    rng = np.random.default_rng(3)
    true = {"straight": rng.normal(0, 0.8, 40).round(1)}  # rounded, so that ranks tie
    true["swapped"] = -true["straight"]
    pairs = [pair("b", f"{w}-{i}", word=w) for k, w in enumerate(WORDS) for i in range(1 + k % 3)]
    fill(store, "benchmark_pair", pairs)
    figures: dict[str, np.ndarray] = {"planted": true["straight"]}
    for name, value in true.items():
        measured = value * 0.9 + rng.normal(0, 0.1, 40)
        fill(store, "word_delta", [delta(w, d, name) for w, d in zip(WORDS, measured, strict=True)])
        fill(
            store,
            "planted_word",
            [planted(w, v, name, name) for w, v in zip(WORDS, value, strict=True)],
        )
        fill(store, "trained_model", [trained(f"model-{name}", name)])
        fill(store, "model", [scored_by(f"model-{name}")], unit=name)
        by_word = dict(zip(WORDS, value, strict=True))
        scores = [
            score("b", str(p["pair_id"]), 1.5 * by_word[p["word"]] + rng.normal(), f"model-{name}")
            for p in pairs
        ]
        fill(store, "pair_score", scores)
        ratios = {w: [] for w in WORDS}
        for one in scores:
            ratios[one["pair_id"].split("-")[0]].append(one["logprob_a_nats"])
        mean = np.array([np.mean(of) for of in ratios.values()])
        figures |= {f"measured {name}": measured, f"mean {name}": mean}
    return store, figures, figures_of(store)


def check(row: dict[str, Any], known: Interval) -> None:
    assert row["value"] == pytest.approx(known.value)
    assert row["value_se"] == pytest.approx(known.se, rel=1e-5)
    width = known.high - known.low
    # the expansion of Student's t quantile is 1e-4 off
    assert row["value_low"] == pytest.approx(known.low, abs=2e-4 * width)
    assert row["value_high"] == pytest.approx(known.high, abs=2e-4 * width)


def check_fit(rows: Rows, subset: str, model: str, corpus: str, x: Any, y: Any) -> None:
    """One row each of slope, correlation and rank correlation, equal to those of `numpy`."""
    line, df = line_through(x, y)
    found = correlation(x, y, pearson, df)
    rank = correlation(x, y, spearman, len(x) - 2)
    assert line.value == pytest.approx(stats.linregress(x, y).slope)
    assert found.value == pytest.approx(stats.pearsonr(x, y).statistic)
    assert rank.value == pytest.approx(stats.spearmanr(x, y).statistic)
    for name, known in (("slope", line), ("correlation", found), ("rank correlation", rank)):
        (row,) = (r for r in find(rows, name, subset, model) if r["corpus"] == corpus)
        assert row["n"] == len(x)
        check(row, known)


def test_fits_of_a_closed_world_are_those_of_numpy_and_scipy(world: World) -> None:
    """On measured deltas of every corpus, on planted ones of a model's own corpus alone."""
    _, f, rows = world
    x, y = f["planted"], f["measured straight"]
    check_fit(rows, "words, measured on planted", "", "straight", x, y)
    for corpus in ("straight", "swapped"):
        x, y = f[f"measured {corpus}"], f["mean straight"]
        check_fit(rows, "words, measured delta", "model-straight", corpus, x, y)
    x, y = -f["planted"], f["mean swapped"]
    check_fit(rows, "words, planted delta", "model-swapped", "swapped", x, y)
    assert len(find(rows, "slope", "words, planted delta", "model-swapped")) == 1
    subset = "words, swapped on straight"
    x, y = f["mean straight"], f["mean swapped"]
    check_fit(rows, subset, "model-straight", "straight", x, y)
    (row,) = find(rows, "slope", subset, "model-straight")
    assert row["value"] < 0
    assert json.loads(row["options"]) == {
        "swapped_model": "model-swapped",
        "swapped_model_key": "key-model-swapped",
    }


def test_two_pronouns_are_fitted_on_leans_between_them_alone(tmp_path: Path) -> None:
    """And other groups as before, on she/he and on what was planted."""
    store, words = Store.open(tmp_path / "w"), WORDS[:6]
    contrasts = {"straight": ("she/he", "he/they"), "other": ("she/he", "they/he")}
    groups = ("she/he", "he/they", "she/they", "female/male", "old/young")
    for corpus, named in contrasts.items():
        rows = [{**delta(w, k, corpus), "contrast": c} for c in named for k, w in enumerate(words)]
        fill(store, "word_delta", rows)
    fill(store, "planted_word", [planted(w, k, "straight") for k, w in enumerate(words)])
    fill(store, "trained_model", [trained("m", "straight")])
    fill(store, "model", [scored_by("m")])
    for name in groups:
        a, b = name.split("/")
        pairs = [pair("b", f"{w}-{a}-{b}", word=w, group_a=a, group_b=b) for w in words]
        fill(store, "benchmark_pair", pairs, unit=name)
        scores = [score("b", str(p["pair_id"]), k**2) for k, p in enumerate(pairs)]
        fill(store, "pair_score", scores, unit=name)
    slopes = [r for r in figures_of(store) if r["metric"] == "slope" and r["groups"]]
    found = {
        name: {(r["corpus"], r["contrast"]) for r in slopes if r["groups"] == name}
        for name in groups
    }
    usual = {("straight", ""), ("straight", "she/he"), ("other", "she/he")}
    expected = dict.fromkeys(groups, usual)
    assert found == {**expected, "he/they": {("straight", "he/they")}, "she/they": set()}


def noisy(store: Store) -> tuple[Any, Any, Any]:
    """A model that follows leans of which a corpus shows a noisy sample; deltas, means, errors."""
    rng = np.random.default_rng(11)
    error, n = 0.4 * rng.uniform(0.5, 1.5, 40), 40
    true = rng.normal(0, 0.7, n)
    x, y = true + error * rng.normal(size=n), 0.8 * true + rng.normal(0, 0.3, n)
    fill(store, "benchmark_pair", [pair("b", w, word=w) for w in WORDS])
    fill(store, "pair_score", [score("b", w, v) for w, v in zip(WORDS, y, strict=False)])
    rows = zip(WORDS, x, error, strict=False)
    fill(store, "word_delta", [{**delta(w, v), "delta_nats_se": s} for w, v, s in rows])
    return x, y, error


@pytest.mark.slow
def test_a_slope_on_a_sample_has_its_reliability_and_a_corrected_slope(store: Store) -> None:
    """First with errors of counts, then with one word's over documents, then with all of them."""
    x, y, error = noisy(store)
    for n_known, over in ((0, "co-occurrences"), (1, "co-occurrences"), (40, "documents")):
        error[:n_known] *= 1.2
        of = {"corpus": "c", "contrast": "she/he", "clusters": "document"}
        known = zip(WORDS[:n_known], error, strict=False)
        fill(store, "word_evidence", [{**of, "word": w, "delta_nats_se": s} for w, s in known])
        share, known = corrected(x, y, error)
        assert 0.3 < share < 0.9
        found = figures_of(store)
        check_fit(found, "words, measured delta", "m", "c", x, y)
        (row,) = find(found, "reliability", "words, measured delta", "m")
        assert (row["value"], row["n"]) == (pytest.approx(share), 40)
        (row,) = find(found, "corrected slope", "words, measured delta", "m")
        check(row, known)
        assert [r["error_over"] for r in rows_of(store.root, "FROM fit")] == [over]


@pytest.mark.slow
def test_pairs_are_fitted_on_corpora_in_their_language(store: Store) -> None:
    """Of a language's file, of a corpus that they were constrained with, English otherwise."""
    sources = {"fr-pairs": "warehouse/languages/fr.toml", "own": "own.csv", "plain": "plain.csv"}
    y = np.random.default_rng(5).normal(size=6).tolist()
    for benchmark, source in sources.items():
        rows = [pair(benchmark, w, word=w, source_file=source) for w in WORDS[:6]]
        fill(store, "benchmark_pair", rows, benchmark)
        fill(store, "pair_score", [score(benchmark, w, v) for w, v in zip(WORDS, y, strict=False)])
    for corpus in ("novels", "contes"):
        rows = [delta(w, k / 5, corpus) for k, w in enumerate(WORDS[:6])]
        fill(store, "word_delta", rows, corpus)
    found = [association("own", w, 0.5, "contes") for w in WORDS[:6]]
    # by mistake: the file says which language they are in
    found += [association("fr-pairs", w, 0.5, "novels") for w in WORDS[:6]]
    fill(store, "pair_association", found)
    measure(store, "r")  # before corpora said their language
    everything = {(b, c) for b in sources for c in ("novels", "contes")}
    query = "SELECT DISTINCT benchmark, corpus FROM metric_value WHERE metric = 'slope'"
    assert {tuple(row.values()) for row in rows_of(store.root, query)} == everything
    for corpus, code in (("novels", None), ("contes", "fr")):
        fill(store, "corpus", [corpus_row(corpus=corpus, language=code)], corpus)
    measure(store, "r")
    assert {tuple(row.values()) for row in rows_of(store.root, query)} == {
        ("fr-pairs", "contes"),
        ("own", "contes"),
        ("plain", "novels"),
    }
