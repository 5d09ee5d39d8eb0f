"""Macros to call by hand: `us`, `pd`, `aufc`, and the paired bootstraps; views."""

from __future__ import annotations

import math
from typing import Any

import duckdb
import numpy as np
import pytest
from scipy import stats

from plumbline.eval_workers.scoring.measure import MeasureOptions, compute
from plumbline.warehouse.query.connection import connect
from plumbline.warehouse.query.connection import rows_of as answer
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import association, fill, pair, score

N = 400
EPSILON = math.log(1.65)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Two models that lean alike on the same pairs; one pair in ten has no MaxPMI."""
    rng = np.random.default_rng(7)
    ratio_a = rng.normal(0.2, 1, N)
    ratio_b = 0.6 * ratio_a + rng.normal(0, 0.5, N)
    max_pmi = np.where(rng.random(N) < 0.1, np.nan, rng.normal(0, 0.8, N))
    store = Store.open(tmp_path_factory.mktemp("macros") / "w")
    # Identifiers sort as the arrays do, so that a draw's number is an index.
    ids = [f"{i:04}" for i in range(N)]
    fill(store, "benchmark_pair", [pair("b", i) for i in ids])
    for name, ratios in (("a", ratio_a), ("b", ratio_b)):
        rows = [score("b", i, float(r), name) for i, r in zip(ids, ratios, strict=True)]
        fill(store, "pair_score", rows)
    found = [None if math.isnan(x) else float(x) for x in max_pmi]
    rows = [association("b", i, x) for i, x in zip(ids, found, strict=True)]
    fill(store, "pair_association", rows)
    return {"root": store.root, "a": ratio_a, "b": ratio_b, "max_pmi": max_pmi}


@pytest.fixture(scope="module")
def connection(world: dict[str, Any]) -> duckdb.DuckDBPyConnection:
    return connect(world["root"])


def rows_of(connection: duckdb.DuckDBPyConnection, text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = connection.sql(text).to_arrow_table().to_pylist()
    return found


def one(connection: duckdb.DuckDBPyConnection, text: str) -> dict[str, Any]:
    (row,) = rows_of(connection, text)
    return row


def test_figures_by_hand(connection: duckdb.DuckDBPyConnection) -> None:
    """Of 0, 0.5, -0.7, 9: two are even, one leans each way; areas 6, 5.49, 5.31 and 0."""
    values = "(VALUES (0), (0.5), (-0.7), (9), (NULL), ('nan'::DOUBLE), ('inf'::DOUBLE)) AS t (x)"
    row = one(connection, f"SELECT us(x), pd(x), aufc(x), us(x, 0.1), pd(x, 1) FROM {values}")
    # 0.5 is first covered by the point 0.54: 6 - 0.54 + half a step; 0.7 by 0.72.
    assert list(row.values()) == pytest.approx([0.5, 0, (6 + 5.49 + 5.31) / 4, 0.25, 25])


def assert_close_to_bootstrap(low: float, high: float, resampled: np.ndarray, se: float) -> None:
    """An interval against numpy's resamples of pairs, each its own cluster here.

    4,000 resamples leave the standard error 1.1% of noise, a percentile about 0.04 of it.
    """
    ours = (high - low) / 2 / stats.t.ppf(0.975, N - 1)
    assert ours == pytest.approx(resampled.std(ddof=1), rel=0.06)
    assert ours == pytest.approx(se, rel=0.02)
    expected = np.quantile(resampled, [0.025, 0.975])
    assert (low, high) == pytest.approx(tuple(expected), abs=0.25 * se)


def test_gap_between_etas(world: dict[str, Any]) -> None:
    even = np.abs(world["a"]) <= EPSILON
    inside = np.abs(np.nan_to_num(world["max_pmi"], nan=np.inf)) <= 0.4
    rows = compute(world["root"], MeasureOptions(eta=(0.4,)), "r").to_pylist()
    (row,) = (r for r in rows if (r["metric"], r["model"], r["eta_nats"]) == ("gap", "a", 0.4))
    assert row["value"] == pytest.approx(even[inside].mean() - even.mean())
    assert row["n"] == inside.sum()
    draws = np.random.default_rng(2).integers(0, N, (4000, N))
    total = inside[draws].sum(axis=1)
    gaps = (even & inside)[draws].sum(axis=1) / total - even[draws].mean(axis=1)
    # The delta method: each pair's influence on the ratio of means minus the mean.
    influence = inside * (even - even[inside].mean()) / inside.mean() - (even - even.mean())
    se = influence.std() / math.sqrt(N)
    assert_close_to_bootstrap(row["value_low"], row["value_high"], gaps, se)


@pytest.mark.slow
def test_every_view_of_an_empty_warehouse_is_empty(store: Store) -> None:
    connection = connect(store.root)
    names = {row["name"] for row in rows_of(connection, "SHOW TABLES")}
    assert names > {*TABLES, "audited_pair"}
    for name in names - {"spanish_word"}:  # a list of words
        text = f'FROM "{name}"'
        assert rows_of(connection, text) == answer(store.root, text) == [], name
    for call in ("deduplication()", "deduplication_mean()"):
        assert answer(store.root, f"FROM {call}") == [], call
