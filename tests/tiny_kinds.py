"""Small random masked models and encoder-decoders, and their figures one forward pass at a time."""

from __future__ import annotations

import math
import string
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import tokenizers
import torch
import transformers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from tests.tiny_models import SENTENCES, byte_bpe, surrounded

_BERT = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}
#: In the order of RoBERTa's and BART's vocabularies, where padding is 1.
_ROBERTA = {
    "bos_token": "<s>",
    "pad_token": "<pad>",
    "eos_token": "</s>",
    "unk_token": "<unk>",
    "mask_token": "<mask>",
    "cls_token": "<s>",
    "sep_token": "</s>",
}
_T5 = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}


@dataclass(frozen=True)
class Kind:
    """A tokenizer, what its special tokens are for, and a network by its type and sizes."""

    tokenizer: Callable[[list[str]], tokenizers.Tokenizer]
    special: dict[str, str]
    network: str
    shape: dict[str, Any]


def _wordpiece(special: list[str]) -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=150, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(SENTENCES, trainer)
    return surrounded(tokenizer, "[CLS] $A [SEP]")


def _bytes(special: list[str]) -> tokenizers.Tokenizer:
    return surrounded(byte_bpe(*special), "<s> $A </s>")


def _unigram(single: str) -> Callable[[list[str]], tokenizers.Tokenizer]:
    def made(special: list[str]) -> tokenizers.Tokenizer:
        # By hand: the library's trainer gives another vocabulary each time.
        words = [f"\u2581{word}" for text in SENTENCES for word in text.split()]
        spans = [(i, j) for i in range(20) for j in range(i + 1, i + 6)]
        pieces = Counter(word[i:j] for word in words for i, j in spans if j <= len(word))
        single_ones = set(string.ascii_letters)
        kept = sorted({p for p, n in pieces.items() if n > 3 or len(p) == 1} | single_ones)
        scored = [(piece, math.log(max(1, pieces[piece]) / pieces.total())) for piece in kept]
        vocabulary = [*((name, 0.0) for name in special), *scored]
        tokenizer = tokenizers.Tokenizer(models.Unigram(vocabulary, len(special) - 1))
        tokenizer.add_special_tokens(special)
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        tokenizer.decoder = decoders.Metaspace()
        return surrounded(tokenizer, single)

    return made


_SHAPE: dict[str, Any] = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "initializer_range": 0.4,
}
_NARROW = {**_SHAPE, "initializer_range": 0.2, "embedding_size": 32}
_DISTIL = {"dim": 64, "hidden_dim": 64, "n_layers": 2, "n_heads": 2, "initializer_range": 0.4}
_OF_T5 = {"d_model": 64, "d_kv": 32, "d_ff": 64, "num_layers": 2, "num_heads": 2}
_SIZES = {"layers": 2, "attention_heads": 2, "ffn_dim": 64}
_SIDES = {f"{side}_{name}": n for side in ("encoder", "decoder") for name, n in _SIZES.items()}
_POSITIONS = {"max_position_embeddings": 64}

MASKED = {
    "bert": Kind(_wordpiece, _BERT, "bert", _SHAPE),
    "roberta": Kind(_bytes, _ROBERTA, "roberta", {**_SHAPE, "pad_token_id": 1}),
    "albert": Kind(_unigram("[CLS] $A [SEP]"), _BERT, "albert", _NARROW),
    "distilbert": Kind(_wordpiece, _BERT, "distilbert", {**_DISTIL, **_POSITIONS}),
}
ENCODER_DECODERS = {
    "t5": Kind(_unigram("$A </s>"), _T5, "t5", {**_OF_T5, "decoder_start_token_id": 0}),
    "bart": Kind(
        _bytes, _ROBERTA, "bart", {"d_model": 64, "init_std": 0.2, **_SIDES, **_POSITIONS}
    ),
}


def save(name: str, directory: Path) -> Path:
    """Make and save a model with its tokenizer."""
    made = {**MASKED, **ENCODER_DECODERS}[name]
    special = dict.fromkeys(made.special.values())
    unknown = made.special["unk_token"]
    tokenizer = made.tokenizer([*(s for s in special if s != unknown), unknown])
    torch.manual_seed(0)
    sizes = {"vocab_size": tokenizer.get_vocab_size(), **made.shape}
    config = transformers.AutoConfig.for_model(made.network, **sizes)
    auto = transformers.AutoModelForMaskedLM
    if name in ENCODER_DECODERS:
        auto = transformers.AutoModelForSeq2SeqLM
    model = auto.from_config(config)
    if name == "t5":
        with torch.no_grad():
            model.shared.weight.mul_(0.3)  # T5's own scale makes a small random model too certain
    model.save_pretrained(directory)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **made.special).save_pretrained(directory)
    return directory


def pll_one_by_one(directory: Path, texts: list[str], *, by_word: bool) -> list[list[float]]:
    """log p (nats) of each token, each with a pass of its own: transformers' way, in float64.

    ``by_word``: later tokens of the same word are masked too; words by the pieces of the text that
    the tokenizer's own splitting gives, looked up by each token's characters.
    """
    model, tokenizer = _loaded(directory, transformers.AutoModelForMaskedLM)
    found = []
    for text in texts:
        whole = tokenizer(text, return_offsets_mapping=True, return_special_tokens_mask=True)
        ids, spans = whole["input_ids"], whole["offset_mapping"]
        pieces = tokenizer.backend_tokenizer.pre_tokenizer.pre_tokenize_str(text)
        starts = [start for _, (start, _) in pieces]
        words = [bisect_right(starts, start) for start, _ in spans]
        places = [i for i, is_special in enumerate(whole["special_tokens_mask"]) if not is_special]
        values = []
        for place in places:
            masked = list(ids)
            same = [j for j in places if j > place and words[j] == words[place]]
            for j in [place, *(same if by_word else [])]:
                masked[j] = tokenizer.mask_token_id
            values.append(_predicted(model, masked, place, ids[place]))
        found.append(values)
    return found


def crows_pairs_one_by_one(directory: Path, one: str, other: str) -> list[float]:
    """log p (nats) of the tokens of one text that are in equal blocks of both, special ones too."""
    model, tokenizer = _loaded(directory, transformers.AutoModelForMaskedLM)
    ids, others = tokenizer(one)["input_ids"], tokenizer(other)["input_ids"]
    first, second = sorted((ids, others))  # both are scored on the same tokens
    blocks = SequenceMatcher(None, list(map(str, first)), list(map(str, second))).get_opcodes()
    spans = [(a, b) if ids == first else (c, d) for tag, a, b, c, d in blocks if tag == "equal"]
    equal = [j for a, b in spans for j in range(a, b)]
    values = []
    for place in equal[1:-1]:  # not the special tokens at both ends
        masked = list(ids)
        masked[place] = tokenizer.mask_token_id
        values.append(_predicted(model, masked, place, ids[place]))
    return values


def written_one_by_one(directory: Path, text: str, led: list[int]) -> list[float]:
    """log p (nats) of each token of a text after an empty input, by growing the decoder's input."""
    model, tokenizer = _loaded(directory, transformers.AutoModelForSeq2SeqLM)
    empty = torch.tensor([tokenizer("")["input_ids"]])
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    values, before = [], list(led)
    for token in ids:
        with torch.no_grad():
            out = model(input_ids=empty, decoder_input_ids=torch.tensor([before]))
        values.append(float(out.logits[0, -1].log_softmax(-1)[token]))
        before.append(token)
    return values


def _loaded(directory: Path, kind: Any) -> tuple[Any, Any]:
    model = kind.from_pretrained(directory, dtype=torch.float32, attn_implementation="eager")
    return model.double().eval(), AutoTokenizer.from_pretrained(directory)


def _predicted(model: Any, ids: list[int], place: int, token: int) -> float:
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0, place]
    assert logits.dtype == torch.float64
    return float(logits.log_softmax(-1)[token])
