"""Tests and intervals: exact against enumeration, calibrated on synthetic samplers."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from plumbline.eval_workers.fairpair.fairpair_options import FigureOptions
from plumbline.eval_workers.fairpair.phi import jaccard, vader
from plumbline.eval_workers.fairpair.prompt_figures import measure, over_prompts
from plumbline.eval_workers.fairpair.significance import (
    adjusted,
    group_means,
    p_value,
    permuted_gaps,
    t_test,
)

#: Words a synthetic text may hold, and how likely each is.
SHARES = 0.4 * 0.95 ** np.arange(60)


def token_sets(rng: np.random.Generator, n: int) -> list[frozenset[str]]:
    """Token sets of texts of a sampler."""
    return [frozenset(f"w{k}" for k in np.flatnonzero(row < SHARES)) for row in rng.random((n, 60))]


def any_distances(rng: np.random.Generator, n: int) -> np.ndarray:
    """Distances of no order at all: no two ways to part the items have the same gap."""
    upper = np.triu(rng.random((n, n)), 1)
    return upper + upper.T


def test_permuted_gaps_are_those_of_exchanged_samples() -> None:
    """All 20 ways to exchange 3 and 3 come up, each about as often, with their own gap."""
    rng = np.random.default_rng(5)
    distances = any_distances(rng, 6)
    every = []
    for chosen in combinations(range(6), 3):
        order = [*chosen, *(set(range(6)) - set(chosen))]
        b, v_left, v_right = group_means(distances[np.ix_(order, order)], 3)
        every.append(b - (v_left + v_right) / 2)
    drawn = permuted_gaps(distances, 3, 4000, rng)
    # Exchanging the two groups whole leaves the gap as it is: 10 different ones.
    wanted = np.unique(np.round(every, 9))
    found, counts = np.unique(np.round(drawn, 9), return_counts=True)
    assert found == pytest.approx(wanted) and len(found) == 10
    assert stats.chisquare(counts).pvalue > 1e-4
    exact = np.mean(np.array(every) >= every[0] - 1e-12)
    assert p_value(every[0], drawn) == pytest.approx(exact, abs=0.03)


def test_t_test_and_correction_are_scipys() -> None:
    rng, options = np.random.default_rng(2), FigureOptions(n_permutations=9, n_resamples=9)
    b_less_v = rng.normal(0.1, 1, 30)
    t = b_less_v.mean() / (b_less_v.std(ddof=1) / np.sqrt(30))
    alone = [str(k) for k in range(30)]
    assert t_test(b_less_v, alone) == pytest.approx((t, 2 * stats.t.sf(abs(t), 29)))
    assert t_test(b_less_v[:1], alone[:1]) == t_test(np.zeros(4), alone[:4]) == (None, None)
    # Of a set: B against V_pg, the variability of the first group alone.
    some = [measure(vader, rng.normal(0, 1, 8), rng.normal(0, 2, 8), options, rng) for _ in "abcde"]
    b, v_pg = ([m[name] for m in some] for name in ("bias_b", "variability_pg"))
    wanted = stats.ttest_rel(b, v_pg)
    together = over_prompts(some, options, [*"abcde"])
    found = (together["t_statistic"], together["p_t"])
    assert found == pytest.approx((wanted.statistic, wanted.pvalue))
    assert adjusted([None, None]) == [None, None]
    # By hand: 4 p-values, 0.02 * 4 / 2, 0.03 * 4 / 3, and no larger one before a smaller.
    assert adjusted([0.02, 0.8, None, 0.03, 0.001]) == pytest.approx([0.04, 0.8, None, 0.04, 0.004])


def test_t_of_unequal_clusters_is_of_the_mean() -> None:
    """Leave out each cluster in turn; degrees of freedom from the form's matrix, by hand."""
    assert t_test(np.full(10, 0.1), [*"aaaaaaaaab"]) == (None, None), "one figure everywhere"
    rng, sizes = np.random.default_rng(6), [9, 1, 4, 4, 2, 7]
    of = np.repeat(np.arange(6), sizes)
    x = rng.normal(0.3, 1, len(of)) + rng.normal(0, 0.5, 6)[of]
    without = np.array([x[of != k].mean() for k in range(6)])
    variance = 5 / 6 * ((without - x.mean()) ** 2).sum()
    # The influence of each row on each cluster's term, for rows that are independent.
    n = len(x)
    terms = np.array([(of == k) / (n - sizes[k]) - sizes[k] / n / (n - sizes[k]) for k in range(6)])
    form = terms @ terms.T
    df = np.trace(form) ** 2 / np.trace(form @ form)
    t = x.mean() / np.sqrt(variance)
    found = t_test(x, [f"o{k}" for k in of])
    assert found == pytest.approx((t, 2 * stats.t.sf(abs(t), df)))
    assert 2 < df < 5
    alone = stats.ttest_1samp(x, 0)
    assert t_test(x, ["one"] * n) == pytest.approx((alone.statistic, alone.pvalue))


@pytest.mark.parametrize(("name", "n_folds"), [("jaccard", 0), ("vader", 0), ("vader", 5)])
def test_without_a_difference_the_test_keeps_its_level(name: str, n_folds: int) -> None:
    """500 prompts of one distribution: at 5% about 25 finds, and F about 1."""
    rng = np.random.default_rng(11)
    options = FigureOptions(folds=n_folds, n_permutations=99, n_resamples=2)
    draw = {"jaccard": token_sets, "vader": lambda rng, n: rng.gumbel(size=n).tolist()}[name]
    phi = {"jaccard": jaccard, "vader": vader}[name]
    # Groups of different sizes, as when samples failed their perturbation.
    found = [measure(phi, draw(rng, 12), draw(rng, 16), options, rng) for _ in range(500)]
    low, high = stats.binom.ppf([0.0005, 0.9995], 500, 0.05)
    n_found = sum(one["p_permutation"] <= 0.05 for one in found)
    assert low <= n_found <= high
    together = over_prompts(found, FigureOptions(), [str(k) for k in range(500)])
    assert (
        together["fairpair_f_low"]
        < 1
        < together["fairpair_f_high"]
        < together["fairpair_f_low"] + 0.1
    )
    assert together["p_permutation"] > 0.05 and together["p_t"] > 0.05


def test_prompts_with_nothing_to_measure_are_left_out_and_counted() -> None:
    rng, options = np.random.default_rng(0), FigureOptions(folds=4)
    few = measure(vader, [0.1, 0.2, 0.3], [0.1] * 9, options, rng)
    assert few["reason"] == "fewer valid samples than folds (4) on one side"
    none = measure(vader, [], [0.1] * 9, FigureOptions(), rng)
    same = measure(vader, [0.1] * 5, [0.1] * 9, FigureOptions(), rng)
    assert (same["p_permutation"], same["fairpair_f_low"], same["fairpair_f"]) == (1.0, None, None)
    some = measure(vader, [0.1, 0.4, 0.6], [0.2, 0.3], FigureOptions(), rng)
    together = over_prompts([few, none, same, some], FigureOptions(), [*"abcd"])
    assert (together["n_prompts"], together["n_left_out"]) == (2, 2)
    assert together["bias_b"] == pytest.approx((0 + some["bias_b"]) / 2)
    assert over_prompts([some], FigureOptions(), ["a"])["p_t"] is None
