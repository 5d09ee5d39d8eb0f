"""The lines that `benchmarks/baseline.py` times are of commands and options that there are."""

from __future__ import annotations

import shlex

import pytest
from typer.testing import CliRunner

from benchmarks.baseline import LINES, WAREHOUSES, WORKLOADS
from plumbline.pipelines.command import registry
from plumbline.pipelines.command.app import app


@pytest.mark.parametrize("line", LINES.values(), ids=LINES.keys())
def test_command_and_options_of_a_line(line: str) -> None:
    words = shlex.split(line)
    command = next(" ".join(words[:k]) for k in (2, 1) if " ".join(words[:k]) in registry.targets())
    shown = CliRunner().invoke(app, [*command.split(), "--help"], env={"COLUMNS": "200"})
    assert shown.exit_code == 0
    assert {word for word in words if word.startswith("--")} <= set(shown.output.split())


def test_every_line_is_used() -> None:
    used = {workload.line for workload in WORKLOADS.values()} | {"text", ""}
    assert used.union(*WAREHOUSES.values()) == set(LINES) | {""}
