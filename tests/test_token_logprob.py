"""Log-probabilities of tokens, kept on request: they sum to the score, and go when it goes."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import torch
from transformers import AutoModelForCausalLM

from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.scoring.pair_scores import ScoredBenchmark, score_benchmarks
from plumbline.warehouse.query.connection import connect
from plumbline.warehouse.storage.store import Store
from tests.test_score import _pairs
from tests.tiny_models import KINDS, save

TEMPLATES = (
    "The cook said {pronoun} made soup for {pronoun1} guests.",
    "{pronoun} drank tea, naïvely.",
    "The boss saw {pronoun2}self.",
)


def _score(store: Store, model: Path, *, per_token: bool = True) -> ScoredBenchmark:
    options = ModelOptions(per_token=per_token)
    (done,) = score_benchmarks(store, str(model), ["demo"], options, "run")
    return done


def _tokens(store: Store) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Rows by pair and side, in the order they are stored."""
    found = defaultdict(list)
    for row in store.read("token_logprob").to_pylist():
        found[row["pair_id"], row["side"]].append(row)
    return found


def _words(store: Store) -> dict[tuple[str, str], list[tuple[str, int, float]]]:
    """Rows of view ``word_logprob`` by pair and side: word, tokens, log-probability."""
    found = defaultdict[tuple[str, str], list[tuple[str, int, float]]](list)
    query = "FROM word_logprob ORDER BY pair_id, side, position"
    for row in connect(store.root).sql(query).to_arrow_table().to_pylist():
        words = found[row["pair_id"], row["side"]]
        assert row["position"] == len(words)
        words.append((row["word"], row["n_tokens"], row["logprob_nats"]))
    return found


def _pair_scores(store: Store) -> dict[tuple[str, str], float]:
    rows = store.read("pair_score").to_pylist()
    return {(r["pair_id"], side): r[f"logprob_{side}_nats"] for r in rows for side in "ab"}


def test_tokens_are_those_of_an_independent_pass(store: Store, model: Path) -> None:
    _pairs(store, TEMPLATES)
    assert _score(store, model).n_new == 3
    tokenizer = tokenizers.Tokenizer.from_file(str(model / "tokenizer.json"))
    network = AutoModelForCausalLM.from_pretrained(model).double().eval()
    pairs = {p["pair_id"]: p for p in store.read("benchmark_pair").to_pylist()}
    found = _tokens(store)
    assert set(found) == {(i, side) for i in pairs for side in "ab"}
    for (pair_id, side), rows in found.items():
        text = pairs[pair_id][f"sentence_{side}"]
        ids = tokenizer.encode(text).ids
        assert [r["token_id"] for r in rows] == ids
        assert [r["position"] for r in rows] == list(range(len(ids)))
        bos = tokenizer.token_to_id("<|endoftext|>")
        with torch.no_grad():
            logits = network(torch.tensor([[bos, *ids]])).logits[0]
        expected = torch.log_softmax(logits, -1)[range(len(ids)), ids].tolist()
        assert [r["logprob_nats"] for r in rows] == pytest.approx(expected, abs=1e-4)
        total = sum(r["logprob_nats"] for r in rows)
        assert total == pytest.approx(_pair_scores(store)[pair_id, side], abs=1e-9)
        whole = text.encode().isascii()
        assert ("".join(r["token"] for r in rows) == text) or not whole


def test_asked_for_later_they_come(store: Store, model: Path) -> None:
    _pairs(store, TEMPLATES)
    assert _score(store, model, per_token=False).n_new == 3
    assert not _tokens(store)
    before = _pair_scores(store)
    assert _score(store, model).n_new == 3
    assert _pair_scores(store) == pytest.approx(before, abs=1e-4)
    first = store.read("token_logprob")
    assert first.num_rows > 30
    assert _score(store, model).n_new == 0 and _score(store, model, per_token=False).n_new == 0
    assert store.read("token_logprob").equals(first)


def test_tokens_go_with_their_pair_and_text(store: Store, model: Path) -> None:
    _pairs(store, TEMPLATES)
    _score(store, model)
    before = _tokens(store)
    _pairs(store, [TEMPLATES[0], "{pronoun} drank coffee.", TEMPLATES[2]])
    assert _score(store, model, per_token=False).n_new == 1
    # the changed pair has a score and no tokens, the others keep theirs
    assert _tokens(store) == {k: rows for k, rows in before.items() if k[0] != "001"}
    assert _score(store, model).n_new == 1
    after = _tokens(store)
    assert "".join(r["token"] for r in after["001", "b"]) == "He drank coffee."
    assert {k for k in after if after[k] != before.get(k)} == {("001", "a"), ("001", "b")}
    _pairs(store, TEMPLATES[:1])
    _score(store, model)
    assert set(_tokens(store)) == {("000", "a"), ("000", "b")}


@pytest.mark.parametrize("kind", ["neox", "llama-adds-bos", "gpt2-wordpiece"])
def test_words_are_those_of_an_independent_pass(store: Store, tmp_path: Path, kind: str) -> None:
    """Tokens are placed by the tokenizer's own offsets, and summed: no text of tokens is read.

    These random networks give a token down to -40 nats; float32 holds 3e-6 of such logits.
    """
    path = save(kind, tmp_path / kind)
    _pairs(store, TEMPLATES)
    assert _score(store, path).n_new >= 1  # WordPiece refuses what it has no tokens for
    tokenizer = tokenizers.Tokenizer.from_file(str(path / "tokenizer.json"))
    network = AutoModelForCausalLM.from_pretrained(path).double().eval()
    bos = tokenizer.token_to_id(KINDS[kind].bos)
    found, scores = _words(store), _pair_scores(store)
    assert set(found) == set(scores)
    pairs = {p["pair_id"]: p for p in store.read("benchmark_pair").to_pylist()}
    for (pair_id, side), words in found.items():
        text = pairs[pair_id][f"sentence_{side}"]
        encoded = tokenizer.encode(text, add_special_tokens=False)
        with torch.no_grad():
            logits = network(torch.tensor([[bos, *encoded.ids]])).logits[0]
        every = torch.log_softmax(logits, -1)[range(len(encoded.ids)), encoded.ids].tolist()
        expected = [[word, 0, 0.0] for word in text.split()]
        for (start, end), value in zip(encoded.offsets, every, strict=True):
            first = start + len(text[start:end]) - len(text[start:end].lstrip())
            place = len(text[: first + 1].split()) - 1
            expected[place][1] += 1
            expected[place][2] += value
        assert [w[:2] for w in words] == [tuple(w[:2]) for w in expected]
        assert [w[2] for w in words] == pytest.approx([w[2] for w in expected], rel=1e-5, abs=1e-4)
        total = sum(w[2] for w in words)
        assert total == pytest.approx(scores[pair_id, side], abs=1e-9)
    assert any(n > 1 for words in found.values() for _, n, _ in words)
