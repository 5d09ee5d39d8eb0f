"""What the targets of the Makefile run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], ["pipeline"]),
        (
            ["CORPUS=a b.jsonl.zst", "BENCHMARKS=use-5,winobias", "MODEL=train:small"],
            [
                *("pipeline", "--corpus", "a b.jsonl.zst", "--benchmarks", "use-5,winobias"),
                *("--model", "train:small"),
            ],
        ),
        (["CONF=own.toml", "OUT=there"], ["pipeline", "--out", "there", "--conf", "own.toml"]),
    ],
)
def test_the_pipeline_gets_what_is_given_and_nothing_else(
    tmp_path: Path, given: list[str], expected: list[str]
) -> None:
    """An option that is empty would be a setting: the output would go to the empty path."""
    program = tmp_path / "venv" / "bin" / "plumbline"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\nfor word in "$@"; do echo "$word"; done\n')
    program.chmod(0o755)
    (tmp_path / "venv" / ".installed").touch()
    unset = ("CORPUS", "BENCHMARKS", "MODEL", "OUT", "CONF", "GIVEN", "MAKEFLAGS", "MAKELEVEL")
    environment = {k: v for k, v in os.environ.items() if k not in unset}
    command = ["make", "--no-print-directory", "pipeline", f"VENV={tmp_path / 'venv'}", *given]
    done = subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == expected
