"""What `warehouse check` finds, as scripts read it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plumbline.pipelines.command.main import main


def problems(
    capsys: pytest.CaptureFixture[str], root: str | Path, *more: str
) -> dict[str, dict[str, str]]:
    """Its rows by path; fails where there are none."""
    capsys.readouterr()
    given = ("--warehouse", str(root), "--format", "json", *more)
    assert main(["warehouse", "check", *given]) == 3
    rows = json.loads(capsys.readouterr().out)["rows"]
    return {row["path"]: row for row in rows}
