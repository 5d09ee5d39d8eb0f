"""Bounds of leans: against scipy's exact test and interval, and through the views and commands."""

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from plumbline.jobs.association.measures import (
    adjusted,
    bound_rows,
    delta_rows,
    dispersion,
    lean_bounds,
)
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import delta, fill, made_row
from tests.test_association import LIST, WORDS, counts


def log_odds(share: float) -> float:
    return (
        math.log(share) - math.log1p(-share)
        if 0 < share < 1
        else math.copysign(math.inf, share - 0.5)
    )


@given(st.integers(0, 300), st.integers(0, 300), st.floats(0.02, 0.98))
def test_whole_counts_give_the_exact_interval_and_test(n_f: int, n_m: int, share: float) -> None:
    if n_f + n_m == 0:
        return
    low, high, p = (
        float(x) for x in lean_bounds(np.float64(n_f), np.float64(n_m), log_odds(share))
    )
    exact = stats.binomtest(n_f, n_f + n_m).proportion_ci(0.95)
    expected = [log_odds(end) - log_odds(share) for end in (exact.low, exact.high)]
    assert [low, high] == pytest.approx(expected, rel=1e-6, abs=1e-8)
    tails = (stats.binomtest(n_f, n_f + n_m, share, way).pvalue for way in ("less", "greater"))
    assert p == pytest.approx(min(1.0, 2 * min(tails)), rel=1e-6)
    assert (p < 0.05) == (low > 0 or high < 0)


#: A count over a dispersion: 0, or not tiny.
OVER_D = st.just(0.0) | st.floats(0.01, 50)


@given(OVER_D, OVER_D, st.floats(-3, 3), st.floats(1, 9))
def test_bounds_swap_with_the_sides_and_widen_with_dispersion(
    n_f: float, n_m: float, odds: float, times: float
) -> None:
    low, high, p = lean_bounds(np.float64(n_f), np.float64(n_m), odds)
    other_low, other_high, other_p = lean_bounds(np.float64(n_m), np.float64(n_f), -odds)
    assert (-other_high, -other_low, other_p) == pytest.approx((low, high, p))
    wider_low, wider_high, _ = lean_bounds(np.float64(n_f / times), np.float64(n_m / times), odds)
    assert wider_low <= low + 1e-9 and high <= wider_high + 1e-9


def test_q_is_that_of_scipy() -> None:
    p = np.random.default_rng(1).random(200) ** 3
    assert adjusted(p) == pytest.approx(stats.false_discovery_control(p))


def test_every_word_with_a_co_occurrence_has_a_bound() -> None:
    made = counts()
    (pair,) = (p for p in LIST.pairs if p.a == "she")
    rows = {r["word"]: r for r in bound_rows(made, "she/he", [pair]).to_pylist()}
    assert set(rows) == {"tea", "army", "rare"}, "army never with she, rare never with he"
    d_f = dispersion(2, WORDS["she"], "pairs", 10)
    army, rare = rows["army"], rows["rare"]
    assert army["sides_nats"] is rare["sides_nats"] is None
    assert army["sides_nats_low"] == -math.inf and rare["sides_nats_high"] == math.inf
    # 5 with he and 0 with she: the upper end of the share is 1 - 0.025^(1/5)
    most = log_odds(1 - 0.025 ** (1 / 5)) + math.log(d_f) - math.log(10 / 20)
    assert army["sides_nats_high"] == pytest.approx(most)
    deltas = {r["word"]: r for r in delta_rows(made, "she/he", [pair]).to_pylist()}
    assert rows["tea"]["sides_nats"] == pytest.approx(deltas["tea"]["delta_nats"])
    for row in rows.values():
        assert (
            row["sides_nats_low"] < (row["sides_nats"] or 0) < row["sides_nats_high"]
            or not row["sides_nats"]
        )


def asked(p: np.ndarray, words: Sequence[str] = ()) -> list[dict[str, object]]:
    """Rows of ``word_evidence``, by default of w0 and so on."""
    of: dict[str, object] = {"corpus": "c", "contrast": "she/he", "clusters": "source"}
    of |= {"delta_nats": 1.0, "delta_nats_low": 0.5, "delta_nats_high": 1.5}
    names = words or [f"w{k}" for k in range(len(p))]
    return [
        made_row("word_evidence", **of, word=word, p=float(value))
        for word, value in zip(names, p, strict=False)
    ]


def test_pages_rank_words_that_were_asked_about_once_all_candidates_were(store: Store) -> None:
    rng = np.random.default_rng(4)
    leans = {f"w{k}": float(x) for k, x in enumerate(rng.normal(0, 2, 900))}
    fill(store, "word_delta", [delta(w, x) | {"delta_nats_se": 0.2} for w, x in leans.items()])

    def ranked() -> set[str]:
        rows = rows_of(store.root, "SELECT word FROM word_lean WHERE is_ranked")
        return {row["word"] for row in rows}

    clear = {w: abs(x) - 0.2 * stats.norm.ppf(0.975) for w, x in leans.items()}
    by_bound = sorted((w for w in clear if clear[w] > 0), key=lambda w: -clear[w])
    candidates = [
        *[w for w in by_bound if leans[w] > 0][:200],
        *[w for w in by_bound if leans[w] < 0][:200],
    ]
    found = rows_of(store.root, "FROM lean_candidate")
    assert {row["word"] for row in found} == set(candidates) and len(candidates) == 400
    rows = asked(np.full(400, 1e-6), [*candidates[1:], by_bound[-1]])
    store.replace("word_evidence", pa.Table.from_pylist(rows), {"corpus": "c"}, "r")
    assert ranked() == set(leans), "one candidate wasn't asked about"
    rows += asked(np.array([0.2]), candidates[:1])
    store.replace("word_evidence", pa.Table.from_pylist(rows), {"corpus": "c"}, "r")
    assert ranked() == {*candidates, by_bound[-1]}
    (row,) = rows_of(store.root, f"FROM word_lean WHERE word = '{candidates[1]}'")
    assert (row["delta_nats"], row["delta_nats_low"], row["over"]) == (1.0, 0.5, "sources")


def test_q_of_asked_words_is_over_all_words_of_the_contrast(store: Store) -> None:
    p = np.random.default_rng(2).random(40) ** 6
    fill(store, "word_delta", [delta(f"w{k}", 1.0) | {"delta_nats_se": 9.0} for k in range(100)])
    store.replace("word_evidence", pa.Table.from_pylist(asked(p)), {"corpus": "c"}, "r")
    found = {r["word"]: r["q"] for r in rows_of(store.root, "FROM word_lean")}
    expected = stats.false_discovery_control(np.concatenate([p, np.ones(60)]))
    assert [found[f"w{k}"] for k in range(40)] == pytest.approx(expected[:40])
    assert np.any(expected[:40] < 1) and found["w40"] is None
