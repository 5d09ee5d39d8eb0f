"""Logs of Inspect, as it wrote them, read into `pair_score`."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.pairs.harness.documents import zipped_documents
from plumbline.eval_workers.pairs.harness.inspect_logs import import_inspect
from plumbline.eval_workers.pairs.harness.logged_texts import logprob_of
from plumbline.eval_workers.pairs.sharing.harness_export import write_task
from plumbline.eval_workers.scoring.pair_scores import score_benchmarks
from plumbline.eval_workers.scoring.statistics.measure_options import MeasureOptions
from plumbline.eval_workers.scoring.statistics.metrics_by_sql import compute
from plumbline.pipelines.command.main import main
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.storage.store import Store
from tests.echo_server import echoing
from tests.metric_rows import fill, pair
from tests.test_harness_export import INSPECT
from tests.tiny_models import save

LOGS = Path(__file__).parent / "harness_logs"
KNOWN = json.loads((LOGS / "scores.json").read_text("utf-8"))


def _import_pairs(store: Store) -> None:
    pairs = [pair("b", i, sentence_a=a, sentence_b=b) for i, (a, b) in KNOWN["pairs"].items()]
    fill(store, "benchmark_pair", pairs)


def _figures(store: Store) -> dict[str, list[float]]:
    names = [f"{what}_{side}{unit}" for what, unit in FIGURES for side in "ab"]
    return {r["pair_id"]: [r[n] for n in names] for r in store.read("pair_score").to_pylist()}


FIGURES = (("logprob", "_nats"), ("n_tokens", ""))


def test_the_figures_are_those_of_score(store: Store) -> None:
    """An accent, quotation marks and a sentence that Inspect keeps as an attachment among them."""
    _import_pairs(store)
    for _ in range(2):  # again gives the same rows
        (done,) = import_inspect(store, LOGS / "inspect", "r")
        assert (done.benchmark, done.n_pairs, done.n_scored, done.n_rejected) == ("b", 3, 3, 0)
        found = _figures(store)
        assert found.keys() == KNOWN["inspect"].keys()
        for pair_id, expected in KNOWN["inspect"].items():
            assert found[pair_id] == pytest.approx(expected, abs=1e-4)
    (model,) = store.read("model").to_pylist()
    assert (model["backend"], model["backend_version"]) == ("inspect", "inspect_ai 0.3.285")
    assert str(model["model"]).rsplit("/")[-1].startswith("tiny-")
    computed = compute(store.root, MeasureOptions(), "r", ["us"]).to_pylist()
    assert [r["n"] for r in computed if r["subset"] == "all"] == [3]


def test_a_log_of_inspect_in_json_gives_the_same(store: Store, tmp_path: Path) -> None:
    """Also one that ordinary compression packed."""
    _import_pairs(store)
    documents = dict(zipped_documents(LOGS / "inspect" / "log.eval"))
    samples = [document for name, document in documents.items() if name.startswith("samples/")]
    assert len(samples) == 6
    (tmp_path / "json").mkdir()
    (tmp_path / "json/log.json").write_text(
        json.dumps({**documents["header.json"], "samples": samples})
    )
    (tmp_path / "json/wordings.json").write_text("[]")
    (tmp_path / "zip").mkdir()
    with zipfile.ZipFile(tmp_path / "zip/log.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, document in documents.items():
            archive.writestr(name, json.dumps(document))
    import_inspect(store, LOGS / "inspect", "r")
    expected = _figures(store)
    for kind in ("json", "zip"):
        assert import_inspect(store, tmp_path / kind, "r")[0].n_scored == 3
        assert _figures(store) == expected


def _packed(path: Path, text: bytes, states: int) -> Path:
    """An archive with one Zstandard entry that states a size."""
    data = zstandard.ZstdCompressor().compress(text)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.json", data)
    raw = bytearray(path.read_bytes())
    for mark, method, size in ((b"PK\x03\x04", 8, 22), (b"PK\x01\x02", 10, 24)):
        at = raw.index(mark)
        raw[at + method : at + method + 2] = (93).to_bytes(2, "little")
        raw[at + size : at + size + 4] = states.to_bytes(4, "little")
    path.write_bytes(raw)
    return path


def test_an_entry_is_not_larger_than_it_states(tmp_path: Path) -> None:
    text = json.dumps(["x" * 5000]).encode()
    assert list(zipped_documents(_packed(tmp_path / "a", text, len(text)))) == [
        ("a.json", json.loads(text))
    ]
    with pytest.raises(BadInput, match=r"a\.json holds more than the 10 bytes it states"):
        list(zipped_documents(_packed(tmp_path / "b", text, 10)))


@pytest.mark.parametrize("kind", ["damaged", "method", "encrypted", "cut"])
def test_an_archive_that_cannot_be_read_is_one_line(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.json", json.dumps(list(range(500))))
    raw = bytearray(path.read_bytes())
    central = raw.index(b"PK\x01\x02")
    if kind == "damaged":
        raw[36:60] = b"\xff" * 24
    elif kind == "method":
        raw[8] = raw[central + 10] = 98
    elif kind == "encrypted":
        raw[6] |= 1
        raw[central + 8] |= 1
    else:  # a Zstandard entry that begins where the file ends
        raw[central + 10] = 93
        raw[central + 42 : central + 46] = (len(raw) - 3).to_bytes(4, "little")
    path.write_bytes(raw)
    with pytest.raises(BadInput, match="can't be read as an archive of JSON"):
        list(zipped_documents(path))


def test_every_text_is_used_or_rejected(store: Store, tmp_path: Path) -> None:
    _import_pairs(store)

    def change(whole: dict[str, Any]) -> None:
        """Only the pair in rows 1 and 2 stays whole; another row is of its first sentence."""
        samples = whole["samples"]
        samples.append(json.loads(json.dumps(samples[0])))
        samples[2]["input"] += " Yes."
        samples[3]["output"] = None
        _tokens(samples[4])[5]["logprob"] = 0.5

    (done,) = import_inspect(store, _spoil_inspect(tmp_path / "l", change), "r")
    assert (done.n_pairs, done.n_scored, done.n_rejected, done.n_missing) == (3, 1, 5, 2)
    reasons = {r["source_row"]: r["reason"] for r in store.read("reject").to_pylist()}
    assert reasons.keys() == {3, 4, 5, 6, 7}
    assert reasons[3] == "its tokens don't spell the sentence"
    assert reasons[4] == "the sample has no log-probability of its prompt"
    assert reasons[5] == "a log-probability is not finite, or is above 0"
    assert reasons[6].startswith("no pair of the warehouse joins this sentence with another")
    assert reasons[7] == "the sentence has 2 rows, of which the first is used"


def test_two_figures_of_a_sentence_are_none(store: Store, tmp_path: Path) -> None:
    _import_pairs(store)

    def change(whole: dict[str, Any]) -> None:
        other = json.loads(json.dumps(whole["samples"][0]))
        _tokens(other)[3]["logprob"] -= 0.01
        whole["samples"].append(other)

    (done,) = import_inspect(store, _spoil_inspect(tmp_path / "l", change), "r")
    assert (done.n_scored, done.n_rejected, done.n_missing) == (2, 3, 1)


def _tokens(sample: dict[str, Any]) -> list[Any]:
    tokens: list[Any] = sample["output"]["choices"][0]["prompt_logprobs"]["content"]
    return tokens


def _spoil_inspect(directory: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    documents = dict(zipped_documents(LOGS / "inspect/log.eval"))
    samples = [document for name, document in documents.items() if name.startswith("samples/")]
    whole = {**documents["header.json"], "samples": samples}
    change(whole)
    directory.mkdir()
    (directory / "log.json").write_text(json.dumps(whole))
    return directory


def _no_prompt_logprobs(whole: dict[str, Any]) -> None:
    for sample in whole["samples"]:
        (choice,) = sample["output"]["choices"]
        choice["logprobs"] = choice.pop("prompt_logprobs")


def _no_first_token(whole: dict[str, Any]) -> None:
    for sample in whole["samples"]:
        del _tokens(sample)[0]


def _two_bos(whole: dict[str, Any]) -> None:
    """As a server does that puts its own before the one given."""
    for sample in whole["samples"]:
        _tokens(sample).insert(0, {"token": "<|endoftext|>", "logprob": -9.0})


def test_logs_without_scores_are_rejected_beside_logs_with_them(
    store: Store, tmp_path: Path
) -> None:
    """Of another model, and one of the same."""
    _import_pairs(store)
    logs = tmp_path / "logs"
    _spoil_inspect(logs, _no_prompt_logprobs)
    _spoil_inspect(
        logs / "b", lambda whole: (whole["eval"].update(model="m"), whole["samples"].clear())
    )
    shutil.copy(LOGS / "inspect" / "log.eval", logs / "z.eval")
    done = import_inspect(store, logs, "r")
    other, whole = sorted(done, key=lambda one: one.n_scored)
    assert (other.model, other.n_scored, other.n_rejected) == ("m", 0, 1)
    assert (whole.n_scored, whole.n_rejected) == (3, 1)
    assert len(store.read("model")) == 1
    reasons = {r["reason"] for r in store.read("reject").to_pylist()}
    assert reasons == {"the log holds no log-probability of a prompt"}


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda d: _spoil_inspect(d, _no_prompt_logprobs),
            "or ask with `plumbline score choose`",
        ),
        (
            lambda d: _spoil_inspect(d, _no_first_token),
            "the model got no BOS (give the task bos=TOKEN)",
        ),
        (lambda d: _spoil_inspect(d, _two_bos), "its tokens don't spell the sentence"),
        (lambda d: _spoil_inspect(d, dict.clear), "holds no log of Inspect"),
        (lambda d: d.mkdir(), "holds no *.eval or *.json"),
        (lambda d: (d.mkdir(), (d / "l.eval").write_bytes(b"PK"))[0], "can't be read as"),
    ],
)
def test_what_holds_no_scores_is_one_line(
    store: Store,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    spoil: Callable[[Path], object],
    message: str,
) -> None:
    _import_pairs(store)
    spoil(tmp_path / "logs")
    where = ["--logs", "inspect", "--warehouse", str(store.root)]
    assert main(["score", "import", str(tmp_path / "logs"), *where]) == 3
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert message in line
    assert not store.read("pair_score").num_rows and not store.read("model").num_rows


def test_pairs_that_are_not_there_are_one_line(store: Store) -> None:
    fill(store, "benchmark_pair", [pair("b", "other")])
    with pytest.raises(BadInput, match=r"no pair of the warehouse joins this sentence.*import the"):
        import_inspect(store, LOGS / "inspect", "r")


_pieces = st.lists(
    st.tuples(st.text("ab é“", min_size=1, max_size=4), st.floats(-30, 0)), min_size=1, max_size=6
)


@pytest.mark.parametrize("value", [-(10**400), -1e308, -math.inf, math.nan, 0.5])
def test_a_log_probability_that_is_none(value: float) -> None:
    assert str(logprob_of("She ran.", [("She", value), (" ran.", value)])).startswith("a log-prob")


@given(_pieces, st.sampled_from(["", "</s>"]))
def test_the_figure_is_the_sum_over_the_sentence_alone(
    pieces: list[tuple[str, float]], after: str
) -> None:
    sentence = "".join(text for text, _ in pieces)
    tokens = [*pieces, *[(after, -9.0)] * bool(after)]
    if not sentence.strip():
        return
    found = logprob_of(sentence, tokens)
    assert not isinstance(found, str)
    assert found[0] == pytest.approx(math.fsum(value for _, value in pieces))
    assert len(pieces) - found[1] == 0
    lost = logprob_of(f"x{sentence}", tokens)
    assert isinstance(lost, str)


def _tiny(kind: str, directory: Path, store: Store) -> dict[str, list[float]]:
    """A tiny model in a directory, and our figures of it."""
    path = save(kind, directory / f"tiny-{kind}")
    settings = json.loads((path / "tokenizer_config.json").read_text())
    (path / "tokenizer_config.json").write_text(json.dumps({**settings, "model_max_length": 64}))
    options = ModelOptions(device="cpu", dtype="float32")
    score_benchmarks(store, str(path), ["b"], options, "ours")
    found = _figures(store)
    store.replace("pair_score", [], {"benchmark": "b"}, "ours")
    return found


@pytest.mark.slow
@pytest.mark.skipif(INSPECT is None, reason="pip install inspect_ai openai, or PLUMBLINE_INSPECT")
@pytest.mark.parametrize(
    ("kind", "own_bos", "bos"), [("gpt2", "", "<|endoftext|>"), ("opt-adds-bos", "</s>", "")]
)
def test_inspect_itself(store: Store, tmp_path: Path, kind: str, own_bos: str, bos: str) -> None:
    _import_pairs(store)
    expected = _tiny(kind, tmp_path, store)
    write_task(store, "b", tmp_path / "task", to="inspect")
    command = [str(INSPECT), "-m", "inspect_ai", "eval", "task/plumbline_sentences.py"]
    command += ["--model", "openai-api-completions/local/m", "--display", "none"]
    with echoing(tmp_path / f"tiny-{kind}", own_bos) as (server, _):
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        environment |= {"LOCAL_BASE_URL": server.url, "LOCAL_API_KEY": "none"}
        run = [*command, "--log-dir", "logs", *(["-T", f"bos={bos}"] if bos else [])]
        subprocess.run(run, cwd=tmp_path, env=environment, timeout=300, check=True)
    (done,) = import_inspect(store, tmp_path / "logs", "r")
    assert (done.n_scored, done.n_rejected) == (3, 0)
    assert _figures(store) == {i: pytest.approx(row, abs=1e-4) for i, row in expected.items()}
    (log,) = (tmp_path / "logs").iterdir()
    metrics = dict(zipped_documents(log))["header.json"]["results"]["scores"][0]["metrics"]
    computed = compute(store.root, MeasureOptions(), "r", ["us", "pd"]).to_pylist()
    ours = {r["metric"]: r["value"] for r in computed if r["subset"] == "all"}
    assert {n: metrics[n]["value"] for n in ours} == {n: pytest.approx(v) for n, v in ours.items()}


@pytest.mark.slow
@pytest.mark.skipif(INSPECT is None, reason="pip install inspect_ai openai, or PLUMBLINE_INSPECT")
def test_inspect_puts_ratings_beside_scores(store: Store, tmp_path: Path) -> None:
    """By the command on docs/harness.md; the log is read back as before."""
    _import_pairs(store)
    rating = {"benchmark": "b", "rater": "r1", "answer": "", "answer_level": 0, "is_yes": True}
    rated = {"pair_id": "long", "source_file": "f", "source_row": 1, "run_id": "r"}
    fill(store, "rating", [{**rating, **rated, "question": "natural"}])
    write_task(store, "b", tmp_path / "task", to="inspect")
    (tmp_path / "scored").mkdir()
    command = [str(INSPECT), "-m", "inspect_ai", "score", str(LOGS / "inspect" / "log.eval")]
    command += ["--model", "none", "--scorer", "task/plumbline_sentences.py@human_ratings"]
    command += ["--action", "append", "--output-file", "scored/log.eval", "--display", "none"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(command, cwd=tmp_path, env=environment, timeout=300, check=True)
    header = dict(zipped_documents(tmp_path / "scored" / "log.eval"))["header.json"]
    ours, people = header["results"]["scores"]
    assert ours["metrics"].keys() == {"us", "pd"}
    assert (people["name"], people["metrics"]["mean"]["value"]) == ("natural", 1.0)
    assert people["scored_samples"] == 2
    assert import_inspect(store, tmp_path / "scored", "r")[0].n_scored == 3
    assert str(store.read("model")["model"][0]).rsplit("/")[-1].startswith("tiny-")
