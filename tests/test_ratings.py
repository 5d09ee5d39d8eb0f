"""Pairs that people judge: sheets, answers, agreement, and what the card says of it."""

from __future__ import annotations

import csv
import itertools
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.metrics.agreement import AnnotationTask
from scipy.stats import binomtest
from scipy.stats import t as student

from plumbline.eval_workers.pairs.ratings.answers import import_answers
from plumbline.eval_workers.pairs.ratings.questions import load
from plumbline.eval_workers.pairs.ratings.rater_agreement import agreement, alpha
from plumbline.eval_workers.pairs.ratings.rating_facts import people_say
from plumbline.eval_workers.pairs.ratings.sheets import (
    RatingDesign,
    Sheets,
    deal,
    make,
    raters,
    sample,
)
from plumbline.eval_workers.pairs.sharing.benchmark_card import write_card
from plumbline.pipelines.command.main import main
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import fill, pair

Row = dict[str, Any]
Say = Callable[[Row], Mapping[str, str]]


def benchmark(store: Store, n: int = 30, **given: object) -> list[Row]:
    """Pairs `00` to `n`; every fifth one was judged unnatural."""
    rows = [
        pair(
            *("b", f"{k:02d}"),
            sentence_a=f"She saw {k}.",
            sentence_b=f"He saw {k}.",
            **{"is_natural": k % 5 > 0, **given},
        )
        for k in range(n)
    ]
    fill(store, "benchmark_pair", rows)
    return rows


def exported(store: Store, out: Path, **given: Any) -> Sheets:
    named = {"n_pairs": 20, "raters": raters("4"), "n_per_pair": 3, "with_unnatural": True}
    return make(store, "b", RatingDesign(**{**named, **given}), load(), out, "export")


def answered(out: Path, rater: str, say: Say) -> Path:
    """A rater's sheet, filled in."""
    path = out / f"{rater}.csv"
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = [{**row, **say(row)} for row in csv.DictReader(file)]
    return written(path, rows)


def written(path: Path, rows: list[Row], delimiter: str = ",", bom: bool = False) -> Path:
    with path.open("w", encoding="utf-8-sig" if bom else "utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return path


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
    assert alpha(counts)[0].round(3) == 0.815


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=12))
def test_alpha_of_two_answers_equals_a_peer(counts: list[tuple[int, int]]) -> None:
    ours = alpha(counts)[0]
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


def test_alpha_of_ordered_answers_by_brute_force() -> None:
    """Over all pairs of single answers, with the distance counted answer by answer."""
    draw = random.Random(1)
    units = [[draw.choice((0, 1, 1, 2, 3)) for _ in range(draw.randint(1, 5))] for _ in range(40)]
    kept = [unit for unit in units if len(unit) > 1]
    pool = [value for unit in kept for value in unit]

    def distance(a: int, b: int) -> float:
        low, high = sorted((a, b))
        between = sum(low <= v <= high for v in pool)
        return float((between - (pool.count(a) + pool.count(b)) / 2) ** 2)

    within = sum(
        distance(a, b) / (len(unit) - 1)
        for unit in kept
        for a, b in itertools.permutations(unit, 2)
    ) / len(pool)
    pairs = list(itertools.permutations(pool, 2))
    expected = 1 - within / (sum(distance(a, b) for a, b in pairs) / len(pairs))
    counts = [[unit.count(v) for v in range(4)] for unit in units]
    assert alpha(counts)[0] == pytest.approx(expected, abs=1e-12)


def ratings(say: Callable[[str, int], bool], n_raters: int = 5, n_pairs: int = 80) -> list[Row]:
    return [
        {"rater": f"r{r}", "pair_id": f"{p}", "question": "natural", "answer_level": level}
        | {"design": None}
        for r in range(n_raters)
        for p in range(n_pairs)
        if (level := int(say(f"r{r}", p))) >= 0
    ]


def test_the_interval_is_a_bootstrap_over_pairs() -> None:
    draw = random.Random(2)
    rows = ratings(lambda _, p: (p % 3 > 0) ^ (draw.random() < 0.15), 3, 60)
    [of_all, *_] = agreement(rows)
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


def test_agreement_where_nothing_can_be_said() -> None:
    [same, *_] = agreement(ratings(lambda *_: True, 2, 5))
    assert (same["alpha"], same["alpha_low"], same["n_pairs"]) == (None, None, 5)
    [alone] = agreement(ratings(lambda *_: True, 1, 5))
    assert (alone["alpha"], alone["n_pairs"], alone["n_answers"]) == (None, 0, 0)
    assert agreement([]) == []
    # Ten pairs can be resampled, nine can't.
    [ten, *_], [nine, *_] = (agreement(ratings(lambda r, p: p % 2 > 0, 2, n)) for n in (10, 9))
    assert (ten["alpha_low"], nine["alpha_low"], nine["alpha"]) == (1.0, None, 1.0)
    # One pair of twenty has a no: most resamples have it, too many have not.
    [rare] = agreement(ratings(lambda r, p: (r, p) != ("r0", 3), 2, 20))
    assert rare["alpha"] == pytest.approx(0.0) and rare["alpha_low"] is None


@given(st.integers(1, 8), st.integers(1, 8), st.integers(1, 40), st.integers(0, 3))
def test_pairs_are_dealt_evenly(n_raters: int, n_each: int, n_pairs: int, seed: int) -> None:
    n_each = min(n_each, n_raters)
    pairs = [str(k) for k in range(n_pairs)]
    dealt = deal(pairs, RatingDesign(n_pairs, raters(str(n_raters)), n_each, seed))
    assert all(len(own) == len(set(own)) for own in dealt.values())
    n_own = [len(own) for own in dealt.values()]
    assert max(n_own) - min(n_own) <= 1
    counts = Counter(itertools.chain.from_iterable(dealt.values()))
    assert counts == dict.fromkeys(pairs, n_each)


def test_all_raters_judge_the_same_pairs_by_default() -> None:
    dealt = deal([str(k) for k in range(100)], RatingDesign(100, raters("6")))
    assert all(set(own) == {str(k) for k in range(100)} for own in dealt.values())


def test_any_two_raters_share_pairs() -> None:
    """Two raters a pair are 240 shared pairs in all, for the 15 twos of raters 16 each."""
    dealt = deal([str(k) for k in range(240)], RatingDesign(240, raters("6"), 2))
    shared = [len(set(a) & set(b)) for a, b in itertools.combinations(dealt.values(), 2)]
    assert sum(shared) == 240 and max(shared) - min(shared) <= 2


def test_a_sample_takes_the_pairs_that_metrics_use(store: Store) -> None:
    rows = benchmark(store, 50)
    drawn = sample(rows, RatingDesign(20, ()))
    assert len(drawn) == 20 and all(row["is_natural"] for row in drawn)
    assert len(sample(rows, RatingDesign(99, ()))) == 40
    assert {r["is_natural"] for r in sample(rows, RatingDesign(50, (), None, 0, True))} == {
        True,
        False,
    }
    fewer = sample(rows[:45], RatingDesign(20, ()))
    assert len({r["pair_id"] for r in drawn} & {r["pair_id"] for r in fewer}) >= 15
    assert sample(rows, RatingDesign(20, (), None, 1)) != drawn


def test_sheets_differ_in_order_and_sides_and_come_back_the_same(
    store: Store, tmp_path: Path
) -> None:
    benchmark(store)
    made = exported(store, tmp_path / "a")
    assert (made.n_pairs, made.n_each) == (20, (15, 15))
    assert len({path.suffix for path in made.paths}) == 3 and len(made.paths) == 9
    again = exported(store, tmp_path / "b")
    assert [p.read_bytes() for p in made.paths] == [p.read_bytes() for p in again.paths]
    kept = store.read("rating_sheet", benchmark="b").to_pylist()
    assert len(kept) == len({row["item"] for row in kept}) == 60
    sides, orders = Counter(row["shown_first"] for row in kept), {}
    for row in kept:
        orders.setdefault(row["pair_id"], set()).add(row["position"])
    assert min(sides.values()) > 15 and sum(len(o) > 1 for o in orders.values()) > 16
    text = (tmp_path / "a" / "rater-1.csv").read_text(encoding="utf-8-sig")
    assert "pair" not in text and "female" not in text, "an item tells nothing about the pair"


def test_answers_come_back(store: Store, tmp_path: Path) -> None:
    benchmark(store)
    exported(store, tmp_path)
    one, two = (answered(tmp_path, f"rater-{k}", yes) for k in (1, 2))
    first, second = import_answers(store, [one, two], "run")
    assert (len(first.rows), first.rejects, second.rater) == (30, [], "rater-2")
    sheet = {r["pair_id"]: r for r in store.read("rating_sheet", benchmark="b").to_pylist()}
    rows = store.read("rating", benchmark="b").to_pylist()
    assert len(rows) == 60 and {row["pair_id"] for row in rows} <= set(sheet)
    for row in rows:
        is_yes = row["question"] == "natural" or int(row["pair_id"]) % 3 > 0
        assert (row["is_yes"], row["answer"]) == (is_yes, "yes" if is_yes else "no")
        assert row["answer_level"] == int(is_yes)
    # As a German spreadsheet saves it, with other answers of one rater: his earlier ones go.
    with one.open(newline="") as file:
        changed = [{**row, "natural": " NO"} for row in csv.DictReader(file)]
    import_answers(store, [written(one, changed, ";", bom=True)], "run")
    rows = store.read("rating", benchmark="b").to_pylist()
    assert Counter((r["rater"], r["is_yes"]) for r in rows if r["question"] == "natural") == {
        ("rater-1", False): 15,
        ("rater-2", True): 15,
    }
    [of_natural] = rows_of(
        store.root, "FROM rating_agreement WHERE question = 'natural' AND without_rater = ''"
    )
    assert of_natural["n_raters"] == 2 and of_natural["alpha"] < 0


def test_what_cannot_be_used_is_kept_with_its_reason(store: Store, tmp_path: Path) -> None:
    benchmark(store)
    made = exported(store, tmp_path)
    path = answered(tmp_path, "rater-1", yes)
    with path.open(newline="") as file:
        rows = [{**row, "funny": ""} for row in csv.DictReader(file)]
    rows[0]["natural"] = ""
    rows[1]["natural"] = "perhaps"
    rows[2]["item"] = "rater-1-003-00000000"
    rows[3]["item"] = made.rows["rater-2"][0]["item"]
    rows[4]["item"] = rows[5]["item"]
    rows[6]["funny"] = "yes"
    changed = next(r for r in made.rows["rater-1"] if r["item"] == rows[7]["item"])["pair_id"]
    all_pairs = store.read("benchmark_pair", benchmark="b").to_pylist()
    other = [{**p, "sentence_a": "She left."} if p["pair_id"] == changed else p for p in all_pairs]
    store.replace("benchmark_pair", other, {"benchmark": "b"}, "run")
    path = written(path, rows)
    with path.open("a") as file:
        file.write("one field\n")
    [one] = import_answers(store, [path], "run")
    kept = store.read("reject", stage="ratings", subject="b/rater-1").to_pylist()
    reasons = {(row["source_row"], row["reason"]) for row in kept}
    assert {row["source_file"] for row in kept} == {str(path)}
    both = ("natural", "neutral")
    expected = {
        (1, "natural: no answer, expected no or yes"),
        (2, "natural: 'perhaps' is not an answer, expected no or yes"),
        (7, "funny: unknown question, expected natural, neutral"),
        *(
            (row, f"{question}: {reason}")
            for question in both
            for row, reason in (
                (3, "item 'rater-1-003-00000000' is on no sheet, expected one of rater-1's"),
                (4, f"item {rows[3]['item']} is on rater-2's sheet, expected rater-1's"),
                (6, f"item {rows[5]['item']} was answered in row 5 already"),
                (
                    *(8,),
                    f"the sentences of item {rows[7]['item']} have changed since, expected those "
                    "of the sheet",
                ),
                (16, "the row holds 1 fields, expected 6"),
            )
        ),
    }
    assert reasons == expected and len(kept) == len(one.rejects) == 13
    assert len(one.rows) == 2 * 16 + 1 - 13


def test_hostile_cells_are_kept_short_and_printable(store: Store, tmp_path: Path) -> None:
    benchmark(store)
    items = [row["item"] for row in exported(store, tmp_path).rows["rater-1"]]
    path, long = tmp_path / "bad.csv", "y" * 100_000
    lines = [b"item,natural,neutral,\xff\x1b", f"{items[0]},yes,{long},\x1b[2J".encode()]
    path.write_bytes(b"\n".join([*lines, b"\xe4" * 9_999 + b",yes,no,\xfc"]))
    [one] = import_answers(store, [path], "run")
    kept = store.read("reject", stage="ratings").to_pylist()
    assert (len(one.rows), len(kept)) == (1, 5)
    assert max(len(row["reason"]) + len(row["excerpt"]) for row in kept) < 2_000
    assert all(f"{row['reason']}{row['excerpt']}".isprintable() for row in kept)


def test_files_that_are_no_sheet_change_nothing(store: Store, tmp_path: Path) -> None:
    benchmark(store)
    with pytest.raises(UsageProblem, match="benchmark export-ratings NAME"):
        import_answers(store, [tmp_path / "none.csv"], "run")
    exported(store, tmp_path)
    good = answered(tmp_path, "rater-1", yes)
    with pytest.raises(UsageProblem, match=r"gone\.csv: no such file"):
        import_answers(store, [good, tmp_path / "gone.csv"], "run")
    twin = tmp_path / "rater-1 (1).csv"
    twin.write_bytes(good.read_bytes())
    with pytest.raises(UsageProblem, match=r"rater-1 \(1\)\.csv: holds answers of rater-1, as"):
        import_answers(store, [good, twin], "run")
    empty = tmp_path / "rater-2.csv"
    with pytest.raises(BadInput, match="no usable answer, 30 rejected; the first: natural: no ans"):
        import_answers(store, [good, empty], "run")
    for text, problem in (
        ("item,natural\n", "no row is of a sheet in this warehouse, it has no rows"),
        ("item,natural\nx,yes\n", "the first item is 'x' .expected items such as rater-1-001-"),
        ("natural\nyes\n", "no column item in its header"),
    ):
        empty.write_text(text)
        with pytest.raises(BadInput, match=problem):
            import_answers(store, [good, empty], "run")
    assert not store.read("rating").num_rows and not store.read("reject").num_rows


def test_sheets_of_who_has_answered_stay(store: Store, tmp_path: Path) -> None:
    benchmark(store)
    exported(store, tmp_path, seed=1)
    made = exported(store, tmp_path, seed=0)
    kept = store.read("rating_sheet", benchmark="b")["item"].to_pylist()
    assert sorted(kept) == sorted(r["item"] for rows in made.rows.values() for r in rows)
    import_answers(store, [answered(tmp_path, "rater-1", yes)], "run")
    with pytest.raises(UsageProblem, match="rater-1: has answered a sheet of b with other pairs"):
        exported(store, tmp_path, seed=1)
    exported(store, tmp_path, seed=1, raters=raters("ana,ben"), n_pairs=15, n_per_pair=None)
    assert store.read("rating_sheet", benchmark="b").num_rows == 60 + 30
    own = tmp_path / "own.toml"
    own.write_text(
        'title = "t"\nintro = "i"\n[questions.natural]\nwording = "Is it?"\n'
        'answers = ["no", "partly", "yes"]\nyes = ["yes"]\n'
    )
    with pytest.raises(UsageProblem, match=r"judged already \(rater-1\) with other questions"):
        make(store, "b", RatingDesign(20, ("cleo",)), load(own), tmp_path, "run")


def test_ratings_go_along_where_raters_join(store: Store, tmp_path: Path) -> None:
    benchmark(store)
    every = {"n_pairs": 30, "n_per_pair": None}
    exported(store, tmp_path, raters=raters("ana,ben"), **every)
    import_answers(store, [answered(tmp_path, rater, yes) for rater in ("ana", "ben")], "run")
    exported(store, tmp_path, raters=raters("ana,ben,cleo"), **every)
    import_answers(store, [answered(tmp_path, "cleo", yes)], "run")
    sheets = store.read("rating_sheet", benchmark="b").to_pylist()
    (design,) = {row["design"] for row in sheets}
    rows = store.read("rating", benchmark="b").to_pylist()
    assert {(row["rater"], row["design"]) for row in rows} == {
        (rater, design) for rater in ("ana", "ben", "cleo")
    }
    found = store.read("rating_agreement", benchmark="b").to_pylist()
    assert {(r["design"], r["n_raters"]) for r in found if not r["without_rater"]} == {(design, 3)}


def test_designs_that_do_not_fit(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="plumbline benchmark import b"):
        exported(store, tmp_path)
    benchmark(store)
    with pytest.raises(
        UsageProblem, match=r"5 raters per pair: there are 4 .* --raters 5, or --per-pair 4\)"
    ):
        exported(store, tmp_path, n_per_pair=5)
    with pytest.raises(UsageProblem, match="3 pairs: are too few for 4 raters, 1 per pair"):
        exported(store, tmp_path, n_pairs=3, n_per_pair=1)


def opinions(store: Store, out: Path, is_random: str = "") -> list[Path]:
    """Six raters of 40 pairs; each sees a pair's truth nine times in ten."""
    benchmark(store, 40)
    exported(store, out, n_pairs=40, n_per_pair=None, raters=raters("6"))

    def say(draw: random.Random, rater: str, row: Row) -> dict[str, str]:
        truth = number(row) % 4 > 0
        of_natural = truth ^ (draw.random() < 0.1)
        if rater == is_random:
            of_natural = draw.random() < 0.5
        return {"natural": "yes" if of_natural else "no", "neutral": "yes"}

    paths = []
    for rater in raters("6"):
        draw = random.Random(rater)
        paths.append(answered(out, rater, lambda row, d=draw, r=rater: say(d, r, row)))
    return paths


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_pairs", "n_each", "wrong", "n_marked", "n_false"),
    [(100, 6, 0.05, 40, 0), (200, 3, 0.05, 40, 1), (100, 6, 0.15, 38, 0), (200, 3, 0.15, 36, 0)],
)
def test_how_often_a_random_rater_is_marked(
    n_pairs: int, n_each: int, wrong: float, n_marked: int, n_false: int
) -> None:
    """The table of docs/ratings.md."""
    found: list[bool] = []
    for trial in range(40):
        draw = random.Random(trial)
        truth = {str(k): draw.random() < 0.85 for k in range(n_pairs)}
        dealt = deal(sorted(truth), RatingDesign(n_pairs, raters("6"), n_each, trial))
        for at_random in ("", "rater-4"):

            def level(rater: str, pair: str) -> int:
                errs = draw.random() < (0.5 if rater == at_random else wrong)  # noqa: B023
                return int(truth[pair] ^ errs)  # noqa: B023

            rows = [
                {
                    "rater": r,
                    "pair_id": p,
                    "question": "q",
                    "answer_level": level(r, p),
                    "design": None,
                }
                for r, own in dealt.items()
                for p in own
            ]
            marked = {r["without_rater"] for r in agreement(rows) if (r.get("gain_low") or -1) > 0}
            found += [who == at_random for who in marked]
    assert Counter(found) == Counter({True: n_marked, False: n_false})


def test_shares_and_verdicts_by_hand(store: Store, tmp_path: Path) -> None:
    import_answers(store, opinions(store, tmp_path), "run")
    rows = store.read("rating", benchmark="b").to_pylist()
    said = {
        p: [r["is_yes"] for r in rows if (r["pair_id"], r["question"]) == (p, "natural")]
        for p in {r["pair_id"] for r in rows}
    }
    natural = {p: votes for p, votes in said.items() if int(p) % 5}
    [found] = rows_of(store.root, "FROM rating_share WHERE question = 'natural'")
    assert (found["n_pairs"], found["n_pairs_five"], found["n_answers"]) == (32, 32, 192)
    for name, k in (
        ("majority", sum(sum(v) > len(v) / 2 for v in natural.values())),
        ("five", sum(sum(v) >= 5 for v in natural.values())),
    ):
        assert (found[f"n_{name}"], found[f"{name}_share"]) == (k, pytest.approx(k / 32))
        low, high = binomtest(k, 32).proportion_ci(method="wilson")
        ends = (found[f"{name}_share_low"], found[f"{name}_share_high"])
        assert ends == pytest.approx((low, high), abs=0.03)  # over pairs, each its own cluster
    mean = np.array([sum(v) / 6 for v in natural.values()])
    assert found["mean_share"] == pytest.approx(mean.mean())
    # Wilson's interval with Student's t, as of the rows that have this error; three pairs of no yes
    # are few exceptions, so of 32 rows at most.
    p, t = mean.mean(), student.ppf(0.975, 31)
    n = min(32, p * (1 - p) / (mean.var(ddof=1) / 32))
    half = t * (p * (1 - p) / n + t**2 / (4 * n**2)) ** 0.5 / (1 + t**2 / n)
    centre = (p + t**2 / (2 * n)) / (1 + t**2 / n)
    ends = found["mean_share_low"], found["mean_share_high"]
    assert ends == pytest.approx((centre - half, centre + half), abs=1e-3)
    assert found["five_missing"] is None
    table = Counter((int(p) % 5 > 0, 2 * sum(v) > 6) for p, v in said.items() if 2 * sum(v) != 6)
    [verdict] = rows_of(store.root, "FROM rating_verdict")
    cells = [table[True, True], table[True, False], table[False, True], table[False, False]]
    names = ("n_both", "n_model_only", "n_people_only", "n_neither")
    assert [verdict[n] for n in names] == cells and verdict["n_tied"] == 40 - sum(cells)
    data = [
        (who, str(k), v)
        for k, pair in enumerate(table.elements())
        for who, v in zip("mp", pair, strict=True)
    ]
    both, model, people, neither = cells
    fact = people_say(store.root, "b")["People (majority) and the pairs' own verdict"]
    assert model != people and fact.startswith(
        f"{both} pairs natural to both, {people} to people only, {model} to the verdict only, "
        f"{neither} to neither, "
    )
    assert verdict["kappa"] == pytest.approx(AnnotationTask(data=data).kappa(), abs=1e-9)


def test_two_designs_on_one_benchmark_never_mix(store: Store, tmp_path: Path) -> None:
    """Six raters of the same pairs, and one who vets more of them and finds none natural."""
    import_answers(store, opinions(store, tmp_path), "run")
    [alone] = rows_of(store.root, "FROM rating_share WHERE question = 'natural'")
    agreed = rows_of(store.root, "FROM rating_agreement ORDER BY ALL")
    vet = make(store, "b", RatingDesign(30, ("vet",), None, 1), load(), tmp_path / "v", "run")
    no = answered(tmp_path / "v", "vet", lambda _: {"natural": "no", "neutral": "no"})
    import_answers(store, [no], "run")
    shares = rows_of(store.root, "FROM rating_share WHERE question = 'natural' ORDER BY design")
    assert [row["design"].partition(" (")[0] for row in shares] == [
        "30 pairs, 1 of 1 raters",
        "40 pairs, 6 of 6 raters",
    ]
    assert shares[1] == alone and vet.n_pairs == 30
    assert (shares[0]["n_pairs"], shares[0]["mean_share"], shares[0]["five_share"]) == (30, 0, None)
    assert shares[0]["five_missing"] == "no pair has five raters, the most are 1"
    six = "FROM rating_agreement WHERE design LIKE '40%' ORDER BY ALL"
    assert rows_of(store.root, six) == agreed
    said = write_card(store, "b", tmp_path / "card").paths[0].read_text(encoding="utf-8")
    one, six = (f"- Judged by people [{row['design']}]" for row in shares)
    assert f"{one}: 1 rater (vet), 30 pairs" in said
    assert f"{six}: 6 raters (rater-1, " in said
    # Ratings from before designs were kept are a group of their own.
    old = [row | {"design": None} for row in store.read("rating", benchmark="b").to_pylist()]
    store.replace(
        "rating", [r for r in old if r["rater"] == "vet"], {"benchmark": "b", "rater": "vet"}, "run"
    )
    [row] = rows_of(store.root, "FROM rating_share WHERE question = 'natural' AND design IS NULL")
    assert (row["n_pairs"], row["mean_share"]) == (30, 0)


@pytest.mark.parametrize(
    "other",
    [{"raters": ("cleo", "dan")}, {"seed": 1}, {"with_unnatural": True}],
    ids=["raters", "seed", "unnatural"],
)
def test_designs_of_equal_numbers_never_mix(
    store: Store, tmp_path: Path, other: dict[str, Any]
) -> None:
    """Ten pairs and two raters twice: every figure is that of one of them alone."""
    benchmark(store)
    both = [{"raters": ("ana", "ben")}, {"raters": ("cleo", "dan"), **other}]
    for answer, how in zip(("yes", "no"), both, strict=True):
        out, said = tmp_path / answer, {"natural": answer, "neutral": answer}
        assert make(store, "b", RatingDesign(10, **how), load(), out, "run").n_pairs == 10
        files = [answered(out, who, lambda _, said=said: said) for who in how["raters"]]
        import_answers(store, files, "run")
    shares = rows_of(store.root, "FROM rating_share WHERE question = 'natural'")
    assert sorted(r["mean_share"] for r in shares) == [0, 1]
    rated = rows_of(store.root, "FROM rated_pair WHERE question = 'natural'")
    assert {r["n_raters"] for r in rated} == {2}
    names = {RatingDesign(10, **{**both[0], **how}).named(10) for how in ({}, other)}
    assert len(names) == 2, "whoever judges"


def test_questions_of_ones_own(store: Store, tmp_path: Path) -> None:
    """Of three answers the last two count as yes; a tab parts the columns, and one is missing."""
    benchmark(store)
    own = tmp_path / "own.toml"
    own.write_text(
        'title = "t"\nintro = "i"\n[questions.other]\nwording = "And?"\nanswers = ["1", "2"]\n'
        'yes = ["1"]\n[questions.natural]\nwording = "How natural are both?"\n'
        'answers = ["not at all", "partly", "fully"]\nyes = ["partly", "fully"]\n'
    )
    made = make(store, "b", RatingDesign(6, ("ana",)), load(own), tmp_path, "export")
    form = (tmp_path / "ana.html").read_text(encoding="utf-8")
    assert form.count("How natural are both?") == form.count('value="partly"') == 6
    items = [row["item"] for row in made.rows["ana"]]
    said = ("not at all", "Partly", "fully ", "", "fully", "partly")
    rows = [{"natural": a, "item": i} for i, a in zip(items, said, strict=True)]
    [one] = import_answers(store, [written(tmp_path / "back.tsv", rows, "\t")], "run")
    assert [(r["answer_level"], r["is_yes"]) for r in one.rows] == [
        *((0, False), (1, True), (2, True), (2, True), (1, True))
    ]
    reasons = Counter(row["reason"] for row in one.rejects)
    assert reasons == {
        "other: the file has no such column, expected 1 or 2": 6,
        "natural: no answer, expected not at all or partly or fully": 1,
    }
    [row] = rows_of(store.root, "FROM rated_pair WHERE question = 'natural' AND NOT by_majority")
    assert (row["n_raters"], row["n_yes"]) == (1, 0)


def test_who_answers_at_random_shows(store: Store, tmp_path: Path) -> None:
    import_answers(store, opinions(store, tmp_path, is_random="rater-4"), "run")
    rows = rows_of(store.root, "FROM rater_agreement WHERE question = 'natural' ORDER BY rater")
    assert [row["is_unlike"] for row in rows] == [False, False, False, True, False, False]
    least = min(rows, key=lambda row: row["equal_share"])
    assert least["rater"] == "rater-4" and least["alpha_without"] > 0.1 + least["alpha_of_all"]
    answers = {
        (r["rater"], r["pair_id"]): r["is_yes"]
        for r in store.read("rating", benchmark="b").to_pylist()
        if r["question"] == "natural"
    }
    equal = [
        v == w
        for (a, p), v in answers.items()
        for (b, q), w in answers.items()
        if a == "rater-4" != b and p == q
    ]
    assert least["equal_share"] == pytest.approx(sum(equal) / len(equal))
    done = write_card(store, "b", tmp_path / "card")
    text = done.paths[0].read_text(encoding="utf-8")
    assert "- Judged by people: 6 raters (rater-1, " in text and ", 32 pairs\n" in text
    assert "- People on `natural` (Would you be" in text and ", at least five for " in text
    assert "Krippendorff's alpha undefined, as all answers are the same" in text
    assert "- Answers unlike the others': rater-4 on `natural` (alpha " in text
    assert "to people only" in text and "Cohen's kappa" in text


def test_the_commands(store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    benchmark(store)
    where = ["--warehouse", str(store.root)]
    command = ["benchmark", "export-ratings", "b", "--raters", "ana,ben", "--out"]
    assert main([*command, str(tmp_path / "out"), *where]) == 0
    said = capsys.readouterr().out
    assert re.search(r"b: 24 pairs, 2 of 2 raters \(\w{6}\)", said)
    assert "ana 24 2 ben 24 2" in " ".join(said.replace("│", " ").split())
    files = [str(answered(tmp_path / "out", rater, yes)) for rater in ("ana", "ben")]
    assert main(["benchmark", "import-ratings", *files, *where]) == 0
    said = capsys.readouterr().out
    assert "ana (b): 48 answers = 48 used + 0 rejected; the sheet asks for 48" in said
    assert "People on `neutral`" in said and "alpha 1.00 (1.00 to 1.00)" in said
    assert main(["benchmark", "import-ratings", files[0], files[0], *where]) == 2
    assert main(["benchmark", "card", "b", "--out", str(tmp_path / "card"), *where]) == 0
    runs = store.read("run").to_pylist()
    assert {run["command"] for run in runs} >= {
        "benchmark export-ratings",
        "benchmark import-ratings",
    }


def test_few_pairs_have_no_interval_and_it_says_so(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    benchmark(store)
    where = ["--warehouse", str(store.root)]
    out = tmp_path / "out"
    few = ["--pairs", "3", "--raters", "ana,ben", "--out", str(out)]
    assert main(["benchmark", "export-ratings", "b", *few, *where]) == 0
    files = [str(answered(out, rater, yes)) for rater in ("ana", "ben")]
    assert main(["benchmark", "import-ratings", *files, *where]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "alpha 1.00 (no interval: 3 pairs with two answers, 10 are needed)" in said
