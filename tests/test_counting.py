"""What the pipeline asks of spark-submit, and what it says before it is asked."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from plumbline.pipelines.requests import counting
from plumbline.pipelines.settings import Settings, load
from plumbline.warehouse.errors import (
    BadInput,
    Interrupted,
    MissingComponent,
    PlumblineError,
    UsageProblem,
)


def test_the_shipped_settings_ask_for_a_master() -> None:
    with pytest.raises(UsageProblem, match="PLUMBLINE_MASTER"):
        counting.check(load("cluster", None, {})[0])
    counting.check(load("cluster", None, {"PLUMBLINE_MASTER": "spark://host:7077"})[0])


@pytest.mark.parametrize(
    ("more", "error", "message"),
    [
        ({"spark_submit": "no-such-submit"}, MissingComponent, "no-such-submit: was not found"),
        ({"spark_submit": sys.executable, "dist": "nowhere"}, UsageProblem, "make dist"),
        ({"spark_conf": "nowhere.conf"}, UsageProblem, r"nowhere\.conf"),
    ],
)
def test_what_is_missing_is_said_at_once(
    more: dict[str, str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        counting.check(Settings(master="yarn", **more))


def test_the_line_of_spark_submit(tmp_path: Path) -> None:
    settings = Settings(
        corpus="a/*.jsonl b/*.jsonl",
        master="yarn",
        spark_submit="spark-submit",
        spark_options="--queue 'my queue'",
        spark_conf="own.conf",
        dist="local:///opt/plumbline/",
        out=str(tmp_path),
        memory="512m",
        min_count=5,
        window=4,
    )
    line = counting.submit_command(settings, "c", [Path("a/1.jsonl")])
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
    settings = Settings(spark_submit=str(program), master="yarn", out=str(tmp_path / "out"))
    with pytest.raises(kind, match=f"ended with status {status}"):
        counting.count(settings, "c", [tmp_path / "1.jsonl"])
    assert (tmp_path / "out" / "dist" / "plumbline.zip").is_file()


def test_settings_reach_the_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(
        "plumbline.jobs.counting.corpus.count_corpus",
        lambda store, request, **more: seen.append((request, more["master"])),
    )
    settings = Settings(memory="768m", min_count=7, window=4, out=str(tmp_path))
    counting.count(settings, "c", [tmp_path / "1.jsonl"])
    ((request, master),) = seen
    assert (request.memory_bytes, request.min_count, request.window) == (768 << 20, 7, 4)
    assert master is None
