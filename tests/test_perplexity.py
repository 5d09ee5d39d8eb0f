"""Perplexity of held-out text: windows and BOS against transformers' own loss; files."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import transformers
from scipy import stats

from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.transformers_backend import TransformersBackend
from plumbline.eval_workers.scoring import perplexity
from plumbline.eval_workers.scoring.held_out import HeldOut, read_held_out, text_files
from plumbline.eval_workers.scoring.perplexity import Perplexity, PerplexityOutcome
from plumbline.eval_workers.work.runner import run_steps
from plumbline.pipelines.command.main import main
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests.echo_server import echoing
from tests.tiny_models import KINDS, SENTENCES, save

LONG = " ".join(SENTENCES)
DOCUMENTS = [LONG, SENTENCES[0], f"{SENTENCES[4]} {SENTENCES[10]}", SENTENCES[0], SENTENCES[2]]


@pytest.fixture(scope="module")
def neox(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save("neox", tmp_path_factory.mktemp("models") / "tiny-neox")


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "wiki.jsonl"
    rows = [json.dumps({"text": text}) for text in DOCUMENTS]
    rows[2:2] = ["", '{"text": 5}', '{"text": " "}', "{", '{"text": "a <|endoftext|> b"}']
    path.write_text("\n".join(rows))
    return path


def loss_of(directory: Path, bos: str, text: str, window: int) -> tuple[float, int]:
    """log p by the model's own loss, window by window; how many tokens."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    model = transformers.AutoModelForCausalLM.from_pretrained(directory).double().eval()
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    first, total = tokenizer.convert_tokens_to_ids(bos), 0.0
    for start in range(0, len(ids), window):
        rows = torch.tensor([[first, *ids[start : start + window]]])
        with torch.no_grad():
            # `labels` are shifted inside: BOS isn't a target. The loss is a mean over targets.
            total -= model(input_ids=rows, labels=rows).loss.item() * (rows.shape[1] - 1)
    return total, len(ids)


@pytest.mark.parametrize(("kind", "window"), [("gpt2", 63), ("neox", 29), ("llama-adds-bos", 40)])
def test_a_long_text_has_the_model_s_own_loss(tmp_path: Path, kind: str, window: int) -> None:
    path = save(kind, tmp_path / kind)
    (score,) = TransformersBackend(str(path), ModelOptions()).score_windows([LONG], window)
    logprob, n_tokens = loss_of(path, KINDS[kind].bos, LONG, window)
    assert score.n_tokens == n_tokens > 90
    assert score.logprob_nats == pytest.approx(logprob, rel=1e-6)


def measure(store: Store, texts: Path, model: Path, window: int | None = None) -> PerplexityOutcome:
    held_out = read_held_out(text_files([str(texts)]))
    return run_steps(store, str(model), ModelOptions(), [Perplexity(held_out, window)], "run")[0]


def test_documents_are_counted_or_rejected(store: Store, texts: Path, neox: Path) -> None:
    done = measure(store, texts, neox)
    assert (done.text_set, done.window_tokens) == ("wiki", 64)
    counts = (done.n_documents, done.n_counted, done.n_new, done.n_rejected)
    assert counts == (9, 5, 5, 4)
    rows = store.read("perplexity").to_pylist()
    assert [row["document"] for row in rows] == [f"wiki.jsonl:{i:06}" for i in (1, 2, 8, 9, 10)]
    for row, text in zip(rows, DOCUMENTS, strict=True):
        logprob, n_tokens = loss_of(neox, "<|endoftext|>", text, 64)
        assert row["logprob_nats"] == pytest.approx(logprob, rel=1e-6)
        assert (row["n_tokens"], row["n_words"]) == (n_tokens, len(text.split()))
        assert row["n_windows"] == math.ceil(n_tokens / 64)
    rejects = {r["source_row"]: r["reason"] for r in store.read("reject").to_pylist()}
    assert rejects.keys() == {4, 5, 6, 7}
    assert rejects[4] == "the record has no `text` that is a string"
    assert rejects[5] == "holds no word" and rejects[6].startswith("not JSON")
    assert "special token <|endoftext|>" in rejects[7]
    check_view(store)


def check_view(store: Store) -> None:
    """Against the residuals' variance by hand."""
    rows = store.read("perplexity").to_pylist()
    y = -np.array([row["logprob_nats"] for row in rows])
    (found,) = rows_of(store.root, "FROM perplexity_set")
    bounds = {}
    for column in ("n_tokens", "n_words"):
        x = np.array([row[column] for row in rows])
        ratio, n = y.sum() / x.sum(), len(x)
        variance = n / (n - 1) * ((y - ratio * x) ** 2).sum() / x.sum() ** 2
        half = stats.t.ppf(0.975, n - 1) * math.sqrt(variance)
        bounds[column] = (ratio - half, ratio, ratio + half)
    low, rate, high = bounds["n_tokens"]
    assert found["nats_per_token"] == pytest.approx(rate)
    assert found["perplexity"] == pytest.approx(math.exp(rate))
    assert found["perplexity_low"] == pytest.approx(math.exp(low), rel=2e-3)
    assert found["perplexity_high"] == pytest.approx(math.exp(high), rel=2e-3)
    names = ("nats_per_word_low", "nats_per_word", "nats_per_word_high")
    assert [found[name] for name in names] == pytest.approx(bounds["n_words"], rel=2e-3)


def test_only_what_is_missing_is_computed(
    store: Store, texts: Path, neox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a whole run: a changed document; another window."""
    monkeypatch.setattr(perplexity, "CHUNK_CHARACTERS", 100)
    asked: list[str] = []
    real = TransformersBackend.score_windows

    def score(self: Any, of: Any, window: int) -> Any:
        asked.extend(of)
        return real(self, of, window)

    monkeypatch.setattr(TransformersBackend, "score_windows", score)
    assert measure(store, texts, neox).n_new == 5
    assert len(asked) == len(set(asked)) == 5  # one is there twice, one can't be scored
    before = store.read("perplexity").to_pylist()
    lines = texts.read_text().splitlines()
    texts.write_text("\n".join([*lines[:1], json.dumps({"text": "He drank."}), *lines[2:-1]]))
    asked.clear()
    assert measure(store, texts, neox).n_new == 1
    # What was rejected is tried again each time.
    assert asked[0] == "He drank." or asked[-1] == "He drank."
    after = store.read("perplexity").to_pylist()
    assert len(after) == 4 and [r for r in after if r in before] == [after[0], *after[2:]]
    assert measure(store, texts, neox, 7).n_new == 4
    assert {row["window_tokens"] for row in store.read("perplexity").to_pylist()} == {7}


def test_all_kinds_of_files_hold_the_same_documents(tmp_path: Path) -> None:
    lines = "".join(json.dumps({"text": text}) + "\n" for text in DOCUMENTS).encode()
    (tmp_path / "a.jsonl").write_bytes(lines)
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(lines))
    with pa.CompressedOutputStream(str(tmp_path / "c.jsonl.zst"), "zstd") as out:
        out.write(lines)
    pq.write_table(pa.table({"text": [*DOCUMENTS, None]}), tmp_path / "d.parquet")
    for name in ("a.jsonl", "b.jsonl.gz", "c.jsonl.zst", "d.parquet"):
        held_out = read_held_out([tmp_path / name])
        assert [d.text for d in held_out.documents if d.problem is None] == DOCUMENTS
        assert held_out.name == name[0]
    assert held_out.documents[-1].problem == "its text is NULL"
    for i, text in enumerate(DOCUMENTS[:2]):
        (tmp_path / f"{i}.txt").write_text(text)
    held_out = read_held_out(text_files([str(tmp_path / "*.txt")]))
    assert [d.name for d in held_out.documents] == ["0.txt:000001", "1.txt:000001"]
    assert [d.text for d in held_out.documents] == DOCUMENTS[:2] and held_out.name == "0+1"


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("She ran.", encoding="utf-8-sig")
    (tmp_path / "b.jsonl").write_text('{"text": "She ran."}\n', encoding="utf-8-sig")
    for name in ("a.txt", "b.jsonl"):
        assert [d.text for d in read_held_out([tmp_path / name]).documents] == ["She ran."]


def test_what_is_wrong_is_said(store: Store, tmp_path: Path, texts: Path, neox: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / texts.name).write_text("")
    with pytest.raises(UsageProblem, match="has the name of"):
        text_files([str(texts), str(tmp_path / "more" / texts.name)])
    with pytest.raises(UsageProblem, match=r"--window 65: has to be 1 to 64 tokens"):
        measure(store, texts, neox, 65)
    with pytest.raises(UsageProblem, match=r"--window 0"):
        measure(store, texts, neox, 0)
    (tmp_path / "odd.txt").write_text("a <|endoftext|> b")
    with pytest.raises(BadInput, match=r"can't score any document of odd: .*special token"):
        measure(store, tmp_path / "odd.txt", neox)
    held = HeldOut("none", ())
    with pytest.raises(BadInput, match="can't score any document"):
        run_steps(store, str(neox), ModelOptions(), [Perplexity(held)], "run")


def test_a_server_gives_the_perplexity_of_the_model_behind_it(
    store: Store, neox: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Over the documents of one window; longer ones are in ``reject``, since it has the tokens."""
    whole = [text for text in DOCUMENTS if text != LONG]
    (tmp_path / "short.jsonl").write_text("\n".join(json.dumps({"text": t}) for t in whole))
    (tmp_path / "all.jsonl").write_text("\n".join(json.dumps({"text": t}) for t in DOCUMENTS))
    where = ["--window", "63", "--warehouse", str(store.root), "--format", "json"]

    def rows(*words: str) -> list[dict[str, Any]]:
        assert main(["score", "perplexity", *words, *where]) == 0
        found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["rows"]
        return found

    (here,) = rows(str(tmp_path / "short.jsonl"), "--model", str(neox))
    with echoing(neox) as (server, _):
        by = ("--model", "tiny", "--backend", "server", "--base-url", server.url)
        by = (*by, "--bos", "<|endoftext|>")
        (there,) = rows(str(tmp_path / "short.jsonl"), *by)
        (of_all,) = rows(str(tmp_path / "all.jsonl"), *by)
        del where[:2]
        assert main(["score", "perplexity", str(tmp_path / "all.jsonl"), *by, *where]) == 2
    assert "does not report the model's context (give --window TOKENS)" in capsys.readouterr().err
    assert there["n_tokens"] == here["n_tokens"] == of_all["n_tokens"]
    assert there["n_documents"] == len(whole)
    for name in ("perplexity", "perplexity_low", "perplexity_high"):
        assert there[name] == pytest.approx(here[name], rel=1e-4)
    (reject,) = store.read("reject", stage="perplexity").to_pylist()
    assert reject["source_row"] == 1 and "maximum context length is 64" in reject["reason"]


def test_the_dummy_model_has_a_perplexity_of_its_vocabulary(store: Store, texts: Path) -> None:
    held_out = read_held_out(text_files([str(texts)]))
    run_steps(store, "dummy", ModelOptions(), [Perplexity(held_out)], "run")
    (found,) = rows_of(store.root, "FROM perplexity_set")
    assert found["perplexity"] == pytest.approx(50_000)
    assert found["nats_per_word"] == found["nats_per_token"]
