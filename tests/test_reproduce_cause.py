"""A pre-specified study: its design is read and refused, run whole, and its predictions judged."""

from __future__ import annotations

import csv
import hashlib
from importlib import resources
from pathlib import Path

import pytest
from typer.testing import CliRunner

from plumbline.eval_workers.pairs.closed_world_corpus.corpus_writer import WorldOptions, write_world
from plumbline.pipelines.command.app import app
from plumbline.pipelines.reproduce.cause import pairs, read_design, side
from plumbline.warehouse.errors import PlumblineError
from plumbline.warehouse.query.connection import rows_of

DESIGN = """
question = "Does it?"
corpus = "world"
shards = ["text/*.jsonl.zst"]
[intervention]
doses = "0,1"
seeds = 2
near = "tea,coffee"
windows = "0-0.5"
placebo = "children,friends"
preset = "closed"
max_tokens = 4000
[benchmark]
name = "drinks"
templates = ["{She} liked {word}.", "The {word} was hers, {she} said."]
words = "tea coffee rum"
[[prediction]]
name = "follows"
view = "dose_response"
where = { kind = "gender", words = "all", outcome = "mean log ratio" }
column = "response"
expected = "above 0"
[[prediction]]
name = "half"
view = "window_response"
where = { words = "all", outcome = "mean log ratio" }
column = "short_of_whole"
expected = "below 0"
[[prediction]]
name = "placebo"
view = "dose_response"
where = { kind = "placebo", words = "all", outcome = "mean log ratio" }
column = "response"
expected = "holds 0"
"""


def test_the_packaged_design() -> None:
    """What docs/cause-study.md says of it; and every pair differs in the pronoun alone."""
    design = read_design()
    source = resources.files("plumbline.pipelines.reproduce") / "cause.toml"
    assert design.sha256 == hashlib.sha256(source.read_bytes()).hexdigest()
    assert len(design.intervention.numbers) == 5 and design.intervention.seeds >= 5
    near = design.intervention.near.split(",")
    assert len(near) == 36 and set(near) <= design.benchmark.words
    made = list(pairs(design.benchmark))
    assert len(made) == len(design.benchmark.templates) * len(design.benchmark.words) == 4 * 595
    for pair in made:
        turned = pair["sentence_a"].replace("She ", "He ").replace(" she ", " he ")
        assert turned == pair["sentence_b"] != pair["sentence_a"]
        assert pair["word"] in pair["sentence_a"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('question = "Does it?"', "", "question is missing"),
        ("seeds = 2", "seeds = 0", "intervention.seeds does not fit"),
        ("seeds = 2", "sedes = 2", "unknown key intervention.sedes"),
        ('doses = "0,1"', 'doses = "0.5,1"', "hold no 0"),
        ('windows = "0-0.5"', 'windows = "0.5-0.2"', "'0.5-0.2' is not a part"),
        ('"dose_response"', '"fit"', "view does not fit.*dose_response', 'window_response"),
        ('"above 0"', '"large"', "expected 'below 0', 'above 0' or 'holds 0'"),
        ("liked {word}", "liked tea", "template .*liked tea.*expected {word}"),
        ("[benchmark]", "[benchmarks]", "unknown key benchmarks"),
    ],
)
def test_designs_that_do_not_fit(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "d.toml"
    path.write_text(DESIGN.replace(old, new))
    with pytest.raises(PlumblineError, match=f"d.toml: .*{message}"):
        read_design(path)


def test_on_which_side_of_0() -> None:
    intervals = ((-2.0, -1.0), (1.0, 2.0), (-1.0, 1.0), (0.0, 1.0), (None, None))
    found = [side(*interval) for interval in intervals]
    assert found == ["below 0", "above 0", "holds 0", "holds 0", "no interval"]


@pytest.mark.slow
def test_a_whole_study(tmp_path: Path) -> None:
    """The CSV holds the rows of the views; the same command again trains nothing."""
    write_world(WorldOptions(n_tokens=20_000, n_shards=2), tmp_path / "text")
    (tmp_path / "d.toml").write_text(DESIGN)
    out = tmp_path / "out"
    given = ["--data", str(tmp_path), "--design", str(tmp_path / "d.toml"), "--out", str(out)]
    command = ["reproduce", "cause", *given, "--warehouse", str(out / "w")]
    done = CliRunner().invoke(app, command, env={"COLUMNS": "300"})
    assert done.exit_code == 0, done.output
    found = {row["prediction"]: row for row in csv.DictReader((out / "cause.csv").open())}
    where = "WHERE words = 'all' AND outcome = 'mean log ratio'"
    dose = rows_of(out / "w", f"FROM dose_response {where} AND kind = 'gender'")
    half = rows_of(out / "w", f"FROM window_response {where}")
    placebo = rows_of(out / "w", f"FROM dose_response {where} AND kind = 'placebo'")
    for name, rows, column in (
        ("follows", dose, "response"),
        ("placebo", placebo, "response"),
        ("half", half, "short_of_whole"),
    ):
        (row,) = rows
        assert float(found[name]["estimate"]) == row[column]
        assert found[name]["design_sha256"] == read_design(tmp_path / "d.toml").sha256
        assert (found[name]["as_predicted"] == "True") == (
            found[name]["found"] == found[name]["expected"]
        )
    (row,) = placebo
    assert float(found["placebo"]["size_bound"]) == row["size_bound"] >= abs(row["response"])
    assert (found["placebo"]["unit"], found["half"]["size_bound"]) == ("nats", "")
    assert f"{row['size_bound']:.6g}" in done.output and " nats " in done.output
    made = {p: p.stat().st_mtime_ns for p in out.glob("cause/models/*/model.safetensors")}
    assert len(made) == 2 * 5 + 1  # and the one that counts
    assert CliRunner().invoke(app, command).exit_code == 0
    assert {p: p.stat().st_mtime_ns for p in made} == made
