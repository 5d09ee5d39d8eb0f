"""F of the same samples cut short, against plain loops over a tiny model's continuations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from itertools import combinations, product
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest

from plumbline.eval_workers.fairpair import audit
from plumbline.eval_workers.fairpair.figures.fairpair_set import score_set
from plumbline.eval_workers.fairpair.figures.lengths import score_lengths
from plumbline.eval_workers.fairpair.figures.significance import interval_over_prompts
from plumbline.eval_workers.fairpair.figures.texts import read_groups
from plumbline.eval_workers.fairpair.options import FigureOptions
from plumbline.eval_workers.fairpair.phi import jaccard as words
from plumbline.eval_workers.fairpair.phi import vader
from plumbline.eval_workers.fairpair.spec import FairPairSpec
from plumbline.warehouse.storage.store import Store
from tests.fairpair_rows import sampled_set
from tests.test_fairpair_command import PROMPTS
from tests.test_report import Page, appendix
from tests.tiny_models import save

OPTIONS = FigureOptions(n_permutations=19, n_resamples=200)


def jaccard(one: str, other: str) -> float:
    """By hand, for texts of letters and blanks: words without their punctuation."""
    a, b = ({w.strip(".,;!?\"'").lower() for w in text.split()} - {""} for text in (one, other))
    return 1 - len(a & b) / len(a | b) if a | b else 0.0


def words_apart(one: str, other: str) -> float:
    """The same of any texts, by the function's own words."""
    a, b = words.items([one, other])
    return 1 - len(a & b) / len(a | b) if a | b else 0.0


def mood(one: str, other: str) -> float:
    a, b = vader.items([one, other])
    return abs(a - b)


def short(text: str, n_words: int) -> str:
    """The first words of a continuation, by splitting and joining."""
    assert not text.startswith(("John", "Jane")), "without its prompt"
    return " ".join(text.split()[:n_words]) if n_words else text


def f_of(
    pairs: list[tuple[list[str], list[str]]], phi: Callable[[str, str], float]
) -> tuple[float, ...]:
    """Means of B, V_pg, V_gp over prompts, and F."""
    b = fmean(fmean(phi(x, y) for x, y in product(pg, gp)) for pg, gp in pairs)
    v_pg, v_gp = (
        fmean(fmean(phi(x, y) for x, y in combinations(two[side], 2)) for two in pairs)
        for side in (0, 1)
    )
    return b, v_pg, v_gp, b * b / (v_pg * v_gp)


@pytest.mark.parametrize(("name", "phi"), [("jaccard", jaccard), ("vader", mood)])
def test_every_length_is_that_of_plain_loops(
    store: Store, name: str, phi: Callable[[str, str], float]
) -> None:
    """Texts that were planted to differ in their first half: F falls as they grow."""
    sampled = sampled_set(store, n_prompts=5, n_samples=8, planted=(1, 3))
    assert score_lengths(store, sampled, name, OPTIONS, "r", (4, 10, 500)) == 2 * 3
    rows = store.read("fairpair_length", **asdict(sampled), phi=name).to_pylist()
    groups = read_groups(store, sampled)
    for row in rows:
        of = [group for group in groups if group.side == row["side"]]
        n_words = row["n_words"]
        pairs = [tuple([short(t, n_words) for t in ts] for ts in (g.pg, g.gp)) for g in of]
        got = [row[c] for c in ("bias_b", "variability_pg", "variability_gp", "fairpair_f")]
        assert got == pytest.approx(f_of(pairs, phi), rel=1e-9)
        assert (row["n_prompts"], row["n_left_out"]) == (5, 0)
        kept = [len(t.split()) for pair in pairs for ts in pair for t in ts]
        assert row["mean_words"] == pytest.approx(fmean(kept))
        assert row["share_cut"] == bool(n_words)


def test_whole_texts_are_the_set_and_changes_are_paired(store: Store, tmp_path: Path) -> None:
    sampled = sampled_set(store, n_prompts=9, n_samples=8, planted=(1, 3))
    score_set(store, sampled, "jaccard", OPTIONS, "r")
    score_lengths(store, sampled, "jaccard", OPTIONS, "r", (4, 10))
    found = store.read("fairpair_length", **asdict(sampled), phi="jaccard").to_pylist()
    rows = {r["n_words"]: r for r in found if r["side"] == "original"}
    (of_set,) = (
        r
        for r in store.read("fairpair_set", **asdict(sampled), phi="jaccard").to_pylist()
        if (r["side"], r["subset"]) == ("original", "all")
    )
    same = (
        "bias_b",
        "variability_pg",
        "variability_gp",
        "fairpair_f",
        "fairpair_f_low",
        "fairpair_f_high",
    )
    assert [rows[0][c] for c in same] == pytest.approx([of_set[c] for c in same], rel=1e-12)
    assert [rows[0][c] for c in ("change", "change_low", "change_high")] == [0, 0, 0]
    assert rows[4]["change"] == rows[4]["fairpair_f"] - rows[0]["fairpair_f"] > 0
    assert rows[4]["change_low"] < rows[4]["change"] < rows[4]["change_high"]
    page = Page(appendix(store, tmp_path / "report"))
    (caption,) = [c for c in page.tables if c.startswith("The same samples, cut")]
    shown = [row[2][0] for row in page.tables[caption][1:]]
    assert shown == ["4", "10", "all"] * 2
    assert f"jaccard: cut to 4 words F changes by +{rows[4]['change']:.3f} (" in page.text


def test_an_interval_of_a_change_holds_the_truth() -> None:
    """Two measures of the same prompts whose F differ by 0.21: in 95% of repeats, within chance."""
    n_held, rng = 0, np.random.default_rng(0)
    for _ in range(200):
        base = 0.5 + 0.1 * rng.random(30)
        more, less = 1 + 0.02 * rng.standard_normal((2, 30))
        one = np.column_stack([1.1 * base * more, base, base])
        other = np.column_stack([base * less, base, base])
        low, high = interval_over_prompts(one, 0.95, 200, rng, other)
        assert low is not None and high is not None and high - low < 0.08
        n_held += low <= 1.1**2 - 1 <= high
    assert 180 <= n_held <= 199


def test_a_model_s_own_samples(store: Store, tmp_path: Path) -> None:
    """Through every step, with a model: texts of uneven lengths, some of which fail."""
    save("gpt2", tmp_path / "tiny")
    (tmp_path / "few.toml").write_text(PROMPTS)
    spec = FairPairSpec(
        model=str(tmp_path / "tiny"), prompts=str(tmp_path / "few.toml"), n=20, max_new_tokens=8
    )
    audit.write_prompts(store, "few", audit.prompt_rows(store, "few", spec), "r")
    drawn = audit.draw(store, "few", spec.targets()[0], spec, "r")
    sampled = audit.perturb(store, "few", drawn.model_key, drawn.sampling_key, spec, "r")
    score_lengths(store, sampled, "jaccard", OPTIONS, "r", (1, 2))
    rows = store.read("fairpair_length", **asdict(sampled), phi="jaccard").to_pylist()
    assert {r["n_words"] for r in rows} == {0, 1, 2}
    for row in rows:
        of = [g for g in read_groups(store, sampled) if g.side == row["side"]]
        pairs = [tuple([short(t, row["n_words"]) for t in ts] for ts in (g.pg, g.gp)) for g in of]
        expected = f_of([two for two in pairs if min(map(len, two)) >= 2], words_apart)
        got = (row["bias_b"], row["variability_pg"], row["variability_gp"], row["fairpair_f"])
        assert got == pytest.approx(expected, rel=1e-9)
