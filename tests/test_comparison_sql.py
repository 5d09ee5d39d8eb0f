"""Two models compared in SQL, against numpy and scipy on made-up rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats

from plumbline.eval_workers.mitigation.prompts import plain
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import fill, pair, score
from tests.prompt_rows import put_prompts

N = 40
WORDS = {"she": "f", "her": "f", "he": "m", "his": "m"}
PAIRS = [("she", "he"), ("her", "his")]
GOES_ON = ("she ran", "he ran", "it ran", "she met him", "")


def student(values: Sequence[float]) -> tuple[float, float, float]:
    """Lower end, mean and upper end of the 95% interval."""
    mean = float(np.mean(values))
    low, high = stats.t.interval(0.95, len(values) - 1, loc=mean, scale=stats.sem(values))
    return float(low), mean, float(high)


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
            one |= {"gas_f": float("she" in said), "gas_m": float(said == "he ran")}
            one["gas"] = max(one["gas_f"], one["gas_m"])
        figures.append(one)
    fill(store, "pronoun_probability", probabilities)
    if instruction == "none":
        fill(store, "continuation", texts)
    return figures


def test_disclosure_is_compared_over_the_prompts_that_both_have(store: Store) -> None:
    put_prompts(store, "s", [f"p {i}" for i in range(N)], topics=["ab"[i % 2] for i in range(N)])
    words = {"word_list": "l", "source": "made", "run_id": "r"}
    rows = [{**words, "pair": i, "female": f, "male": m} for i, (f, m) in enumerate(PAIRS, 1)]
    fill(store, "attribute_pair", rows)
    before = put_disclosure(store, "base", 1, N, 0.9)
    after = put_disclosure(store, "tuned", 2, N - 3, 0.2)
    put_disclosure(store, "other", 3, N, 0.5)
    # What a model says when told something is no other side of what it says by itself.
    put_disclosure(store, "base", 4, N, 0.9, "told")
    query = "FROM disclosure_difference('base', 'tuned')"
    assert rows_of(store.root, f"{query} WHERE instruction_key = 'told'") == []
    put_disclosure(store, "tuned", 5, N, 0.9, "told")
    assert len(rows_of(store.root, query)) == 6 * 3 + 3 * 3
    found = rows_of(store.root, f"{query} WHERE instruction_key = 'none'")
    assert len(found) == 6 * 3
    directions = set()
    for row in found:
        topic, name = row["topic"], row["measure"]
        both = [
            (b[name], a[name])
            for i, (b, a) in enumerate(zip(before, after, strict=False))
            if topic in (None, "ab"[i % 2]) and name in b and name in a
        ]
        old, new = np.array(both).T
        assert row["n_prompts"] == len(both)
        assert (row["before_mean"], row["after_mean"]) == pytest.approx((old.mean(), new.mean()))
        low, mean, high = student(new - old)
        bounds = (row["difference_low"], row["difference"], row["difference_high"])
        assert bounds == pytest.approx((low, mean, high), rel=1e-3, abs=1e-4)
        expected = "fell" if high < 0 else "rose" if low > 0 else "neither"
        assert row["direction"] == expected and row["n_tuned_on"] is None
        directions.add(expected)
        if name.startswith("gas"):
            wilson = stats.binomtest(int(new.sum()), len(new)).proportion_ci(method="wilson")
            assert (row["after_mean_low"], row["after_mean_high"]) == pytest.approx(
                tuple(wilson), abs=1e-9
            )
            assert row["sampling_key"] == "g"
        else:
            low, _, high = student(old)
            assert row["before_mean_low"] == pytest.approx(max(low, 0), rel=1e-3, abs=1e-4)
            assert row["before_mean_high"] == pytest.approx(high, rel=1e-3)
    assert directions == {"fell", "neither"}
    back = rows_of(store.root, "FROM disclosure_difference('tuned', 'base')")
    assert {row["direction"] for row in back} == {"rose", "neither"}


def test_sets_that_were_tuned_on_are_marked(store: Store) -> None:
    """`train` as a whole; `late` holds one of its prompts; `held` does too, but was held out."""
    put_prompts(store, "train", ["A man  ran, and", "A cat ran"])
    put_prompts(store, "late", ["a man ran.", "The boss ran", "The poet ran"])
    put_prompts(store, "held", ["A MAN ran, and", "The nurse ran"])
    fill(store, "model", [model_row("tuned", "calm@1"), model_row("base", None)])
    fill(store, "tuning", [tuning_row("calm@1", "train", "held")])
    found = rows_of(store.root, "FROM tuned_prompt ORDER BY probe_set")
    numbers = [(r["model_key"], r["probe_set"], r["n_prompts"], r["n_tuned_on"]) for r in found]
    expected = [("tuned", "held", 2, 0), ("tuned", "late", 3, 1), ("tuned", "train", 2, 2)]
    assert numbers == expected


def model_row(key: str, adapter: str | None) -> dict[str, object]:
    row = {"model_key": key, "model": "m", "backend": "transformers", "run_id": "r"}
    return {**row, "dtype": "float32", "adapter": adapter, "revision": "1"}


def tuning_row(adapter: str, sets: str, tests: str) -> dict[str, object]:
    from plumbline.warehouse.schema.catalog import TABLES

    row: dict[str, object] = {}
    for column in TABLES["tuning"].columns:
        row[column.name] = "x" if str(column.type) == "string" else 1
    return row | {"tuning": "calm", "adapter": adapter, "probe_sets": sets, "test_sets": tests}


@pytest.mark.parametrize(
    "text",
    ["My Friend  sings, and", "my friend sings.", "My friend likes sand, and", " A b!? and ... "],
)
def test_prompts_are_the_same_as_tuning_has_it(store: Store, text: str) -> None:
    found = rows_of(store.root, "SELECT plain_prompt($text) AS plain", {"text": text})
    assert found == [{"plain": plain(text)}]


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
        for row in rows_of(store.root, "FROM preference_difference('base', 'tuned')")
    }
    epsilon = math.log(1.65)
    leans = [np.where(abs(x) <= epsilon, 0, np.sign(x)) for x in (old[:50], new[:50])]
    for measure, (a, b) in {
        "us": [(x == 0).astype(float) for x in leans],
        "pd": [100 * x for x in leans],
    }.items():
        row = found[measure]
        low, mean, high = student(b - a)
        assert (row["before_mean"], row["after_mean"]) == pytest.approx((a.mean(), b.mean()))
        bounds = (row["difference_low"], row["difference"], row["difference_high"])
        assert bounds == pytest.approx((low, mean, high), rel=1e-3) and row["n_pairs"] == 50
    assert (found["us"]["direction"], found["pd"]["direction"]) == ("rose", "fell")


def test_few_pairs_stay_within_what_a_difference_can_be(store: Store) -> None:
    """Where all pairs differ by as much, there is no interval: it would have no width."""
    ratios = {"base": (-2.0, -2.0, 0.0), "tuned": (2.0, 0.0, 0.0), "same": (-2.0, -2.0, 0.0)}
    fill(store, "benchmark_pair", [pair("b", f"{i}") for i in range(3)])
    for key, values in ratios.items():
        fill(store, "pair_score", [score("b", f"{i}", r, key=key) for i, r in enumerate(values)])
    found = {
        (key, row["measure"]): (row["difference_low"], row["difference_high"], row["direction"])
        for key in ("tuned", "same")
        for row in rows_of(store.root, f"FROM preference_difference('base', '{key}')")
    }
    low, _, _ = student(np.array([200.0, 100.0, 0.0]))
    assert found["tuned", "pd"] == (pytest.approx(low, rel=0.02), 200, "neither")
    assert found["tuned", "us"][1] == 1
    assert found["same", "pd"] == found["same", "us"] == (None, None, None)


def test_perplexity_is_compared_by_document(store: Store) -> None:
    rng = np.random.default_rng(6)
    n_tokens = rng.integers(5, 300, 20)
    y = {"base": n_tokens * rng.normal(3, 0.2, 20)}
    y["tuned"] = y["base"] * rng.normal(1.02, 0.01, 20)
    rows = [
        {"text_set": "t", "model_key": key, "model": "m", "document": f"{i:02}", "run_id": "r"}
        | {"window_tokens": 64, "text_id": f"{i}{key if i == 19 else ''}", "n_windows": 1}
        | {"n_tokens": int(n), "n_words": int(n) // 2, "logprob_nats": -float(v)}
        for key, of in y.items()
        for i, (n, v) in enumerate(zip(n_tokens, of, strict=True))
    ]
    for key in y:
        fill(store, "perplexity", [row for row in rows if row["model_key"] == key])
    (row,) = rows_of(store.root, "FROM perplexity_difference('base', 'tuned')")
    x, a, b = n_tokens[:19], y["base"][:19], y["tuned"][:19]  # the last is another text
    difference = (b.sum() - a.sum()) / x.sum()
    residuals = b - a - difference * x
    half = stats.t.ppf(0.975, 18) * math.sqrt(19 / 18 * (residuals**2).sum()) / x.sum()
    assert row["n_documents"] == 19 and row["direction"] == "rose"
    assert row["difference"] == pytest.approx(difference)
    assert row["perplexity_ratio"] == pytest.approx(
        row["after_perplexity"] / row["before_perplexity"]
    )
    assert row["before_perplexity"] == pytest.approx(math.exp(a.sum() / x.sum()))
    assert row["before_nats_per_word"] == pytest.approx(a.sum() / (x // 2).sum())
    ends = (row["difference_low"], row["difference_high"])
    assert ends == pytest.approx((difference - half, difference + half), rel=1e-4)
    assert row["perplexity_ratio_high"] == pytest.approx(math.exp(difference + half), rel=1e-4)
