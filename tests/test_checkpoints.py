"""Curves over the checkpoints of a model, where they change, and when words begin to lean."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from plumbline.eval_workers.scoring.statistics.change_points import lasting_changes, onsets
from plumbline.eval_workers.scoring.statistics.measure_options import MeasureOptions
from plumbline.eval_workers.scoring.statistics.metrics_by_sql import compute, measure
from plumbline.eval_workers.scoring.statistics.ranks import holm
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import Missing, Section
from plumbline.pipelines.report.sections import checkpoints
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
    columns, ends = (
        ("value", "value_low", "value_high", "n"),
        ("value", "value_low", "value_high", "n"),
    )
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
            half = (row["mean_log_ratio_nats_high"] - row["mean_log_ratio_nats_low"]) / 2
            # the expansion of the t quantile is 0.8% off at two degrees of freedom
            assert half == pytest.approx((high - low) / 2, rel=0.01)
            assert row["mean_log_ratio_nats_high"] - half == pytest.approx(own.mean())
    measure(store, "r")
    measure(store, "r")
    changes = rows_of(store.root, "FROM change_point")
    assert len(changes) == 4 * 3 and {row["n_tests"] for row in changes} == {12}
    assert {row["step_before"]: row["step"] for row in changes} == dict(pairwise(STEPS))
    assert {row["power"] for row in changes} == {None, 0}
    assert {row["q_lasting"] for row in changes} == {None}
    onset = {row["word"]: row for row in rows_of(store.root, "FROM word_onset")}
    assert set(onset) == {w for w in words if words.count(w) > 1}
    for word, row in onset.items():
        is_own = np.array(words) == word
        above = ratios[-1][is_own] - ratios[-1][~is_own].mean()
        assert row["last_nats"] == pytest.approx(ratios[-1][is_own].mean())
        assert row["relative_nats"] == pytest.approx(above.mean())
        assert row["p"] == pytest.approx(stats.ttest_1samp(above, 0).pvalue)
    fill(store, "model", [{**scored_by("m", "r0", "key-0"), "step": None}], "key-0")
    for name in ("change_point", "word_onset"):
        store.replace(name, [], {"benchmark": "b"}, "r")
        assert not rows_of(store.root, f"FROM {name}")


def test_a_word_is_compared_within_frames_of_twenty_words(store: Store) -> None:
    """Two frames that 20 words share, one that only 19 share, and a sentence of one word."""
    rng = np.random.default_rng(3)
    shared = ["The {} said {pronoun} left.", "{} and {} sang.", "Few {}s, said the {}."]
    made = [(f"w{k}", frame) for frame in shared for k in range(20)][:-1]
    made.append(("w0", "{pronoun} met the {} alone."))
    rows = [
        pair("b", f"p{k:02}", word=word, template=frame.replace("{}", word.upper()))
        for k, (word, frame) in enumerate(made)
    ]
    fill(store, "benchmark_pair", rows)
    fill(store, "model", [{**scored_by("m", key="k"), "step": 1}], "k")
    ratios = rng.normal(0, 1, len(made)) + np.repeat([2.0, -3, 1], 20)
    scores = [score("b", f"p{k:02}", r, "m", "k") for k, r in enumerate(ratios.tolist())]
    fill(store, "pair_score", scores)
    seen = rows_of(store.root, "FROM checkpoint_word")
    assert len(seen) == 20
    for row in seen:
        above = []
        for (word, frame), ratio in zip(made, ratios, strict=True):
            beside = [
                other
                for (name, within), other in zip(made, ratios, strict=True)
                if name != row["word"] and (within == frame or frame not in shared[:2])
            ]
            above += [ratio - np.mean(beside)] if word == row["word"] else []
        known = stats.ttest_1samp(above, 0)
        assert row["relative_nats"] == pytest.approx(np.mean(above))
        assert row["relative_nats"] / row["relative_nats_se"] == pytest.approx(known.statistic)
        half = row["relative_nats"] - known.confidence_interval(0.95).low
        assert row["relative_nats"] - row["relative_nats_low"] == pytest.approx(half, rel=0.01)
        assert row["relative_nats_high"] - row["relative_nats"] == pytest.approx(half, rel=0.01)


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


def finds(jump: float, n_steps: int, rho: float = 0, df: float = 30) -> Callable[..., bool]:
    """Whether the last of four curves is cut near its jump; without one, whether any is cut."""

    def happens(rng: np.random.Generator) -> bool:
        innovations = 0.7 * rng.standard_t(df, (1, n_steps)) + 0.7 * rng.standard_t(
            df, (4, n_steps)
        )
        made = innovations.copy()
        for k in range(1, n_steps):
            made[:, k] += rho * made[:, k - 1]
        made[-1, n_steps // 2 :] += jump
        found = lasting_changes(list(made), [np.arange(n_steps)] * 4, n_series=299)
        cuts = [cut for cut, (_, p, _) in found.items() if p is not None and p <= 0.05]
        return any(i == 3 and abs(k - n_steps // 2) <= 1 for i, k in cuts) if jump else bool(cuts)

    return happens


@pytest.mark.parametrize(("rho", "df"), [(0, 30), (0, 2), (0.5, 30), (0.9, 30)])
def test_checkpoints_that_go_up_and_down_have_no_lasting_change(rho: float, df: float) -> None:
    """With memory and without, with normal fluctuations and with some that are far off."""
    _, low, _ = rate(finds(0, 24, rho, df), 150)
    assert low <= 0.05


def test_a_planted_jump_is_found_where_it_can_be() -> None:
    assert rate(finds(6, 36), 40)[0] >= 0.8
    assert rate(finds(50, 8), 5)[0] == 0  # no verdict
    noise = np.random.default_rng(0).normal(0, 0.5, 96)
    for at in (np.arange(96), 2 ** np.linspace(0, 17, 96).round(3)):
        found = lasting_changes([np.repeat([0.0, 3, 5], 32) + noise], [at])
        cuts = {place: p for place, (_, p, _) in found.items() if p is not None and p <= 0.05}
        assert set(cuts) == {(0, 32), (0, 64)}
    spike = 40 * np.eye(96)[50] + noise
    assert min(p or 1 for _, p, _ in lasting_changes([spike], [np.arange(96)]).values()) > 0.2


def by_resampling(curve: Floats, n_series: int) -> tuple[int, float]:
    """The cut of one curve and its p, one series and one checkpoint after another."""
    rng = np.random.default_rng(1)
    n = len(curve)

    def cut(values: Floats) -> tuple[int, float, float, Floats]:
        weighted = [
            (k * (n - k) / n) ** 0.5 * abs(values[k:].mean() - values[:k].mean())
            for k in range(1, n)
        ]
        k = int(np.argmax(weighted)) + 1
        rest = np.concatenate([values[:k] - values[:k].mean(), values[k:] - values[k:].mean()])
        rho = (n * (rest[1:] @ rest[:-1]) / (rest @ rest) + 6) / (n - 10)
        one, two = (
            np.mean([(values[k] - values[k - d]) ** 2 for k in range(d, n)]) for d in (1, 2)
        )
        rho = min(max(rho, 0), two / one - 1 + 3 / n**0.5, 0.98)
        innovations = rest[1:] - rho * rest[:-1]
        return k, max(weighted) / (np.std(innovations) / (1 - rho)), rho, innovations

    place, size, rho, innovations = cut(curve)
    larger = 0
    for _ in range(n_series):
        drawn = rng.choice(innovations - innovations.mean(), n)
        series = [drawn[0] / (1 - rho**2) ** 0.5]
        for innovation in drawn[1:]:
            series.append(rho * series[-1] + innovation)
        larger += cut(np.array(series))[1] >= size
    return place, (larger + 1) / (n_series + 1)


def test_p_of_a_cut_is_that_of_series_with_memory() -> None:
    noise = np.random.default_rng(3).normal(0, 1, 60)
    curve = noise + 0.5 * np.append(0, noise[:-1]) + np.repeat([0, 1], [20, 40])
    ((place, (shift, p, power)),) = lasting_changes([curve], [np.arange(60)]).items()
    cut, known = by_resampling(curve, 1000)
    assert p is not None and 0.05 < p == pytest.approx(known, abs=0.05) and power > 0.3
    assert place == (0, cut) and shift == pytest.approx(curve[cut:].mean() - curve[:cut].mean())


def test_p_has_no_unit_and_a_curve_that_is_tested_twice_costs_nothing() -> None:
    curve = np.random.default_rng(1).normal(0, 1, 40) + np.repeat([0, 1.2], 20)
    ((place, (_, p, power)),) = lasting_changes([curve], [np.arange(40)]).items()
    twice = lasting_changes([curve, 5 - 3 * curve], [np.arange(40)] * 2)
    for i in range(2):
        assert twice[i, place[1]][1:] == pytest.approx((p, power), abs=0.02)
    level = lasting_changes([np.full(40, 0.1), curve], [np.arange(40)] * 2)
    assert level[1, place[1]][1:] == pytest.approx((p, power), abs=1e-3)
    assert [found[1:] for (i, _), found in level.items() if i == 0] == [(None, 0)]


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
