"""What every backend of a neural model has to do, beyond what `contracts.check_backend` checks."""

import json
import math
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from safetensors.torch import load_file, save_file

from plumbline.contracts import check_backend
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.scoring_contract import Backend
from plumbline.warehouse.errors import BadInput, UsageProblem
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
    def expected(self, saved: dict[str, Path]) -> dict[str, Expected]:
        """Independent scores of the sentences, made before a backend runs in this process."""
        return {kind: one_by_one(saved[kind], KINDS[kind].bos, SENTENCES) for kind in KINDS}

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

    @pytest.mark.parametrize("kind", ["gpt2", "llama-adds-bos"])
    def test_parameters_are_counted_once(self, saved: dict[str, Path], kind: str) -> None:
        """GPT-2 ties its output to its embedding, and its file holds one matrix; Llama's two."""
        weights = load_file(saved[kind] / "model.safetensors")
        n_parameters = sum(tensor.numel() for tensor in weights.values())
        assert self.opened(saved[kind]).n_parameters == n_parameters

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
        path = changed(saved["gpt2"], tmp_path, "config.json", vocab_size=290)
        weights = load_file(path / "model.safetensors")
        name = "transformer.wte.weight"
        weights[name] = weights[name][:290].clone()
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
        path = changed(saved["opt-adds-bos"], tmp_path)
        weights = load_file(path / "model.safetensors")
        weights["model.decoder.final_layer_norm.weight"][3] = math.nan
        save_file(weights, path / "model.safetensors", {"format": "pt"})
        scores = self.opened(path).score(SENTENCES[:3])
        assert all(score.problem == "its log-probability is nan" for score in scores)

    def test_identities_of_different_scores_differ(
        self, saved: dict[str, Path], tmp_path: Path
    ) -> None:
        other = save("gpt2", tmp_path / "other" / "gpt2", seed=1)
        retokenised = changed(saved["gpt2"], tmp_path / "t")
        (retokenised / "special_tokens_map.json").write_text("{}")
        same = changed(saved["gpt2"], tmp_path / "s")
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
        # The configuration names an ordinary token.
        silent = changed(silent, tmp_path / "s", "config.json", bos_token_id=5)
        with pytest.raises(UsageProblem, match="with bos "):
            identity(silent)
        assert identity(silent, "[BOS]") == ("option: [BOS]", 1)
        # A model without one in its configuration starts with its kind's convention.
        neox = changed(saved["neox"], tmp_path / "n", "config.json", bos_token_id=None)
        neox = changed(neox, tmp_path / "m", "tokenizer_config.json", bos_token=None)
        assert identity(neox) == ("convention: <|endoftext|>", 1)

    def test_what_is_no_model_is_refused_in_one_line(
        self, saved: dict[str, Path], tmp_path: Path
    ) -> None:
        (tmp_path / "empty").mkdir()
        (tmp_path / "file").write_text("x")
        broken, cut, partial, none = (changed(saved["gpt2"], tmp_path / name) for name in "bcpn")
        (broken / "config.json").write_text("{")
        weights = (cut / "model.safetensors").read_bytes()
        (cut / "model.safetensors").write_bytes(weights[: len(weights) // 2])
        tensors = load_file(partial / "model.safetensors")
        del tensors["transformer.h.1.mlp.c_fc.weight"]
        save_file(tensors, partial / "model.safetensors", {"format": "pt"})
        (none / "model.safetensors").unlink()
        cases: dict[Path | str, str] = {
            tmp_path / "none": "does not exist",
            tmp_path / "file": "is a file",
            tmp_path / "empty": "no config.json",
            "two words": "Repo id must use",
            "s3://bucket/m": "bucket/m: does not exist",
            "nobody/plumbline-test-model": "can't be loaded from the hub",
            broken: "can't be loaded",
            cut: "can't be loaded",
            partial: "1 weights are missing",
            none: "not a whole model",
        }
        for model, said in cases.items():
            with pytest.raises(BadInput, match=said) as caught:
                self.opened(model).score(["a"])
            assert "\n" not in str(caught.value)
        with pytest.raises(UsageProblem, match="no revisions"):
            self.opened(saved["gpt2"], revision="main")


def changed(model: Path, directory: Path, file: str = "config.json", **changes: Any) -> Path:
    """A copy of a model in a directory, with changes to one of its JSON files."""
    path = shutil.copytree(model, directory / model.name)
    if changes:
        said = json.loads((path / file).read_text()) if (path / file).exists() else {}
        (path / file).write_text(json.dumps({**said, **changes}))
    return path
