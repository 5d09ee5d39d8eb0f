"""The estimator behind intervals against brute force, and what makes pairs alike."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from plumbline.eval_workers.pairs.benchmarks import import_benchmark
from plumbline.eval_workers.scoring.scored_pairs import degrees_of_freedom
from plumbline.warehouse.finding import LEAST_CLUSTERS
from plumbline.warehouse.query.connection import rows_of, sql
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import fill, pair
from tools.simulations import coverage, shapes, worlds

Floats = npt.NDArray[np.float64]


def estimate(
    x: Floats,
    w: Floats,
    first: list[str],
    second: list[str | None] | list[str] | None = None,
    stratum: list[str] | None = None,
) -> dict[str, Any]:
    """The row of `clustered` for one subject."""
    connection = duckdb.connect()
    connection.execute(sql("views/00_interval_macro") + sql("views/07_clustered_interval"))
    connection.execute(
        "CREATE TABLE f (subject VARCHAR, cluster_1 VARCHAR, cluster_2 VARCHAR, stratum VARCHAR, "
        "numerator DOUBLE, denominator DOUBLE)"
    )
    n = len(x)
    columns = (first, second or [None] * n, stratum or [None] * n, x.tolist(), w.tolist())
    rows = [("s", *row) for row in zip(*columns, strict=True)]
    connection.executemany("INSERT INTO f VALUES (?, ?, ?, ?, ?, ?)", rows)
    (row,) = connection.sql("FROM clustered('f')").to_arrow_table().to_pylist()
    return dict(row)


def residuals(x: Floats, w: Floats, stratum: list[str] | None) -> Floats:
    of = np.array(stratum or ["one"] * len(x))
    rates = {s: x[of == s].sum() / w[of == s].sum() for s in set(of)}
    return x - np.array([rates[s] for s in of]) * w


Ids = Sequence[str | None]


def _squares(u: Floats, w: Floats, of: Iterable[Sequence[bool]]) -> float:
    """The jackknife over clusters, written as leaving each out: their sum over what remains."""
    every = map(np.array, of)
    return sum(float(u[rows].sum() / w[~rows].sum()) ** 2 for rows in every if not rows.all())


def one_way(u: Floats, w: Floats, ids: Ids) -> float:
    return _squares(u, w, ([i == c for i in ids] for c in {*ids} - {None}))


def shared(u: Floats, w: Floats, first: Ids, second: Ids) -> float:
    """Every two rows that share any cluster, once: each cluster's products less the pairs'."""
    rows = [{*row} - {None} for row in zip(first, second, strict=True)]
    both = {frozenset(row) for row in rows if len(row) == 2}
    each = _squares(u, w, ([c in row for row in rows] for c in {*first, *second} - {None}))
    return each - _squares(u, w, ([row == c for row in rows] for c in both))


def made(seed: int) -> tuple[np.random.Generator, Floats, Floats]:
    rng = np.random.default_rng(seed)
    w = (rng.random(120) < 0.8).astype(float)
    return rng, w * rng.integers(0, 2, 120), w


@pytest.mark.parametrize("seed", range(3))
def test_one_kind_of_clusters(seed: int) -> None:
    rng, x, w = made(seed)
    ids = [f"w{k}" for k in rng.integers(0, 15, 120)]
    row = estimate(x, w, ids)
    assert row["value"] == pytest.approx(x.sum() / w.sum()) and row["n"] == w.sum()
    assert row["se"] ** 2 == pytest.approx(one_way(residuals(x, w, None), w, ids))
    assert row["n_clusters"] == 15
    # Satterthwaite's df by simulation-free moments: M of independent rows, built as matrices.
    shares = np.array([w[[i == c for i in ids]].sum() for c in sorted(set(ids))]) / w.sum()
    m = (np.diag(shares) - np.outer(shares, shares)) / np.outer(1 - shares, 1 - shares)
    assert row["df"] == pytest.approx(np.trace(m) ** 2 / (m * m.T).sum())
    assert row["t"] == pytest.approx(stats.t.ppf(0.975, row["df"]), rel=1e-4)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("is_dyadic", [False, True])
def test_two_kinds_of_clusters_and_strata(seed: int, is_dyadic: bool) -> None:
    rng, x, w = made(seed)
    first = [f"w{k}" for k in rng.integers(0, 12, 120)]
    second = [f"{'w' if is_dyadic else 'f'}{k}" for k in rng.integers(0, 9, 120)]
    stratum = [f"{k}" for k in rng.integers(0, 2, 120)]
    u = residuals(x, w, stratum)
    row = estimate(x, w, first, second, stratum)
    expected = max(one_way(u, w, first), one_way(u, w, second), shared(u, w, first, second))
    assert row["se"] ** 2 == pytest.approx(expected)
    assert row["n_clusters"] == 9 and row["df"] <= (4 if is_dyadic else 8)


def test_df_is_that_of_the_ranks() -> None:
    """Halved where occupations stand in either place; of either kind otherwise."""
    rng = np.random.default_rng(8)
    first, second = rng.integers(0, 12, (2, 120))
    x, w = rng.random(120), np.ones(120)
    for shift in (0, 100):
        row = estimate(x, w, [f"{k}" for k in first], [f"{k + shift}" for k in second])
        ids = np.column_stack([first, second + shift])
        assert row["df"] == pytest.approx(degrees_of_freedom(ids))


def test_python_and_sql_ask_for_as_many_clusters() -> None:
    def has_t(n: int) -> bool:
        return estimate(np.arange(n) / n, np.ones(n), [f"{k}" for k in range(n)])["t"] is not None

    assert has_t(LEAST_CLUSTERS) and not has_t(LEAST_CLUSTERS - 1)


def clusters(store: Store) -> dict[str, tuple[str, str | None]]:
    rows = rows_of(store.root, "FROM pair_cell")
    return {r["pair_id"]: (r["cluster_1"], r["cluster_2"]) for r in rows}


def test_pairs_are_alike_by_word_by_shared_frame_or_by_text(store: Store) -> None:
    frames = ("The {w} said {{pronoun}} left.", "{{pronoun}} met a {w}.")
    crossed = [
        pair("b", f"{w}{k}", word=w, template=frame.format(w=w))
        for w in ("nurse", "clerk")
        for k, frame in enumerate(frames)
    ]
    fill(store, "benchmark_pair", crossed)
    found = clusters(store)
    assert found["nurse0"] == ("word: nurse", "frame: The {word} said {pronoun} left.")
    assert found["nurse0"][1] == found["clerk0"][1] != found["clerk1"][1]
    own = [pair("b", f"{k}", word="nurse", template=f"The nurse is {k}.") for k in range(3)]
    fill(store, "benchmark_pair", [*own, pair("b", "3", cluster=None, template="{differs} left.")])
    assert clusters(store) == {
        **{f"{k}": ("word: nurse", None) for k in range(3)},
        "3": ("text: {differs} left.", None),
    }


def test_columns_of_own_pairs_can_say_what_is_alike(store: Store, tmp_path: Path) -> None:
    source = tmp_path / "mine.csv"
    source.write_text(
        "sentence_a,sentence_b,job_1,job_2\n"
        "She met him.,He met her.,nurse,clerk\nShe left.,He left.,clerk,nurse\n"
    )
    recipe = tmp_path / "mine.toml"
    columns = 'cluster = "job_1"\ncluster_2 = "job_2"\n'
    recipe.write_text(f'about = "mine"\nsource = "here"\n[columns]\n{columns}')
    import_benchmark(store, "mine", source, "r", recipe=str(recipe))
    assert set(clusters(store).values()) == {
        ("job: nurse", "job: clerk"),
        ("job: clerk", "job: nurse"),
    }


@pytest.mark.reference
def test_occupations_of_winobias_stand_in_either_place(store: Store, data: Path) -> None:
    import_benchmark(store, "winobias", None, "r", data=data)
    found = clusters(store)
    assert len(found) == 1586 and all(a != b for a, b in found.values())
    assert len({c for row in found.values() for c in row}) == 40
    import_benchmark(store, "winogender", None, "r", data=data)
    schemas = {b for _, b in clusters(store).values() if b and b.startswith("schema: ")}
    assert len(schemas) == 60


@pytest.mark.slow
def test_intervals_hold_the_truth_in_every_world() -> None:
    rng, n_draws = np.random.default_rng(3), 300
    error = 100 * math.sqrt(0.075 * 0.925 / n_draws)
    least = dict.fromkeys(("us", "pd", "aufc"), 92.5) | dict.fromkeys(
        ("us difference", "pd difference"), 94.0
    )
    for shape in shapes(rng):
        for name, world in worlds(shape):
            line = coverage(shape, world, n_draws, rng)
            for figure, percent in least.items():
                assert line[figure] >= percent - 2 * error, (shape.name, name, figure)
