"""What the pipeline asks of spark-submit, and what it says before it is asked."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from plumbline.pipelines import spark_submit
from plumbline.pipelines.command.value_sources import here, made
from plumbline.pipelines.commands.pipeline import Pipeline
from plumbline.warehouse.errors import (
    BadInput,
    Interrupted,
    PlumblineError,
    UsageProblem,
)


def test_the_shipped_settings_ask_for_a_master() -> None:
    with pytest.raises(UsageProblem, match="PLUMBLINE_MASTER"):
        spark_submit.check(made(Pipeline, {}, None, here(Pipeline, "cluster", {})))
    environment = {"PLUMBLINE_MASTER": "spark://host:7077"}
    spark_submit.check(made(Pipeline, {}, None, here(Pipeline, "cluster", environment)))


def test_the_line_of_spark_submit(tmp_path: Path) -> None:
    given = {
        "corpus": "a/*.jsonl b/*.jsonl",
        "master": "yarn",
        "spark_submit": "spark-submit",
        "spark_options": "--queue 'my queue'",
        "spark_conf": "own.conf",
        "dist": "local:///opt/plumbline/",
        "out": str(tmp_path),
        "memory": "512m",
        "min_count": 5,
        "window": 4,
    }
    line = spark_submit.submit_command(made(Pipeline, given), "c", ["a/1.jsonl"])
    assert shlex.join(line) == (
        "spark-submit --master yarn --properties-file own.conf --queue 'my queue' "
        "--py-files local:///opt/plumbline/plumbline.zip local:///opt/plumbline/submit.py "
        "corpus count 'a/*.jsonl' 'b/*.jsonl' --corpus c "
        f"--window 4 --min-count 5 --memory 512m --warehouse {tmp_path}/warehouse"
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("status", "kind"),
    [(1, BadInput), (2, UsageProblem), (3, BadInput), (5, Interrupted), (137, Interrupted)],
)
def test_a_status_is_passed_on(tmp_path: Path, status: int, kind: type[PlumblineError]) -> None:
    program = tmp_path / "spark-submit"
    program.write_text(f"#!/bin/sh\nexit {status}\n")
    program.chmod(0o755)
    given = {"spark_submit": str(program), "master": "yarn", "out": str(tmp_path / "out")}
    line = spark_submit.submit_command(made(Pipeline, given), "c", [f"{tmp_path}/1.jsonl"])
    with pytest.raises(kind, match=f"ended with status {status}"):
        spark_submit.submit(line)
    assert (tmp_path / "out" / "dist" / "plumbline.zip").is_file()
