"""What every backend of a neural model has to do, as a class of tests to subclass.

What every backend at all has to do is ``plumbline.contracts.check_backend``.
"""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertForMaskedLM

from plumbline.contracts import check_backend
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.scoring_contract import Backend
from plumbline.warehouse.errors import BadInput, MissingComponent, UsageProblem
from tests.tiny_models import KINDS, SENTENCES, one_by_one, save

#: log p(text | BOS) in nats and the scored tokens of each text.
Expected = list[tuple[float, int]]


class BackendContract:
    """The tests of a backend; subclasses say how it is opened and how close it has to come."""

    backend: ClassVar[str]
    open_model: ClassVar[Callable[[str, ModelOptions], Backend]]
    #: Nats between a text's score and the one computed alone in float64.
    tolerance: ClassVar[float]
    #: Tokens of the longest text that a model with 64 positions can score.
    limit: ClassVar[int]
    batch_tokens: ClassVar[tuple[int, ...]]

    def opened(self, path: Path | str, **options: Any) -> Backend:
        return type(self).open_model(str(path), ModelOptions(backend=self.backend, **options))

    @pytest.fixture(scope="class")
    def saved(self, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
        """A model of each kind."""
        root = tmp_path_factory.mktemp("models")
        return {kind: save(kind, root / kind) for kind in KINDS}

    @pytest.fixture(scope="class")
    def expected(self, saved: dict[str, Path]) -> dict[str, Expected]:
        """Independent scores of the sentences, made before a backend runs in this process."""
        return {kind: one_by_one(path, KINDS[kind].bos, SENTENCES) for kind, path in saved.items()}

    @pytest.mark.parametrize("kind", KINDS)
    def test_scores_are_those_of_one_text_at_a_time_in_float64(
        self, saved: dict[str, Path], expected: dict[str, Expected], kind: str
    ) -> None:
        wanted = expected[kind]
        assert len({round(total, 1) for total, _ in wanted}) > 8  # the oracle tells texts apart
        for seed, batch_tokens in enumerate(self.batch_tokens):
            order = list(range(len(SENTENCES)))
            random.Random(seed).shuffle(order)
            texts = [SENTENCES[i] for i in order]
            how = (self.backend, str(saved[kind]), texts, self.tolerance)
            for i, score in zip(order, check_backend(*how, batch_tokens=batch_tokens), strict=True):
                assert score.n_tokens == wanted[i][1]
                assert abs(score.logprob_nats - wanted[i][0]) < self.tolerance
                assert score.logprob_nats == math.fsum(score.token_logprobs_nats)

    def test_parameters_are_counted_once(self, saved: dict[str, Path]) -> None:
        """GPT-2 ties its output to its embedding: one matrix; Llama has two."""
        width, inner, n_layers, n_positions = 64, 256, 2, 64
        n_vocabulary = 330
        block = 4 * width * (width + 1) + 2 * width * inner + inner + width + 4 * width
        tied = (n_vocabulary + n_positions) * width + n_layers * block + 2 * width
        assert self.opened(saved["gpt2"]).n_parameters == tied
        weights = load_file(saved["llama-adds-bos"] / "model.safetensors")
        untied = sum(tensor.numel() for tensor in weights.values())
        assert self.opened(saved["llama-adds-bos"]).n_parameters == untied

    def test_texts_that_have_no_exact_score_get_a_problem(self, saved: dict[str, Path]) -> None:
        backend = self.opened(saved["gpt2"])
        long, longest = "x" * (self.limit + 1), "x" * self.limit
        texts = ["", "a <|endoftext|> b", long, "lone \ud800 surrogate", longest]
        scores = backend.score(texts)
        words = ["empty", "special token <|endoftext|>", f"context of {self.limit}"]
        for score, word in zip(scores, [*words, "can't encode", ""], strict=True):
            assert word in (score.problem or "")
        assert all(math.isnan(s.logprob_nats) for s in scores[:-1])
        assert math.isfinite(scores[-1].logprob_nats) and scores[-1].n_tokens == self.limit
        wordpiece = self.opened(saved["gpt2-wordpiece"])
        problem = wordpiece.score(["She drank \u6c34."])[0].problem
        assert problem and "special token [UNK]" in problem
        assert "no token" in str(wordpiece.score(["  "])[0].problem)

    def test_a_text_beyond_the_vocabulary_of_the_weights_is_refused(
        self, saved: dict[str, Path], expected: dict[str, Expected], tmp_path: Path
    ) -> None:
        path = shutil.copytree(saved["gpt2"], tmp_path / "short")
        config = json.loads((path / "config.json").read_text())
        config["vocab_size"] -= 40
        (path / "config.json").write_text(json.dumps(config))
        weights = load_file(path / "model.safetensors")
        name = "transformer.wte.weight"
        weights[name] = weights[name][:-40].clone()
        save_file(weights, path / "model.safetensors", {"format": "pt"})
        scores = self.opened(path).score([*SENTENCES, "QQQ"])
        outside = [s for s in scores if s.problem and "outside the model's" in s.problem]
        assert outside and scores[-1].problem is None
        assert [s.n_tokens for s in scores[:-1]] == [
            0 if s.problem else n for s, (_, n) in zip(scores, expected["gpt2"], strict=False)
        ]

    def test_weights_that_are_not_numbers_score_nothing(
        self, saved: dict[str, Path], tmp_path: Path
    ) -> None:
        path = shutil.copytree(saved["opt-adds-bos"], tmp_path / "nan")
        weights = load_file(path / "model.safetensors")
        weights["model.decoder.final_layer_norm.weight"][3] = math.nan
        save_file(weights, path / "model.safetensors", {"format": "pt"})
        scores = self.opened(path).score(SENTENCES[:3])
        assert all(score.problem == "its log-probability is nan" for score in scores)

    def test_identities_of_different_scores_differ(
        self, saved: dict[str, Path], tmp_path: Path
    ) -> None:
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
            return self.opened(path, **options).identity.key

        keys = [key(saved["gpt2"]), key(other), key(retokenised)]
        keys += [key(saved["gpt2"], dtype=d) for d in ("bfloat16", "float16")]
        keys += [key(saved["gpt2"], bos="<pad>")]
        assert len(set(keys)) == len(keys)
        assert key(same) == keys[0] == key(saved["gpt2"], device="cpu")
        identity = self.opened(saved["gpt2"]).identity
        assert identity.backend == self.backend and self.backend in identity.backend_version

    def test_half_precision_sums_in_float64(
        self, saved: dict[str, Path], expected: dict[str, Expected]
    ) -> None:
        """bfloat16 weights move a score, but it isn't a bfloat16 number (spaced 0.25 above 32)."""
        exact, _ = expected["llama-adds-bos"][6]
        half = self.opened(saved["llama-adds-bos"], dtype="bfloat16").score([SENTENCES[6]])[0]
        assert 0 < abs(half.logprob_nats - exact) < 0.1 * abs(exact)
        values = torch.tensor([half.logprob_nats, *half.token_logprobs_nats])
        assert (values != values.bfloat16()).float().mean() > 0.8

    def test_bos_policy(self, saved: dict[str, Path], tmp_path: Path) -> None:
        def identity(path: Path, bos: str | None = None) -> tuple[str, int]:
            found = self.opened(path, bos=bos).identity
            return found.bos_policy, found.bos_token_id

        assert identity(saved["neox"]) == ("tokenizer.bos_token", 1)
        assert identity(saved["neox"], "<pad>") == ("option: <pad>", 0)
        with pytest.raises(UsageProblem, match="not a single token"):
            identity(saved["neox"], "two tokens")
        silent = save("gpt2-wordpiece", tmp_path / "silent", names_bos=False)
        config = json.loads((silent / "config.json").read_text())
        # the configuration names a token, but the tokenizer does not hold it for special
        config["bos_token_id"] = 5
        (silent / "config.json").write_text(json.dumps(config))
        with pytest.raises(UsageProblem, match="with bos "):
            identity(silent)
        assert identity(silent, "[BOS]") == ("option: [BOS]", 1)
        # a model with none in its configuration starts with its kind's convention
        neox = shutil.copytree(saved["neox"], tmp_path / "neox")
        for name, said in (("config.json", "bos_token_id"), ("tokenizer_config.json", "bos_token")):
            found = json.loads((neox / name).read_text())
            (neox / name).write_text(json.dumps({**found, said: None}))
        assert identity(neox) == ("convention: <|endoftext|>", 1)

    def test_what_is_no_model_is_refused_in_one_line(
        self, saved: dict[str, Path], tmp_path: Path
    ) -> None:
        def refused(model: Path | str, **options: Any) -> str:
            with pytest.raises((BadInput, UsageProblem, MissingComponent)) as caught:
                self.opened(model, **options).score(["a"])
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

    @pytest.mark.slow
    def test_hub_ids_work_from_the_cache_and_revisions_never_share_a_key(
        self, saved: dict[str, Path], tmp_path: Path
    ) -> None:
        """A cache laid out as the hub library does, with no network."""
        commits = {"main": "a" * 40, "v2": "b" * 40}
        repository = tmp_path / "models--somebody--tiny"
        (repository / "refs").mkdir(parents=True)
        for seed, (branch, commit) in enumerate(commits.items()):
            save("llama-adds-bos", repository / "snapshots" / commit, seed=seed)
            (repository / "refs" / branch).write_text(commit)
        environment = {**os.environ, "HF_HUB_CACHE": str(tmp_path), "HF_HUB_OFFLINE": "1"}
        command = [sys.executable, "-c", _FROM_THE_HUB, self.backend]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stderr
        main, v2, commit = (line.split(" ", 2) for line in done.stdout.splitlines())
        assert main[1] == commits["main"] and v2[1] == commits["v2"]
        assert main[0] != v2[0] and main[2] != v2[2]
        assert v2 == commit


_FROM_THE_HUB = """
import sys
from plumbline.eval_workers.models import open_backend
from plumbline.eval_workers.models.model_options import ModelOptions
for revision in (None, "v2", "b" * 40):
    options = ModelOptions(backend=sys.argv[1], revision=revision)
    backend = open_backend("somebody/tiny", options)
    print(backend.identity.key, backend.identity.revision, backend.score(["She drank."])[0])
"""
