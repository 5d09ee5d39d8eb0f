"""FairPair in the report: its figures are those of the tables, from the real steps and made-up."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from plumbline.eval_workers.fairpair.fairpair_options import FigureOptions
from plumbline.eval_workers.fairpair.figures.fairpair_set import measure_set
from plumbline.pipelines.commands.fairpair import figures
from plumbline.pipelines.report.charts.fairpair_charts import QUANTITIES
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import Section
from plumbline.warehouse.storage.store import Store
from tests.clustered_means import interval
from tests.fairpair_rows import SAMPLED, sampled_set
from tests.metric_rows import fill
from tests.report_sections import made, section
from tests.test_report import HOSTILE, Page, alone

FEW = FigureOptions(n_permutations=199, n_resamples=99)
SET = "FairPair over all prompts; distances in percent, intervals in brackets"
WHERE = "Phrases more frequent about one of the two, and where"


def measured(store: Store, *phis: str, sampled=SAMPLED) -> None:
    for phi in phis:
        measure_set(store, sampled, phi, FEW, "r")


def page_of(store: Store, out: Path) -> Page:
    return alone(store, out / "report")


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Eight prompts, two of them with a difference, through every step."""
    store = Store.open(tmp_path_factory.mktemp("planted") / "w")
    sampled_set(store, n_prompts=8, n_samples=30, planted=(2, 5))
    measured(store, "jaccard", "vader")
    return store


@pytest.fixture(scope="module")
def page(planted: Store, tmp_path_factory: pytest.TempPathFactory) -> Page:
    return page_of(planted, tmp_path_factory.mktemp("page"))


def test_the_table_is_the_warehouse_s(planted: Store, page: Page) -> None:
    rows = {
        (r["phi"], "Jane instead of John" if r["side"] == "original" else "John instead of Jane"): r
        for r in planted.read("fairpair_set").to_pylist()
    }
    prompts = planted.read("fairpair_prompt").to_pylist()
    shown_rows = page.tables[SET][1:]
    assert len(shown_rows) == len(rows) == 4
    for phi, about, b, v_pg, v_gp, f, p, p_t, n, *_ in shown_rows:
        row = rows[phi[0], about[0]]
        for (text, value), name in zip(
            (b, v_pg, v_gp), ("bias_b", "variability_pg", "variability_gp"), strict=True
        ):
            assert value is not None and float(value) == 100 * row[name]
            each = [
                100 * r[name] for r in prompts if (r["phi"], r["side"]) == (phi[0], row["side"])
            ]
            low, _, high = interval(each)
            found = [float(x) for x in re.findall(r"[\d.]+", text)]
            assert found == pytest.approx([100 * row[name], low, high], abs=0.051)
        assert float(f[1] or 0) == row["fairpair_f"] and float(p[1] or 0) == row["p_permutation"]
        assert float(p_t[1] or 0) == row["p_t"] and n[0] == "8"
        assert f"{row['fairpair_f_low']:.2f}" in f[0] or f"{row['fairpair_f_low']:.3f}" in f[0]


def test_runs_of_one_model_are_named_after_what_differs(store: Store) -> None:
    settings = {"method": "sample", "temperature": 1.0, "seed": 1, "run_id": "r"}
    drawn = [{**settings, "sampling_key": f"s{n}", "max_new_tokens": n} for n in (20, 200)]
    fill(store, "sampling", drawn)
    for n in (20, 200):
        of = replace(SAMPLED, sampling_key=f"s{n}")
        measured(store, "jaccard", sampled=sampled_set(store, n_samples=4, sampled=of))
    facts = Facts(store.root)
    sections = [part for part in made(facts, "fairpair") if isinstance(part, Section)]
    for n, one in zip((20, 200), sections, strict=True):
        assert one.title.endswith(f"m ({n} tokens), common-sents")
        assert f"m ({n} tokens)'s continuations" in one.intro[0]
    stems = [f.stem for one in sections for f in one.figures]
    assert len(set(stems)) == len(stems)


@pytest.mark.parametrize("n", [3, 6])
def test_too_many_folds_are_the_reason_on_the_console(store: Store, n: int) -> None:
    sampled_set(store, n_prompts=n, n_samples=5)
    for folds in (0, 500):
        measure_set(store, SAMPLED, "jaccard", replace(FEW, folds=folds), "r")
    *_, line, _ = figures(store, SAMPLED, ["jaccard"], replace(FEW, folds=500))
    why = f"none of {n} prompts has 500 valid samples in both groups"
    assert line == f"  jaccard, filtered, 500 folds, original: no B, V or F: {why}"
    *_, line, _ = figures(store, SAMPLED, ["jaccard"], FEW)
    # Fewer than five prompts, each a cluster, have no interval.
    ends = r" \(0\.\d{4} to 0\.\d{4}\)" if n >= 5 else ""
    figure = rf"0\.\d{{4}}{ends}, "
    assert re.search(rf"original: B {figure}V_pg {figure}V_gp {figure}F \d", line)


def test_the_opening_says_which_prompts_differ(planted: Store, page: Page) -> None:
    assert (
        "about Jane instead of John, m's continuations differ more in words than two" in page.text
    )
    rows = [
        r
        for r in planted.read("fairpair_prompt").to_pylist()
        if (r["phi"], r["side"]) == ("jaccard", "original")
    ]
    clear = {r["prompt_id"] for r in rows if r["q_permutation"] <= 0.05}
    assert clear >= {"job2", "job5"}
    said, tested = [s for s in section(planted, "fairpair").intro if "jaccard" in s]
    (row,) = [
        r
        for r in planted.read("fairpair_set").to_pylist()
        if (r["phi"], r["side"]) == ("jaccard", "original")
    ]
    differs = "differs" if row["p_t"] < 0.001 else "is not shown to differ"
    assert f"B against V_pg at 0.001, m (p = {row['p_t']:.2g}) {differs}." in tested
    assert f"{len(clear)} of 8 prompts differ after correction" in said
    assert all(name in said.split("correction")[1] for name in clear)
    assert page.text.count(said) == 1


def test_every_prompt_is_listed_with_its_figures(planted: Store, page: Page) -> None:
    (caption,) = [c for c in page.tables if c.startswith("Prompt by prompt") and "jaccard" in c]
    rows = {
        r["prompt_id"]: r
        for r in planted.read("fairpair_prompt").to_pylist()
        if (r["phi"], r["side"]) == ("jaccard", "original")
    }
    listed = page.tables[caption][1:]
    assert [row[0][0] for row in listed][:2] in (["job2", "job5"], ["job5", "job2"])
    for name, _, _, _, f, p, q_permutation, n_pg, n_gp, reason in listed:
        row = rows.pop(name[0])
        assert (float(f[1] or 0), float(p[1] or 0)) == (row["fairpair_f"], row["p_permutation"])
        assert float(q_permutation[1] or 0) == row["q_permutation"]
        assert (n_pg[0], n_gp[0], reason[0]) == (str(row["n_pg"]), str(row["n_gp"]), "–")
    assert not rows


def test_distributions_over_prompts_are_those_of_the_table(planted: Store) -> None:
    rows = [
        r
        for r in planted.read("fairpair_prompt").to_pylist()
        if (r["phi"], r["side"]) == ("vader", "original")
    ]
    figures = section(planted, "fairpair").figures
    (figure,) = [f for f in figures if f.stem.startswith("fairpair-distributions-vader")]
    assert {r["prompt_id"] for r in figure.rows} == {r["prompt_id"] for r in rows}
    # In common bins, wherever the prompts lie, each quantity counts as many.
    points = figure.chart.data["values"]
    n_by_series = {name: 0 for name in QUANTITIES.values()}
    for one in points:
        n_by_series[one["series"]] += one["y"]
    assert set(n_by_series.values()) == {len(rows)}


def test_perturbations_and_their_failures(planted: Store, page: Page) -> None:
    rows = planted.read("perturbed_continuation").to_pylist()
    of = [r for r in rows if r["side"] == "original"]
    n = sum(r["is_valid"] for r in of)
    (caption,) = [c for c in page.tables if c.startswith("Perturbations")]
    first, second = page.tables[caption][1:3]
    share = f"{100 * n / len(of):.1f}"
    assert [c[0] for c in first] == ["Jane instead of John", "valid", str(n), share]
    assert [c[0] for c in second][1:3] == ["the original name is mentioned", str(len(of) - n)]
    assert "p(g(x)) and of g(p(x)) alike" in page.text


def test_what_was_planted_is_found_in_the_ngrams(page: Page) -> None:
    rows = page.tables[WHERE][1:]
    held = {ngram[0]: (side[0], texts[0]) for ngram, side, *_, texts in rows}
    assert any("love" in n and side == "Jane" and "loves" in t for n, (side, t) in held.items())
    assert {side for side, _ in held.values()} == {"Jane", "John"}
    assert all(len(line) <= 124 for _, text in held.values() for line in text.splitlines())


def test_calibration_is_that_of_the_table(planted: Store, page: Page) -> None:
    (caption,) = [c for c in page.tables if c.startswith("Calibration")]
    rows = planted.read("fairpair_calibration").to_pylist()
    rows = [row for row in rows if row["phi"] == "jaccard"]
    shown = [cells for cells in page.tables[caption][1:] if cells[0][0] == "jaccard"]
    for cells, side in zip(shown, ("original", "perturbed"), strict=True):
        of = [r for r in rows if r["side"] == side]
        assert [c[0] for c in cells[:4]] == [
            "jaccard",
            {"original": "Jane instead of John"}.get(side, "John instead of Jane"),
            "10",
            "8",
        ]
        assert float(cells[4][1] or 0) == pytest.approx(sum(r["fairpair_f"] for r in of) / 10)
        assert cells[6][0] == f"{100 * sum(r['n_below'] for r in of) / 80:.1f}% of 80"


def test_without_data_the_command_is_named(store: Store, tmp_path: Path) -> None:
    page = page_of(store, tmp_path)
    assert "plumbline fairpair run common-sents --model ID_OR_PATH" in page.text
    sampled_set(store)
    assert "plumbline fairpair score" in page_of(store, tmp_path).text


def test_a_set_without_a_valid_perturbation(store: Store, tmp_path: Path) -> None:
    sampled_set(store, failing=1.0)
    measured(store, "jaccard")
    page = page_of(store, tmp_path)
    assert "Nothing can be said of m after the same prompt about Jane instead of John" in page.text
    assert "in no figure of the set: 3 (" in page.text and WHERE not in page.tables
    assert [c[0] for c in page.tables[SET][1]][2:8] == ["–"] * 6


def test_one_prompt_has_no_interval_and_no_t(store: Store, tmp_path: Path) -> None:
    sampled_set(store, n_prompts=1)
    measured(store, "jaccard")
    page = page_of(store, tmp_path)
    (row,) = [r for r in page.tables[SET][1:] if r[1][0].startswith("Jane")]
    assert "to" not in row[5][0] and row[7] == ("–", None)
    assert "1 prompt, 95% interval" not in page.text and "; 1 prompt)" in page.text


def test_hostile_texts_are_escaped(store: Store, tmp_path: Path) -> None:
    bad = HOSTILE.replace("\ud83d", "").replace("\x00", "")
    sampled_set(store, mark=f" {bad}", model=bad)
    measured(store, "jaccard")
    page = page_of(store, tmp_path)  # fails on a script tag and on tags that do not balance
    assert "alert(1)</script><img" in " ".join(c[0] for r in page.tables[WHERE][1:] for c in r)
    assert f"{bad}'s continuations" in page.text
    assert {p.parent for p in tmp_path.rglob("*.vl.json")} == {tmp_path / "report"}


def test_several_sets_have_a_section_each(store: Store, tmp_path: Path) -> None:
    for key in ("key-a", "key-b"):
        sampled = type(SAMPLED)("common-sents", key, "s", "rules-1")
        sampled_set(store, sampled=sampled, model=key.removeprefix("key-"))
        measured(store, "vader", sampled=sampled)
    page = page_of(store, tmp_path)
    assert page.anchors >= {"fairpair", "fairpair-2"} and "fairpair-3" not in page.anchors
    assert "a's continuations" in page.text and "b's continuations" in page.text


def test_the_default_s_measured_set_leads(store: Store) -> None:
    """Before figures as published, and before a set of which nothing can be said."""
    sampled_set(store)
    few = FigureOptions(n_permutations=9, n_resamples=10)
    for as_published in (True, False):
        measure_set(store, SAMPLED, "vader", replace(few, as_published=as_published), "r")
    rows = store.read("fairpair_set").to_pylist()
    nothing = {"bias_b": None, "fairpair_f": None, "p_permutation": None, "p_t": None}
    dead = [{**r, **nothing, "probe_set": "a-set", "n_left_out": 3, "n_prompts": 0} for r in rows]
    fill(store, "fairpair_set", dead)
    first, second = (p.intro for p in made(store, "fairpair") if isinstance(p, Section))
    assert ["as published" in said for said in second[:2]] == [False, True]
    assert "Nothing" in first[0]


@pytest.mark.parametrize(
    ("p", "high", "expected"),
    [
        (0.001, 1.2, "differ more in words than"),
        (0.4, 1.02, "are not shown to differ more in words than"),
        (0.4, 1.8, "are not shown to differ more in words than"),
        (0.4, None, "are not shown to differ more in words than"),
    ],
)
def test_the_verdict_goes_by_the_test_and_the_interval(
    store: Store, p: float, high: float | None, expected: str
) -> None:
    row = {"probe_set": "p", "model_key": "k", "sampling_key": "s", "perturber": "r"}
    row |= {"side": "original", "subset": "all", "run_id": "r"}
    row |= {"phi": "jaccard", "texts": "filtered", "n_folds": 0, "n_prompts": 60, "n_left_out": 0}
    row |= {
        "fairpair_f": 1.0,
        "fairpair_f_low": high and 0.98,
        "fairpair_f_high": high,
        "p_permutation": p,
    }
    row |= {"bias_b": 0.55, "variability_pg": 0.5, "variability_gp": 0.5}
    fill(store, "fairpair_set", [{**row, "options": json.dumps({"level": 0.9})}])
    said = section(store, "fairpair").intro[0]
    assert expected in said and f"p = {p:g}" in said
    assert ("90% interval" in said) == (high is not None)


def test_a_prompt_without_f_and_made_up_rows(store: Store, tmp_path: Path) -> None:
    """Rows alone: figures that are NULL are dashes."""
    key = {"probe_set": "p", "model_key": "k", "sampling_key": "s", "perturber": "r"}
    key |= {"phi": "vader", "texts": "filtered", "n_folds": 20, "side": "original"}
    key |= {"options": "{}", "run_id": "r"}
    row = {**key, "prompt_id": "x", "n_pg": 1, "n_gp": 5, "reason": "too few"}
    fill(store, "fairpair_prompt", [row])
    fill(store, "fairpair_set", [{**key, "subset": "all", "n_prompts": 0, "n_left_out": 1}])
    page = page_of(store, tmp_path)
    assert "Nothing can be said of k" in page.text and "(vader, 20 folds)" in page.text
    (caption,) = [c for c in page.tables if c.startswith("Prompt by prompt")]
    assert [c[0] for c in page.tables[caption][1]] == ["x", *["–"] * 6, "1", "5", "too few"]
