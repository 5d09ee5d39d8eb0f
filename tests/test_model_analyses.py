"""Model size and deduplication in SQL, against scipy on made-up rows."""

from __future__ import annotations

import math
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from plumbline.eval_workers.models import model_texts
from plumbline.eval_workers.models.model_lists import load
from plumbline.eval_workers.scoring.measure import measure
from plumbline.warehouse.query.connection import connect, rows_of
from plumbline.warehouse.storage.store import Store
from tests import fits
from tests.metric_rows import association, delta, fill, pair, score

LIMIT = math.log(1.65)
N = 30
#: How many models a series has; `org/m-deduped` is of the family m, and q of one size.
FAMILIES = {"org/m": 7, "org/m-deduped": 6, "org/p": 4, "org/q": 1, "org/r": 2, "org/s": 3}
FAMILIES |= {"org/t": 2}
SIZES = (7, 16, 41, 140, 280, 690, 1200)


def model(name: str, n: int | None, **given: object) -> dict[str, object]:
    """A row of `model`; `org/p-7m` is of the family p, and published models of theirs."""
    row: dict[str, object] = {"model_key": f"key-{name}", "model": name, "backend": "released"}
    row |= model_texts.described(name)
    if name.startswith("org/"):
        row["family"] = name.removeprefix("org/").partition("-")[0]
    return {**row, "bos_policy": "bos", "n_parameters": n, "run_id": "r", **given}


def named(family: str, size: int) -> str:
    """A model of a family; a twin's name has its size before `-deduped`."""
    return f"{family.removesuffix('-deduped')}-{size}m" + ("-deduped" * family.endswith("-deduped"))


Measured = tuple[Store, dict[str, np.ndarray[Any, np.dtype[np.float64]]]]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """Random log ratios of 25 models, measured; words w0, w1, ... have a delta, two pairs each."""
    store = Store.open(tmp_path_factory.mktemp("measured") / "warehouse")
    rng = np.random.default_rng(3)
    names = [(f, named(f, SIZES[k])) for f, n in FAMILIES.items() for k in range(n)]
    drawn = ((name, rng.normal(0, 0.3 + 0.1 * k % 0.7, N)) for k, (_, name) in enumerate(names))
    given = dict(islice(drawn, 18))
    leans = rng.normal(size=15)
    given |= drawn
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
    fill(store, "word_delta", [delta(f"w{k}", float(x)) for k, x in enumerate(leans)])
    fill(
        store,
        "pair_association",
        [association("b", f"{i:02}", None if i == 4 else i / N) for i in range(N)],
    )
    measure(store, "r")
    return store, given


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


def of_families(
    store: Store, ratios: dict[str, np.ndarray[Any, Any]], measure: str
) -> dict[str, list[tuple[int, float]]]:
    """Sizes and a measure of each family's models, by hand."""
    found: dict[str, list[tuple[int, float]]] = {}
    for series, n in FAMILIES.items():
        for size in SIZES[:n]:
            xs = ratios[named(series, size)]
            figures = {"us": 100 * us(xs), "pd": pd(xs), "|pd|": abs(pd(xs))}
            figures["slope"] = stats.linregress(*of_words(store, xs)).slope
            family = series.removeprefix("org/").removesuffix("-deduped")
            found.setdefault(family, []).append((10**6 * size, figures[measure]))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("measure_name", ["us", "pd", "|pd|", "slope"])
def test_changes_with_size_are_those_of_families(measured: Measured, measure_name: str) -> None:
    """Slopes by scipy; the error of their mean by leaving one family out at a time."""
    store, ratios = measured
    text = f"FROM size_trend WHERE measure = '{measure_name}'"
    rows = {r["family"]: r for r in rows_of(store.root, text)}
    points = {f: of for f, of in of_families(store, ratios, measure_name).items() if len(of) > 1}
    assert set(rows) == {"", "m", "p", "r", "s", "t"}
    slopes = {f: stats.linregress(np.log10([x for x, _ in of]), [y for _, y in of]).slope
              for f, of in points.items()}  # fmt: skip
    for family, slope in slopes.items():
        row = rows[family]
        assert row["per_tenfold"] == pytest.approx(slope), family
        assert row["per_tenfold_low"] is row["per_tenfold_high"] is row["direction"] is None
        assert (row["n_models"], row["n_families"]) == (len(points[family]), 1)
    row, n = rows[""], len(slopes)
    mean = np.mean(list(slopes.values()))
    left_out = [np.mean([s for f, s in slopes.items() if f != family]) for family in slopes]
    error = math.sqrt((n - 1) / n * sum((of - mean) ** 2 for of in left_out))
    ends = stats.t.interval(0.95, n - 1, loc=mean, scale=error)
    found = tuple(row[f"per_tenfold{end}"] for end in ("", "_low", "_high"))
    assert found == pytest.approx((mean, *ends), rel=1e-3)
    assert (row["n_models"], row["n_families"]) == (24, 5)
    assert row["unit"] == ("nats per nat" if measure_name == "slope" else "points")
    assert (row["smallest"], row["largest"]) == (7e6, 1.2e9)
    clear = "rose" if ends[0] > 0 else "fell" if ends[1] < 0 else "neither"
    assert row["direction"] == clear


#: Sizes of seven families, in parameters.
SEVEN: tuple[tuple[float, ...], ...] = ((7e7, 1.6e8, 1e9), (1e9, 7e9), (7e9, 1.3e10, 7e10))
SEVEN += ((1e8, 3e8, 3e9, 7e9), (7e9, 3e10), (7e9, 4.7e10), (1e8, 1e10))


def trends(
    store: Store, draws: int, families: tuple[tuple[float, ...], ...], effect: float
) -> list[Any]:
    """The mean change with size, and its direction, in made-up sets of models by view size_trend.

    Models of a family have a level in common; the noise of single models differs by family.
    """
    rng = np.random.default_rng(11)
    rows = []
    for draw in range(draws):
        for k, sizes in enumerate(families):
            level, noise = rng.normal(0, 30), (1, 3, 10)[k % 3]
            for size in sizes:
                y = level + effect * math.log10(size) + rng.normal(0, noise)
                rows.append(
                    (f"{k}-{size}", f"f{k}", "own", size, f"b{draw}", "g", "", "", "all", y)
                )
    names = "model family scores n_parameters benchmark groups corpus contrast subset figure"
    points = pa.table(dict(zip(names.split(), zip(*rows, strict=True), strict=True)))
    text = "SELECT per_tenfold, direction FROM size_trend WHERE family = ''"
    with connect(store.root, text) as connection:
        connection.register("points", points)
        connection.execute(
            "CREATE OR REPLACE VIEW size_point AS SELECT *, 'pd' AS measure FROM points"
        )
        return connection.execute(text).fetchall()


def test_false_claims_about_size_stay_near_5_percent(store: Store) -> None:
    """Of families of unequal noise and number; changes that are there are found."""
    found = trends(store, 2000, SEVEN, 0.0)
    share = sum(direction != "neither" for _, direction in found) / len(found)
    assert 0.01 < share <= 0.06
    changed = trends(store, 500, SEVEN, 20.0)
    assert np.mean([x for x, _ in changed]) == pytest.approx(20, abs=0.5)
    assert sum(direction == "rose" for _, direction in changed) > 450
    assert {d for _, d in trends(store, 20, SEVEN[:4], 20.0)} == {None}, (
        "four families bear no statement"
    )


#: The seven families of the paper's 28 models, by what their names begin with.
SEVEN_FAMILIES = {"pythia": "Pythia", "gpt-j": "GPT-J", "opt": "OPT", "llama": "Llama 2"}
SEVEN_FAMILIES |= {"mpt": "MPT", "olmo": "OLMo", "mistral": "Mistral", "mixtral": "Mistral"}


@pytest.mark.slow
def test_families_are_those_of_published_models(store: Store) -> None:
    """A model of a name that nobody published has none, and is in no mean."""
    listed = {entry.name for entry in load("unstereoeval")}
    others = {"a-1", "a-2", "b-1", "c-1", "models/7b"}
    rows = [model(name, 5 + k) for k, name in enumerate(sorted(listed | others))]
    fill(store, "model", rows)
    fill(store, "benchmark_pair", [pair("b", "1")])
    put_scores(store, [score("b", "1", 0.0, name) for name in listed | others])
    measure(store, "r")
    found = {r["model"]: r["family"] for r in rows_of(store.root, "FROM size_point")}
    assert len(listed) == 28 and found.keys() == listed | others
    for name in listed:
        short = name.rpartition("/")[2].lower()
        (family,) = {of for start, of in SEVEN_FAMILIES.items() if short.startswith(start)}
        assert found[name] == family, name
    assert {found[name] for name in others} == {None}
    trend = rows_of(store.root, "FROM size_trend WHERE measure = 'us'")
    assert {r["family"] for r in trend} == {"", *SEVEN_FAMILIES.values()} - {"GPT-J"}
    assert {r["n_models"] for r in trend if not r["family"]} == {27}


def test_deduplication_is_a_paired_difference(measured: Measured) -> None:
    store, ratios = measured
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


def test_correlations_of_log_ratios_are_numpys(store: Store) -> None:
    """Over the pairs that two models both scored; undefined where one doesn't vary."""
    rng = np.random.default_rng(7)
    xs = {"a": rng.normal(size=9), "b": rng.normal(size=9), "same": np.full(9, 0.3)}
    xs["lacks"] = xs["b"] * -2 + rng.normal(size=9)
    fill(store, "benchmark_pair", [pair("b", f"{k}") for k in range(9)])
    rows = [
        score("b", f"{k}", x, name) for name, values in xs.items() for k, x in enumerate(values)
    ]
    rows = [r for r in rows if (r["model_key"], r["pair_id"]) != ("key-lacks", "4")]
    rows[0]["logprob_a_nats"] = math.nan
    put_scores(store, rows)
    found = {
        (r["reference_key"][4:], r["model_key"][4:]): (r["correlation"], r["n_pairs"])
        for r in rows_of(store.root, "FROM log_ratio_correlation")
    }
    assert len(found) == 6
    for (one, other), (correlation, n) in found.items():
        kept = [k for k in range(9) if not ("a" in (one, other) and k == 0)
                and not ("lacks" in (one, other) and k == 4)]  # fmt: skip
        assert n == len(kept)
        if "same" in (one, other):
            assert correlation is None
        else:
            expected = np.corrcoef(xs[one][kept], xs[other][kept])[0, 1]
            assert correlation == pytest.approx(expected)


@pytest.mark.parametrize("n", [4, 5])
def test_two_sides_of_families_have_a_direction_from_five_each(store: Store, n: int) -> None:
    """An interval (Welch's, as scipy's) they have from five families together."""
    sides = np.arange(n) + 50.0, np.arange(5) / 2
    points = pa.table(
        {
            "model": [f"m{k}" for k in range(n + 5)],
            "training_text": ["a text"] * n + ["", "other"] * 2 + [""],
            "figure": np.concatenate(sides) / 100,
        }
    )
    with connect(store.root, "training_text_difference") as connection:
        connection.register("points", points)
        of = ("scores", "benchmark", "groups", "corpus", "contrast", "subset")
        same = ", ".join(f"'' AS {name}" for name in of)
        connection.execute(
            f"CREATE OR REPLACE VIEW size_point AS "
            f"SELECT *, model AS family, {same}, 'us' AS measure FROM points"
        )
        (row,) = connection.execute(
            "SELECT difference_low, difference_high, direction FROM training_text_difference "
            "WHERE training_text = 'a text'"
        ).fetchall()
    ends = stats.ttest_ind(*sides, equal_var=False).confidence_interval()
    assert row[:2] == pytest.approx((ends.low, ends.high), rel=1e-3)
    assert row[2] == ("rose" if n == 5 else None)
