"""Model size and deduplication in SQL, against scipy and a bootstrap on made-up rows."""

from __future__ import annotations

import math
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy import stats

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.sections import size as section
from plumbline.pipelines.requests.measure import measure
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests import fits
from tests.metric_rows import association, delta, fill, pair, score

LIMIT = math.log(1.65)
N = 30
FAMILIES = {"org/m": 7, "org/m-deduped": 6, "org/p": 4, "org/q": 1}
#: Only names with sizes have a family.
SIZES = (7, 16, 41, 140, 280, 690, 1200)


def model(name: str, n: int | None, **given: object) -> dict[str, object]:
    row: dict[str, object] = {"model_key": f"key-{name}", "model": name, "backend": "released"}
    return {**row, "bos_policy": "bos", "n_parameters": n, "run_id": "r", **given}


def named(family: str, size: int) -> str:
    """A model of a family; a twin's name has its size before `-deduped`."""
    return f"{family.removesuffix('-deduped')}-{size}m" + ("-deduped" * family.endswith("-deduped"))


@pytest.fixture
def ratios(store: Store) -> dict[str, np.ndarray[Any, np.dtype[np.float64]]]:
    """Random log ratios of 18 models, measured; words w0, w1, ... have a delta, two pairs each."""
    rng = np.random.default_rng(3)
    names = [(f, named(f, SIZES[k])) for f, n in FAMILIES.items() for k in range(n)]
    given = {name: rng.normal(0, 0.3 + 0.1 * k % 0.7, N) for k, (_, name) in enumerate(names)}
    sizes = {named(f, SIZES[k]): SIZES[k] for f, n in FAMILIES.items() for k in range(n)}
    models = [model(name, 10**6 * sizes[name]) for name in given]
    adapted = model(named("org/m", 7), 1, model_key="adapted", adapter="a@1")
    ngrams = model("org/ngrams", 9, backend="ngram")
    fill(store, "model", [*models, adapted, ngrams])
    fill(
        store,
        "benchmark_pair",
        [pair("b", f"{i:02}", word=f"w{i // 2}") for i in range(N)]
        + [pair("b", "bad", word="w0", is_natural=False)],
    )
    found = [*given.items(), ("org/ngrams", np.ones(N))]
    put_scores(
        store,
        [score("b", f"{i:02}", x, name) for name, xs in found for i, x in enumerate(xs)]
        + [score("b", "bad", 9.0, name) for name in given]
        + [score("b", f"{i:02}", 3.0, named("org/m", 7), "adapted") for i in range(N)],
    )
    fill(store, "word_delta", [delta(f"w{k}", float(x)) for k, x in enumerate(rng.normal(size=15))])
    fill(
        store,
        "pair_association",
        [association("b", f"{i:02}", None if i == 4 else i / N) for i in range(N)],
    )
    measure(store, "r")
    return given


def us(xs: np.ndarray[Any, Any]) -> float:
    return float(np.mean(np.abs(xs) <= LIMIT))


def pd(xs: np.ndarray[Any, Any]) -> float:
    return 100 * int((xs > LIMIT).sum() - (xs < -LIMIT).sum()) / len(xs)  # ties stay ties


def put_scores(store: Store, scores: list[dict[str, object]]) -> None:
    for key in dict.fromkeys(row["model_key"] for row in scores):
        of = [row for row in scores if row["model_key"] == key]
        fill(store, "pair_score", of, unit=str(key))


def of_words(store: Store, xs: np.ndarray[Any, Any]) -> tuple[Any, Any]:
    rows = store.read("word_delta").to_pylist()
    deltas = {row["word"]: row["delta_nats"] for row in rows}
    return np.array([deltas[f"w{k}"] for k in range(N // 2)]), xs.reshape(-1, 2).mean(axis=1)


def test_size_and_measures_correlate_as_in_scipy(
    store: Store, ratios: dict[str, np.ndarray[Any, Any]]
) -> None:
    found = {(r["family"], r["measure"]): r for r in rows_of(store.root, "FROM size_trend")}
    families = {"", *(f for f, n in FAMILIES.items() if n > 2)}
    assert set(found) == {(f, m) for f in families for m in ("us", "pd", "|pd|", "slope")}
    for (family, name), row in found.items():
        parts = [f for f in FAMILIES if family in ("", f)]
        sized = [(s, ratios[named(f, s)]) for f in parts for s in SIZES[: FAMILIES[f]]]
        figures = {
            "us": [us(x) for _, x in sized],
            "pd": [pd(x) for _, x in sized],
            "|pd|": [abs(pd(x)) for _, x in sized],
            "slope": [stats.linregress(*of_words(store, x)).slope for _, x in sized],
        }[name]
        rho = float(stats.spearmanr([s for s, _ in sized], figures).statistic)
        n = len(sized)
        assert row["n_models"] == n and row["rho"] == pytest.approx(rho)
        if abs(rho) > 1 - 1e-12:
            assert row["rho_low"] is row["rho_high"] is row["direction"] is None
            continue
        half = stats.norm.ppf(0.975) * math.sqrt((1 + rho**2 / 2) / (n - 3))
        ends = (math.tanh(math.atanh(rho) - half), math.tanh(math.atanh(rho) + half))
        assert (row["rho_low"], row["rho_high"]) == pytest.approx(ends)
        clear = "rose" if ends[0] > 0 else "fell" if ends[1] < 0 else "neither"
        assert row["direction"] == clear
        assert (row["smallest"], row["largest"]) == (7e6, 1e6 * max(s for s, _ in sized))


def test_ranks_that_all_agree_have_no_interval(store: Store) -> None:
    fill(store, "model", [model(named("org/m", s), s) for s in SIZES[:5]])
    fill(store, "benchmark_pair", [pair("b", f"{i}") for i in range(9)])
    rows = [
        score("b", f"{i}", float(i <= k), named("org/m", s))
        for k, s in enumerate(SIZES[:5])
        for i in range(9)
    ]
    put_scores(store, rows)
    measure(store, "r")
    (row,) = rows_of(store.root, "FROM size_trend WHERE measure = 'us' AND family = 'org/m'")
    assert row["rho"] == pytest.approx(-1)
    assert (row["rho_low"], row["rho_high"], row["direction"]) == (None, None, None)


def test_the_interval_of_a_rank_correlation_is_about_the_bootstraps() -> None:
    """Of 20 models, by the formula that the test above holds the view to."""
    rng = np.random.default_rng(0)
    size = rng.normal(size=20)
    figure = 0.7 * size + rng.normal(size=20)
    rho = stats.spearmanr(size, figure).statistic
    half = stats.norm.ppf(0.975) * math.sqrt((1 + rho**2 / 2) / 17)
    draws = [rng.integers(20, size=20) for _ in range(2000)]
    drawn = [stats.spearmanr(size[i], figure[i]).statistic for i in draws]
    low, high = np.quantile(drawn, [0.025, 0.975])
    ours = [math.tanh(math.atanh(rho) + sign * half) for sign in (-1, 1)]
    assert ours == pytest.approx([low, high], abs=0.15)


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("EleutherAI/pythia-1.4b-deduped", "EleutherAI/pythia-deduped"),
        ("meta-llama/Llama-2-70b-hf", "meta-llama/Llama-2-hf"),
        ("mistralai/Mixtral-8x7B-v0.1", "mistralai/Mixtral-v0.1"),
        ("allenai/OLMo-1B", "allenai/OLMo"),
        ("EleutherAI/gpt-j-6b", "EleutherAI/gpt-j"),
        ("gpt2-medium", "gpt2-medium"),
        ("org/bert-1mini", "org/bert-1mini"),
    ],
)
def test_a_family_is_a_name_without_its_size(store: Store, name: str, family: str) -> None:
    fill(store, "model", [model(name, 5)])
    fill(store, "benchmark_pair", [pair("b", "1")])
    fill(store, "pair_score", [score("b", "1", 0.0, name)])
    measure(store, "r")
    rows = rows_of(store.root, "SELECT DISTINCT family, scores, n_parameters FROM size_point")
    assert rows == [{"family": family, "scores": "released", "n_parameters": 5}]


def test_deduplication_is_a_paired_difference(
    store: Store, ratios: dict[str, np.ndarray[Any, Any]]
) -> None:
    text = "FROM deduplication(eta_limit := 0.5)"
    found = {(r["model"], r["subset"], r["measure"]): r for r in rows_of(store.root, text)}
    models = [named("org/m", s) for s in SIZES[: FAMILIES["org/m-deduped"]]]
    subsets = ("all", "|max_pmi| <= 0.5")
    assert set(found) == {(m, s, x) for m in models for s in subsets for x in ("us", "pd")} | {
        (m, "words, measured delta", "slope") for m in models
    }
    within = np.array([i != 4 and i / N <= 0.5 + 1e-9 for i in range(N)])
    for (name, subset, what), row in found.items():
        old, new = ratios[name], ratios[f"{name}-deduped"]
        if what == "slope":
            x, old = of_words(store, old)
            _, new = of_words(store, new)
            lines = [fits.slope(x, y)[0] for y in (old, new, new - old)]
            means, n, middle = [f.value for f in lines[:2]], len(x), lines[2].value
            ends = (2 * middle - lines[2].high, lines[2].high)
        else:
            kept = within if subset != "all" else np.ones(N, bool)
            leaning = [np.where(np.abs(x[kept]) <= LIMIT, 0, np.sign(x[kept])) for x in (old, new)]
            a, b = [100 * (y == 0).astype(float) if what == "us" else 100 * y for y in leaning]
            means, n, middle = [a.mean(), b.mean()], len(a), (b - a).mean()
            ends = over_words((b - a) / 100, np.arange(N)[kept] // 2, what)
        assert (row["plain_figure"], row["deduped_figure"]) == pytest.approx(tuple(means))
        assert row["n"] == n and row["difference"] == pytest.approx(middle)
        assert row["unit"] == ("nats per nat" if what == "slope" else "points")
        assert (row["difference_low"], row["difference_high"]) == pytest.approx(ends, rel=1e-4)


def over_words(
    changes: np.ndarray[Any, Any], words: np.ndarray[Any, Any], what: str
) -> tuple[float, float]:
    """The 95% interval of a mean change in points, by leaving each word out in turn.

    Of US Bonett and Price's of paired shares, of as many rows as have that error (where few words
    hold an exception, at most as many as there are words of their sizes); of PD Wilson's on the
    range from -2 to 2.
    """
    n, mean = len(changes), changes.mean()
    ids, sizes = np.unique(words, return_counts=True)
    left = np.array([changes[words != word].mean() for word in ids])
    squares = float(((left - mean) ** 2).sum())
    share = sizes / n
    m = (np.diag(share) - np.outer(share, share)) / np.outer(1 - share, 1 - share)
    t = float(stats.t.ppf(0.975, np.trace(m) ** 2 / (m * m.T).sum()))
    signs = np.sign(changes)
    count = {sign: int((signs == sign).sum()) for sign in (-1, 0, 1)}
    commonest = [sign for sign in count if count[sign] == max(count.values())]
    varied = min(
        sum(bool((signs[words == word] != sign).any()) for word in ids) for sign in commonest
    )
    most = math.inf if varied >= min(10, len(ids)) else 1 / float((share**2).sum())
    if what == "us":
        above, below = float((changes > 0).mean()), float((changes < 0).mean())
        rows = min((above + below - mean**2) / squares, most)
        centre = rows * mean / (rows + 2)
        error = math.sqrt(((rows * (above + below) + 2) / (rows + 2) - centre**2) / (rows + 2))
        return 100 * max(-1, centre - t * error), 100 * min(1, centre + t * error)
    p, rows = (mean + 2) / 4, (mean + 2) * (2 - mean) / squares
    middle = (p + t**2 / (2 * rows)) / (1 + t**2 / rows)
    half = t * math.sqrt(p * (1 - p) / rows + t**2 / (4 * rows**2)) / (1 + t**2 / rows)
    return 100 * (4 * (middle - half) - 2), 100 * (4 * (middle + half) - 2)


def test_the_mean_change_has_an_interval_over_models(
    store: Store, ratios: dict[str, np.ndarray[Any, Any]]
) -> None:
    each = rows_of(store.root, "FROM deduplication()")
    means = rows_of(store.root, "FROM deduplication_mean()")
    assert len(means) == 5
    for row in means:
        same = ("subset", "measure")
        of = [r for r in each if all(r[c] == row[c] for c in same)]
        values = [r["difference"] for r in of]
        low, high = stats.t.interval(
            0.95, len(values) - 1, loc=np.mean(values), scale=stats.sem(values)
        )
        found = (row["difference"], row["difference_low"], row["difference_high"])
        assert found == pytest.approx((np.mean(values), low, high), rel=1e-3)
        assert row["n_models"] == len(values) == 6
        counts = tuple(sum(r["direction"] == way for r in of) for way in ("fell", "rose"))
        assert (row["n_fell"], row["n_rose"]) == counts


def test_the_report_says_no_more_than_the_intervals(
    store: Store, ratios: dict[str, np.ndarray[Any, Any]]
) -> None:
    size, change = section.sections(Facts(store))
    rows = rows_of(store.root, "FROM size_trend WHERE n_models > 3")
    within = [r for r in rows if r["family"] and r["direction"]]
    told = [r for r in within if r["direction"] != "neither"]
    said = f"{len(told)} of {len(within)} correlations of size with a measure have an interval"
    assert f"Within families {said} without 0" in size.intro[0]
    assert size.intro[0].count("(rho ") == len(told)
    mixed, of_families = ({r[5].text for r in t.rows} for t in size.tables)
    assert mixed == {"families mixed"} and not mixed & of_families
    assert [f.stem for f in size.figures] == ["size-us", "size-pd", "size-slope"]
    assert len(size.tables[0].rows) + len(size.tables[1].rows) == len(rows)
    assert [f.stem for f in change.figures] == ["deduplication-b"]
    for part in (size, change):
        for figure in part.figures:
            ElementTree.fromstring(figure.svg)
            assert figure.rows
    (row,) = [
        r
        for r in rows_of(store.root, "FROM deduplication_mean()")
        if (r["subset"], r["measure"]) == ("all", "us")
    ]
    low, high = row["difference_low"], row["difference_high"]
    shows = "rose" if low > 0 else "fell" if high < 0 else "is not shown to change"
    assert f"(m) US {shows}, on average by" in change.intro[0]
    assert f"it rose in {row['n_rose']} and fell in {row['n_fell']}." in change.intro[0]


def test_models_of_one_size_have_no_section_of_size(store: Store) -> None:
    """Nor has a model without its twin one of deduplication."""
    names = [f"org/m{k}" for k in range(6)]
    fill(store, "model", [model(name, 7) for name in names])
    fill(store, "benchmark_pair", [pair("b", f"{i}") for i in range(9)])
    put_scores(
        store, [score("b", f"{i}", float(i < k), n) for k, n in enumerate(names) for i in range(9)]
    )
    measure(store, "r")
    assert {r["rho"] for r in rows_of(store.root, "FROM size_trend")} == {None}
    assert list(section.sections(Facts(store))) == []


def test_a_single_pair_of_models_has_no_interval_over_models(store: Store) -> None:
    """Nor are models twins whose scores are not of one kind."""
    names = ("org/m-7m", "org/m-7m-deduped", "org/p-7m")
    other = model("org/p-7m-deduped", 7, dtype="bfloat16", backend="transformers")
    fill(store, "model", [*(model(name, 7) for name in names), other])
    fill(store, "benchmark_pair", [pair("b", f"{i}") for i in range(4)])
    of = [*names, "org/p-7m-deduped"]
    put_scores(store, [score("b", f"{i}", i % 2, m) for m in of for i in range(4)])
    rows = rows_of(store.root, "FROM deduplication_mean()")
    assert {(r["measure"], r["n_models"], r["difference_low"]) for r in rows} == {
        ("us", 1, None),
        ("pd", 1, None),
    }
