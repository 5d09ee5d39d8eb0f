"""Views for people: starts, deciding words, agreement of models, pairs with all there is."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import duckdb
import numpy as np
import pytest
from scipy import stats

from plumbline.eval_workers.scoring.measure import MeasureOptions, compute
from plumbline.warehouse.query.connection import connect, rows_of
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import association, delta, fill, pair, score


def run(connection: duckdb.DuckDBPyConnection, text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = connection.sql(text).to_arrow_table().to_pylist()
    return found


@pytest.mark.slow
def test_every_view_of_an_empty_warehouse_is_empty(store: Store) -> None:
    connection = connect(store.root)
    names = {row["name"] for row in run(connection, "SHOW TABLES")}
    assert names > set(TABLES) | {"audited_pair", "us_by_start", "deciding_word", "pair_agreement"}
    for name in names - {"spanish_word"}:  # a list of words
        text = f'FROM "{name}"'
        assert run(connection, text) == rows_of(store.root, text) == [], name
    calls = ("us_curve([0.5])", "us_difference('a', 'b', 'b')", "us_gap('a', 'b', 'c', 1, NULL)")
    calls += ("deduplication()", "deduplication_mean()")
    for call in calls:
        assert rows_of(store.root, f"FROM {call}") == [], call


def test_a_connection_for_one_query_holds_what_it_takes(store: Store) -> None:
    text = "SELECT us FROM us_curve([0.5])"
    one, every = connect(store.root, text), connect(store.root)
    assert run(one, text) == run(every, text)
    assert 0 < len(run(one, "SHOW TABLES")) < len(run(every, "SHOW TABLES"))
    listing = connect(store.root, "SHOW TABLES")
    assert run(listing, "SHOW TABLES") == run(every, "SHOW TABLES")


def test_no_parameter_of_a_macro_is_named_like_a_column(store: Store) -> None:
    """It would take the column's place in the views that the macro reads."""
    columns = {c.name for table in TABLES.values() for c in table.columns} - {"seed"}
    text = "SELECT function_name, parameters FROM duckdb_functions() WHERE schema_name = 'main' "
    macros = rows_of(store.root, text + "AND function_type = 'table_macro' AND NOT internal")
    assert len(macros) == 20
    for macro in macros:
        assert not set(macro["parameters"]) & columns, macro


def test_words_rank_by_the_bound_of_their_interval_nearer_zero(store: Store) -> None:
    rng = np.random.default_rng(5)
    errors = {f"w{k}": float(e) for k, e in enumerate(rng.uniform(0.1, 2, 300))}
    deltas = {w: float(rng.normal(0, 1.5)) for w in errors}
    rows = [delta(w, d) | {"delta_nats_se": errors[w]} for w, d in deltas.items()]
    rows += [delta("even", 0.0) | {"delta_nats_se": 0.0}]
    fill(store, "word_delta", rows)
    fill(store, "word_delta", [delta("unknown", -2.0, "imported")])
    found = {r["word"]: r for r in rows_of(store.root, "FROM word_lean")}
    assert len(found) == len(rows) + 1
    for word, value in deltas.items():
        low, high = stats.norm.interval(0.95, loc=value, scale=errors[word])
        holds_zero = low <= 0 <= high
        bound = 0 if holds_zero else min(low, high, key=abs)
        row = found[word]
        assert row["delta_nats"] == value
        assert (row["delta_nats_low"], row["delta_nats_high"]) == pytest.approx((low, high))
        assert row["lean_bound_nats"] == pytest.approx(bound)
    assert 50 < sum(r["lean_bound_nats"] == 0 for r in found.values()) < 250
    assert found["even"]["lean_bound_nats"] == 0
    unknown = found["unknown"]
    assert unknown["lean_bound_nats"] == -2.0 and unknown["delta_nats_low"] is None


def test_us_by_start_equals_the_metrics(store: Store) -> None:
    rng = np.random.default_rng(3)
    starts = rng.random(80) < 0.3
    ratios = np.where(starts, 1.0, 0.0) + rng.normal(0, 1, 80)
    fill(
        store,
        "benchmark_pair",
        [pair("b", str(i), pronoun_first=bool(s)) for i, s in enumerate(starts)],
    )
    fill(store, "pair_score", [score("b", str(i), float(r)) for i, r in enumerate(ratios)])
    found = rows_of(store.root, "FROM us_by_start")
    assert len(found) == 2
    metrics = compute(store.root, MeasureOptions(), "r").to_pylist()
    for row in found:
        subset = "pronoun first" if row["pronoun_first"] else "pronoun later"
        of = {r["metric"]: r for r in metrics if r["subset"] == subset}
        us = [row["us"], row["us_low"], row["us_high"], row["n_pairs"]]
        assert us == pytest.approx([of["us"][c] for c in ("value", "value_low", "value_high", "n")])
        pd = [row["pd_points"], row["pd_points_low"], row["pd_points_high"]]
        assert pd == pytest.approx([of["pd"][c] for c in ("value", "value_low", "value_high")])
        even = np.abs(ratios[starts == row["pronoun_first"]]) <= math.log(1.65)
        wilson = stats.binomtest(int(even.sum()), len(even)).proportion_ci(method="wilson")
        # each pair is its own cluster: Student's t and the jackknife's factor
        assert us[:3] == pytest.approx([even.mean(), wilson.low, wilson.high], abs=0.03)


def test_deciding_words_share_the_pairs_with_a_max_pmi(store: Store) -> None:
    words = ["nurse", "nurse", "boss", "boss", "nurse", None, "nurse"]
    values = [1.0, 1.0, -2.0, -2.0, 1.0, 0.5, 1.0]
    natural = [True, None, None, True, True, True, False]
    fill(
        store,
        "benchmark_pair",
        [pair("b", str(i), is_natural=n) for i, n in enumerate(natural)] + [pair("b", "none")],
    )
    rows = [
        association("b", str(i), x) | {"max_pmi_word": w}
        for i, (w, x) in enumerate(zip(words, values, strict=True))
    ]
    fill(store, "pair_association", [*rows, association("b", "none", None)])
    found = rows_of(store.root, "FROM deciding_word ORDER BY word")
    # Six natural pairs have a MaxPMI, one of them without its word.
    assert [(r["word"], r["n_pairs"], r["mean_max_pmi_nats"]) for r in found] == [
        ("boss", 2, -2.0),
        ("nurse", 3, 1.0),
    ]
    assert [r["share"] for r in found] == pytest.approx([2 / 6, 3 / 6])


def test_agreement_counts_models_by_their_lean(store: Store) -> None:
    ratios = {"p": [2.0, 1.0, 3.0], "q": [2.0, -2.0, 0.1], "r": [-0.5, -0.6, 0.0]}
    fill(store, "benchmark_pair", [pair("b", name, template=name) for name in ratios])
    for model in range(3):
        rows = [score("b", name, r[model], f"m{model}") for name, r in ratios.items()]
        fill(store, "pair_score", rows)
    found = {r["pair_id"]: r for r in rows_of(store.root, "FROM pair_agreement")}
    limit = math.log(1.65)
    for name, mine in ratios.items():
        row, lean = (
            found[name],
            Counter(0 if abs(x) <= limit else math.copysign(1, x) for x in mine),
        )
        counts = (row["n_a"], row["n_b"], row["n_neither"], row["n_models"])
        assert counts == (lean[1], lean[-1], lean[0], 3), name
        assert row["mean_log_ratio_nats"] == pytest.approx(np.mean(mine))
    assert found["p"]["n_a"] == 3


def test_audited_pair_loses_nothing(store: Store) -> None:
    """A pair of each kind: complete, unscored, without association, unnatural, without anything."""
    names = ("complete", "unscored", "unassociated", "unnatural", "infinite")
    fill(store, "benchmark_pair", [pair("b", n, is_natural=n != "unnatural") for n in names])
    fill(store, "benchmark_pair", [pair("alone", "one")])
    scored = {"complete": 1.0, "unassociated": 2.0, "unnatural": 3.0, "infinite": math.inf}
    fill(store, "pair_score", [score("b", n, x) for n, x in scored.items()])
    fill(store, "pair_score", [score("b", "complete", -1.0, "other")])
    rows = [association("b", n, 0.5) for n in names if n != "unassociated"]
    fill(store, "pair_association", rows)
    found = rows_of(store.root, "FROM audited_pair")
    assert Counter((r["pair_id"], r["model"]) for r in found) == Counter(
        [(n, m) for n in names for m in ("m", "other")] + [("one", None)]
    )
    of = {r["pair_id"]: r for r in found if r["model"] in ("m", None)}
    assert {n: of[n]["log_ratio_nats"] for n in names} == {
        "complete": 1.0,
        "unscored": None,
        "unassociated": 2.0,
        "unnatural": 3.0,
        "infinite": None,
    }
    assert [of[n]["max_pmi_nats"] for n in names] == [0.5, 0.5, None, 0.5, 0.5]
    assert of["one"]["corpus"] is None and of["one"]["sentence_a"]
    kept = rows_of(store.root, "FROM scored_pair_association")
    assert {(r["pair_id"], r["model"]) for r in kept} == {
        ("complete", "m"),
        ("complete", "other"),
        ("unassociated", "m"),
    }
