"""The parts of log ratios: against brute force, and the command."""

import csv
import io
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import stdtrit

from plumbline.eval_workers.scoring.scored_pairs import NO_CLUSTER, Floats, degrees_of_freedom
from plumbline.pipelines.command.main import main
from plumbline.pipelines.reproduce.anatomy import LogRatioTable, shares
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests.released_files import score_rows, write_scores
from tests.test_reproduce import released


def small(kinds: list[str]) -> LogRatioTable:
    """Pairs of words and frames, or of two occupations, with properties that go together."""
    draw, n = np.random.default_rng(1), 60
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
    return LogRatioTable(y, {**columns, "length": np.ones((n, 1))}, clusters, kinds)


def brute(table: LogRatioTable) -> dict[str, float]:
    """Mean squares by matrices of pairs by pairs, and by every order of the properties."""
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
    level = np.linalg.solve(expected, [np.trace(rest.T @ a @ rest) for a in k.values()])

    def signal(h: Floats) -> float:
        chance = sum(np.trace(h @ a) * s for a, s in zip(k.values(), level, strict=True))
        return float(np.trace(table.y.T @ h @ table.y) - chance) / table.y.size

    found = {"constant": signal(hat([]))}
    every = list(permutations(names))
    for name in names:
        steps = []
        for one in every:
            place = one.index(name)
            steps.append(signal(hat(one[: place + 1])) - signal(hat(one[:place])))
        found[name] = float(np.mean(steps))
    sizes = [np.trace(a) / table.y.size for a in k.values()]
    return found | {kind: size * s for kind, size, s in zip(k, sizes, level, strict=True)}


@pytest.mark.parametrize("kinds", [["word"], ["word", "frame"], ["word", "word"]])
def test_parts_are_those_of_brute_force_and_add_up(kinds: list[str]) -> None:
    table = small(kinds)
    square = (table.y**2).mean()
    found = {row["part"]: row["share"] * square for row in shares(table)}
    assert found == pytest.approx(brute(table), abs=1e-9)
    assert sum(found.values()) == pytest.approx(square)
    assert "length" not in found  # it doesn't vary


@pytest.mark.parametrize("kinds", [["word"], ["word", "frame"]])
def test_errors_are_those_of_leaving_out_a_word(kinds: list[str]) -> None:
    table = small(kinds)

    def figures(of: LogRatioTable) -> Floats:
        return np.array([row["share"] for row in shares(of)])

    whole = figures(table)
    numbers = [k for k in np.unique(table.clusters) if k != NO_CLUSTER]
    kept = [~(table.clusters == k).any(axis=1) for k in numbers]
    variance = np.sum([(figures(table.only(some)) - whole) ** 2 for some in kept], axis=0)
    half = stdtrit(degrees_of_freedom(table.clusters), 0.975) * np.sqrt(variance)
    found = shares(table)
    assert [row["share_low"] for row in found] == pytest.approx(whole - half)
    assert [row["share_high"] for row in found] == pytest.approx(whole + half)


@pytest.mark.slow
def test_the_command_on_a_small_release(tmp_path: Path, capsys: Any) -> None:
    where = released(tmp_path, score_rows())
    for name in ("EleutherAI__pythia-70m", "org__n"):
        write_scores(where / "results", score_rows(name), f"{name}.csv")
    arguments = ["reproduce", "anatomy", "--data", str(where), "--warehouse", str(where / "w")]
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert "4 pairs in 3 clusters, 3 models; mean square log ratio" in shown
    assert "parts of the mean square: none" in shown  # no interval of three words
    store = Store.open(where / "w")
    written_by = "SELECT DISTINCT run_id FROM pair_score ORDER BY ALL"
    imported = rows_of(store, written_by)
    assert main(arguments) == 0
    assert rows_of(store, written_by) == imported  # nothing imported again
    again = capsys.readouterr().out.splitlines()
    assert again == [line for line in shown.splitlines() if "pair_score in " not in line]
    assert main([*arguments, "--format", "csv"]) == 0
    found = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert sum(float(r["share"]) for r in found) == pytest.approx(1)
    assert {r["share_low"] for r in found} == {""}
    assert main([*arguments, "--eta", "0"]) == 3
    assert "give a larger --eta" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.reference
def test_the_released_scores(data: Path, tmp_path: Path, capsys: Any) -> None:
    arguments = ["--data", data / "unstereo-eval", "--warehouse", tmp_path / "w"]
    assert main(["reproduce", "anatomy", *map(str, arguments), "--format", "csv"]) == 0
    rows = csv.DictReader(io.StringIO(capsys.readouterr().out))
    found = {(r["benchmark"], r["part"]): r for r in rows}
    for benchmark in ("use-5", "use-10", "use-20"):
        start, delta = (found[benchmark, part] for part in ("start", "delta"))
        assert float(start["share_low"]) > 4 * float(delta["share_high"])
    for benchmark in ("winobias", "winogender"):
        assert float(found[benchmark, "delta"]["share_low"]) > 0.05
