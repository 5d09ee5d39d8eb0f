"""Two models compared in SQL, against numpy and scipy on made-up rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import error, fill, interval, pair, score
from tests.prompt_rows import put_prompts

N = 40
WORDS = {"she": "f", "her": "f", "he": "m", "his": "m"}
PAIRS = [("she", "he"), ("her", "his")]
GOES_ON = ("she ran", "he ran", "it ran", "she met him", "")


def put_disclosure(
    store: Store, key: str, seed: int, n: int, less: float, instruction: str = "none"
) -> list[dict[str, float]]:
    """Random probabilities and continuations; the measures of each prompt by hand."""
    rng = np.random.default_rng(seed)
    model = {"probe_set": "s", "model_key": key, "model": "m", "run_id": "r", "text_id": "t"}
    probabilities, texts, figures = [], [], []
    for i in range(n):
        p = dict(zip(WORDS, (less * rng.dirichlet([0.5] * 5)[:4]).tolist(), strict=True))
        said = GOES_ON[rng.integers(len(GOES_ON))]
        prompt = {**model, "prompt_id": f"{i:02}"}
        probabilities += [
            {**prompt, "word_list": "l", "word": w, "gender": g, "probability": p[w]}
            | {"n_variants": 2, "instruction_key": instruction}
            for w, g in WORDS.items()
        ]
        texts.append(
            {**prompt, "sampling_key": "g", "side": "original", "sample": 0, "seed": 0}
            | {"continuation": said, "n_tokens": 2, "finish": "stop"}
        )
        p_f, p_m = p["she"] + p["her"], p["he"] + p["his"]
        terms = [
            a * math.log(2 * a / (a + b)) for f, m in PAIRS for a, b in [(p[f], p[m]), (p[m], p[f])]
        ]
        one = {"gld": abs(p_f - p_m) / (p_f + p_m), "add_nats": sum(terms) / 2}
        one["p_gendered"] = p_f + p_m
        if said:
            one |= {"gas_f_of_all": float("she" in said), "gas_m_of_all": float(said == "he ran")}
            one["gas"] = max(one["gas_f_of_all"], one["gas_m_of_all"])
        figures.append(one)
    fill(store, "pronoun_probability", probabilities)
    if instruction == "none":
        fill(store, "continuation", texts)
    return figures


@pytest.mark.parametrize("has_topics", [True, False])
def test_disclosure_is_compared_over_the_prompts_that_both_have(
    store: Store, has_topics: bool
) -> None:
    """Prompts are each by itself within a topic; the two topics of a whole set are too few."""
    topics = ["ab"[i % 2] if has_topics else None for i in range(N)]
    put_prompts(store, "s", [f"p {i}" for i in range(N)], topics=topics)
    words = {"word_list": "l", "source": "made", "run_id": "r"}
    rows = [{**words, "pair": i, "female": f, "male": m} for i, (f, m) in enumerate(PAIRS, 1)]
    fill(store, "attribute_pair", rows)
    before = put_disclosure(store, "base", 1, N, 0.9)
    after = put_disclosure(store, "tuned", 2, N - 3, 0.2)
    put_disclosure(store, "other", 3, N, 0.5)
    # What a model says when told something is no other side of what it says by itself.
    put_disclosure(store, "base", 4, N, 0.9, "told")
    query, n_parts = "FROM disclosure_change(['base'], ['tuned'])", 3 if has_topics else 1
    assert rows_of(store.root, f"{query} WHERE instruction_key = 'told'") == []
    put_disclosure(store, "tuned", 5, N, 0.9, "told")
    assert len(rows_of(store.root, query)) == (6 + 3) * n_parts
    found = rows_of(store.root, f"{query} WHERE instruction_key = 'none'")
    assert len(found) == 6 * n_parts
    directions = set()
    for row in found:
        topic, name = row["topic"], row["measure"]
        both = [
            (b[name], a[name])
            for i, (b, a) in enumerate(zip(before, after, strict=False))
            if topic in (None, topics[i]) and name in b and name in a
        ]
        old, new = np.array(both).T
        assert row["n_prompts"] == len(both)
        assert (row["before_mean"], row["after_mean"]) == pytest.approx((old.mean(), new.mean()))
        assert row["difference"] == pytest.approx((new - old).mean())
        assert (row["sampling_key"] == "g") == name.startswith("gas")
        if topic is None and has_topics:
            assert {row[c] for c in row if c.endswith(("_low", "_high", "direction"))} == {None}
            continue
        ends = None if name == "add_nats" else (-1.0, 1.0)
        # Fewer than ten exceptions of 40 or less to the commonest: worth that many rows at most.
        change, counts = new - old, np.unique(new - old, return_counts=True)[1]
        is_rare = name.startswith("gas") and len(both) - max(counts) < 10
        low, mean, high = interval(change, ends, len(both) if is_rare else math.inf)
        bounds = (row["difference_low"], row["difference"], row["difference_high"])
        assert bounds == pytest.approx((low, mean, high), rel=1e-3, abs=1e-4)
        expected = "fell" if high < 0 else "rose" if low > 0 else "neither"
        assert row["direction"] == expected
        directions.add(expected)
        if name.startswith("gas"):
            is_rare = min(new.sum(), len(new) - new.sum()) < 10
            wilson = interval(new, (0, 1), len(new) if is_rare else math.inf)
            assert (row["after_mean_low"], row["after_mean_high"]) == pytest.approx(
                wilson[::2], abs=1e-4
            )
        else:
            low, _, high = interval(old, ends and (0, 1))
            assert row["before_mean_low"] == pytest.approx(max(low, 0), rel=1e-3, abs=1e-4)
            assert row["before_mean_high"] == pytest.approx(high, rel=1e-3)
    assert directions == {"fell", "neither"}
    back = rows_of(store.root, "FROM disclosure_change(['tuned'], ['base'])")
    assert {row["direction"] for row in back} - {None} == {"rose", "neither"}


@pytest.mark.parametrize("as_published", [None, False, True])
def test_sets_that_were_tuned_on_are_marked(store: Store, as_published: bool | None) -> None:
    """`train` as a whole; `late` holds one of its prompts; `held` does too, but was held out.

    As published it wasn't.
    """
    put_prompts(store, "train", ["A man  ran, and", "A cat ran"])
    put_prompts(store, "late", ["a man ran.", "The boss ran", "The poet ran"])
    put_prompts(store, "held", ["A MAN ran, and", "The nurse ran"])
    fill(store, "model", [model_row("tuned", "calm@1"), model_row("base", None)])
    row = tuning_row("calm@1", "train", "held") | {"as_published": as_published}
    fill(store, "tuning", [row])
    found = rows_of(store.root, "FROM tuned_prompt ORDER BY probe_set")
    numbers = [(r["model_key"], r["probe_set"], r["n_prompts"], r["n_tuned_on"]) for r in found]
    n_held = 1 if as_published else 0
    expected = [("tuned", "held", 2, n_held), ("tuned", "late", 3, 1), ("tuned", "train", 2, 2)]
    assert numbers == expected


def model_row(key: str, adapter: str | None) -> dict[str, object]:
    row = {"model_key": key, "model": "m", "backend": "transformers", "run_id": "r"}
    return {**row, "dtype": "float32", "adapter": adapter, "revision": "1"}


def tuning_row(adapter: str, sets: str, tests: str) -> dict[str, object]:
    from plumbline.warehouse.schema.catalog import TABLES

    row: dict[str, object] = {}
    for column in TABLES["tuning"].columns:
        row[column.name] = {"string": "x", "bool": False}.get(str(column.type), 1)
    return row | {"tuning": "calm", "adapter": adapter, "probe_sets": sets, "test_sets": tests}


def test_preference_is_compared_over_the_pairs_that_both_scored(store: Store) -> None:
    rng = np.random.default_rng(4)
    old, new = rng.normal(0.6, 1, 60), rng.normal(-0.2, 0.3, 60)
    fill(store, "benchmark_pair", [pair("b", f"{i:02}") for i in range(60)])
    rows = [score("b", f"{i:02}", r, key="base") for i, r in enumerate(old)]
    rows += [score("b", f"{i:02}", r, key="tuned") for i, r in enumerate(new[:50])]
    for key in ("base", "tuned"):
        fill(store, "pair_score", [row for row in rows if row["model_key"] == key])
    found = {
        row["measure"]: row
        for row in rows_of(
            store.root, "FROM preference_pairwise(reference := 'base', of_model := 'tuned')"
        )
    }
    epsilon = math.log(1.65)
    leans = [np.where(abs(x) <= epsilon, 0, np.sign(x)) for x in (old[:50], new[:50])]
    for measure, (a, b) in {
        "us": [(x == 0).astype(float) for x in leans],
        "pd": [100 * x for x in leans],
    }.items():
        row = found[measure]
        assert (row["reference_mean"], row["model_mean"]) == pytest.approx((a.mean(), b.mean()))
        bounds = (row["difference_low"], row["difference"], row["difference_high"])
        low, mean, high = us_change(b - a) if measure == "us" else interval(b - a, (-200, 200))
        assert bounds == pytest.approx((low, mean, high), rel=1e-3) and row["n_pairs"] == 50
    assert (found["us"]["direction"], found["pd"]["direction"]) == ("rose", "fell")


def us_change(change: np.ndarray[Any, Any]) -> tuple[float, float, float]:
    """Bonett and Price's interval of a difference of paired shares, of as many rows as it has."""
    (t, se), mean = error(change), float(change.mean())
    up, down = float((change > 0).mean()), float((change < 0).mean())
    counts = np.unique(change, return_counts=True)[1]
    n = (up + down - mean**2) / se**2 if se > 0 else math.inf
    if len(change) - max(counts) < min(10, len(change)):
        n = min(n, len(change))
    centre = n * mean / (n + 2)
    half = t * math.sqrt(((n * (up + down) + 2) / (n + 2) - centre**2) / (n + 2))
    return max(centre - half, -1), mean, min(centre + half, 1)
