"""FairPair's figures against plain loops over the definition."""

import csv
from collections import defaultdict
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.contracts import check_scoring_function
from plumbline.eval_workers.fairpair.phi import SCORING_FUNCTIONS, jaccard, vader
from plumbline.eval_workers.fairpair.prompt_figures import folds
from plumbline.eval_workers.fairpair.significance import fairpair_f, group_means

#: Few words in many texts and many words in few: both ways of counting meet.
WORDS = st.one_of(
    st.sampled_from(["she", "he", "a", "is", "nurse's", "42"]), st.text("xyzé-_ '", max_size=4)
)
TEXTS = st.lists(st.lists(WORDS, max_size=12).map(" ".join), max_size=24)
NUMBERS = st.lists(st.integers(-10_000, 10_000).map(lambda k: k / 10_000), max_size=12)


def jaccard_loop(a: frozenset[str], b: frozenset[str]) -> float:
    return 1 - len(a & b) / len(a | b) if a | b else 0.0


def means_loop(phi, left, right) -> list[float]:
    def mean(values):
        values = list(values)
        return sum(values) / len(values) if values else float("nan")

    return [
        mean(phi(a, b) for a, b in product(left, right)),
        mean(phi(a, b) for a, b in combinations(left, 2)),
        mean(phi(a, b) for a, b in combinations(right, 2)),
    ]


def means(phi, left, right) -> list[float]:
    return group_means(phi.distances([*left, *right]), len(left)).tolist()


@given(TEXTS, TEXTS)
def test_jaccard_is_the_loop_to_the_last_digits(left: list[str], right: list[str]) -> None:
    sets = jaccard.items(left), jaccard.items(right)
    wanted = means_loop(jaccard_loop, *sets)
    assert means(jaccard, *sets) == pytest.approx(wanted, rel=1e-12, abs=0, nan_ok=True)


@given(NUMBERS, NUMBERS)
def test_sorted_sums_are_the_loop(left: list[float], right: list[float]) -> None:
    loop = means_loop(lambda a, b: abs(a - b), left, right)
    assert means(vader, left, right) == pytest.approx(loop, rel=1e-9, abs=1e-13, nan_ok=True)
    assert means(vader, [0.1] * 7, [0.1] * 3) == [0.0, 0.0, 0.0]


def test_folds_hold_every_sample_once() -> None:
    items = jaccard.items([f"word{k}" for k in range(11)])

    def divide(n_samples: int, seed: int) -> tuple[list[frozenset[str]], list[int]]:
        return folds(jaccard, items, 4, n_samples, np.random.default_rng(seed))

    some, sizes = divide(11, 3)
    assert sorted(map(sorted, items)) == sorted([word] for fold in some for word in fold)
    assert sizes == [len(fold) for fold in some] == [3, 3, 3, 2]
    assert divide(11, 3)[0] == some != divide(11, 4)[0]
    assert [len(fold) for fold in divide(8, 3)[0]] == [2, 2, 2, 2]
    with pytest.raises(ValueError, match="3 of 11 samples can't make 4 folds"):
        divide(3, 0)


def test_every_scoring_function_keeps_the_contract() -> None:
    for name in sorted({*SCORING_FUNCTIONS.names()} - {*SCORING_FUNCTIONS.made}):
        check_scoring_function(name)


def test_f_is_defined_where_both_groups_vary() -> None:
    figures = np.array([[0.4, 0.5, 0.6], [0.4, 0.0, 0.6], [0.4, 0.6, np.nan]])
    assert fairpair_f(*figures.T) == pytest.approx([0.16 / 0.3, np.nan, np.nan], nan_ok=True)


#: Rows of the published Table 3 whose F is not that of the printed B and V: those of averages.
F_DOES_NOT_FOLLOW = {("Average", "jaccard"), ("Average", "sentiment")}


def published(data: Path) -> dict[tuple[str, str], dict[str, float]]:
    rows: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    path = data.parent / "reference" / "fairpair_table3.csv"
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            rows[row["model"], row["phi"]][row["metric"]] = float(row["value"])
    assert len(rows) == 14
    return rows


@pytest.mark.reference
def test_published_f_follows_from_the_published_b_and_v(data: Path) -> None:
    """Percentages are printed to 0.1 and F to 0.01: F lies between the ends these leave open."""
    fails = set()
    for row, figures in published(data).items():
        b, v_pg, v_gp = (figures[name] for name in ("B", "V_pg", "V_gp"))
        low = fairpair_f(b - 0.05, v_pg + 0.05, v_gp + 0.05)
        high = fairpair_f(b + 0.05, v_pg - 0.05, v_gp - 0.05)
        if not low - 0.005 <= figures["F"] <= high + 0.005:
            fails.add(row)
    assert fails == F_DOES_NOT_FOLLOW
