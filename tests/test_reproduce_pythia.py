"""What the released Pythia figures resolve: closed forms against simulation, files, bad files."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from plumbline.pipelines.command.main import main
from plumbline.pipelines.reproduce.printed_figures import packaged
from plumbline.pipelines.reproduce.pythia import (
    ALL_CHECKPOINTS,
    COLUMNS,
    DISTANCE,
    ONE_CHECKPOINT,
    SHARE,
    TASK,
    EvaluatedCheckpoint,
    Noise,
    as_rows,
    doses,
    jumps,
    noise,
    of_crows_pairs,
    read,
)
from plumbline.pipelines.reproduce.resolution import (
    PAIRED,
    TRAININGS,
    UNPAIRED,
    clustered,
    of_pythia,
    smallest_effect,
    smallest_if_all_one_way,
)
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests.released_files import score_rows, write_scores
from tests.test_reproduce import released

rng = np.random.default_rng


@pytest.mark.parametrize("df", [3, 8, 60])
def test_the_smallest_effect_is_found_in_eight_of_ten_draws(df: int) -> None:
    draw, n = rng(df), 20_000
    error = np.sqrt(draw.chisquare(df, n) / df)  # estimates of 1
    t = draw.normal(smallest_effect(1.0, df), 1, n) / error
    found = stats.t.sf(np.abs(t), df) < 0.025
    assert found.mean() == pytest.approx(0.8, abs=0.012)
    assert smallest_effect(0.5, df) == smallest_effect(1.0, df) / 2 > smallest_effect(0.5)


def test_no_pairing_resolves_less_than_all_pairs_one_way() -> None:
    """McNemar's exact test, where only pairs that the difference needs are not alike."""
    draw, n = rng(1), 320
    counts = draw.binomial(n, smallest_if_all_one_way(n), 20_000)
    found = [stats.binomtest(int(k), int(k)).pvalue <= 0.05 if k else False for k in range(40)]
    assert np.array(found)[counts].mean() == pytest.approx(0.8, abs=0.012)
    assert math.isnan(smallest_if_all_one_way(5))


def test_clusters_of_one_are_the_usual_errors() -> None:
    draw = rng(2)
    x, y = draw.normal(size=(2, 50))
    mean, se, n = clustered(y, np.arange(50))
    assert (mean, se, n) == pytest.approx((y.mean(), stats.sem(y), 50))
    slope, _, _ = clustered(y, np.arange(50), x)
    assert slope == pytest.approx(stats.linregress(x, y).slope)
    assert all(math.isnan(v) for v in clustered(y[:2], np.arange(2), x[:2])[:2])
    assert all(math.isnan(v) for v in clustered(y, np.arange(50), np.ones(50))[:2])
    assert all(math.isnan(v) for v in clustered(y, np.zeros(50))[:2])
    assert clustered(y[:0], np.arange(0))[2] == 0


@pytest.mark.parametrize("with_x", [False, True])
def test_the_paired_change_is_found_in_eight_of_ten_studies(with_x: bool) -> None:
    """Words have effects of their own; pairs of a word are not independent."""
    draw, n_words, n_pairs = rng(3), 60, 5
    word = np.repeat(np.arange(n_words), n_pairs)
    x = np.repeat(draw.normal(size=n_words), n_pairs)
    against = x - x.mean() if with_x else np.ones(len(x))

    def study(effect: float) -> tuple[float, float]:
        ours = np.repeat(draw.normal(0, 0.4, n_words), n_pairs) + draw.normal(0, 0.3, len(word))
        return clustered(effect * against + ours, word, x if with_x else None)[:2]

    # The error as it is, from what was put in: that of a word's mean, over the words.
    of_word = math.sqrt(0.4**2 + 0.3**2 / n_pairs)
    error = of_word / math.sqrt(np.sum(against[::n_pairs] ** 2))
    effect = smallest_effect(error, n_words - 1)
    for true, power, wide in ((effect, 0.8, 0.05), (0.0, 0.05, 0.03)):
        t = np.array([b / se for b, se in (study(true) for _ in range(1_000))])
        rejected = 2 * stats.t.sf(np.abs(t), n_words - 1) < 0.05
        assert rejected.mean() == pytest.approx(power, abs=wide)


def row(kind: str, step: int, share: float, distance: float, **other: Any) -> list[dict[str, Any]]:
    se = math.sqrt(share * (1 - share) / 319)
    common = {"kind": kind, "size": "1.3b", "step": step, "task": TASK, "file": "a.json"}
    return [
        {**common, "metric": SHARE, "value": share, "stderr": se, **other},
        {**common, "metric": DISTANCE, "value": distance, "stderr": distance / 10, **other},
    ]


def written(where: Path, rows: list[dict[str, Any]]) -> Path:
    path = where / "evals.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    return path


PLAIN = [
    *row("pythia", 1000, 0.60, 35.0),
    *row("pythia", 4000, 0.61, 34.0),
    *row("pythia", 5000, 0.63, 3.0),
    *row("pythia", 6000, 0.65, 2.5),
    *row("pythia", 7000, 0.62, 36.0),
    *row("pythia", 8000, 0.60, 36.0),
]
SWAPPED = [*row("intervention", 6000, 0.56, 33.0), *row("intervention", 7000, 0.59, 33.0)]
FRENCH = row("pythia", 5000, 0.5, 3.0, task="crows_pairs_french_gender")


def test_evaluations_are_told_apart_and_compared_with_their_own(tmp_path: Path) -> None:
    checkpoints, n_other = read(written(tmp_path, [*SWAPPED, *FRENCH, *PLAIN]))
    assert (len(checkpoints), n_other) == (8, 2)
    assert {c.n_pairs for c in checkpoints} == {320}
    assert [c.step for c in checkpoints if c.evaluation == 2] == [5000, 6000]
    assert [(a.step, b.step) for a, b in jumps(checkpoints)] == [(4000, 5000), (6000, 7000)]
    assert doses(checkpoints) == [("intervention", "1.3b", pytest.approx(2000 / 7000))]
    found = [r for r in of_crows_pairs(checkpoints) if r.difference is not None]
    assert [r.basis for r in found] == [
        f"{steps}, {basis}"
        for steps in ("1 step, one evaluation", "2 steps, two evaluations")
        for basis in ("unpaired", "best pairing")
    ]
    assert [r.difference for r in found] == pytest.approx([-0.03] * 2 + [-0.06] * 2)
    assert [r.lean for r in found] == pytest.approx([0.12] * 2 + [0.135] * 2)
    # 320 zeros and ones, ten of which differ, all to one side.
    apart = np.repeat([-1.0, 0.0], [10, 310])
    assert math.sqrt((10 / 320 - (10 / 320) ** 2) / 320) == pytest.approx(stats.sem(apart, ddof=0))
    assert found[1].se == pytest.approx(math.sqrt((0.03 - 0.0009) / 320))
    assert found[0].se == pytest.approx(math.sqrt((0.62 * 0.38 + 0.59 * 0.41) / 319))
    shown = as_rows(found)
    ends = [shown[0][name] for name in ("value_low", "value_high")]
    assert ends == pytest.approx([-0.106, 0.046], abs=0.0005)
    assert shown[3]["basis"] == "2 steps, two evaluations, best pairing"


def test_noise_is_that_of_the_second_half_by_evaluation(tmp_path: Path) -> None:
    (share, distance) = noise(read(written(tmp_path, PLAIN))[0])
    assert (share.n, share.first, share.last, share.evaluation) == (3, 4000, 8000, 1)
    assert share.sd == pytest.approx(0.01)
    assert share.neighbour_sd == pytest.approx(math.sqrt((0.01**2 + 0.02**2) / 2 / 2))
    assert share.autocorrelation == 0 and distance.mean == pytest.approx(106 / 3)
    found = {(r.measure, r.basis): r for r in of_crows_pairs(read(tmp_path / "evals.csv")[0])}
    one, all_ = (found[SHARE, basis] for basis in (ONE_CHECKPOINT, ALL_CHECKPOINTS))
    assert one.smallest == pytest.approx(smallest_effect(0.01 * math.sqrt(2), 2))
    assert all_.smallest == pytest.approx(one.smallest / math.sqrt(3))
    assert one.share == pytest.approx(one.smallest / (2 * 0.11))
    assert found[DISTANCE, ONE_CHECKPOINT].share is None


@pytest.mark.parametrize("rho", [0.0, 0.6])
def test_a_mean_of_checkpoints_varies_as_its_autocorrelation_says(rho: float) -> None:
    draw, n = rng(5), 40

    def series(length: int, n_series: int) -> Any:
        steps = draw.normal(size=(n_series, length))
        steps[:, 1:] *= math.sqrt(1 - rho**2)
        for i in range(1, length):
            steps[:, i] += rho * steps[:, i - 1]
        return steps

    row = Noise("1.3b", 1, SHARE, n, 0, 1, 0.6, 1.0, 0.0, rho)
    assert series(n, 4_000).mean(axis=1).std() == pytest.approx(row.mean_sd, rel=0.06)
    values = 0.6 + 0.01 * series(3_000, 1)[0]
    long = [
        EvaluatedCheckpoint("pythia", "1b", 3_000 + i, v, 0.02, 3, 1) for i, v in enumerate(values)
    ]
    share = noise(long)[0]
    assert share.autocorrelation == pytest.approx(rho, abs=0.05)
    assert share.sd == pytest.approx(0.01, rel=0.1)
    assert Noise("1.3b", 1, SHARE, 5, 0, 1, 0.6, 1.0, 0.1, 0.99).mean_sd == 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"step": "-5"}, "row 1.*step is '-5', expected a whole number"),
        ({"step": "²"}, "row 1.*expected a whole number"),
        ({"size": "big"}, "row 1.*size is 'big', expected one such as 350m"),
        ({"value": "1.5"}, "row 1.*value is '1.5', expected 0 to 1"),
        ({"value": "many"}, "row 1.*value is 'many'"),
        ({"stderr": "nan"}, "row 1.*stderr is 'nan'"),
        ({"stderr": "-0.1"}, "row 1.*stderr is '-0.1'"),
        ({"step": "4000"}, "row 3.*pct_stereotype of pythia 1.3b 4000 occurs twice"),
        ({"metric": "perplexity"}, "pythia 1.3b 1000 has no pct_stereotype"),
    ],
)
def test_a_damaged_row_is_one_line(tmp_path: Path, change: dict[str, str], message: str) -> None:
    path = written(tmp_path, [{**PLAIN[0], **change}, *PLAIN[1:]])
    with pytest.raises(BadInput, match=message) as e:
        read(path)
    assert str(path) in str(e.value) and "\n" not in str(e.value)


def test_the_command_on_a_small_release(tmp_path: Path, capsys: Any) -> None:
    table = score_rows("EleutherAI__pythia-70m")
    for line in table:  # log ratios of 0, and -1/4 for the two pairs of key
        line["F_logprob"] = str(float(line["F_logprob"]) + 0.25 * ("tea" in line["template"]))
    where = released(tmp_path, score_rows())
    write_scores(where / "results", table, "EleutherAI__pythia-70m.csv")
    evals = written(tmp_path, [*PLAIN, *SWAPPED])
    common = ["--evals", evals, "--data", where, "--warehouse", where / "w"]
    arguments = ["reproduce", "pythia", *map(str, [*common, "--out", where / "f.csv"])]
    assert main(arguments) == 3
    assert "its -deduped twin" in capsys.readouterr().err
    twin = score_rows("EleutherAI__pythia-70m-deduped")
    for old, line in zip(table, twin, strict=True):  # leans more to the female sentence
        more = 1.0 if "key" in line["template"] else 0.5
        line["F_logprob"] = str(float(old["F_logprob"]) + more)
    write_scores(where / "results", twin, "EleutherAI__pythia-70m-deduped.csv")
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert "8 checkpoints, 0 rows of other tasks" in shown and "power analysis" in shown
    assert "35.00" not in shown and "34.00 +- 3.40 (step 4000) -> 3.00" in shown
    rows = list(csv.DictReader((where / "f.csv").open()))
    found = {r["basis"]: r for r in rows if r["measure"] == "mean log ratio"}
    paired, trainings = found[PAIRED], found[TRAININGS]
    assert [float(paired[c]) for c in ("lean", "difference", "n")] == [-0.125, 0.75, 3]
    # Of tea, drink and key (twice) the sums round the mean are -1/4, -1/4, 1/2.
    error = math.sqrt((1 / 16 + 1 / 16 + 1 / 4) / 4**2 * 3 / 2)
    assert float(paired["smallest"]) == pytest.approx(smallest_effect(error, 2))
    # Either model's words differ half as much as their changes do.
    assert float(found[UNPAIRED]["se"]) == pytest.approx(error / 2 * math.sqrt(2))
    assert float(trainings["smallest"]) == pytest.approx(smallest_effect(0.75, 1))
    assert float(trainings["share_of_pronouns"]) == pytest.approx(smallest_effect(0.75, 1) / 0.25)
    assert [r["lean"] for r in rows if r["measure"] == "slope on delta"] == [""] * 3


@pytest.mark.reference
def test_the_released_evaluations(data: Path) -> None:
    path = data.parent / "reference" / "pythia_bias_evals.csv"
    checkpoints, n_other = read(path)
    assert len(checkpoints) * 2 + n_other == len(path.read_text().splitlines()) - 1 == 584
    # 320 gender pairs of the revised English set in each row; its errors are those of shares.
    assert {c.n_pairs for c in checkpoints} == {320}
    again = [c for c in checkpoints if c.evaluation == 2]
    assert {(c.kind, c.size) for c in again} == {
        ("pythia", "350m"),
        ("pythia", "1.3b"),
        ("long-intervention", "1.3b"),
    }
    assert len(again) == 21 and max(c.distance_nats_se for c in again) < 0.2
    assert min(c.distance_nats_se for c in checkpoints if c.evaluation == 1) > 2
    assert {round(share, 2) for _, _, share in doses(checkpoints)} == {0.07, 0.21}
    found = {(r.model, r.basis): r for r in of_crows_pairs(checkpoints)}
    alike = found["1.3b intervention", "1 step, one evaluation, unpaired"]
    assert alike.difference == pytest.approx(0.6 - 0.60625)
    assert found["1.3b intervention", "9 steps, two evaluations, unpaired"].difference < -0.03
    assert alike.ci == pytest.approx((-0.0822, 0.0697), abs=1e-3)


@pytest.mark.slow
@pytest.mark.reference
def test_our_measures_on_the_released_scores(data: Path, tmp_path: Path) -> None:
    arguments = ["--evals", data.parent / "reference" / "pythia_bias_evals.csv"]
    arguments += ["--data", data / "unstereo-eval", "--warehouse", tmp_path / "w"]
    assert main(["reproduce", "pythia", *map(str, arguments)]) == 0
    store = Store.open(tmp_path / "w")
    found = of_pythia(store, "pile")
    plain = [r for r in found if r.basis == PAIRED]
    assert len(plain) == 7 * 4 * 5 and len(found) == 2 * len(plain) + 5 * 4
    printed = {
        (f.model, f.benchmark): f.value
        for f in packaged()
        if f.metric == "PD" and f.eta_nats is None
    }
    fitted = {
        (r["model"], r["benchmark"]): r["slope"]
        for r in rows_of(store, "FROM fit WHERE subset = 'words, measured delta'")
    }
    for r in plain:
        key = (f"EleutherAI/{r.model}", r.instrument)
        if r.measure == "PD":
            assert r.lean == pytest.approx(printed[key], abs=0.011)
        if r.measure == "slope on delta":
            assert r.lean == pytest.approx(fitted[key])
            twin = (f"{key[0]}-deduped", key[1])
            assert r.difference == pytest.approx(fitted[twin] - fitted[key])
    shares = {
        (r.instrument, r.measure, r.model, r.basis): r.share
        for r in found
        if r.instrument == "winobias"
    }
    assert shares["winobias", "slope on delta", "pythia-1.4b", PAIRED] == pytest.approx(
        0.08, abs=0.01
    )
    assert shares["winobias", "slope on delta", "pythia-1.4b", UNPAIRED] > 0.15
    assert shares["winobias", "slope on delta", "all sizes", TRAININGS] == pytest.approx(
        0.20, abs=0.01
    )
