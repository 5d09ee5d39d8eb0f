"""FairPair in the report: its figures are those of the tables, from the real steps and made-up."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.eval_workers.fairpair.fairpair_options import FigureOptions
from plumbline.eval_workers.fairpair.figures.fairpair_set import measure_set
from plumbline.warehouse.storage.store import Store
from tests.fairpair_rows import SAMPLED, sampled_set
from tests.report_sections import section
from tests.test_report import Page, alone

FEW = FigureOptions(n_permutations=199, n_resamples=99)
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
    said = next(s for s in section(planted, "fairpair").intro if "jaccard" in s)
    assert f"{len(clear)} of 8 prompts differ" in said
    assert all(name in said.split("correction")[1] for name in clear)
    assert page.text.count(said) == 1


def test_what_was_planted_is_found_in_the_ngrams(page: Page) -> None:
    rows = page.tables[WHERE][1:]
    held = {ngram[0]: (side[0], texts[0]) for ngram, side, *_, texts in rows}
    assert any("love" in n and side == "Jane" and "loves" in t for n, (side, t) in held.items())
    assert {side for side, _ in held.values()} == {"Jane", "John"}
    assert all(len(line) <= 124 for _, text in held.values() for line in text.splitlines())
