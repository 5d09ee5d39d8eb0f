"""What a lean goes with: parts against brute force, US without them, and the command."""

from __future__ import annotations

import csv
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plumbline.eval_workers.scoring.statistics import components
from plumbline.eval_workers.scoring.statistics.components import (
    SHARED,
    Floats,
    LogRatioTable,
    by_family,
    interval,
    products,
    shares,
)
from plumbline.eval_workers.scoring.statistics.scored_pairs import (
    NO_CLUSTER,
    degrees_of_freedom,
)
from plumbline.pipelines.command.main import main
from plumbline.pipelines.reproduce import claims
from plumbline.pipelines.reproduce.anatomy import without
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests.released_files import score_rows, write_scores
from tests.test_reproduce import released

FAMILIES = np.array([0, 0, 0, 1, 1, 2, 3, 3, 4])


def small(kinds: list[str], n: int = 60, seed: int = 1) -> LogRatioTable:
    """Pairs of words and frames, or of two occupations, with properties that go together."""
    draw = np.random.default_rng(seed)
    word, frame = draw.integers(0, 12, n), draw.integers(0, 9, n)
    frame[:3] = NO_CLUSTER
    if kinds == ["word", "frame"]:
        frame[3:] += 12
    clusters = np.column_stack([word, frame])[:, : len(kinds)]
    start = draw.integers(0, 2, n).astype(float)
    number = start + draw.poisson(1.0, n)
    form = np.column_stack([draw.poisson(0.5, n), draw.normal(size=n)])
    y = draw.normal(size=(n, 9)) + draw.normal(size=(12, 9))[word] + start[:, None] + 0.5
    columns = {"start": start[:, None], "number": number[:, None], "form": form}
    return LogRatioTable(y, {**columns, "length": np.ones((n, 1))}, clusters, kinds, FAMILIES)


def brute(table: LogRatioTable) -> dict[str, Floats]:
    """The same by matrices of pairs by pairs, and by every order of the properties."""
    n = len(table.y)
    names = [name for name, x in table.properties.items() if np.ptp(x)]
    z = {}
    for kind in dict.fromkeys(table.kinds):
        of = np.zeros((n, 100))
        for column, name in enumerate(table.kinds):
            for i, k in enumerate(table.clusters[:, column]):
                if name == kind and k != NO_CLUSTER:
                    of[i, k] = 1
        z[kind] = of
    k = {**{kind: of @ of.T for kind, of in z.items()}, "pair": np.eye(n)}

    def hat(chosen: Any) -> Floats:
        x = np.hstack([np.ones((n, 1)), *(table.properties[name] for name in chosen)])
        return np.asarray(x @ np.linalg.pinv(x))

    q = np.eye(n) - hat(names)
    expected = [[np.trace(q @ a @ q @ b) for b in k.values()] for a in k.values()]
    rest = q @ table.y
    seen = [rest.T @ a @ rest for a in k.values()]
    level = np.einsum("ab,bij->aij", np.linalg.inv(expected), seen)

    def signal(h: Floats) -> Floats:
        chance = sum(np.trace(h @ a) * s for a, s in zip(k.values(), level, strict=True))
        return np.asarray((table.y.T @ h @ table.y - chance) / n)

    found = {"constant": signal(hat([]))}
    every = list(permutations(names))
    for name in names:
        steps = []
        for one in every:
            place = one.index(name)
            steps.append(signal(hat(one[: place + 1])) - signal(hat(one[:place])))
        found[name] = np.mean(steps, axis=0)
    sizes = [np.trace(a) / n for a in k.values()]
    return found | {kind: size * s for kind, size, s in zip(k, sizes, level, strict=True)}


@pytest.mark.parametrize("kinds", [["word"], ["word", "frame"], ["word", "word"]])
def test_parts_are_those_of_brute_force_and_add_up(kinds: list[str]) -> None:
    table = small(kinds)
    found = products(table)
    for part, expected in brute(table).items():
        assert found[part] == pytest.approx(expected, abs=1e-9), part
    assert sum(found.values()) == pytest.approx(table.y.T @ table.y / len(table.y))
    assert "length" not in found  # it doesn't vary


def test_what_families_share_is_the_nested_analysis_of_variance() -> None:
    same = FAMILIES[:, None] == FAMILIES
    planted = 3.0 + 2.0 * same + 0.5 * np.eye(9)  # expected products
    assert by_family(planted, FAMILIES) == pytest.approx([3.0, 2.0, 0.5, 5.5])
    m = np.random.default_rng(4).normal(size=9) + 2
    groups = [m[f == FAMILIES] for f in range(5)]
    own = sum(((g - g.mean()) ** 2).sum() for g in groups) / (9 - 5)
    between = sum(len(g) * (g.mean() - m.mean()) ** 2 for g in groups) / 4
    size = (9 - sum(len(g) ** 2 for g in groups) / 9) / 4
    family = (between - own) / size
    every = (m**2).mean() - own - family
    assert by_family(np.outer(m, m), FAMILIES) == pytest.approx([every, family, own, (m**2).mean()])
    # A constant of all models is nobody's own.
    moved = by_family(np.outer(m + 9, m + 9), FAMILIES)
    assert moved[1:3] == pytest.approx([family, own])
    alone = by_family(np.outer(m, m), np.arange(9))
    assert alone == pytest.approx([(m**2).mean() - m.var(ddof=1), 0, m.var(ddof=1), (m**2).mean()])
    one = by_family(np.outer(m, m), np.zeros(9))
    assert one == pytest.approx(alone)


@pytest.mark.parametrize("kinds", [["word"], ["word", "frame"]])
def test_errors_are_those_of_leaving_out_a_word_or_a_family(kinds: list[str]) -> None:
    table = small(kinds)

    def figures(of: LogRatioTable) -> Floats:
        found = {k: by_family(p, of.families) for k, p in products(of).items()}
        return np.array(list(found.values())) / sum(p[-1] for p in found.values())

    whole = figures(table)
    numbers = [k for k in np.unique(table.clusters) if k != NO_CLUSTER]
    kept = [~(table.clusters == k).any(axis=1) for k in numbers]
    words = sum((figures(table.only(some)) - whole) ** 2 for some in kept)
    families: Any = 0.0
    for k in range(5):
        some = k != FAMILIES
        left = LogRatioTable(
            table.y[:, some], table.properties, table.clusters, kinds, FAMILIES[some]
        )
        families = families + (figures(left) - whole) ** 2
    low, high = interval(whole, (np.asarray(words), degrees_of_freedom(table.clusters)))
    wide = interval(
        whole,
        (np.asarray(words), degrees_of_freedom(table.clusters)),
        (families, degrees_of_freedom(FAMILIES[:, None])),
    )
    found = shares(table)
    assert [s.share for s in found] == pytest.approx(whole.reshape(-1))
    assert [s.share_low for s in found] == pytest.approx(low.reshape(-1))
    assert [s.share_high for s in found] == pytest.approx(high.reshape(-1))
    assert [s.families_high for s in found] == pytest.approx(wide[1].reshape(-1))
    assert [s.shared for s in found[:4]] == list(SHARED)


def test_what_is_taken_away_was_fitted_on_other_words() -> None:
    table = small(["word", "frame"])
    x = np.hstack(list(table.properties.values()))
    found = components.without_fit(table.y, x, table.clusters)
    design = np.hstack([np.ones((len(x), 1)), x[:, :-1]])  # without what doesn't vary
    for i, ids in enumerate(table.clusters):
        known = ids[ids != NO_CLUSTER]
        shared = np.isin(table.clusters, known).any(axis=1)
        slopes = np.linalg.lstsq(design[~shared], table.y[~shared])[0]
        assert found[i] == pytest.approx(table.y[i] - design[i] @ slopes)


def test_us_rises_by_what_was_planted() -> None:
    draw = np.random.default_rng(6)
    n = 400
    start = draw.integers(0, 2, (n, 1)).astype(float)
    word = draw.integers(0, 40, n)
    y = 0.3 * draw.normal(size=(n, 9)) + 3 * start * draw.choice([-1, 1], 9) + 0.7
    table = LogRatioTable(y, {"start": start}, word[:, None], ["word"], FAMILIES)
    found = {s.taken: s for s in without(table)}
    # What is left is normal with deviation 0.3: 90.5% are within ln 1.65.
    assert found["and start"].us == pytest.approx(90.5, abs=6)
    assert found["and start"].us.mean() == pytest.approx(90.5, abs=1.5)
    assert found["constant"].us.max() < 30
    gain = found["and start"].us - found["constant"].us
    assert found["and start"].gain == pytest.approx(gain.mean())
    assert 0 < found["and start"].gain_low < found["and start"].gain < found["and start"].gain_high


@pytest.mark.slow
def test_the_command_on_a_small_release(tmp_path: Path, capsys: Any) -> None:
    where = released(tmp_path, score_rows())
    for name in ("EleutherAI__pythia-70m", "org__n"):
        write_scores(where / "results", score_rows(name), f"{name}.csv")
    common = ["--data", where, "--warehouse", where / "w", "--out", where / "out"]
    arguments = ["reproduce", "anatomy", *map(str, common)]
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert "4 pairs in 3 clusters, 3 models of 3 families" in shown
    assert "parts of the mean square: none" in shown  # no interval of three words
    found = list(csv.DictReader((where / "out" / "shares.csv").open()))
    whole = [float(r["share"]) for r in found if r["shared"] == "sum"]
    assert sum(whole) == pytest.approx(1) and {r["share_low"] for r in found} == {""}
    us = list(csv.DictReader((where / "out" / "us.csv").open()))
    assert {(r["model"], r["us"]) for r in us if r["taken"] == "nothing"} == {
        ("EleutherAI/pythia-70m", "100.0"),
        ("org/m", "100.0"),
        ("org/n", "100.0"),
    }
    assert (where / "out" / "anatomy.png").read_bytes().startswith(b"\x89PNG")
    store = Store.open(where / "w")
    written_by = "SELECT DISTINCT run_id FROM pair_score ORDER BY ALL"
    imported = rows_of(store, written_by)
    assert main(arguments) == 0
    assert rows_of(store, written_by) == imported  # nothing imported again
    again = capsys.readouterr().out.splitlines()
    assert again == [line for line in shown.splitlines() if "pair_score in " not in line]
    assert main([*arguments, "--eta", "0"]) == 3
    assert "give a larger --eta" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.reference
def test_the_released_scores(data: Path, tmp_path: Path, capsys: Any) -> None:
    arguments = ["--data", data / "unstereo-eval", "--warehouse", tmp_path / "w"]
    arguments += ["--out", tmp_path / "out"]
    assert main(["reproduce", "anatomy", *map(str, arguments)]) == 0
    us: dict[tuple[str, str], dict[str, float]] = {}
    for row in csv.DictReader((tmp_path / "out" / "us.csv").open()):
        us.setdefault((row["benchmark"], row["taken"]), {})[row["model"]] = float(row["us"])
    printed = {
        (f["benchmark"], f["model"]): f["value"]
        for f in claims.figures("unstereoeval")
        if f["metric"] == "US" and f["eta_nats"] is None
    }
    of_nothing = {
        (b, m): v for (b, step), of in us.items() if step == "nothing" for m, v in of.items()
    }
    assert len(of_nothing) == 5 * 28 and printed
    for key, value in printed.items():
        assert of_nothing[key] == pytest.approx(value, abs=0.011)
    medians = {key: float(np.median(list(of.values()))) for key, of in us.items()}
    assert medians["use-5", "nothing"] == pytest.approx(20.5, abs=0.05)
    # Medians by start and number of pronouns, fitted on the same pairs, gave 32.0.
    assert medians["use-5", "and start"] == pytest.approx(32.0, abs=1)
    found = {
        (r["benchmark"], r["part"], r["shared"]): r
        for r in csv.DictReader((tmp_path / "out" / "shares.csv").open())
    }
    for benchmark in ("use-5", "use-10", "use-20"):
        start, delta = (found[benchmark, part, "sum"] for part in ("start", "delta"))
        assert float(start["share_low"]) > 4 * float(delta["share_high"])
    for benchmark in ("winobias", "winogender"):
        assert float(found[benchmark, "delta", "all models"]["share_low"]) > 0.05
