"""The transformers backend against an independent float64 computation, and what it refuses."""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertForMaskedLM

from eval_workers.backends.base import ModelOptions
from eval_workers.backends.transformers_backend import TransformersBackend
from tests.tiny_models import KINDS, SENTENCES, one_by_one, save
from warehouse.errors import BadInput, MissingComponent, UsageProblem


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("models")
    return {kind: save(kind, root / kind) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_one_text_at_a_time_in_float64(
    saved: dict[str, Path], kind: str
) -> None:
    expected = one_by_one(saved[kind], KINDS[kind].bos, SENTENCES)
    assert len({round(total, 1) for total, _ in expected}) > 8  # the oracle tells texts apart
    for batch_tokens, seed in ((1, 0), (40, 1), (100_000, 2)):
        backend = TransformersBackend(str(saved[kind]), ModelOptions(batch_tokens=batch_tokens))
        order = list(range(len(SENTENCES)))
        random.Random(seed).shuffle(order)
        scores = backend.score([SENTENCES[i] for i in order] + [SENTENCES[order[0]]])
        assert scores[-1] == scores[0]
        for i, score in zip(order, scores, strict=False):
            assert score.problem is None
            assert score.n_tokens == expected[i][1]
            assert abs(score.logprob_nats - expected[i][0]) < 1e-4


def test_tokenizers_that_add_bos_themselves_do_so(saved: dict[str, Path]) -> None:
    """The cases above are what they say: two tokenizers add BOS when let, three do not."""
    from transformers import AutoTokenizer

    for kind, path in saved.items():
        tokenizer = AutoTokenizer.from_pretrained(path)
        starts_with_bos = tokenizer("She ran.")["input_ids"][0] == tokenizer.bos_token_id
        assert starts_with_bos == kind.endswith("adds-bos")


def test_texts_that_have_no_exact_score_get_a_problem(saved: dict[str, Path]) -> None:
    backend = TransformersBackend(str(saved["gpt2"]), ModelOptions())
    limit = 64
    texts = ["", "a <|endoftext|> b", "x" * (limit + 1), "lone \ud800 surrogate", "x" * limit]
    problems = [score.problem or "" for score in backend.score(texts)]
    words = ["empty", "special token <|endoftext|>", "context of 64", "can't encode", ""]
    for problem, word in zip(problems, words, strict=True):
        assert word in problem
    scores = backend.score(texts)
    assert all(math.isnan(s.logprob_nats) for s in scores[:-1])
    assert math.isfinite(scores[-1].logprob_nats) and scores[-1].n_tokens == limit
    wordpiece = TransformersBackend(str(saved["gpt2-wordpiece"]), ModelOptions())
    problem = wordpiece.score(["She drank \u6c34."])[0].problem
    assert problem and "special token [UNK]" in problem
    assert "no token" in str(wordpiece.score(["  "])[0].problem)


def test_a_text_beyond_the_vocabulary_of_the_weights_is_refused(
    saved: dict[str, Path], tmp_path: Path
) -> None:
    path = shutil.copytree(saved["gpt2"], tmp_path / "short")
    config = json.loads((path / "config.json").read_text())
    config["vocab_size"] -= 40
    (path / "config.json").write_text(json.dumps(config))
    weights = load_file(path / "model.safetensors")
    name = "transformer.wte.weight"
    weights[name] = weights[name][:-40].clone()
    save_file(weights, path / "model.safetensors", {"format": "pt"})
    scores = TransformersBackend(str(path), ModelOptions()).score(SENTENCES)
    outside = [s for s in scores if s.problem and "outside the model's" in s.problem]
    assert outside
    expected = one_by_one(saved["gpt2"], "<|endoftext|>", SENTENCES)
    assert [s.n_tokens for s in scores] == [
        0 if s.problem else n for s, (_, n) in zip(scores, expected, strict=True)
    ]


def test_weights_that_are_not_numbers_score_nothing(saved: dict[str, Path], tmp_path: Path) -> None:
    path = shutil.copytree(saved["neox"], tmp_path / "nan")
    weights = load_file(path / "model.safetensors")
    weights["gpt_neox.final_layer_norm.weight"][3] = math.nan
    save_file(weights, path / "model.safetensors", {"format": "pt"})
    scores = TransformersBackend(str(path), ModelOptions()).score(SENTENCES[:3])
    assert all(score.problem == "its log-probability is nan" for score in scores)


def test_identities_of_different_scores_differ(saved: dict[str, Path], tmp_path: Path) -> None:
    other = save("gpt2", tmp_path / "gpt2", seed=1)
    retokenised = shutil.copytree(saved["gpt2"], tmp_path / "t" / "gpt2")
    text = (retokenised / "tokenizer.json").read_text()
    (retokenised / "tokenizer.json").write_text(
        text.replace('"add_prefix_space": false', '"add_prefix_space": true')
    )
    assert (retokenised / "tokenizer.json").read_text() != text
    same = shutil.copytree(saved["gpt2"], tmp_path / "s" / "gpt2")
    (same / "README.md").write_text("not part of the model")

    def key(path: Path, **options: str) -> str:
        return TransformersBackend(str(path), ModelOptions(**options)).identity.key  # type: ignore[arg-type]

    keys = [key(saved["gpt2"]), key(other), key(retokenised)]
    keys += [key(saved["gpt2"], dtype=d) for d in ("bfloat16", "float16")]
    keys += [key(saved["gpt2"], bos="<pad>")]
    assert len(set(keys)) == len(keys)
    assert key(same) == keys[0] == key(saved["gpt2"], device="cpu")


def test_half_precision_sums_in_float64(saved: dict[str, Path]) -> None:
    """bfloat16 weights move a score, but it is no bfloat16 number (spaced 0.25 above 32 nats)."""
    text = SENTENCES[6]
    exact, _ = one_by_one(saved["neox"], "<|endoftext|>", [text])[0]
    half = TransformersBackend(str(saved["neox"]), ModelOptions(dtype="bfloat16")).score([text])[0]
    assert 0 < abs(half.logprob_nats - exact) < 0.1 * abs(exact)
    assert half.logprob_nats != float(torch.tensor(half.logprob_nats, dtype=torch.bfloat16))


def test_bos_policy(saved: dict[str, Path], tmp_path: Path) -> None:
    def identity(path: Path, bos: str | None = None) -> tuple[str, int]:
        found = TransformersBackend(str(path), ModelOptions(bos=bos)).identity
        return found.bos_policy, found.bos_token_id

    assert identity(saved["neox"]) == ("tokenizer.bos_token", 1)
    assert identity(saved["neox"], "<pad>") == ("option: <pad>", 0)
    with pytest.raises(UsageProblem, match="no single token"):
        identity(saved["neox"], "two tokens")
    silent = save("gpt2-wordpiece", tmp_path / "silent", names_bos=False)
    config = json.loads((silent / "config.json").read_text())
    # the configuration names a token, but the tokenizer does not hold it for special
    config["bos_token_id"] = 5
    (silent / "config.json").write_text(json.dumps(config))
    with pytest.raises(UsageProblem, match="--bos TOKEN"):
        identity(silent)
    assert identity(silent, "[BOS]") == ("option: [BOS]", 1)
    neox = save("neox", tmp_path / "neox", names_bos=False)
    config = json.loads((neox / "config.json").read_text())
    config["bos_token_id"] = None
    (neox / "config.json").write_text(json.dumps(config))
    assert identity(neox) == ("convention: <|endoftext|>", 1)


def test_what_is_no_model_is_refused_in_one_line(saved: dict[str, Path], tmp_path: Path) -> None:
    def refused(model: Path | str, **options: str) -> str:
        with pytest.raises((BadInput, UsageProblem, MissingComponent)) as caught:
            TransformersBackend(str(model), ModelOptions(**options)).score(["a"])  # type: ignore[arg-type]
        assert "\n" not in str(caught.value)
        return str(caught.value)

    (tmp_path / "empty").mkdir()
    file = tmp_path / "file"
    file.write_text("x")
    assert "does not exist" in refused(tmp_path / "none")
    assert "does not exist" in refused("./none")
    assert "is a file" in refused(file)
    assert "no config.json" in refused(tmp_path / "empty")
    assert "neither a directory nor a hub id" in refused("two words")
    assert "can't be had from the hub" in refused("nobody/plumbline-test-model")
    assert "no revisions" in refused(saved["gpt2"], revision="main")
    assert "--dtype int3" in refused(saved["gpt2"], dtype="int3")
    if not torch.cuda.is_available():
        assert "no CUDA device" in refused(saved["gpt2"], device="cuda")

    broken = shutil.copytree(saved["gpt2"], tmp_path / "broken")
    (broken / "config.json").write_text("{")
    assert "can't be loaded" in refused(broken)
    cut = shutil.copytree(saved["gpt2"], tmp_path / "cut")
    weights = (cut / "model.safetensors").read_bytes()
    (cut / "model.safetensors").write_bytes(weights[: len(weights) // 2])
    assert "can't be loaded" in refused(cut)
    partial = shutil.copytree(saved["gpt2"], tmp_path / "partial")
    tensors = load_file(partial / "model.safetensors")
    del tensors["transformer.h.1.mlp.c_fc.weight"]
    save_file(tensors, partial / "model.safetensors", {"format": "pt"})
    assert "1 weights are missing" in refused(partial)
    (partial / "model.safetensors").unlink()
    assert "not a whole model" in refused(partial)
    masked = shutil.copytree(saved["gpt2"], tmp_path / "masked")
    size = {"hidden_size": 8, "intermediate_size": 8, "vocab_size": 40}
    config = BertConfig(**size, num_hidden_layers=1, num_attention_heads=1)
    BertForMaskedLM(config).save_pretrained(masked)
    assert "not a causal language model" in refused(masked)


def test_hub_ids_work_from_the_cache_and_revisions_never_share_a_key(
    saved: dict[str, Path], tmp_path: Path
) -> None:
    """A cache laid out as the hub library does, with no network."""
    commits = {"main": "a" * 40, "v2": "b" * 40}
    repository = tmp_path / "models--somebody--tiny"
    (repository / "refs").mkdir(parents=True)
    for seed, (branch, commit) in enumerate(commits.items()):
        save("neox", repository / "snapshots" / commit, seed=seed)
        (repository / "refs" / branch).write_text(commit)
    code = """
from eval_workers.backends.base import ModelOptions
from eval_workers.backends.transformers_backend import TransformersBackend
for revision in (None, "v2", "b" * 40):
    backend = TransformersBackend("somebody/tiny", ModelOptions(revision=revision))
    print(backend.identity.key, backend.identity.revision, backend.score(["She ran."])[0])
"""
    environment = {**os.environ, "HF_HUB_CACHE": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    main, v2, commit = (line.split(" ", 2) for line in done.stdout.splitlines())
    assert main[1] == commits["main"] and v2[1] == commits["v2"]
    assert main[0] != v2[0] and main[2] != v2[2]
    assert v2 == commit
