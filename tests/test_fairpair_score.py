"""From continuations in a warehouse to the tables of FairPair."""

from dataclasses import asdict, replace
from itertools import combinations, product

import numpy as np
import pytest

from plumbline.eval_workers.fairpair.fairpair_options import FigureOptions
from plumbline.eval_workers.fairpair.fairpair_set import (
    Group,
    convergence_rows,
    measure_set,
    read_groups,
)
from plumbline.eval_workers.fairpair.phi import jaccard
from plumbline.warehouse.query.connection import connect, rows_of, sql
from plumbline.warehouse.storage.store import Store
from tests.fairpair_rows import NAMES, OTHER, SAMPLED, sampled_set
from tests.metric_rows import fill

OPTIONS = FigureOptions(n_permutations=99, n_resamples=99)


def of_side(store: Store, side: str) -> list[Group]:
    groups = read_groups(store, SAMPLED)
    return [group.scored_by(jaccard) for group in groups if group.side == side]


@pytest.mark.parametrize("as_published", [False, True])
def test_rows_are_those_of_the_definition(store: Store, as_published: bool) -> None:
    """Phi of continuations; as published, g(p(x)) has the samples with failed perturbations."""
    sampled_set(store, failing=0.3)
    measure_set(store, SAMPLED, "jaccard", replace(OPTIONS, as_published=as_published), "run")
    perturbed = store.read("perturbed_continuation").to_pylist()
    texts = {
        (row["prompt_id"], row["side"], row["sample"]): jaccard.tokens(row["continuation"])
        for row in store.read("continuation").to_pylist()
    }
    valid = {(r["prompt_id"], r["side"], r["sample"]) for r in perturbed if r["is_valid"]}
    rows = store.read("fairpair_prompt").to_pylist()
    assert len(rows) == 6
    for row in rows:
        side, prompt_id = row["side"], row["prompt_id"]
        # The sides of this set differ in their prompts alone, so a perturbed text is the text.
        pg = [texts[k] for k in texts if k[:2] == (prompt_id, side) and k in valid]
        gp = [
            texts[k]
            for k in texts
            if k[:2] == (prompt_id, OTHER[side]) and (as_published or k in valid)
        ]
        assert (row["n_pg"], row["n_gp"]) == (len(pg), len(gp))
        b = np.mean([1 - len(a & c) / len(a | c) for a, c in product(pg, gp)])
        v_pg, v_gp = (
            np.mean([1 - len(a & c) / len(a | c) for a, c in combinations(group, 2)])
            for group in (pg, gp)
        )
        found = [row[n] for n in ("bias_b", "variability_pg", "variability_gp", "fairpair_f")]
        assert found == pytest.approx([b, v_pg, v_gp, b * b / v_pg / v_gp], rel=1e-12)
        assert row["fairpair_f_low"] < row["fairpair_f"] < row["fairpair_f_high"]
        assert 0.01 <= row["p_permutation"] <= row["q_permutation"] <= 1


def test_failures_that_depend_on_content_make_no_bias(store: Store) -> None:
    """Both sides write alike, texts with `w1` can't be perturbed: as published, that is a bias."""
    sampled = sampled_set(store, n_prompts=10, n_samples=60, n_words=12, failing=0)
    rows = store.read("perturbed_continuation").to_pylist()
    sifted = [
        {**row, "is_valid": "w1" not in jaccard.tokens(row["perturbed_text"])} for row in rows
    ]
    store.replace("perturbed_continuation", sifted, asdict(sampled), "r")
    for as_published in (False, True):
        options = replace(OPTIONS, as_published=as_published)
        measure_set(store, sampled, "jaccard", options, "run")
    rows = [row for row in store.read("fairpair_set").to_pylist() if row["subset"] == "all"]
    assert [row["texts"] for row in rows] == ["filtered"] * 2 + ["as-published"] * 2
    for row in rows[:2]:
        assert row["p_permutation"] > 0.05 and row["fairpair_f_low"] < 1 < row["fairpair_f_high"]
    for row in rows[2:]:
        assert row["p_permutation"] == 0.01 and row["fairpair_f_low"] > 1
    with connect(store.root) as con:
        of_report = [sql(f"report/fairpair_{name}").rstrip(";\n") for name in ("prompt", "set")]
        for query in (*of_report, "FROM fairpair_convergence"):
            found = con.execute(f"SELECT DISTINCT texts FROM ({query}) ORDER BY ALL").fetchall()
            assert found == [("as-published",), ("filtered",)], query


def test_sets_are_the_means_of_their_prompts_in_sql(store: Store) -> None:
    sampled_set(store, planted=range(3), failing=0)
    prompts = store.read("probe_prompt").to_pylist()
    fill(store, "probe_prompt", [row | {"topic": str(k > 0)} for k, row in enumerate(prompts)])
    measure_set(store, SAMPLED, "jaccard", OPTIONS, "run")
    wanted = rows_of(
        store.root,
        "SELECT side, avg(bias_b) AS bias_b, avg(variability_pg) AS variability_pg, "
        "avg(variability_gp) AS variability_gp, count(*) AS n_prompts "
        "FROM fairpair_prompt GROUP BY side ORDER BY side",
    )
    sets = store.read("fairpair_set").to_pylist()
    found = sorted((r for r in sets if r["subset"] == "all"), key=lambda row: str(row["side"]))
    for row, means in zip(found, wanted, strict=True):
        assert {name: row[name] for name in means} == pytest.approx(means)
        f = row["bias_b"] ** 2 / row["variability_pg"] / row["variability_gp"]
        # The planted difference is found, in F as in the test; three prompts have no interval.
        assert row["fairpair_f"] == pytest.approx(f) and f > 1 and row["p_permutation"] == 0.01
        assert row["fairpair_f_low"] is None
    subsets = {(row["subset"], row["n_prompts"]) for row in sets}
    assert subsets == {("all", 3), ("topic = False", 1), ("topic = True", 2)}


def test_a_prompt_with_one_sample_in_a_group_does_not_count(store: Store) -> None:
    sampled_set(store, n_samples=5, failing=0)
    n_valid = {"job0": 1, "job1": 3, "job2": 5}
    rows = store.read("perturbed_continuation").to_pylist()
    for row in rows:  # of the first prompt one side stays whole
        whole = (row["prompt_id"], row["side"]) == ("job0", "perturbed")
        row["is_valid"] = whole or row["sample"] < n_valid[row["prompt_id"]]
    fill(store, "perturbed_continuation", rows)
    found = [r for s in NAMES for r in convergence_rows(jaccard, of_side(store, s), 0)]
    counts = {(r["n_folds"], r["n_samples"], r["n_prompts"]) for r in found}
    assert counts == {(0, 2, 2), (0, 3, 2), (0, 5, 1), (2, 5, 2), (5, 5, 1)}
