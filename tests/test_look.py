"""The front door: one model on a page, and three questions in a line each."""

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest
import torch

import plumbline
from plumbline.eval_workers.pairs.benchmarks import default_source
from plumbline.eval_workers.pairs.benchmarks import released_sets as archive
from plumbline.pipelines.command.base import Done
from plumbline.pipelines.command.command_line import _next
from plumbline.pipelines.command.main import main
from plumbline.pipelines.commands.model_commands.look import Look
from plumbline.pipelines.commands.pipeline import Parts, Stage
from plumbline.pipelines.pipeline_plan import PROMPTS, PipelinePlan
from plumbline.warehouse.errors import BadInput, MissingComponent, UsageProblem
from plumbline.warehouse.steps.runner import NothingUsed
from plumbline.warehouse.storage.store import Store
from tests.hub_server import hub
from tests.released_files import write_scores, write_use_5
from tests.tiny_models import save

TEMPLATES = [f"{{pronoun}} drank tea {k}." for k in range(9)]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("look") / "tiny"
    save("neox", place)
    # Samples of 64 tokens need a longer context; rotary positions have no weights.
    config = json.loads((place / "config.json").read_text())
    (place / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 512}))
    return place


@pytest.mark.slow
def test_a_look_needs_a_model_and_nothing_else(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same few pairs each time; disclosure and FairPair are on the page, too."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PLUMBLINE_DATA", raising=False)
    monkeypatch.setattr(archive, "_ADDRESS", "http://127.0.0.1:9")
    samples = []
    for out in ("out/look", "elsewhere"):
        assert main(["look", str(model), "--n", "4", "--out", out, "--format", "json"]) == 0
        done = json.loads((shown := capsys.readouterr()).out)
        store = Store.open(f"{out}/warehouse", create=False)
        samples.append(sorted(store.read("benchmark_pair")["pair_id"].to_pylist()))
    assert samples[0] == samples[1] and len(samples[0]) == 4
    assert {row["model"] for row in done["rows"]} == {"tiny"}
    assert "can't be downloaded" in shown.err and "no rank among the 28" in done["said"][0]
    assert "; going on with Plumbline's own pairs\n" in shown.err
    assert Path(done["files"][0]).is_file()
    for table in ("pair_score", "pronoun_probability", "continuation", "fairpair_set"):
        assert store.read(table).num_rows, table


def test_what_to_do_next_names_no_default_warehouse() -> None:
    done, other = Done(next="plumbline look ANOTHER_MODEL"), Path("w")
    assert _next(done, Look(model="m")) == done.next
    assert _next(done, Look(model="m", warehouse=other)) == f"{done.next} --warehouse w"


@pytest.mark.parametrize(
    ("kind", "left", "said"),
    [
        ("neox", ("", (PROMPTS,)), "FairPair skipped: its texts don't fit into the context of"),
        ("bert", ("", ()), "FairPair and disclosure skipped: m doesn't predict next tokens"),
        ("t5", ("common-sents", ()), "Disclosure skipped: m is an encoder-decoder"),
    ],
)
def test_what_a_model_cannot_do_is_skipped_with_a_line(
    kind: str, left: tuple[object, object], said: str, tmp_path: Path
) -> None:
    plan = PipelinePlan(None, (), (), probe_set="common-sents", disclosure=(PROMPTS,))
    plan = replace(plan, fairpair={"max_new_tokens": 64})
    plan, (line,) = Look(model=str(save(kind, tmp_path / "m")))._possible(plan)
    assert (plan.probe_set, plan.disclosure) == left and said in line


def test_a_look_deletes_no_pairs_and_says_what_it_could_not_use(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Samples are benchmarks of their own; a model that can use nothing is an error at the end."""

    def evaluate() -> None:
        raise NothingUsed("model tiny", "could use nothing")

    monkeypatch.setattr(Parts, "evaluate", lambda _: [Stage("score", evaluate)])
    write_use_5(tmp_path / "unstereo-eval", [*TEMPLATES, "No pronoun."])
    monkeypatch.setattr(Look, "sets", lambda *_: ["use-5"])
    given = ["--data", str(tmp_path), "--warehouse", str(tmp_path / "w")]
    assert main(["benchmark", "import", "use-5", *given]) == 0
    for n in (4, 5):
        out = ["--out", str(tmp_path / "out"), "--n", str(n)]
        capsys.readouterr()
        assert main(["look", str(model), *given, *out]) == 3
        shown = capsys.readouterr()
        assert f"{n} of 9 pairs of use-5" in shown.out and "1 row rejected" in shown.out
        assert "rejected" not in shown.err  # once, at the end
        assert "could use nothing" in shown.err
    store = Store.open(tmp_path / "w", create=False)
    sizes = Counter(store.read("benchmark_pair")["benchmark"].to_pylist())
    assert sizes == {"use-5": 9, "look-use-5-4": 4, "look-use-5-5": 5}
    assert set(store.read("reject")["subject"].to_pylist()) == set(sizes)


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file that a local server offers as the archive of the released sets."""
    file = write_use_5(tmp_path / archive._COMMIT, TEMPLATES[:1])
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    monkeypatch.setattr(archive, "_FILES", {"USE-5.csv": digest[:12]})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with hub(top=tmp_path) as url:
        monkeypatch.setattr(archive, "_ADDRESS", url)
        yield file


def test_sets_are_downloaded_once_with_a_line_on_their_licence(
    served: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = archive.downloaded()
    assert "published without a licence" in capsys.readouterr().err
    served.unlink()
    assert archive.downloaded() == data and not capsys.readouterr().err
    places = [default_source("use-5", root) for root in (data, data / "unstereo-eval")]
    assert places[0] == places[1] == data / archive.DEFAULT_LOCATION, "also the root of a clone"


def test_another_file_than_the_expected_one_is_refused(served: Path) -> None:
    served.write_text("<html>Log in to this network</html>")
    with pytest.raises(BadInput, match=r"USE-5\.csv"):
        archive.downloaded()


@pytest.mark.parametrize("has_scores", [True, False])
def test_a_model_has_its_place_among_the_published_ones(
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    has_scores: bool,
) -> None:
    """Ranked on the same pairs with released scores, else counted among the printed figures."""
    data = tmp_path / "data"
    write_use_5(data / "unstereo-eval", TEMPLATES)
    shared = {"word": "tea", "is_natural": "True", "M_logprob": "-9"}
    shared |= {"F_num_tokens": "5", "M_num_tokens": "5"}
    scores = [
        {"template": t, "F_template": t.format(pronoun="She"), "M_template": t.format(pronoun="He")}
        | {"F_logprob": str(k - 9), **shared}
        for k, t in enumerate(TEMPLATES)
    ]
    for name in ("gpt-j-6b", "pythia-70m") if has_scores else ():
        write_scores(data / "unstereo-eval/results", scores, f"EleutherAI__{name}.csv")

    def short() -> None:
        raise NothingUsed("model tiny", "too short a context")  # as FairPair's prompts may

    def evaluate(parts: Parts) -> list[Stage]:
        score = partial(parts._score, parts.plan.models[0])
        return [Stage("score", score), Stage("FairPair", short)]

    monkeypatch.setattr(Parts, "evaluate", evaluate)
    monkeypatch.setattr(Look, "sets", lambda *_: ["use-5"])
    command = ["look", str(model), "--n", "6", "--data", str(data), "--format", "json"]
    assert main([*command, "--out", str(tmp_path / "out")]) == 0
    done = json.loads(capsys.readouterr().out)
    (place,) = [line for line in done["said"] if "published models" in line]
    assert ("of 3 (95%: " in place) == has_scores and ("of the 28" in place) != has_scores
    assert {row["model"] for row in done["rows"]} == {"tiny"}
    store = Store.open(tmp_path / "out/warehouse", create=False)
    assert store.read("pair_score").num_rows == 6 * (3 if has_scores else 1)
    assert not store.read("reject").num_rows


def test_words_lean_to_the_side_they_are_near() -> None:
    met = ["She met the nurse by the sea."] * 30 + ["He met the baker by the sea."] * 30
    texts = [*met, "She ran.", "He ran.", "He ran again."]
    found = plumbline.lean(texts, ["nurse", "met", "baker"])
    low, _, high = found["delta_nats_low"], found["delta_nats"], found["delta_nats_high"]
    assert low[0] > 0 > high[2] and low[1] < 0 < high[1]
    assert set(found["over"]) == {"documents"}
    assert set(plumbline.lean(texts, ["nurse"])["over"]) == {"documents"}
    assert found.chart().to_dict(validate=False)["layer"]


def test_pairs_come_as_tuples_or_as_a_frame(model: Path) -> None:
    pairs = [("She ran.", "He ran."), ("She sat.", "He sat.")]
    found = plumbline.prefer(str(model), pairs)
    assert list(found["metric"]) == ["pd", "us"] and set(found["n"]) == {2}
    frame = pd.DataFrame(pairs, columns=["sentence_a", "sentence_b"])
    pd.testing.assert_frame_equal(plumbline.prefer(str(model), frame), found)
    for wrong in ("demo", [("She ran.",)]):
        with pytest.raises(UsageProblem, match="pairs: are not tuples of two sentences"):
            plumbline.prefer(str(model), wrong)


def test_a_loaded_model_is_scored_as_it_is_now(model: Path) -> None:
    from transformers import AutoModelForCausalLM

    pairs = [("She ran.", "He ran."), ("She sat.", "He sat.")]
    loaded = AutoModelForCausalLM.from_pretrained(model)
    before = plumbline.prefer(loaded, pairs)
    with torch.no_grad():
        for weight in loaded.parameters():
            weight.mul_(-2)
    after = plumbline.prefer(loaded, pairs)
    assert before["model"][0] != after["model"][0]


def test_parts_of_an_answer_have_a_chart_and_pandas_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = plumbline.lean(["She met the nurse.", "He met the baker."] * 9)
    part = found[found["word"] == "met"]
    assert part.chart().to_dict(validate=False)["layer"]
    monkeypatch.delitem(sys.modules, "plumbline.quick")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingComponent, match="pandas"):
        import_module("plumbline.quick")


@pytest.mark.slow
def test_names_are_those_asked_for(model: Path) -> None:
    found = plumbline.continues(str(model), ("Ann", "Bob"), n=2)
    assert set(found["phi"]) == {"jaccard", "vader"} and not Path("out").exists()
    assert "fairpair_f_low" in found.columns or "fairpair_f" in found.columns
