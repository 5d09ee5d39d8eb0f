"""The rule for what may be said of a figure: a verdict never outruns its interval."""

import math
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plumbline.eval_workers.fairpair.significance import interval_over_prompts, t_test
from plumbline.eval_workers.models import model_lists, model_texts
from plumbline.jobs.evidence.concordance import ratio
from plumbline.warehouse.finding import ALPHA, LEAST_CLUSTERS, verdict
from plumbline.warehouse.query.connection import connect, rows_of
from plumbline.warehouse.storage.store import Store

_NUMBER = st.floats(-10, 10)
_END = st.none() | _NUMBER | st.just(math.nan)
_P = st.none() | st.floats(0, 1)
_GIVEN = st.fixed_dictionaries(
    {
        "estimate": _END,
        "low": _END,
        "high": _END,
        "null": st.sampled_from([0.0, 0.5, 1.0]),
        "small": st.none() | st.floats(0.01, 5),
        "p": _P,
        "q": _P,
        "n_clusters": st.none() | st.integers(0, 50),
    }
)


@given(_GIVEN)
def test_a_verdict_never_outruns_its_interval(given: dict[str, float | None]) -> None:
    said = verdict(**given)  # type: ignore[arg-type]
    low, high, null, small = (given[name] for name in ("low", "high", "null", "small"))
    n, q, test = given["n_clusters"], given["q"], given["p"] if given["q"] is None else given["q"]
    assert null is not None
    if said == "cannot be told":
        return
    assert n is None or n >= LEAST_CLUSTERS
    assert given["estimate"] is not None
    if low is None or high is None:
        # Without an interval a test says it, and nothing is ever shown to be small.
        assert low is high is None and test is not None and test <= ALPHA
        assert said == ("above" if given["estimate"] > null else "below")
        return
    if said == "within":
        assert small is not None and null - small < low and high < null + small
    else:
        assert q is None or q <= ALPHA
        assert low > null if said == "above" else high < null


@given(_GIVEN)
def test_less_evidence_never_says_more(given: dict[str, float | None]) -> None:
    before = verdict(**given)  # type: ignore[arg-type]
    low, high = given["low"], given["high"]
    weaker: list[dict[str, float | None]] = [{"n_clusters": 4}, {"q": 1.0}]
    if low is not None and high is not None and low <= high:
        weaker += [{"low": low - 1, "high": high + 1}, {"low": None}, {"estimate": None}]
    for less in weaker:
        after = verdict(**{**given, **less})  # type: ignore[arg-type]
        is_small = after == "within" and before in ("above", "below")
        assert after in (before, "cannot be told") or is_small


@given(_NUMBER, _NUMBER, _NUMBER, _P, st.none() | st.floats(0.01, 5))
def test_the_other_sign_has_the_other_side(
    estimate: float, a: float, b: float, q: float | None, small: float | None
) -> None:
    low, high = sorted((a, b))
    other = {"above": "below", "below": "above"}
    said = verdict(estimate, low, high, q=q, small=small)
    assert verdict(-estimate, -high, -low, q=q, small=small) == other.get(said, said)


@pytest.fixture(scope="module")
def macros(tmp_path_factory: pytest.TempPathFactory) -> duckdb.DuckDBPyConnection:
    return connect(Store.open(tmp_path_factory.mktemp("macros") / "warehouse").root)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.tuples(_NUMBER, _NUMBER).map(sorted), min_size=1))
def test_sql_counts_by_the_same_rule(
    macros: duckdb.DuckDBPyConnection, ends: list[list[float]]
) -> None:
    """`direction_of` and `bound_nearer_zero`, by which views count."""
    query = """SELECT direction_of(e[1], e[2]), sign(bound_nearer_zero(0.0, e[1], e[2]))
    FROM (SELECT unnest($ends::DOUBLE[][]) AS e)"""
    found = macros.execute(query, {"ends": ends}).fetchall()
    ways = {"above": ("rose", 1), "below": ("fell", -1), "cannot be told": ("neither", 0)}
    assert found == [ways[verdict((low + high) / 2, low, high)] for low, high in ends]
    nothing = "SELECT direction_of(NULL::DOUBLE, NULL::DOUBLE)"
    assert macros.execute(nothing).fetchall() == [(None,)]


def test_every_model_of_the_paper_has_a_text_with_a_source() -> None:
    listed = [model.name or model.id for model in model_lists.load("unstereoeval")]
    found = {name: model_texts.known(name) for name in listed}
    assert len(listed) == 28 and all(of and of["source"] for of in found.values())
    relations = [model_texts.relation(name, "pile") for name in listed]
    names = ("same", "deduplicated", "some", "other", "unpublished", "unknown")
    assert [relations.count(name) for name in names] == [8, 7, 4, 4, 5, 0]
    assert len({model_texts.described(name)["family"] for name in listed}) == 7


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_an_interval_needs_five_clusters_everywhere(tmp_path: Path, n: int) -> None:
    """SQL, words over documents, rates of words and FairPair's prompts follow one number."""
    has = n >= LEAST_CLUSTERS
    store = Store.open(tmp_path / "w")
    asked = (
        f"nullif(is_enough({n}), false) AS enough, t_over(3, {n}) AS t, student_half(x) AS half, "
        f"direction_of(1, 2, n_of := {n}) AS way"
    )
    (row,) = rows_of(store.root, f"SELECT {asked} FROM range({n}) AS r(x)")
    assert [row[name] is not None for name in ("enough", "t", "half", "way")] == [has] * 4
    every = np.arange(1.0, n + 1)
    assert (ratio("rate", every, every**2, np.arange(n))["rate_low"] is not None) == has
    ends = interval_over_prompts(every[:, None] + [0, 1, 2], 0.95, 99, np.random.default_rng(0))
    assert (ends[0] is not None) == has
    assert (t_test(every, [f"c{k}" for k in range(n)])[1] is not None) == has
    assert (verdict(0.3, 0.1, 0.5, n_clusters=n) == "above") == has
