"""Trees of texts: their layout by brute force, their scores one text at a time in float64."""

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

from plumbline.eval_workers.models.local import weights
from plumbline.eval_workers.models.local.causal_model import CausalModel
from plumbline.eval_workers.models.local.tree import of_trees, tree
from plumbline.eval_workers.models.local.weights import TREE_TYPES
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.sampling_contract import SamplingOptions
from plumbline.eval_workers.models.scoring_contract import Tokens
from tests.tiny_models import KINDS, SENTENCES, one_by_one

_BOS = "<|endoftext|>"
_SEQUENCES = st.sets(
    st.lists(st.integers(1, 3), min_size=1, max_size=6).map(tuple), min_size=1, max_size=12
).map(sorted)


@given(_SEQUENCES, st.integers(1, 30))
def test_trees_hold_every_beginning_once(sequences: list[Tokens], limit: int) -> None:
    parts = list(of_trees(sequences, limit))
    assert [sequence for part in parts for sequence in part] == sequences
    for part, after in zip(parts, [*parts[1:], []], strict=True):
        _check_tree(part, limit)
        if after:  # one more would not have fitted
            assert len(_beginnings([*part, after[0]])) > limit


def _beginnings(sequences: list[Tokens]) -> set[Tokens]:
    return {s[:n] for s in sequences for n in range(len(s))}


def _check_tree(sequences: list[Tokens], limit: int) -> None:
    made = tree(sequences, bos=0)
    n = len(made.tokens)
    assert n == len(_beginnings(sequences))
    assert n <= limit or len(sequences) == 1
    attended = [[k for k in range(j + 1) if j < made.ends[k]] for j in range(n)]
    for sequence, path in zip(sequences, made.paths, strict=True):
        assert len(path) == len(sequence)
        for depth, node in enumerate(path):
            assert made.depths[node] == depth
            assert attended[node] == path[: depth + 1]
            assert [made.tokens[k] for k in attended[node]] == [0, *sequence[:depth]]


_SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "initializer_range": 0.4,
    "init_std": 0.4,  # OPT
    "ffn_dim": 64,  # OPT
    "word_embed_proj_dim": 24,  # OPT: narrower than the layers, as in opt-350m
    "n_inner": 64,  # GPT-2, GPT-J
    "rotary_dim": 8,  # GPT-J
    "head_dim": 8,
    "num_local_experts": 4,  # Mixtral
    "pad_token_id": 0,
    "sliding_window": None,
}


def _made(model_type: str, directory: Path, **changes: Any) -> Path:
    """A small model of a type, with random weights, norms and biases too."""
    tokenizer = KINDS["neox"].tokenizer()
    bos = tokenizer.token_to_id(_BOS)
    known = AutoConfig.for_model(model_type)
    settings = {*known.to_dict(), *known.attribute_map}
    sizes = {k: v for k, v in {**_SIZES, **changes}.items() if k in settings}
    config = AutoConfig.for_model(
        model_type,
        **sizes,
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
    model.save_pretrained(directory)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=_BOS).save_pretrained(directory)
    return directory


def _far_off(backend: CausalModel, path: Path) -> float:
    """Largest difference to one text at a time in float64, in nats."""
    scores = backend.score(SENTENCES)
    assert not [s.problem for s in scores if s.problem]
    expected = one_by_one(path, _BOS, SENTENCES)
    pairs = zip(scores, expected, strict=True)
    return max(abs(score.logprob_nats - total) for score, (total, _) in pairs)


#: Phi-3's rotary positions, much changed for texts of more than 12 tokens.
_PHI3: dict[str, Any] = {
    "rope_parameters": {
        "rope_type": "longrope",
        "rope_theta": 10_000.0,
        "short_factor": [1.0, 1.0, 1.0, 1.0],
        "long_factor": [1.5, 4.0, 9.0, 16.0],
        "original_max_position_embeddings": 12,
    },
    "original_max_position_embeddings": 12,
}


@pytest.mark.parametrize("model_type", TREE_TYPES)
def test_each_architecture_scores_trees_and_continues_padded_prompts_as_single_texts(
    model_type: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _made(model_type, tmp_path / model_type)
    # So that the output layer (330 tokens) is multiplied in several parts, as a large one is.
    monkeypatch.setitem(weights._LOGITS, "cpu", 4000)
    for batch_tokens in (20, 1000):
        backend = CausalModel(str(path), ModelOptions(batch_tokens=batch_tokens))
        assert backend.weights.longest_in_tree > 1000
        assert _far_off(backend, path) < 1e-4
    options = SamplingOptions(max_new_tokens=8)
    draws = [options.seeded(text, 0) for text in SENTENCES]
    alone = [sample for draw in draws for sample in backend.continue_([draw], options)]
    assert backend.continue_(draws, options) == alone


@pytest.mark.parametrize(
    ("model_type", "longest", "changes"),
    [
        *((name, 0, {}) for name in ("mpt", "bloom", "falcon")),  # two with ALiBi
        ("mistral", 9, {"sliding_window": 9}),
        ("phi3", 0, _PHI3),
    ],
)
def test_texts_that_fit_in_no_tree_score_as_single_texts(
    model_type: str, longest: int, changes: dict[str, Any], tmp_path: Path
) -> None:
    """Other positions, a window, and LongRoPE, which reads a pass with one long text otherwise."""
    path = _made(model_type, tmp_path / model_type, **changes)
    backend = CausalModel(str(path), ModelOptions(batch_tokens=200))
    assert backend.weights.longest_in_tree == longest
    lengths = {score.n_tokens for score in backend.score(SENTENCES)}
    assert min(lengths) < 9 and max(lengths) > 12
    assert _far_off(backend, path) < 1e-4


def test_a_continuation_that_grows_long_is_read_again(tmp_path: Path) -> None:
    """As `generate` does: keys of the short factors don't fit the long ones."""
    path = _made("phi3", tmp_path / "phi3", **_PHI3)
    backend = CausalModel(str(path), ModelOptions())
    model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).double().eval()
    options, bos = SamplingOptions(greedy=True, max_new_tokens=9), backend.identity.bos_token_id
    draws = [options.seeded(text, 0) for text in ("She", "He drank", *SENTENCES[:6])]
    for draw, sample in zip(draws, backend.continue_(draws, options), strict=True):
        ids = torch.tensor([[bos, *backend.ids([draw.text])[0]]])
        with torch.no_grad():
            (whole,) = model.generate(ids, do_sample=False, max_new_tokens=9, eos_token_id=bos)
        new = whole[ids.shape[1] :].tolist()
        assert sample.text == backend.text_of(new) and len(new) == 9
        assert backend.continue_([draw], options) == [sample]


#: Types with a state of another kind than keys and values, and their sizes.
RECURRENT: dict[str, dict[str, Any]] = {
    "mamba": {"state_size": 4, "intermediate_size": 32},
    # Weights are scaled at the third layer, in place: a pass more than once would show.
    "rwkv": {"num_hidden_layers": 3, "rescale_every": 2, "attention_hidden_size": 32},
    # Two recurrent layers, which keep their state in the model, and one of local attention.
    "recurrent_gemma": {
        **{"num_hidden_layers": 3, "num_attention_heads": 2, "num_key_value_heads": 1},
        **{"head_dim": 16, "lru_width": 32, "sliding_window": 6},
    },
}


@pytest.mark.parametrize("model_type", RECURRENT)
def test_recurrent_models_score_and_continue_as_single_texts(
    model_type: str, tmp_path: Path
) -> None:
    path = _made(model_type, tmp_path / model_type, **RECURRENT[model_type])
    for batch_tokens in (1, 1000):
        backend = CausalModel(str(path), ModelOptions(batch_tokens=batch_tokens))
        assert _far_off(backend, path) < 1e-4
    assert backend.weights.longest_in_tree == 0  # a tree needs masks, which a state does not see
    before = backend.score(SENTENCES)
    options, greedy = (SamplingOptions(max_new_tokens=6, greedy=by) for by in (False, True))
    draws = [options.seeded(text, k) for k, text in enumerate(["She", "He", "The nurse", "She"])]
    many = backend.continue_(draws, options)
    assert many == [sample for draw in draws for sample in backend.continue_([draw], options)]
    model = AutoModelForCausalLM.from_pretrained(path).eval()
    for draw, sample in zip(draws, backend.continue_(draws, greedy), strict=True):
        (start,) = backend.ids([draw.text])
        ids, bos = [backend.identity.bos_token_id, *start], backend.identity.bos_token_id
        for _ in range(6):
            with torch.no_grad():
                ids.append(int(model(torch.tensor([ids]), use_cache=False).logits[0, -1].argmax()))
            if ids[-1] == bos:
                break
        assert sample.text == backend.text_of(ids[1:])[len(draw.text) :]
    assert backend.score(SENTENCES) == before  # no state is left behind in the model
