"""Pairs that people judge: answers, agreement, and what the card says of it."""

import csv
import random
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.metrics.agreement import AnnotationTask
from scipy.stats import binomtest

from plumbline.eval_workers.pairs.human_ratings import agreement, alpha, import_answers, people_say
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import fill, interval, pair
from tests.released_files import write_csv

Row = dict[str, Any]
Say = Callable[[Row], Mapping[str, str]]


def benchmark(store: Store, n: int = 30) -> None:
    """Pairs `00` to `n`; every fifth one was judged unnatural."""
    sides = [{"sentence_a": f"She saw {k}.", "sentence_b": f"He saw {k}."} for k in range(n)]
    rows = [pair("b", f"{k:02d}", **of, is_natural=k % 5 > 0) for k, of in enumerate(sides)]
    fill(store, "benchmark_pair", rows)


def answered(store: Store, out: Path, rater: str, say: Say, n: int | None = None) -> Path:
    """A rater's answers to the first ``n`` pairs, by default all, with sides in turn."""
    rows = store.read("benchmark_pair", benchmark="b").sort_by("pair_id").to_pylist()[:n]
    shown = [
        {
            **{"benchmark": "b", "pair_id": row["pair_id"], "rater": rater},
            "sentence_1": row["sentence_b" if k % 2 else "sentence_a"],
            "sentence_2": row["sentence_a" if k % 2 else "sentence_b"],
        }
        for k, row in enumerate(rows)
    ]
    return write_csv(out / f"{rater}.csv", [{**row, **say(row)} for row in shown])


def number(row: Row) -> int:
    """Which of the pairs of ``benchmark`` an item shows."""
    return int(row["sentence_1"].split()[-1].rstrip("."))


def yes(row: Row) -> dict[str, str]:
    return {"natural": "yes", "neutral": "yes" if number(row) % 3 else "no"}


# Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), example C: four observers.
EXAMPLE = (
    (1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None),
    (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3),
    (None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None),
    (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None),
)


def test_alpha_of_the_published_example() -> None:
    counts = [[sum(o[u] == v for o in EXAMPLE) for v in range(1, 6)] for u in range(12)]
    assert round(alpha(counts), 3) == 0.815


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=12))
def test_alpha_of_two_answers_equals_a_peer(counts: list[tuple[int, int]]) -> None:
    ours = alpha(counts)
    rows = [
        (f"r{k}", str(unit), str(v))
        for unit, (no, yes) in enumerate(counts)
        if no + yes > 1
        for k, v in enumerate([0] * no + [1] * yes)
    ]
    if len({v for _, _, v in rows}) < 2:
        assert np.isnan(ours)
    else:
        assert ours == pytest.approx(AnnotationTask(data=rows).alpha(), abs=1e-9)


def test_the_interval_is_a_bootstrap_over_pairs() -> None:
    draw = random.Random(2)
    rows: list[Row] = [
        {"rater": f"r{r}", "pair_id": f"{p}", "question": "natural"}
        | {"answer_level": int((p % 3 > 0) ^ (draw.random() < 0.15))}
        for r in range(3)
        for p in range(60)
    ]
    [of_all] = agreement(rows)
    answers = {
        p: [r["answer_level"] for r in rows if r["pair_id"] == p]
        for p in {r["pair_id"] for r in rows}
    }
    peers = []
    for _ in range(300):
        drawn = draw.choices(sorted(answers), k=len(answers))
        data = [(f"r{r}", str(k), v) for k, p in enumerate(drawn) for r, v in enumerate(answers[p])]
        peers.append(AnnotationTask(data=data).alpha())
    low, high = np.quantile(peers, (0.025, 0.975))
    assert of_all["alpha_low"] == pytest.approx(low, abs=0.05)
    assert of_all["alpha_high"] == pytest.approx(high, abs=0.05)
    assert of_all["alpha_low"] < of_all["alpha"] < of_all["alpha_high"]


def test_what_cannot_be_used_is_kept_with_its_reason(store: Store, tmp_path: Path) -> None:
    benchmark(store)
    path = answered(store, tmp_path, "ana", yes, 12)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    rows[0]["natural"] = ""
    rows[1]["natural"] = "perhaps"
    rows[2]["pair_id"] = "none"
    rows[3]["rater"] = "ben"
    rows[4]["benchmark"] = "c"
    rows[6]["pair_id"] = rows[5]["pair_id"]
    rows[7]["sentence_1"] = "She left."
    write_csv(path, rows)
    with path.open("a") as file:
        file.write("one field\n")
    [one] = import_answers(store, [path], "run")
    kept = store.read("reject", stage="ratings", subject="b/ana").to_pylist()
    assert {row["source_file"] for row in kept} == {str(path)}
    found = {(row["source_row"], row["reason"].split(":")[0]): row["reason"] for row in kept}
    both = {3: "'none'", 4: "ben", 5: "benchmark", 7: "row 6", 8: "pair 07", 13: "1 fields"}
    named = {(n, q): part for n, part in both.items() for q in ("natural", "neutral")}
    named |= {(1, "natural"): "no answer", (2, "natural"): "'perhaps'"}
    assert found.keys() == named.keys() and all(part in found[key] for key, part in named.items())
    assert len(one.rejects) == 14 and len(one.rows) == 2 * 13 - 14


def test_files_that_hold_no_answers_change_nothing(store: Store, tmp_path: Path) -> None:
    benchmark(store)
    good = answered(store, tmp_path, "ana", yes)
    twin, empty = tmp_path / "ana (1).csv", tmp_path / "ben.csv"
    twin.write_bytes(good.read_bytes())
    for path in (tmp_path / "gone.csv", twin):
        with pytest.raises(UsageProblem, match=re.escape(path.name)):
            import_answers(store, [good, path], "run")
    for text, named in (
        ("benchmark,pair_id,natural\n", "no rows"),
        ("benchmark,pair_id,item\nb,00,x\n", "no answers"),
        ("benchmark,pair_id,natural\nx,00,yes\n", "benchmark 'x'"),
        ("benchmark,pair_id,natural\nb,00,\n", "1 rejected; the first: natural"),
        ("benchmark,pair_id,rater,natural\nb,00,a/b,yes\n", "'a/b'"),
        ("benchmark,pair_id,Funny\nb,00,yes\n", "column 'Funny'"),
        ("pair_id,natural\n00,yes\n", "no column benchmark"),
    ):
        empty.write_text(text)
        with pytest.raises(BadInput, match=named):
            import_answers(store, [good, empty], "run")
    assert not store.read("rating").num_rows and not store.read("reject").num_rows


def opinions(store: Store, out: Path) -> list[Path]:
    """Six raters of 40 pairs; each sees a pair's truth nine times in ten."""
    benchmark(store, 40)

    def say(draw: random.Random, row: Row) -> dict[str, str]:
        is_natural = (number(row) % 4 > 0) ^ (draw.random() < 0.1)
        return {"natural": "yes" if is_natural else "no", "neutral": "yes"}

    six = [f"rater-{k}" for k in range(1, 7)]
    draws = [partial(say, random.Random(rater)) for rater in six]
    return [answered(store, out, *of) for of in zip(six, draws, strict=True)]


def test_shares_by_hand(store: Store, tmp_path: Path) -> None:
    import_answers(store, opinions(store, tmp_path), "run")
    rows = store.read("rating", benchmark="b").to_pylist()
    said = {
        p: [r["is_yes"] for r in rows if (r["pair_id"], r["question"]) == (p, "natural")]
        for p in {r["pair_id"] for r in rows}
    }
    natural = {p: votes for p, votes in said.items() if int(p) % 5}
    [found] = rows_of(store.root, "FROM rating_share WHERE question = 'natural'")
    assert (found["n_pairs"], found["n_answers"]) == (32, 192)
    k = sum(sum(v) > len(v) / 2 for v in natural.values())
    assert (found["n_majority"], found["majority_share"]) == (k, pytest.approx(k / 32))
    low, high = binomtest(k, 32).proportion_ci(method="wilson")
    ends = (found["majority_share_low"], found["majority_share_high"])
    assert ends == pytest.approx((low, high), abs=0.03)  # over pairs, each its own cluster
    mean = np.array([sum(v) / 6 for v in natural.values()])
    assert found["mean_share"] == pytest.approx(mean.mean())
    low, _, high = interval(mean, (0, 1), 32)
    ends = found["mean_share_low"], found["mean_share_high"]
    assert ends == pytest.approx((low, high), abs=1e-3)
    assert people_say(store.root, "b")["People on `natural`"].startswith("rater-1, rater-2, ")
