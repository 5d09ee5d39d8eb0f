"""Curves over the checkpoints of a model, where they change, and when words begin to lean."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from plumbline.eval_workers.statistics.change_points import lasting_changes, onsets
from plumbline.eval_workers.statistics.multiplicity import holm
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import Missing, Section
from plumbline.pipelines.report.sections import checkpoints
from plumbline.pipelines.requests.measure import compute, measure
from plumbline.pipelines.settings import MeasureOptions
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests import fits
from tests.metric_rows import delta, fill, pair, score, scored_by

Floats = npt.NDArray[np.float64]
STEPS = (0, 20, 100, 400)
EPSILON = np.log(1.65)


def scored_steps(store: Store, n_words: int = 12) -> tuple[Floats, list[str], Floats]:
    """Ratios (steps x pairs) that are scored, the word of each pair, the words' deltas."""
    rng = np.random.default_rng(0)
    names = [f"w{k}" for k in range(n_words)]
    words = [w for w, n in zip(names, rng.integers(1, 5, n_words), strict=True) for _ in range(n)]
    deltas = rng.normal(0, 1, n_words)
    lean = deltas[[names.index(w) for w in words]]
    own = rng.normal(0, 0.5, n_words)[[names.index(w) for w in words]]
    ratios = np.array([(k * lean + own) / 3 + rng.normal(0, 0.4, len(words)) for k in range(4)])
    pairs = [f"p{k:02}" for k in range(len(words))]
    rows = [pair("b", p, word=w.upper()) for p, w in zip(pairs, words, strict=True)]
    fill(store, "benchmark_pair", [*rows, pair("b", "once", word="rare")])
    fill(store, "word_delta", [delta(w, d) for w, d in zip(names, deltas.tolist(), strict=True)])
    for step, of_step in zip(STEPS, ratios, strict=True):
        key = f"key-{step}"
        fill(store, "model", [{**scored_by("m", f"r{step}", key), "step": step}], key)
        scores = [score("b", p, r, "m", key) for p, r in zip(pairs, of_step.tolist(), strict=True)]
        fill(store, "pair_score", scores)
    return ratios, words, deltas


def curve(store: Store, measure: str) -> list[dict[str, Any]]:
    rows = rows_of(store.root, "FROM checkpoint_curve ORDER BY step")
    found = [row for row in rows if row["measure"] == measure]
    assert [(row["series"], row["step"]) for row in found] == [("m", step) for step in STEPS]
    return found


def test_values_are_those_of_the_metrics(store: Store) -> None:
    scored_steps(store)
    fill(store, "model", [scored_by("whole")], "whole")
    fill(store, "pair_score", [score("b", "p00", 1.0, "whole")])  # no checkpoint
    metrics = {
        (row["metric"], row["model_key"]): row
        for row in compute(store.root, MeasureOptions(), "r").to_pylist()
        if row["subset"] in ("all", "words, measured delta")
    }
    columns, ends = ("value", "ci_low", "ci_high", "n"), ("value", "low", "high", "n")
    for name in ("us", "pd", "slope"):
        for row in curve(store, name):
            metric = metrics[name, row["model_key"]]
            assert [row[c] for c in ends] == pytest.approx([metric[c] for c in columns])
    for row in curve(store, "explained variance"):
        r, low, high, n = (metrics["correlation", row["model_key"]][c] for c in columns)
        least = 0 if low < 0 < high else min(low**2, high**2)
        known = (r**2, least, max(low**2, high**2), n)
        assert [row[c] for c in ends] == pytest.approx(known)


def by_hand(measure: str, ratios: Floats, of: npt.NDArray[np.int64], deltas: Floats) -> float:
    """The measure of a step from its pairs' ratios, the place of each one's word, the deltas."""
    if measure == "us":
        return float((np.abs(ratios) <= EPSILON).mean())
    if measure == "pd":
        return float(100 * ((ratios > EPSILON).mean() - (ratios < -EPSILON).mean()))
    if measure == "mean log ratio":
        return float(ratios.mean())
    present = np.unique(of)
    fit = stats.linregress(deltas[present], [ratios[of == k].mean() for k in present])
    return float(fit.slope if measure == "slope" else fit.rvalue**2)


@pytest.mark.parametrize("measure", ["us", "pd", "mean log ratio", "slope", "explained variance"])
def test_changes_are_paired_and_clustered_by_word(store: Store, measure: str) -> None:
    """Against the jackknife that leaves a word out at both steps, which is never linearised."""
    ratios, words, deltas = scored_steps(store, 150)
    of = np.array([int(word[1:]) for word in words])

    def change(k: int, kept: npt.NDArray[np.bool_]) -> float:
        a, b = (by_hand(measure, ratios[i][kept], of[kept], deltas) for i in (k - 1, k))
        return b - a

    rows = curve(store, measure)
    assert rows[0]["change"] is rows[0]["change_low"] is None
    for k, row in enumerate(rows[1:], 1):
        everything = np.ones(len(of), bool)
        assert row["change"] == pytest.approx(change(k, everything))
        left_out = np.array([change(k, of != word) for word in range(150)])
        se = np.sqrt(149 / 150 * ((left_out - left_out.mean()) ** 2).sum())
        assert row["change_se"] == pytest.approx(se, rel=0.1)
        half = stats.t.ppf(0.975, row["df"]) * row["change_se"]
        assert row["change_high"] - row["change"] == pytest.approx(half, rel=1e-3)
        of_line = fits.slope(deltas, np.arange(150.0))[1]  # it is of the deltas alone
        known = 149 if measure in ("us", "pd", "mean log ratio") else of_line
        assert row["df"] == pytest.approx(known)


def test_pairs_without_words_are_paired_one_by_one(store: Store) -> None:
    """Those at both steps: one pair has no score at the first."""
    rng = np.random.default_rng(1)
    fill(store, "benchmark_pair", [pair("b", f"p{k}") for k in range(31)])
    ratios = rng.normal(0, 1, (2, 31))
    for step, n in enumerate((30, 31)):
        key = f"k{step}"
        fill(store, "model", [{**scored_by("m", key=key), "step": step}], key)
        of_step = ratios[step, :n].tolist()
        rows = [score("b", f"p{i}", r, "m", key) for i, r in enumerate(of_step)]
        fill(store, "pair_score", rows)
    query = "FROM checkpoint_curve WHERE measure = 'mean log ratio' AND step = 1"
    (row,) = rows_of(store.root, query)
    known = stats.ttest_rel(ratios[1, :30], ratios[0, :30]).confidence_interval(0.95)
    assert row["n"] == 30
    assert (row["change_low"], row["change_high"]) == pytest.approx(tuple(known), rel=1e-3)


def test_a_step_is_that_of_the_training_scored_last(store: Store) -> None:
    for run, key in (("r1", "old"), ("r2", "new")):
        fill(store, "model", [{**scored_by("m", key, key), "step": 5, "run_id": run}], key)
    assert [r["model_key"] for r in rows_of(store.root, "FROM checkpoint")] == ["new"]


def test_words_by_step_and_what_measure_writes(store: Store) -> None:
    ratios, words, _ = scored_steps(store)
    for row in rows_of(store.root, "FROM checkpoint_word"):
        own = ratios[STEPS.index(row["step"])][np.array(words) == row["word"]]
        assert row["mean_log_ratio_nats"] == pytest.approx(own.mean())
        assert row["n_pairs"] == len(own)
        if len(own) > 1:
            low, high = stats.ttest_1samp(own, 0).confidence_interval(0.95)
            half = (row["high_nats"] - row["low_nats"]) / 2
            # the expansion of the t quantile is 0.8% off at two degrees of freedom
            assert half == pytest.approx((high - low) / 2, rel=0.01)
            assert row["high_nats"] - half == pytest.approx(own.mean())
    measure(store, "r")
    measure(store, "r")
    changes = rows_of(store.root, "FROM change_point")
    assert len(changes) == 4 * 3 and {row["n_tests"] for row in changes} == {12}
    assert {row["step_before"]: row["step"] for row in changes} == dict(pairwise(STEPS))
    onset = {row["word"]: row for row in rows_of(store.root, "FROM word_onset")}
    assert set(onset) == {w for w in words if words.count(w) > 1}
    for word, row in onset.items():
        own = ratios[-1][np.array(words) == word]
        assert row["p"] == pytest.approx(stats.ttest_1samp(own, 0).pvalue)
    fill(store, "model", [{**scored_by("m", "r0", "key-0"), "step": None}], "key-0")
    for name in ("change_point", "word_onset"):
        store.replace(name, [], {"benchmark": "b"}, "r")
        assert not rows_of(store.root, f"FROM {name}")


def test_the_report_draws_curves_of_three_checkpoints_or_more(store: Store) -> None:
    ratios, _, _ = scored_steps(store)
    measure(store, "r")
    (section,) = checkpoints.sections(Facts(store.root))
    assert isinstance(section, Section)
    drawn, of_words = section.figures
    assert drawn.svg.count("<text") > 4 and len(drawn.rows) == 4 * 4
    onsets = rows_of(store.root, "FROM word_onset WHERE onset_step IS NOT NULL")
    assert {row["word"] for row in of_words.rows} <= {row["word"] for row in onsets}
    table = section.tables[0]
    us = next(row for row in table.rows if row[0].text == "US, %" and row[2].value == 100)
    share, before = (100 * (np.abs(ratios[k]) <= EPSILON).mean() for k in (2, 1))
    assert us[3].value == pytest.approx(share)
    assert us[4].value == pytest.approx(share - before)
    (lead,) = checkpoints.leads(Facts(store.root))
    assert "m on b, step 0 to 400: US, % from" in lead.sentences[0]
    rows = store.read("model").to_pylist()
    for row in rows[:2]:
        fill(store, "model", [{**row, "step": None}], row["model_key"])
    (missing,) = checkpoints.sections(Facts(store.root))
    assert isinstance(missing, Missing) and "--revisions all" in missing.command


def rate(happens: Callable[[np.random.Generator], bool], n: int) -> tuple[float, float, float]:
    """How often something happens in n repeats, with Clopper and Pearson's 99.9% interval."""
    hits = sum(happens(np.random.default_rng(k)) for k in range(n))
    ends = stats.binomtest(hits, n).proportion_ci(0.999)
    return hits / n, ends.low, ends.high


def curves(rng: np.random.Generator, n_steps: int, jump: float, at: int, df: float) -> list[Floats]:
    """Four curves that go up and down together in part; the last one also jumps."""
    common = rng.standard_t(df, n_steps)
    found = [0.7 * common + 0.7 * rng.standard_t(df, n_steps) for _ in range(4)]
    found[-1][at:] += jump
    return found


def finds(jump: float, n_steps: int, at: int, df: float = 30) -> Callable[..., bool]:
    """Whether the last curve is found to change within a step of where it does."""

    def happens(rng: np.random.Generator) -> bool:
        made = curves(rng, n_steps, jump, at, df)
        found = lasting_changes(made, [np.arange(n_steps)] * 4, n_orders=499)
        near = [p for (i, k), (_, p) in found.items() if i == 3 and abs(k - at) <= 1]
        every = [p for _, p in found.values()]
        return min(near if jump else every, default=1) <= 0.05

    return happens


def test_checkpoints_that_go_up_and_down_have_no_lasting_change() -> None:
    """At its level with normal fluctuations and with some that are far off."""
    for df in (30, 2):
        _, low, _ = rate(finds(0, 10, 0, df), 300)
        assert low <= 0.05


def test_a_planted_jump_is_found_where_it_can_be() -> None:
    assert rate(finds(6, 12, 6), 40)[0] >= 0.8
    assert rate(finds(50, 6, 3), 5)[0] == 0  # 2 / C(6, 3) is above 5%
    found = lasting_changes([np.repeat([0.0, 5, 1], 8)], [np.arange(24)])
    assert {place for place, (_, p) in found.items() if p <= 0.05} == {(0, 8), (0, 16)}
    spike = np.eye(12)[5] + np.arange(12) % 2 / 10
    assert min(p for _, p in lasting_changes([spike], [np.arange(12)]).values()) > 0.2


def test_p_of_a_jump_is_that_of_all_orders() -> None:
    """A clean jump after the 4th of 9 is cut as clearly in 2 of C(9, 4) orders."""
    ((place, (shift, p)),) = lasting_changes(
        [np.repeat([0.0, 1.0], [4, 5])], [np.arange(9)]
    ).items()
    assert (place, shift) == ((0, 4), 1)
    assert p == pytest.approx(2 / 126, abs=0.006)


def test_words_that_never_lean_have_no_onset() -> None:
    """Of 40 words at 8 steps: by chance in at most 5% of repeats, though steps are alike."""

    def happens(rng: np.random.Generator) -> bool:
        own = rng.normal(0, 1, (40, 1, 6))
        ratios = own + rng.normal(0, 0.5, (40, 8, 6))  # words x steps x pairs
        found = stats.ttest_1samp(ratios, 0, axis=2)
        return bool((onsets(ratios.mean(axis=2), found.pvalue)[0] >= 0).any())

    _, low, high = rate(happens, 300)
    assert low <= 0.05 < high + 0.05


def test_onsets_that_are_too_early_are_few() -> None:
    """Half of the words lean from step 5 on: the share of wrong onsets is at most 5%."""
    wrong, right = [], []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        leans = (np.arange(60) < 30)[:, None] & (np.arange(8) >= 5)
        ratios = 1.5 * leans[..., None] + rng.normal(0, 1, (60, 8, 12))
        found = stats.ttest_1samp(ratios, 0, axis=2)
        place, _ = onsets(ratios.mean(axis=2), found.pvalue)
        claimed = place >= 0
        false = claimed & ((np.arange(60) >= 30) | (place < 5))
        wrong.append(false.sum() / max(claimed.sum(), 1))
        right.append((place[:30] == 5).mean())
    assert np.mean(wrong) <= 0.05
    assert np.mean(right) > 0.8


def test_holm_bounds_the_chance_of_any_false_move() -> None:
    """Of 3 curves over 9 steps of 20 words that move at random, none on the whole."""

    def happens(rng: np.random.Generator) -> bool:
        moved = rng.standard_t(5, (24, 20))
        p = stats.ttest_1samp(moved, 0, axis=1).pvalue
        return min(v for v in holm(p.tolist()) if v is not None) <= 0.05

    _, low, high = rate(happens, 300)
    assert low <= 0.05 < high + 0.05
