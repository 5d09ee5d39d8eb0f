"""The commands: what they print, where errors lead."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from plumbline.pipelines.command.app import app
from plumbline.pipelines.command.main import main
from plumbline.pipelines.commands.corpus import counting_corpora as corpus
from plumbline.warehouse.storage.store import Store

run = CliRunner()


def test_the_next_command_is_one_for_the_shell(tmp_path: Path) -> None:
    shard, out = tmp_path / "a.jsonl", tmp_path / "it's cut"
    shard.write_text('{"text": "She saw the nurse."}\n')
    shown = run.invoke(
        app, ["corpus", "count", str(shard), "--corpus", "c", "--warehouse", str(out)]
    )
    assert shown.exit_code == 0, shown.output
    command = shown.output.split("Next: ")[1].split("\n")[0]
    assert shlex.split(command)[-1] == str(out)


def test_status_begins_with_what_calls_for_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus, "_MOST", 1)
    shards = [tmp_path / f"{name}.jsonl" for name in "ab"]
    for shard in shards:
        shard.write_text(json.dumps({"text": f"She saw {shard.stem}."}) + "\n")
    where = ["--corpus", "c", "--warehouse", str(tmp_path / "w")]
    shown = run.invoke(app, ["corpus", "count", *map(str, shards), *where])
    assert shown.exit_code == 0, shown.output
    kinds = {path.name.split(".")[-2] for path in (tmp_path / "w/_work/count").rglob("*.parquet")}
    assert kinds == {"tokens", "words", "pairs"}, "no empty files of rejects"
    shards[1].unlink()
    shown = run.invoke(app, ["corpus", "list", "c", *where[2:]])
    assert "b.jsonl" in shown.output and "a.jsonl │" not in shown.output
    assert "and 1 more rows: give --format csv" in shown.output
    code = "import sys; from plumbline.pipelines.command.main import main; main(sys.argv[1:]); "
    code += "print('loaded', sorted({'duckdb', 'pandas'} & set(sys.modules)))"
    words = [sys.executable, "-c", code, "corpus", "list", "c", *where[2:]]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "b.jsonl" in done.stdout and done.stdout.endswith("loaded []\n"), done.stdout


def test_files_that_many_small_shards_leave_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shards = [tmp_path / f"{name}.jsonl" for name in "abc"]
    for shard in shards:
        shard.write_text(json.dumps({"text": f"She saw {shard.stem}."}) + "\n")
    where = ["--corpus", "c", "--warehouse", str(tmp_path / "w")]
    line = "shards of 0.0 kB on average: up to 5 files of each stay"
    few = run.invoke(app, ["corpus", "count", *map(str, shards[:2]), *where])
    assert few.exit_code == 0 and line not in few.output, few.output
    monkeypatch.setattr(corpus, "_MANY", 3)
    for expected in (1, 0):  # nothing was counted the second time
        many = run.invoke(app, ["corpus", "count", *map(str, shards), *where])
        assert many.exit_code == 0 and many.output.count(f"3 {line}") == expected, many.output


def test_count_associate_word(tmp_path: Path) -> None:
    shard = tmp_path / "a.jsonl"
    texts = ["She saw the nurse.", "He saw the nurse and her tea.", "He is an army man."]
    shard.write_text("".join(json.dumps({"text": t}) + "\n" for t in texts))
    where = ["--warehouse", str(tmp_path / "w")]
    shown = run.invoke(app, ["corpus", "count", str(shard), "--corpus", "c", *where])
    assert shown.exit_code == 0, shown.output
    assert (
        re.search(r"^ c +│ +1 │ +3 │", shown.output, re.M)
        and "corpus associate --corpus c" in shown.output
    )
    shown = run.invoke(app, ["corpus", "associate", "--corpus", "c", *where])
    assert shown.exit_code == 0 and "word_delta" in shown.output
    shown = run.invoke(app, ["why", "Nurse", *where])
    # nurse is once near she (1 she in all) and once near he (2): ln(1/1) - ln(1/2) = ln 2. Of the
    # three documents the first adds 1 - 1 = 0 to ln c_she - ln n_she and 0 to that of he; the
    # second 0, and 1 - 1/2; the third 0, and -1/2. Two documents are too few for an interval.
    assert "no clear lean in c: +0.69 nats, all from 2 documents" in shown.output
    # From the counts: one co-occurrence on each side, sqrt(1/1 + 1/1).
    assert "0.866 nats over documents; the counts alone give 1.414" in shown.output
    assert "leans" not in shown.output
    assert "She saw the  nurse." in shown.output
    shown = run.invoke(app, ["why", "army", "--corpus", "c", *where])
    assert "no defined lean in c: it is not near both she and he" in shown.output
    shown = run.invoke(app, ["corpus", "list", *where])
    assert "gendered" in shown.output


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
