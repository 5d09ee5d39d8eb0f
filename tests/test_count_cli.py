"""The commands: what they print, where errors lead."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.pipelines.command.main import main
from plumbline.warehouse.storage.store import Store


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["corpus", "count", "none-*.jsonl", "--corpus", "c"], 3, "no such file"),
        (["corpus", "count", "ftp://b/a.jsonl", "--corpus", "c"], 2, "known: s3://, s3a://, gs://"),
        (["corpus", "count", "SHARD", "--corpus", "c", "--memory", "2"], 2, "not a valid size"),
        (["corpus", "count", "SHARD", "--corpus", "c", "--targets", "nobody"], 2, "she-he"),
        (["corpus", "count", "SHARD", "--corpus", "c", "--rule", "lines"], 2, "windows"),
        (["corpus", "count", "SHARD", "--corpus", "c", "--window", "1"], 2, "window = 1"),
        (["corpus", "associate", "--corpus", "c"], 2, "no corpus is in the warehouse"),
        (
            ["benchmark", "constrain", "--corpus", "c", "--benchmark", "b"],
            2,
            "no corpus is in the warehouse",
        ),
        (["why", "nurse"], 2, "none yet"),
    ],
)
def test_errors_are_one_line_with_a_status(
    arguments: list[str],
    status: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shard = tmp_path / "a.jsonl"
    shard.write_text('{"text": "x"}\n')
    monkeypatch.setenv("PLUMBLINE_WAREHOUSE", str(Store.open(tmp_path / "w").root))
    given = [str(shard) if a == "SHARD" else a for a in arguments]
    try:
        left = main(given)
    except SystemExit as e:
        left = e.code
    assert left == status
    error = capsys.readouterr().err.strip()
    assert message in error and len(error.splitlines()) == 1
