"""Small random models and tokenizers, wide enough that a wrong token or mask shows in a score."""

import math
import string
from collections import Counter
from collections.abc import Callable, Sequence
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
    """A small model: tokenizer, special tokens, type, what differs from `_SHAPE`, and its class."""

    tokenizer: Callable[[], tokenizers.Tokenizer]
    special: dict[str, str]
    network: str
    shape: dict[str, Any] = field(default_factory=dict)
    auto: str = "AutoModelForCausalLM"

    @property
    def bos(self) -> str:
        return self.special["bos_token"]


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


def _of_bert() -> tokenizers.Tokenizer:
    special = ["[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]"]
    tokenizer = _trained(
        models.WordPiece(unk_token="[UNK]"),
        trainers.WordPieceTrainer(vocab_size=150, special_tokens=special, show_progress=False),
        normalizer=normalizers.Lowercase(),
        pre_tokenizer=pre_tokenizers.BertPreTokenizer(),
        decoder=decoders.WordPiece(),
    )
    return surrounded(tokenizer, "[CLS] $A [SEP]")


def _of_roberta() -> tokenizers.Tokenizer:
    return surrounded(byte_bpe("<s>", "<pad>", "</s>", "<mask>", "<unk>"), "<s> $A </s>")


def _unigram(single: str, *special: str) -> tokenizers.Tokenizer:
    # By hand: the library's trainer gives another vocabulary each time.
    words = [f"\u2581{word}" for text in SENTENCES for word in text.split()]
    spans = [(i, j) for i in range(20) for j in range(i + 1, i + 6)]
    pieces = Counter(word[i:j] for word in words for i, j in spans if j <= len(word))
    kept = {p for p, n in pieces.items() if n > 3 or len(p) == 1} | {*string.ascii_letters}
    total = pieces.total()
    scored = [(piece, math.log(max(1, pieces[piece]) / total)) for piece in sorted(kept)]
    vocabulary = [*((name, 0.0) for name in special), *scored]
    tokenizer = tokenizers.Tokenizer(models.Unigram(vocabulary, len(special) - 1))
    tokenizer.add_special_tokens([*special])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return surrounded(tokenizer, single)


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


def _both(token: str, **others: str) -> dict[str, str]:
    """One token that begins and ends texts, and others."""
    return {"bos_token": token, "eos_token": token, **others}


_GPT2 = _both("<|endoftext|>")
_LLAMA = {**_ONE_KEY, "eos_token_id": 2}

KINDS = {
    "gpt2": Kind(lambda: byte_bpe("<pad>", "<|endoftext|>"), _GPT2, "gpt2"),
    "gpt2-wordpiece": Kind(_wordpiece, _both("[BOS]", unk_token="[UNK]"), "gpt2"),
    "neox": Kind(lambda: byte_bpe("<pad>", "<|endoftext|>"), _GPT2, "gpt_neox", _INNER),
    "llama-adds-bos": Kind(_metaspace_bpe, _both("<s>", unk_token="<unk>"), "llama", _LLAMA),
    "mistral": Kind(lambda: byte_bpe("<pad>", "<s>"), _both("<s>"), "mistral", _WINDOW),
    "opt-adds-bos": Kind(
        lambda: surrounded(byte_bpe("<pad>", "</s>"), "</s> $A"), _both("</s>"), "opt", _OPT
    ),
}

_BERT = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
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


_MASKED = "AutoModelForMaskedLM"
_BOTH = "AutoModelForSeq2SeqLM"
_NARROW = {**_INNER, "initializer_range": 0.2, "embedding_size": 32}
_DISTIL = {"dim": 64, "hidden_dim": 64, "n_layers": 2, "n_heads": 2}
_OF_T5 = {"d_model": 64, "d_kv": 32, "d_ff": 64, "num_layers": 2, "num_heads": 2}
_SIZES = {"layers": 2, "attention_heads": 2, "ffn_dim": 64}
_SIDES = {f"{side}_{name}": n for side in ("encoder", "decoder") for name, n in _SIZES.items()}

MASKED = {
    "bert": Kind(_of_bert, _BERT, "bert", _INNER, _MASKED),
    "roberta": Kind(_of_roberta, _ROBERTA, "roberta", {**_INNER, "pad_token_id": 1}, _MASKED),
    "albert": Kind(
        lambda: _unigram("[CLS] $A [SEP]", "[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]"),
        *(_BERT, "albert", _NARROW, _MASKED),
    ),
    "distilbert": Kind(_of_bert, _BERT, "distilbert", _DISTIL, _MASKED),
}
ENCODER_DECODERS = {
    "t5": Kind(
        lambda: _unigram("$A </s>", "<pad>", "</s>", "<unk>"),
        *(_T5, "t5", {**_OF_T5, "decoder_start_token_id": 0}, _BOTH),
    ),
    "bart": Kind(_of_roberta, _ROBERTA, "bart", {"d_model": 64, "init_std": 0.2, **_SIDES}, _BOTH),
}


def save(kind: str, directory: Path, *, seed: int = 0, names_bos: bool = True) -> Path:
    """Make and save a model; ``names_bos`` false: its tokenizer doesn't say which token is BOS."""
    made = {**KINDS, **MASKED, **ENCODER_DECODERS}[kind]
    tokenizer, special, shape = made.tokenizer(), made.special, dict(made.shape)
    shape["vocab_size"] = tokenizer.get_vocab_size()
    if kind in KINDS:
        bos = tokenizer.token_to_id(made.bos)
        shape = {"bos_token_id": bos, "eos_token_id": bos, **shape}
    if made.network not in ("t5", "bart"):
        shape = {**_SHAPE, **shape}
    elif made.network == "bart":
        shape["max_position_embeddings"] = 64
    torch.manual_seed(seed)
    config = transformers.AutoConfig.for_model(made.network, **shape)
    model = getattr(transformers, made.auto).from_config(config)
    if kind == "t5":
        with torch.no_grad():
            model.shared.weight.mul_(0.3)  # T5's own scale makes a small random model too certain
    model.save_pretrained(directory)
    if not names_bos:
        special = {name: token for name, token in special.items() if name == "unk_token"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(directory)
    return directory


class Saved(dict[str, Path]):
    """Models by kind, each saved when it is first asked for."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def __missing__(self, kind: str) -> Path:
        return self.setdefault(kind, save(kind, self._root / f"tiny-{kind}"))


def save_calm(directory: Path) -> Path:
    """With small weights, so that prompts have much in common and training is no chaos."""
    save("neox", directory, seed=2)
    model = transformers.AutoModelForCausalLM.from_pretrained(directory)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.mul_(1.0 if "norm" in name else 0.25)
    model.save_pretrained(directory)
    return directory


#: A chat template that writes BOS and another special token.
CHAT = (
    "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}{{ eos_token }}\n"
    "{% endfor %}"
)


def save_chatting(directory: Path, template: str = CHAT) -> Path:
    tokenizer = transformers.AutoTokenizer.from_pretrained(save("neox", directory))
    tokenizer.chat_template = template
    tokenizer.save_pretrained(directory)
    return directory


class Plain:
    """A saved model by its own library alone, one text a pass, in float64."""

    def __init__(self, directory: Path, bos: str) -> None:
        self.tokenizer = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
        self.bos = self.tokenizer.token_to_id(bos)
        options = {"attn_implementation": "eager", "experts_implementation": "eager"}
        load = transformers.AutoModelForCausalLM.from_pretrained
        self.model = load(directory, dtype=torch.float32, **options).double().eval()

    def ids(self, text: str) -> list[int]:
        """The tokens of a text, without BOS."""
        found: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return found

    def after(self, ids: Sequence[int]) -> torch.Tensor:
        """log p of the whole vocabulary after BOS, and after each of these tokens; rows."""
        with torch.no_grad():
            logits = self.model(torch.tensor([[self.bos, *ids]])).logits[0].double()
        return torch.log_softmax(logits, dim=-1)

    def logprobs(self, text: str) -> list[float]:
        """log p of each token of a text, given BOS and those before it."""
        ids = self.ids(text)
        found: list[float] = self.after(ids)[range(len(ids)), ids].tolist()
        return found


def one_by_one(directory: Path, bos: str, texts: list[str]) -> list[tuple[float, int]]:
    """Score each text in a pass of its own: log p(text | BOS) in nats and tokens."""
    plain = Plain(directory, bos)
    return [(sum(of), len(of)) for of in map(plain.logprobs, texts)]
