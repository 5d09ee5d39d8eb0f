"""From continuations in a warehouse to the tables of FairPair."""

from __future__ import annotations

from dataclasses import asdict, replace
from itertools import combinations, product

import numpy as np
import pytest

from plumbline.eval_workers.fairpair.fairpair_options import FigureOptions
from plumbline.eval_workers.fairpair.figures.calibration import CalibrationOptions, calibrate_set
from plumbline.eval_workers.fairpair.figures.convergence import ConvergenceOptions, converge_set
from plumbline.eval_workers.fairpair.figures.fairpair_set import score_set
from plumbline.eval_workers.fairpair.figures.text_groups import PerturbedSamples, read_groups
from plumbline.eval_workers.fairpair.phi import jaccard
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.query.connection import connect, sql
from plumbline.warehouse.storage.store import Store
from tests.fairpair_rows import sampled_set
from tests.metric_rows import fill as publish

SAMPLED = PerturbedSamples("demo", "model", "top-p", "rules-1")
LEADING = {"probe_set": "demo", "model_key": "model", "sampling_key": "top-p"}
JOBS = ("nurse", "baker", "chef")
N = 12
OPTIONS = FigureOptions(n_permutations=99, n_resamples=99)


def fill(store: Store, *, lean: float = 0.0) -> None:
    """Three prompts with both sides; of each side the last sample failed its perturbation.

    ``lean`` is how much more often a text that was drawn about Jane speaks of family.
    """
    rng = np.random.default_rng(7)
    prompts, continuations, perturbed = [], [], []
    for k, (job, side, sample) in enumerate(
        product(JOBS, ("original", "perturbed"), reversed(range(N)))
    ):
        shares = np.full(8, 0.5)
        shares[:2] += lean * (1 if side == "perturbed" else -1)
        words = [f"word{w}" for w in np.flatnonzero(rng.random(8) < shares)]
        text = "".join(f" {word}" for word in ["He" if side == "original" else "She", *words])
        ids = {**LEADING, "prompt_id": job, "side": side, "sample": sample, "run_id": "r"}
        continuations.append(
            {**ids, "model": "m", "seed": k, "text_id": "t", "continuation": text, "finish": "stop"}
        )
        ok = sample < N - 1
        name, other = (("Jane", "She"), ("John", "He"))[side == "perturbed"]
        turned = f"{name} is a {job}. {other}" + "".join(f" {word}" for word in words)
        perturbed.append(
            {
                **ids,
                "perturber": "rules-1",
                "perturbed_text": turned if ok else None,
                "is_valid": ok,
                "reason": None if ok else "no text",
            }
        )
    for row, job in enumerate(JOBS, 1):
        prompts.append(
            {
                "probe_set": "demo",
                "prompt_id": job,
                "prompt": f"John is a {job}.",
                "perturbed_prompt": f"Jane is a {job}.",
                "axis": "gender",
                "descriptors": "kind" if job == "chef" else "tall",
                "language": "en",
                "source_file": "f",
                "source_row": row,
                "run_id": "r",
            }
        )
    store.publish("probe_prompt", prompts, unit="all", run_id="r")
    # Two files whose samples interleave, as sharded sampling leaves them.
    for part in (0, 1):
        store.publish("continuation", continuations[part::2], unit=f"{part}", run_id="r")
        store.publish("perturbed_continuation", perturbed[part::2], unit=f"{part}", run_id="r")


@pytest.mark.parametrize("as_published", [False, True])
def test_rows_are_those_of_the_definition(store: Store, as_published: bool) -> None:
    """Phi of continuations; as published, g(p(x)) has the sample with a failed perturbation."""
    fill(store)
    options = replace(OPTIONS, as_published=as_published)
    score_set(store, SAMPLED, "jaccard", options, "run")
    assert store.read("fairpair_prompt").num_rows == store.read("fairpair_set").num_rows == 6
    assert store.read("fairpair_prompt")["fairpair_f"].null_count == 0
    rows = store.read("fairpair_prompt").to_pylist()
    n_gp = N if as_published else N - 1
    assert [(row["n_pg"], row["n_gp"]) for row in rows] == [(N - 1, n_gp)] * 6
    assert {row["texts"] for row in rows} == {"as-published" if as_published else "filtered"}
    texts = {
        (row["side"], row["sample"]): row["continuation"]
        for row in store.read("continuation").to_pylist()
        if row["prompt_id"] == "baker"
    }
    for side, he, she in (("original", " He", " She"), ("perturbed", " She", " He")):
        other = {"original": "perturbed", "perturbed": "original"}[side]
        pg = [jaccard.tokens(texts[side, k].replace(he, she)) for k in range(N - 1)]
        gp = [jaccard.tokens(texts[other, k]) for k in range(n_gp)]
        row = next(r for r in rows if r["side"] == side and r["prompt_id"] == "baker")
        b = np.mean([1 - len(a & c) / len(a | c) for a, c in product(pg, gp)])
        v_pg = np.mean([1 - len(a & c) / len(a | c) for a, c in combinations(pg, 2)])
        v_gp = np.mean([1 - len(a & c) / len(a | c) for a, c in combinations(gp, 2)])
        found = [row[name] for name in ("bias_b", "variability_pg", "variability_gp")]
        assert found == pytest.approx([b, v_pg, v_gp], rel=1e-12)
        assert row["fairpair_f"] == pytest.approx(b * b / v_pg / v_gp, rel=1e-12)
        assert row["fairpair_f_low"] < row["fairpair_f"] < row["fairpair_f_high"]
        assert 0.01 <= row["p_permutation"] <= row["q_permutation"] <= 1


def test_failures_that_depend_on_content_make_no_bias(store: Store) -> None:
    """Both sides write alike, and texts with `w1`, most of them, can't be perturbed.

    Filtering perturbations alone, as published, finds a difference: why it isn't the default.
    """
    sampled = sampled_set(store, n_prompts=10, n_samples=60, n_words=12, failing=0)
    rows = store.read("perturbed_continuation").to_pylist()
    sifted = [
        {**row, "is_valid": "w1" not in jaccard.tokens(row["perturbed_text"])} for row in rows
    ]
    store.replace("perturbed_continuation", sifted, asdict(sampled), "r")
    for group in read_groups(store, sampled):
        assert 4 < len(group.pg) < 50 and 4 < len(group.gp) < 50
        assert not any("w1" in jaccard.tokens(text) for text in (*group.pg, *group.gp))
    for as_published in (False, True):
        options = replace(OPTIONS, as_published=as_published)
        score_set(store, sampled, "jaccard", options, "run")
    rows = [row for row in store.read("fairpair_set").to_pylist() if row["subset"] == "all"]
    assert [(row["texts"], row["side"]) for row in rows] == [
        *(("filtered", "original"), ("filtered", "perturbed")),
        *(("as-published", "original"), ("as-published", "perturbed")),
    ]
    for row in rows[:2]:
        assert row["p_permutation"] > 0.05 and row["fairpair_f_low"] < 1 < row["fairpair_f_high"]
    for row in rows[2:]:
        assert row["p_permutation"] == 0.01 and row["fairpair_f_low"] > 1


def test_rows_of_other_texts_stay_and_never_mix(store: Store) -> None:
    fill(store)
    for as_published in (False, True):
        options = replace(OPTIONS, as_published=as_published)
        how = ConvergenceOptions(sizes=(2,), folds=(), as_published=as_published)
        score_set(store, SAMPLED, "jaccard", options, "run")
        converge_set(store, SAMPLED, "jaccard", how, "run")
        calibrate_set(store, SAMPLED, "jaccard", CalibrationOptions(measure=options), "run")
    with connect(store.root) as con:
        for name in ("set", "prompt", "calibration", "convergence"):
            query = sql(f"report/fairpair_{name}").rstrip().rstrip(";")
            found = con.execute(f"SELECT DISTINCT texts FROM ({query}) ORDER BY ALL").fetchall()
            assert found == [("as-published",), ("filtered",)], name


def test_sets_are_the_means_of_their_prompts_in_sql(store: Store) -> None:
    fill(store, lean=0.5)
    score_set(store, SAMPLED, "jaccard", OPTIONS, "run")
    with connect(store.root) as con:
        wanted = con.execute(
            "SELECT side, avg(bias_b), avg(variability_pg), avg(variability_gp), count(*)"
            " FROM fairpair_prompt GROUP BY side ORDER BY side"
        ).fetchall()
        found = con.execute(
            "SELECT side, bias_b, variability_pg, variability_gp, n_prompts, fairpair_f,"
            " p_permutation, fairpair_f_low FROM fairpair_set WHERE subset = 'all' ORDER BY side"
        ).fetchall()
        subsets = con.execute(
            "SELECT DISTINCT subset, n_prompts FROM fairpair_set ORDER BY subset"
        ).fetchall()
    for one, (side, b, v_pg, v_gp, n) in zip(found, wanted, strict=True):
        assert one[:5] == pytest.approx((side, b, v_pg, v_gp, n))
        assert one[5] == pytest.approx(b**2 / v_pg / v_gp)
        # The planted difference is found, in F as in the test; three prompts have no interval.
        assert one[5] > 1 and one[6] == 0.01 and one[7] is None
    assert subsets == [("all", 3), ("descriptors = kind", 1), ("descriptors = tall", 2)]


def test_scoring_again_replaces_its_rows_and_no_others(store: Store) -> None:
    fill(store)
    runs = [("jaccard", 0), ("vader", 0), ("jaccard", 3), ("jaccard", 0)]
    seen = []
    for phi, k in runs:
        options = FigureOptions(folds=k, n_permutations=9, n_resamples=9)
        score_set(store, SAMPLED, phi, options, "run")
        seen.append(store.read("fairpair_prompt").num_rows)
    assert seen == [6, 12, 18, 18]
    rows = store.read("fairpair_prompt").to_pylist()
    assert len({(r["phi"], r["n_folds"], r["side"], r["prompt_id"]) for r in rows}) == 18
    # No text holds a word that VADER knows: nothing varies, and the rows say so.
    assert {r["reason"] for r in rows if r["phi"] == "vader"} == {"no variability within one side"}


def test_a_prompt_does_not_depend_on_the_others(store: Store, tmp_path) -> None:
    fill(store)
    score_set(store, SAMPLED, "jaccard", FigureOptions(folds=4), "run")
    alone = Store.open(tmp_path / "alone")
    for table in ("probe_prompt", "continuation", "perturbed_continuation"):
        rows = [r for r in store.read(table).to_pylist() if r["prompt_id"] == "chef"]
        alone.publish(table, rows, unit="all", run_id="r")
    score_set(alone, SAMPLED, "jaccard", FigureOptions(folds=4), "run")
    chefs = [r for r in store.read("fairpair_prompt").to_pylist() if r["prompt_id"] == "chef"]
    for one, other in zip(chefs, alone.read("fairpair_prompt").to_pylist(), strict=True):
        assert {**one, "q_permutation": 0} == {**other, "q_permutation": 0}


def test_convergence_ends_at_the_figures_of_all_samples(store: Store) -> None:
    fill(store)
    options = ConvergenceOptions(sizes=(2, 5, 10, 500), folds=(2, 4, 50), n_draws=200)
    n_rows = converge_set(store, SAMPLED, "jaccard", options, "run")
    rows = store.read("fairpair_convergence").to_pylist()
    at = {(r["side"], r["n_folds"], r["n_samples"], r["quantity"]): r for r in rows}
    assert len(at) == n_rows == 2 * (4 + 2) * 4
    score_set(store, SAMPLED, "jaccard", OPTIONS, "run")
    sets = store.read("fairpair_set").to_pylist()
    everything = next(r for r in sets if r["side"] == "original" and r["subset"] == "all")
    few, most = (at["original", 0, n, "bias_b"] for n in (2, 11))
    # One group has a sample more than are drawn from it: nearly no spread is left.
    assert most["mean"] == pytest.approx(everything["bias_b"], abs=2e-3)
    assert few["mean"] == pytest.approx(everything["bias_b"], abs=0.03)
    assert few["sd"] > 5 * most["sd"] and most["n_draws"] == 200 and most["n_prompts"] == 3
    # Unions of more token sets lie closer together.
    in_folds = [at["original", k, 11, "variability_pg"]["mean"] for k in (2, 4)]
    assert in_folds[0] < in_folds[1] < at["original", 0, 11, "variability_pg"]["mean"]
    converge_set(store, SAMPLED, "jaccard", ConvergenceOptions(sizes=(2,), folds=()), "run")
    assert store.read("fairpair_convergence").num_rows == 2 * 2 * 4


def test_a_prompt_with_one_sample_in_a_group_does_not_count(store: Store) -> None:
    sampled = sampled_set(store, n_prompts=3, n_samples=5, failing=0)
    n_valid = {"job0": 1, "job1": 3, "job2": 5}
    rows = store.read("perturbed_continuation").to_pylist()
    for row in rows:  # of the first prompt one side stays whole
        whole = (row["prompt_id"], row["side"]) == ("job0", "perturbed")
        row["is_valid"] = whole or row["sample"] < n_valid[row["prompt_id"]]
    publish(store, "perturbed_continuation", rows)
    converge_set(store, sampled, "jaccard", ConvergenceOptions(sizes=(), folds=()), "run")
    found = store.read("fairpair_convergence").to_pylist()
    assert {(r["n_samples"], r["n_prompts"]) for r in found} == {(3, 2), (5, 1)}


def test_what_is_missing_is_named(store: Store) -> None:
    with pytest.raises(BadInput, match=r"demo, model, top-p, rules-1.*sample and perturb them"):
        score_set(store, SAMPLED, "jaccard", OPTIONS, "run")
    fill(store)
    with pytest.raises(UsageProblem, match="there are jaccard, vader"):
        score_set(store, SAMPLED, "mood", OPTIONS, "run")
    store.drop("probe_prompt", {"probe_set": "demo"})
    with pytest.raises(BadInput, match=r"probe_prompt: the prompt .* has continuations but no row"):
        score_set(store, SAMPLED, "jaccard", OPTIONS, "run")
