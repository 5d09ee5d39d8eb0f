"""Causal models with a state of another kind than keys and values: Mamba, RWKV, RecurrentGemma.

Scores and samples are compared with plain passes of transformers, one growing text at a time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

from plumbline.contracts import check_backend
from plumbline.eval_workers.models.local.causal_model import CausalModel
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.sampling_contract import SamplingOptions, SeededPrompt
from tests.tiny_models import KINDS

_BOS = "<|endoftext|>"
_SIZES: dict[str, dict[str, Any]] = {
    "mamba": {"state_size": 4, "initializer_range": 0.4},
    # Weights are scaled at the third layer, in place: a pass more than once would show.
    "rwkv": {"num_hidden_layers": 3, "rescale_every": 2, "attention_hidden_size": 32},
    # Two recurrent layers, which keep their state in the model, and one of local attention.
    "recurrent_gemma": {
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 16,
        "lru_width": 32,
        "attention_window_size": 6,
        "pad_token_id": 0,
    },
}
_TEXTS = ["She drank tea.", "He drank tea.", "The nurse said she lost her key.", "Himself."]


@pytest.fixture(scope="module", params=_SIZES)
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    tokenizer = KINDS["neox"].tokenizer()
    bos = tokenizer.token_to_id(_BOS)
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 32}
    config = AutoConfig.for_model(
        request.param,
        **{**shape, **_SIZES[request.param]},
        vocab_size=tokenizer.get_vocab_size(),
        bos_token_id=bos,
        eos_token_id=bos,
    )
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for weights in model.parameters():
            if weights.ndim == 1:
                weights += 0.2 * torch.randn_like(weights)
    directory = tmp_path_factory.mktemp("recurrent") / request.param
    model.save_pretrained(directory)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=_BOS).save_pretrained(directory)
    return directory


class _Plain:
    """The model as transformers runs it: one text, no state handed on."""

    def __init__(self, path: Path) -> None:
        self.model: Any = AutoModelForCausalLM.from_pretrained(path).eval()
        self.tokenizer = PreTrainedTokenizerFast.from_pretrained(path)

    def ids(self, text: str) -> list[int]:
        bos = self.tokenizer.bos_token_id
        return [bos, *self.tokenizer(text, add_special_tokens=False)["input_ids"]]

    def after(self, ids: list[int]) -> torch.Tensor:
        """log p (nats) of every next token."""
        with torch.no_grad():
            logits = self.model(torch.tensor([ids]), use_cache=False).logits[0, -1]
        return logits.double().log_softmax(-1)  # type: ignore[no-any-return]

    def logprobs(self, text: str) -> list[float]:
        ids = self.ids(text)
        return [float(self.after(ids[:i])[ids[i]]) for i in range(1, len(ids))]

    def greedy(self, text: str, n_new: int) -> str:
        ids = self.ids(text)
        for _ in range(n_new):
            token = int(self.after(ids).argmax())
            if token == self.tokenizer.bos_token_id:
                break
            ids.append(token)
        whole, before = (self.tokenizer.decode(part) for part in (ids[1:], self.ids(text)[1:]))
        return str(whole[len(before) :])


def test_scores_and_samples_are_those_of_one_text_at_a_time(path: Path) -> None:
    plain = _Plain(path)
    expected = [plain.logprobs(text) for text in _TEXTS]
    assert len({round(sum(values), 2) for values in expected}) == len(_TEXTS)
    for batch_tokens in (1, 1000):
        how = ("transformers", str(path), _TEXTS)
        for score, values in zip(
            check_backend(*how, batch_tokens=batch_tokens), expected, strict=True
        ):
            assert score.token_logprobs_nats == pytest.approx(values, abs=1e-4)

    backend = CausalModel(str(path), ModelOptions())
    assert backend.weights.longest_in_tree == 0  # a tree needs masks, which a state does not see
    before = backend.score(_TEXTS)
    prompts = ["She", "He", "The nurse said", "She"]
    draws = [SeededPrompt(prompt, i, seed=i) for i, prompt in enumerate(prompts)]
    many = backend.continue_(draws, SamplingOptions(max_new_tokens=6))
    assert many == [backend.continue_([d], SamplingOptions(max_new_tokens=6))[0] for d in draws]
    greedy = backend.continue_(draws, SamplingOptions(greedy=True, max_new_tokens=6))
    assert [sample.text for sample in greedy] == [plain.greedy(text, 6) for text in prompts]
    assert backend.score(_TEXTS) == before  # no state is left behind in the model
