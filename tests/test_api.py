"""The Python interface gives what the commands give, as frames of any kind."""

import csv
import errno
import io
import json
import traceback
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import plumbline
from plumbline import api
from plumbline.pipelines.command.main import main
from plumbline.warehouse.errors import BadInput, MissingComponent, UsageProblem
from plumbline.warehouse.input.shards import write_jsonl_zst
from tests.tiny_models import save

TEXTS = [
    *("She gave the nurse some tea and sat by the window." for _ in range(9)),
    *("The nurse saw that he was late." for _ in range(3)),
    *("He met the captain at the harbour." for _ in range(8)),
    *("She told the captain her name." for _ in range(2)),
]
PAIRS = [
    {"sentence_a": f"She {verb} tea.", "sentence_b": f"He {verb} tea.", "year": year}
    for year, verb in enumerate(("drank", "made", "sold", "wanted", "liked", "brought"), 1990)
]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    place = tmp_path_factory.mktemp("models")
    return save("neox", place / "tiny-neox"), save("gpt2", place / "tiny-gpt2")


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory, models: tuple[Path, Path]) -> Path:
    """A warehouse with a corpus, pairs and two scored models, all by way of the interface."""
    place = tmp_path_factory.mktemp("api")
    write_jsonl_zst(place / "a.jsonl.zst", TEXTS)
    wh = plumbline.open(place / "w", "arrow", create=True)
    wh.count("c", str(place / "*.jsonl.zst"), targets="she-he")
    wh.benchmark("mine", PAIRS)
    for model in models:
        wh.score(str(model), "mine")
    wh.measure()
    return place


def asked(place: Path, *command: str, capsys: pytest.CaptureFixture[str]) -> Any:
    capsys.readouterr()
    assert main([*command, "--warehouse", str(place / "w")]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_words_and_why_are_what_the_commands_say(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wh = plumbline.open(here / "w")
    words = wh.words(["Nurse", "captain"])
    assert isinstance(words, pd.DataFrame) and list(words["word"]) == ["nurse", "captain"]
    query = "SELECT word, delta_nats FROM word_delta WHERE word IN ('nurse', 'captain')"
    by_command = asked(here, "sql", query, "--format", "json", capsys=capsys)
    assert dict(zip(words["word"], words["delta_nats"], strict=True)) == pytest.approx(
        {row["word"]: row["delta_nats"] for row in by_command}
    )
    # n(nurse, she) : n(nurse, he) is 9 : 3, of she and he in all 11 : 11 pairs with these words
    assert (words.set_index("word")["delta_nats"] > 0).to_dict() == {
        "nurse": True,
        "captain": False,
    }

    leans = wh.why("nurse", n=2)
    named = ["why", "nurse", "--n", "2", "--format", "json"]
    by_command = asked(here, *named, capsys=capsys)
    assert list(leans["delta_nats"]) == [r["delta_nats"] for r in by_command["rows"]]
    assert len(wh.sql("FROM word_snippet WHERE word = 'nurse'"))
    with pytest.raises(UsageProblem, match="unheard"):
        wh.why("unheard")


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "rows"])
@pytest.mark.slow
def test_frames_of_any_kind_are_the_same_pairs(
    here: Path, models: tuple[Path, Path], kind: str
) -> None:
    made: dict[str, Any] = {
        "pandas": pd.DataFrame(PAIRS, index=list("abcdef")),
        "polars": pl.DataFrame(PAIRS),
        "arrow": pa.Table.from_pylist(PAIRS),
        "rows": PAIRS,
    }
    wh = plumbline.open(here / "w", "arrow")
    scored = wh.score(str(models[0]), made[kind])
    by_name = wh.score(str(models[0]), "mine")
    assert scored["log_ratio_nats"] == by_name["log_ratio_nats"]
    names = wh.sql("SELECT DISTINCT benchmark FROM benchmark_pair ORDER BY 1").to_pylist()
    assert len(names) == 2 and names[1]["benchmark"].startswith("pairs-")


def test_what_is_wrong_is_one_line(here: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="nowhere"):
        plumbline.open(tmp_path / "nowhere")
    with pytest.raises(UsageProblem, match="pandas, polars, arrow"):
        plumbline.open(here / "w", "excel")  # type: ignore[call-overload]
    wh = plumbline.open(here / "w")
    for wrong, said in [
        (lambda: wh.words(["nurse"], corpus="novel"), "corpus 'novel': not in the warehouse"),
        (lambda: wh.words(["nurse"], contrast="she/they"), "there is she/he"),
        (lambda: wh.words([7]), "is not text"),
        (lambda: wh.benchmark("b", [{"sentence_a": "x \ud800 y"}]), "half a surrogate pair"),
        (lambda: wh.corpus_associate("c"), "has the arguments none"),
        (lambda: wh.sql("SELECT nurse FROM word_lean"), "nurse"),
        (lambda: wh.sql("FROM word_leen"), "word_lean"),
        (lambda: wh.sql("COPY (SELECT 1) TO 'x.csv'"), "only the warehouse"),
        (lambda: wh.score("m", "nothing"), "not in the warehouse"),
        (lambda: wh.sql("FROM metric_values"), "did you mean metric_value or metric_of"),
        (lambda: wh.score("m", "mine", dtpe="float16"), "dtpe.*did you mean dtype"),
        (lambda: wh.score("m", 7), "pairs of type int"),
        (lambda: wh.measure(epsilon=-1.0), "epsilon = -1.0"),
        (lambda: wh.count("c", str(here / "*.none")), "none"),
    ]:
        with pytest.raises((UsageProblem, BadInput), match=said) as caught:
            wrong()
        assert "\n" not in str(caught.value)
        shown = "".join(traceback.format_exception(caught.value))
        assert "duckdb." not in shown and "pydantic_core" not in shown
    with pytest.raises(AttributeError, match=r"\(did you mean corpus_associate"):
        wh.associate("c")
    with pytest.raises(BadInput, match="no usable pair"):
        wh.benchmark("empty", [{"sentence_a": "She ran.", "sentence_b": ""}])


def test_errors_of_the_machine_are_those_of_the_command_line(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wh = plumbline.open(here / "w")
    for error, kind, said in [
        (duckdb.IOException("Failed to read file x.parquet"), BadInput, "a table can't be read"),
        (OSError(errno.ENOSPC, "No space left on device", "x"), BadInput, "No space left"),
        (ModuleNotFoundError("no torch", name="torch"), MissingComponent, r"plumbline.*models"),
    ]:
        monkeypatch.setattr(api, "read_only", Mock(side_effect=error))
        with pytest.raises(kind, match=said):
            wh.sql("FROM corpus")


def test_commands_that_print_text_or_write_files_return_what_they_made(
    here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wh = plumbline.open(here / "w", "arrow")
    given = ["report", "table", "models", "--warehouse", str(here / "w"), "--format", "csv"]
    capsys.readouterr()
    assert main(given) == 0
    printed = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    rows = wh.report_table("models").to_pylist()
    assert len(rows) == len(printed) and rows
    for row, line in zip(rows, printed, strict=True):
        assert [*row] == [*line] and float(line["US %_low"]) == row["US %_low"]
    name = wh.report_figure()["name"][0].as_py()
    files = wh.report_figure(name, out=tmp_path / "one.svg")["file"].to_pylist()
    assert files[0] == str(tmp_path / "one.svg") and all(Path(file).is_file() for file in files)
    assert "tiny-gpt2" in wh.report(tmp_path / "report").read_text(encoding="utf-8")
