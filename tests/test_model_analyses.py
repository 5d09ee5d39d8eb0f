"""Model size, families and correlations in SQL, against scipy on made-up rows."""

import math
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from plumbline.eval_workers.models import model_texts
from plumbline.eval_workers.scoring.measure import measure
from plumbline.warehouse.query.connection import connect, rows_of
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import delta, fill, pair, score

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
    return {**row, "n_parameters": n, **given}


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
    scores = [score("b", f"{i:02}", x, name) for name, xs in found for i, x in enumerate(xs)]
    scores += [score("b", "bad", 9.0, name) for name in given]
    scores += [score("b", f"{i:02}", 3.0, named("org/m", 7), "adapted") for i in range(N)]
    fill(store, "pair_score", scores)
    fill(store, "word_delta", [delta(f"w{k}", float(x)) for k, x in enumerate(leans)])
    measure(store, "r")
    return store, given


def us(xs: np.ndarray[Any, Any]) -> float:
    return float(np.mean(np.abs(xs) <= LIMIT))


def pd(xs: np.ndarray[Any, Any]) -> float:
    return 100 * int((xs > LIMIT).sum() - (xs < -LIMIT).sum()) / len(xs)  # ties stay ties


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
