"""Small random causal language models, saved with tokenizers of several habits.

Weights are wide enough that a wrong context token, position or mask shows in a score.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
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


@dataclass(frozen=True)
class Kind:
    """A small model: its tokenizer, BOS, type, and how its configuration differs from `_SHAPE`."""

    tokenizer: Callable[[], tokenizers.Tokenizer]
    bos: str
    network: str
    shape: dict[str, Any] = field(default_factory=dict)


def _trained(
    model: models.Model, trainer: trainers.Trainer, **parts: object
) -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(model)
    for name, part in parts.items():
        setattr(tokenizer, name, part)
    tokenizer.train_from_iterator(SENTENCES, trainer)
    return tokenizer


def surrounded(tokenizer: tokenizers.Tokenizer, single: str) -> tokenizers.Tokenizer:
    """The tokenizer, which puts special tokens around a text: `<s> $A </s>`."""
    named = [part for part in single.split() if part != "$A"]
    ids = [(name, tokenizer.token_to_id(name)) for name in named]
    tokenizer.post_processor = processors.TemplateProcessing(single=single, special_tokens=ids)
    return tokenizer


def byte_bpe(*special: str) -> tokenizers.Tokenizer:
    """Make a tokenizer of bytes, with special tokens first."""
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=330, special_tokens=[*special], initial_alphabet=alphabet, show_progress=False
    )
    splitter = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return _trained(models.BPE(), trainer, pre_tokenizer=splitter, decoder=decoders.ByteLevel())


def _metaspace_bpe() -> tokenizers.Tokenizer:
    tokenizer = _trained(
        models.BPE(unk_token="<unk>", byte_fallback=False),
        trainers.BpeTrainer(
            vocab_size=200, special_tokens=["<unk>", "<s>", "</s>"], show_progress=False
        ),
        pre_tokenizer=pre_tokenizers.Metaspace(prepend_scheme="first"),
        decoder=decoders.Metaspace(prepend_scheme="first"),
    )
    return surrounded(tokenizer, "<s> $A </s>")


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


#: vLLM wants heads of 32 or more.
_SHAPE = {
    "max_position_embeddings": 64,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "initializer_range": 0.4,
}
_INNER = {"intermediate_size": 64}
_ONE_KEY = {**_INNER, "num_key_value_heads": 1}
#: Most sentences are longer than the window, which drops their first tokens from sight.
_WINDOW = {**_ONE_KEY, "head_dim": 32, "sliding_window": 6}
_OPT = {"word_embed_proj_dim": 64, "ffn_dim": 64, "init_std": 0.4, "pad_token_id": 0}

KINDS = {
    "gpt2": Kind(lambda: byte_bpe("<pad>", "<|endoftext|>"), "<|endoftext|>", "gpt2"),
    "gpt2-wordpiece": Kind(_wordpiece, "[BOS]", "gpt2"),
    "neox": Kind(lambda: byte_bpe("<pad>", "<|endoftext|>"), "<|endoftext|>", "gpt_neox", _INNER),
    "llama-adds-bos": Kind(_metaspace_bpe, "<s>", "llama", {**_ONE_KEY, "eos_token_id": 2}),
    "mistral": Kind(lambda: byte_bpe("<pad>", "<s>"), "<s>", "mistral", _WINDOW),
    "opt-adds-bos": Kind(
        lambda: surrounded(byte_bpe("<pad>", "</s>"), "</s> $A"), "</s>", "opt", _OPT
    ),
}


def save(kind: str, directory: Path, *, seed: int = 0, names_bos: bool = True) -> Path:
    """Make and save a model; ``names_bos`` false: its tokenizer doesn't say which token is BOS."""
    made = KINDS[kind]
    tokenizer = made.tokenizer()
    bos = tokenizer.token_to_id(made.bos)
    torch.manual_seed(seed)
    ends = {"bos_token_id": bos, "eos_token_id": bos}
    shape = {**_SHAPE, "vocab_size": tokenizer.get_vocab_size(), **ends, **made.shape}
    config = transformers.AutoConfig.for_model(made.network, **shape)
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(directory)
    special = {"bos_token": made.bos, "eos_token": made.bos} if names_bos else {}
    for unknown in ("[UNK]", "<unk>"):
        if tokenizer.token_to_id(unknown) is not None:
            special["unk_token"] = unknown
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
            logits = model(torch.tensor([ids])).logits[0].double()
        logprobs = torch.log_softmax(logits, dim=-1)
        total = sum(float(logprobs[i - 1, ids[i]]) for i in range(1, len(ids)))
        found.append((total, len(ids) - 1))
    return found
