"""Small random causal language models, saved with tokenizers of several habits.

Weights are wide enough that a wrong context token, position or mask shows in a score.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tokenizers
import torch
import transformers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

SENTENCES = [
    "The nurse said she lost her key.",
    "The nurse said he lost his key.",
    "She drank tea.",
    "He drank tea.",
    "The CEO asked the clerk to produce a report to justify her behavior.",
    "The CEO asked the clerk to produce a report to justify his behavior.",
    "'Presto!' she cried; the crowd, who had waited for hours, went home in silence.",
    "'Presto!' he cried; the crowd, who had waited for hours, went home in silence.",
    "Herself.",
    "Himself.",
    "A technician told the customer that she could pay with cash.",
    "A technician told the customer that he could pay with cash.",
]

#: vLLM wants heads of 32 or more.
_WIDTH, _HEADS = 64, 2


@dataclass(frozen=True)
class Kind:
    """How a small model is made: its tokenizer, special tokens and network."""

    tokenizer: Callable[[], tokenizers.Tokenizer]
    bos: str
    network: Callable[[int, int], transformers.PreTrainedModel]


def _trained(
    model: models.Model, trainer: trainers.Trainer, **parts: object
) -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(model)
    for name, part in parts.items():
        setattr(tokenizer, name, part)
    tokenizer.train_from_iterator(SENTENCES, trainer)
    return tokenizer


def _byte_bpe(bos: str, *, adds_bos: bool = False) -> tokenizers.Tokenizer:
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer = _trained(
        models.BPE(),
        trainers.BpeTrainer(
            vocab_size=330,
            special_tokens=["<pad>", bos],
            initial_alphabet=alphabet,
            show_progress=False,
        ),
        pre_tokenizer=pre_tokenizers.ByteLevel(add_prefix_space=False),
        decoder=decoders.ByteLevel(),
    )
    if adds_bos:
        single = f"{bos} $A"
        ids = [(bos, tokenizer.token_to_id(bos))]
        tokenizer.post_processor = processors.TemplateProcessing(single=single, special_tokens=ids)
    return tokenizer


def _metaspace_bpe() -> tokenizers.Tokenizer:
    tokenizer = _trained(
        models.BPE(unk_token="<unk>", byte_fallback=False),
        trainers.BpeTrainer(
            vocab_size=200, special_tokens=["<unk>", "<s>", "</s>"], show_progress=False
        ),
        pre_tokenizer=pre_tokenizers.Metaspace(prepend_scheme="first"),
        decoder=decoders.Metaspace(prepend_scheme="first"),
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    return tokenizer


def _wordpiece() -> tokenizers.Tokenizer:
    return _trained(
        models.WordPiece(unk_token="[UNK]"),
        trainers.WordPieceTrainer(
            vocab_size=200, special_tokens=["[UNK]", "[BOS]"], show_progress=False
        ),
        normalizer=normalizers.Lowercase(),
        pre_tokenizer=pre_tokenizers.Whitespace(),
        decoder=decoders.WordPiece(),
    )


def _shape(n_vocabulary: int, bos: int, **more: Any) -> dict[str, Any]:
    """What the configurations of all kinds but GPT-2 call by the same names."""
    return {
        "vocab_size": n_vocabulary,
        "max_position_embeddings": 64,
        "hidden_size": _WIDTH,
        "num_hidden_layers": 2,
        "num_attention_heads": _HEADS,
        "bos_token_id": bos,
        "eos_token_id": bos,
        **more,
    }


def _gpt2(n_vocabulary: int, bos: int) -> transformers.PreTrainedModel:
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=n_vocabulary,
            n_positions=64,
            n_embd=_WIDTH,
            n_layer=2,
            n_head=_HEADS,
            initializer_range=0.4,
            bos_token_id=bos,
            eos_token_id=bos,
        )
    )


def _neox(n_vocabulary: int, bos: int) -> transformers.PreTrainedModel:
    wide = {"intermediate_size": 64, "initializer_range": 0.4}
    return transformers.GPTNeoXForCausalLM(
        transformers.GPTNeoXConfig(**_shape(n_vocabulary, bos, **wide))
    )


def _llama(n_vocabulary: int, bos: int) -> transformers.PreTrainedModel:
    wide = {"intermediate_size": 64, "initializer_range": 0.4, "num_key_value_heads": 1}
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(**_shape(n_vocabulary, bos, **wide, eos_token_id=2))
    )


def _mistral(n_vocabulary: int, bos: int) -> transformers.PreTrainedModel:
    """Most sentences are longer than the window, which drops their first tokens from sight."""
    wide = {"intermediate_size": 64, "initializer_range": 0.4, "num_key_value_heads": 1}
    window = {"head_dim": _WIDTH // _HEADS, "sliding_window": 6}
    return transformers.MistralForCausalLM(
        transformers.MistralConfig(**_shape(n_vocabulary, bos, **wide, **window))
    )


def _opt(n_vocabulary: int, bos: int) -> transformers.PreTrainedModel:
    wide = {"word_embed_proj_dim": _WIDTH, "ffn_dim": 64, "init_std": 0.4, "pad_token_id": 0}
    return transformers.OPTForCausalLM(transformers.OPTConfig(**_shape(n_vocabulary, bos, **wide)))


KINDS = {
    "gpt2": Kind(lambda: _byte_bpe("<|endoftext|>"), "<|endoftext|>", _gpt2),
    "gpt2-wordpiece": Kind(_wordpiece, "[BOS]", _gpt2),
    "neox": Kind(lambda: _byte_bpe("<|endoftext|>"), "<|endoftext|>", _neox),
    "llama-adds-bos": Kind(_metaspace_bpe, "<s>", _llama),
    "mistral": Kind(lambda: _byte_bpe("<s>"), "<s>", _mistral),
    "opt-adds-bos": Kind(lambda: _byte_bpe("</s>", adds_bos=True), "</s>", _opt),
}


def save(kind: str, directory: Path, *, seed: int = 0, names_bos: bool = True) -> Path:
    """Make and save a model; ``names_bos`` false: its tokenizer doesn't say which token is BOS."""
    made = KINDS[kind]
    tokenizer = made.tokenizer()
    bos = tokenizer.token_to_id(made.bos)
    torch.manual_seed(seed)
    network = made.network(tokenizer.get_vocab_size(), bos)
    network.save_pretrained(directory)
    special = {"bos_token": made.bos, "eos_token": made.bos} if names_bos else {}
    if tokenizer.token_to_id("[UNK]") is not None:
        special["unk_token"] = "[UNK]"
    if tokenizer.token_to_id("<unk>") is not None:
        special["unk_token"] = "<unk>"
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(directory)
    return directory


def save_calm(directory: Path) -> Path:
    """With small weights, so that prompts have much in common and training is no chaos."""
    save("neox", directory, seed=2)
    model = transformers.AutoModelForCausalLM.from_pretrained(directory)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.mul_(1.0 if "norm" in name else 0.25)
    model.save_pretrained(directory)
    return directory


def one_by_one(directory: Path, bos: str, texts: list[str]) -> list[tuple[float, int]]:
    """Independent scores: one text a pass, weights and softmax in float64, BOS put first by hand.

    Returns log p(text | BOS) in nats and the number of scored tokens of each text.
    """
    tokenizer = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
    model = transformers.AutoModelForCausalLM.from_pretrained(
        directory, dtype=torch.float32, attn_implementation="eager", experts_implementation="eager"
    )
    model = model.double().eval()
    found = []
    for text in texts:
        ids = [tokenizer.token_to_id(bos), *tokenizer.encode(text, add_special_tokens=False).ids]
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0]
        assert logits.dtype == torch.float64
        logprobs = torch.log_softmax(logits, dim=-1)
        total = sum(float(logprobs[i - 1, ids[i]]) for i in range(1, len(ids)))
        found.append((total, len(ids) - 1))
    return found
