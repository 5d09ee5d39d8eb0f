"""Scores of attributions against trainings on halves: known learners, designs, a whole study."""

from __future__ import annotations

import csv
import hashlib
from dataclasses import replace
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

from plumbline.eval_workers.pairs.closed_world_corpus.corpus_writer import WorldOptions, write_world
from plumbline.pipelines.command.app import app
from plumbline.pipelines.reproduce.retraining import conclusions
from plumbline.pipelines.reproduce.retraining import retraining_study as study
from plumbline.pipelines.reproduce.retraining.datamodelling import (
    Floats,
    ceiling,
    correlations,
    halves,
    score,
)
from plumbline.pipelines.reproduce.retraining.design import (
    ClosedWorld,
    Trainings,
    read_design,
)
from plumbline.pipelines.reproduce.retraining.retraining_study import MethodScores
from plumbline.warehouse.errors import PlumblineError
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.query.method_validation import (
    FIRST,
    OTHER_WORD,
    OWN,
    PLACEBO_FIRST,
    shipped,
)

N_DOCUMENTS, N_WORDS, N_HALVES = 60, 12, 40


def learner(noise: float, seed: int = 0) -> tuple[Floats, Floats, Floats, Floats]:
    """Effects of documents on words, and preferences of trainings, twice, that add them up.

    Returns effects [word, document], halves [half, document], preferences [word, half] twice.
    """
    draw = np.random.default_rng(seed)
    effects = draw.standard_normal((N_WORDS, N_DOCUMENTS))
    kept = halves(N_DOCUMENTS, N_HALVES, seed).astype(float)
    true = effects @ kept.T
    first, second = true + noise * true.std(axis=1, keepdims=True) * draw.standard_normal(
        (2, *true.shape)
    )
    return effects, kept, first, second


def test_a_perfect_prediction_of_a_linear_learner_scores_1() -> None:
    effects, kept, true, again = learner(noise=0)
    found, best = score(effects @ kept.T, true), ceiling(true, again)
    assert (found.value, found.low, found.high) == pytest.approx((1, 1, 1))
    assert best.value == pytest.approx(1)


def test_with_noise_it_scores_the_ceiling() -> None:
    """Of one training: below 1, and as far as two trainings of the same half say."""
    both = [
        (score(effects @ kept.T, first).value, ceiling(first, second).value)
        for effects, kept, first, second in (learner(1.0, seed) for seed in range(20))
    ]
    found, best = np.mean(both, axis=0)
    assert found == pytest.approx(best, abs=0.02)
    assert found == pytest.approx(np.sqrt(0.5), abs=0.05)


def test_noise_scores_nothing_and_its_difference_from_the_truth_is_seen() -> None:
    effects, kept, true, _ = learner(noise=0.5)
    noise = np.random.default_rng(1).standard_normal(effects.shape) @ kept.T
    found, over = score(noise, true), score(effects @ kept.T, true, noise)
    assert found.low < 0 < found.high
    assert over.low > 0.5


def test_correlations_are_those_of_scipy_with_ties_too() -> None:
    draw = np.random.default_rng(0)
    x, y = draw.integers(0, 5, (2, 6, 30)).astype(float)
    expected = [stats.spearmanr(a, b).statistic for a, b in zip(x, y, strict=True)]
    assert correlations(x, y) == pytest.approx(expected)


def test_words_that_move_together_make_the_interval_wide() -> None:
    """One word, said a hundred times, is no more than one word."""
    draw = np.random.default_rng(0)
    predicted, true = draw.standard_normal((2, 1, 40))
    one = score(predicted, true)
    many = score(np.repeat(predicted, 100, axis=0), np.repeat(true, 100, axis=0))
    assert (many.low, many.high) == pytest.approx((one.low, one.high))


def test_halves_are_nested_in_their_number_and_half_of_the_units() -> None:
    many = halves(21, 9, seed=3)
    assert (many[:4] == halves(21, 4, seed=3)).all()
    assert (many.sum(axis=1) == 10).all() and len({row.tobytes() for row in many}) == 9


DESIGN = """
question = "Is it?"
methods = ["counts", "bm25", "random"]
baselines = ["bm25", "random"]
least_ceiling = 0.0
[real]
corpus = "world"
shards = ["text/*.jsonl.zst"]
n_documents = 300
[real.trainings]
preset = "closed"
max_tokens = 4000
max_epochs = 4
n_halves = 4
n_twice = 3
seed = 0
[real.benchmark]
name = "drinks"
templates = ["{She} liked {word}.", "The {word} was hers, {she} said."]
words = "tea coffee rum"
[closed_world]
corpus = "planted"
n_sources = 4
planted = 1
words_per_source = 1500
seed = 0
n_leaning = 4
n_placebo = 2
[closed_world.trainings]
preset = "closed"
max_tokens = 4000
max_epochs = 4
n_halves = 3
n_twice = 3
seed = 0
[[prediction]]
name = "finds it"
corpus = "planted"
method = "counts"
outcome = "planted source first"
column = "score"
expected = "above 0"
"""


def test_the_packaged_design() -> None:
    """What docs/attribution-study.md says of it; there will be a row for every prediction."""
    design = read_design()
    source = resources.files("plumbline.pipelines.reproduce") / "attribution.toml"
    assert design.sha256 == hashlib.sha256(source.read_bytes()).hexdigest()
    assert set(design.baselines) < set(design.methods)
    closed = {outcome.name for outcome in design.closed_world.outcomes()} | {FIRST, PLACEBO_FIRST}
    real = {outcome.name for outcome in design.real.outcomes()}
    known = {design.real.corpus: real, design.closed_world.corpus: closed}
    for p in design.prediction:
        assert p.method in design.methods and p.outcome in known[p.corpus]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "n_twice = 3\nseed = 0\n[real",
            "n_twice = 5\nseed = 0\n[real",
            "is more than the 4 halves",
        ),
        ("n_halves = 4", "n_halves = 1", "real.trainings.n_halves does not fit"),
        ('preset = "closed"', 'preset = "huge"', "'huge': unknown, there are"),
        ("planted = 1", "planted = 4", "is not one of the 4 sources"),
        (
            'baselines = ["bm25", "random"]',
            'baselines = ["bm26"]',
            "bm26.* is not one of the methods",
        ),
        ("[closed_world]", "[closed]", "unknown key closed"),
    ],
)
def test_designs_that_do_not_fit(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "d.toml"
    path.write_text(DESIGN.replace(old, new, 1))
    with pytest.raises(PlumblineError, match=f"d.toml: .*{message}"):
        read_design(path)


def planted(n_sources: int = 5) -> ClosedWorld:
    return ClosedWorld("planted", n_sources, 2, 400, 0, 6, 4, Trainings("closed", 9, 4, 6, 3, 0))


def test_a_planted_world_leaves_out_sources_and_leans_in_one() -> None:
    of = planted()
    records = list(of.records(Path()))
    units = of.units(records)
    assert sorted(set(units)) == [0, 1, 2, 3, 4]
    for half in of.trainings.documents(units):
        assert len(set(units[half])) == 2 and not set(units[half]) & set(units[~half])
    lean, placebo = (
        [abs(of._planted[word][0]) for word in words] for words in (of.leaning, of.placebos)
    )
    assert min(lean) > 0.5 > 0.1 > max(placebo)
    benchmark = of.outcomes()[0].true
    assert np.sign(benchmark[0, : len(lean)]).tolist() == [*of.leaning.values()]
    assert not benchmark[0, len(lean) :].any()


def test_the_result_that_comes_with_plumbline_is_of_the_packaged_design() -> None:
    """Its rows are of that design's hash, methods and baselines, and follow its rule of trust."""
    design = read_design()
    rows = shipped()
    assert {row["design_sha256"] for row in rows} == {design.sha256}
    assert {row["method"] for row in rows} == {*design.methods}
    assert {row["corpus"] for row in rows} == {text.corpus for text in design.texts}
    for row in rows:
        assert row["is_trusted"] is study.is_trusted(design, row)


def test_who_puts_the_planted_source_first(tmp_path: Path) -> None:
    """A method that knows does for every leaning word; for the placebos it has to draw lots.

    A method that does so no more often than a baseline isn't trusted, however far above chance.
    """
    path = tmp_path / "d.toml"
    path.write_text(DESIGN)
    design, of = read_design(path), planted()
    units = np.repeat(np.arange(5), 30)
    sides = np.array([*of.leaning.values(), 0, 0, 0, 0])
    draw = np.random.default_rng(0)
    noise = draw.standard_normal((len(sides), len(units)))
    knows = MethodScores("knows", sides[:, None] * (units == 2) * 10 + noise, 1.0)
    turned = MethodScores("turned", -sides[:, None] * (units == 2) * 10 + noise, 1.0)
    rows = study.first_rows(design, of, units, [knows, turned])
    found = {(r["method"], r["outcome"]): r for r in rows}
    assert study.is_trusted(design, found["knows", FIRST])  # no baseline was measured
    for scores, is_trusted in ((turned.scores, True), (knows.scores, False)):
        row = study.first_rows(design, of, units, [knows, MethodScores("bm25", scores, 1.0)])[0]
        assert study.is_trusted(design, row) is is_trusted and row["baseline"] == "bm25"
    assert found["knows", FIRST]["score"] == 1 and found["turned", FIRST]["score"] == 0
    placebo = found["knows", PLACEBO_FIRST]
    assert placebo["score_low"] < placebo["chance"] == 0.2 < placebo["score_high"]


def test_what_is_trusted_and_what_is_said_of_it(tmp_path: Path) -> None:
    """The method that knows, not the baseline, not noise, and no placebo."""
    path = tmp_path / "d.toml"
    path.write_text(DESIGN)
    design = replace(read_design(path), methods=("counts", "knows", "bm25", "random"))
    design = replace(design, least_ceiling=0.2)
    effects, kept, first, second = learner(0.3)
    preferences = np.stack([first.T, second.T])
    preferences[1, 10:] = np.nan
    n = len(effects)
    draw = np.random.default_rng(3)
    given = {"knows": effects} | {
        name: draw.standard_normal(effects.shape) for name in ("counts", "bm25", "random")
    }
    methods = [MethodScores(name, scores, 1.0) for name, scores in given.items()]
    own = np.eye(n) - 1 / n
    outcomes = [
        study.Outcome(OWN, own, own),
        study.Outcome(OTHER_WORD, own, np.roll(own, n // 2, axis=0)),
        study.Outcome("words", np.zeros((1, n)), np.zeros((1, n))),
    ]
    rows = study.datamodelling_rows(design, outcomes, preferences, kept.astype(bool), methods)
    assert {row["outcome"] for row in rows} == {OWN, OTHER_WORD}  # the third has a ceiling of 0
    rows = [{**row, "corpus": "world", "is_trusted": study.is_trusted(design, row)} for row in rows]
    assert [(r["method"], r["outcome"]) for r in rows if r["is_trusted"]] == [("knows", OWN)]
    (other,) = (r for r in rows if (r["method"], r["outcome"]) == ("knows", OTHER_WORD))
    assert other["score_low"] < 0.1 and other["score_high"] > -0.1 and not other["is_trusted"]
    said = conclusions.lines(design, rows)
    assert said == ["finds it: expected above 0, found not measured", f"world, {OWN}: trust knows"]
    page = conclusions.page(design, rows)
    assert f"**world: {OWN}** (12 words; chance 0.00, ceiling " in page and ", 40 halves)" in page
    (line,) = (line for line in page.split("\n") if line.startswith("| knows") and "yes" in line)
    assert line.endswith("| 1 | yes |")


@pytest.mark.slow
def test_a_whole_study(tmp_path: Path) -> None:
    """The CSV and the table agree; the same command again trains nothing and changes none."""
    write_world(WorldOptions(n_tokens=20_000, n_shards=2), tmp_path / "text")
    (tmp_path / "d.toml").write_text(DESIGN)
    out = tmp_path / "out"
    given = ["--data", str(tmp_path), "--design", str(tmp_path / "d.toml"), "--out", str(out)]
    command = ["reproduce", "attribution", *given, "--warehouse", str(out / "w")]
    planned = CliRunner().invoke(app, [*command, "--dry-run"], env={"COLUMNS": "300"})
    assert "trainings" in planned.output and "finds it" in planned.output
    done = CliRunner().invoke(app, command, env={"COLUMNS": "300"})
    assert done.exit_code == 0, done.output
    assert "planted, planted source first: trust" in done.output
    table = rows_of(out / "w", "FROM datamodelling_score ORDER BY corpus, method, outcome")
    written = list(csv.DictReader((out / "attribution.csv").open()))
    assert len(table) == len(written) == 3 * (4 + 4 + 2)
    page = (out / "attribution.md").read_text()
    assert page.count("\n**") == 4 + 4 + 2 and "- finds it: expected above 0" in page
    for row in table:
        assert row["design_sha256"] == read_design(tmp_path / "d.toml").sha256
        assert row["cpu_seconds"] >= 0 and row["score_low"] <= row["score"] <= row["score_high"]
    made = {p: p.stat().st_mtime_ns for p in out.glob("*/models/*/model.safetensors")}
    assert len(made) == (1 + 4 + 3) + (1 + 3 + 3)
    assert CliRunner().invoke(app, command).exit_code == 0
    assert {p: p.stat().st_mtime_ns for p in made} == made
    again = rows_of(out / "w", "FROM datamodelling_score ORDER BY corpus, method, outcome")
    assert [{**r, "run_id": ""} for r in again] == [{**r, "run_id": ""} for r in table]
