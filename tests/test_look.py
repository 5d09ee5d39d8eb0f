"""The front door: one model on a page, and three questions in a line each."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import plumbline
from plumbline.pipelines.command.main import main
from plumbline.warehouse.storage.store import Store
from tests.tiny_models import save


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("look") / "tiny"
    save("gpt2", place)
    return place


@pytest.mark.slow
def test_a_look_needs_a_model_and_nothing_else(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same few pairs each time; disclosure and FairPair are on the page, too."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PLUMBLINE_DATA", raising=False)
    samples = []
    for _ in range(2):
        assert main(["look", str(model), "--n", "4", "--format", "json"]) == 0
        done = json.loads(capsys.readouterr().out)
        store = Store.open("out/look/warehouse", create=False)
        samples.append(sorted(store.read("benchmark_pair")["pair_id"].to_pylist()))
    assert samples[0] == samples[1] and len(samples[0]) == 4
    assert {row["model"] for row in done["rows"]} == {"tiny"}
    assert Path(done["files"][0]).is_file()
    for table in ("pair_score", "pronoun_probability", "continuation", "fairpair_set"):
        assert store.read(table).num_rows, table


def test_words_lean_to_the_side_they_are_near() -> None:
    texts = ["She met the nurse by the sea."] * 30 + ["He met the baker by the sea."] * 30
    found = plumbline.lean(texts, ["nurse", "met", "baker"])
    low, _, high = found["delta_nats_low"], found["delta_nats"], found["delta_nats_high"]
    assert low[0] > 0 > high[2] and low[1] < 0 < high[1]
    assert found.chart().to_dict(validate=False)["layer"]


def test_pairs_come_as_tuples_or_as_a_frame(model: Path) -> None:
    pairs = [("She ran.", "He ran."), ("She sat.", "He sat.")]
    found = plumbline.prefer(str(model), pairs)
    assert list(found["metric"]) == ["pd", "us"] and set(found["n"]) == {2}
    frame = pd.DataFrame(pairs, columns=["sentence_a", "sentence_b"])
    pd.testing.assert_frame_equal(plumbline.prefer(str(model), frame), found)


@pytest.mark.slow
def test_names_are_those_asked_for(model: Path) -> None:
    found = plumbline.continues(str(model), ("Ann", "Bob"), n=2)
    assert set(found["phi"]) == {"jaccard", "vader"} and not Path("out").exists()
    assert "fairpair_f_low" in found.columns or "fairpair_f" in found.columns
