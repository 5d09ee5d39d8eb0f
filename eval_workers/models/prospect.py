"""Forecast of a model's parameters and memory without loading its weights."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from plumbline.eval_workers.models import devices, open_backend
from plumbline.eval_workers.models.base import Identity, Tokens
from plumbline.eval_workers.models.kinds.model_files import Kind, auto_class
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.warehouse.errors import BadInput, UsageProblem

#: Vectors a token needs at once in a layer, besides the logits: the stream, its norm, queries, keys
#: and values or (wider) the inside of the feed-forward part. An upper estimate.
_HIDDEN_VECTORS, _WIDE_VECTORS = 4, 3


@dataclass(frozen=True)
class Size:
    """A model's size from its configuration.

    ``n_embedding`` of the parameters are embeddings; ``hidden``, ``widest`` and ``n_vocabulary``
    are widths of a token's vectors.
    """

    n_parameters: int
    n_embedding: int
    hidden: int
    widest: int
    n_vocabulary: int

    def weight_bytes(self, dtype: str) -> int:
        """Memory of the weights in bytes.

        >>> Size(12, 2, 2, 3, 2).weight_bytes("bfloat16")
        24
        """
        return self.n_parameters * _item_bytes(dtype)

    def forward_bytes(self, dtype: str, n_tokens: int) -> int:
        """Memory of a forward pass in bytes: activations and a row of logits per token.

        >>> Size(12, 2, 2, 3, 5).forward_bytes("float32", 10)
        880
        """
        vectors = _HIDDEN_VECTORS * self.hidden + _WIDE_VECTORS * self.widest + self.n_vocabulary
        return n_tokens * vectors * _item_bytes(dtype)


@dataclass(frozen=True)
class Prospect:
    """A model that could score: its identity, size and encoding of texts."""

    identity: Identity
    size: Size
    scorer: Any

    def encoded(self, texts: Sequence[str]) -> list[Tokens | str]:
        """Token ids of each text, or its problem."""
        encoded: list[Tokens | str] = self.scorer.encoded(texts)
        return encoded

    def n_computed(self, sequences: Collection[Tokens]) -> int:
        """Tokens that go through the model for distinct sequences."""
        return int(self.scorer.n_computed(sequences))


def prospect(model: str, options: ModelOptions) -> Prospect:
    """Read a model's tokenizer and configuration; raises as ``open_backend``."""
    scorer: Any = open_backend(model, options)
    if not hasattr(scorer, "config"):
        problem = f"nothing is known of the size of a model of the backend {options.backend}"
        raise UsageProblem("--dry-run", problem, "leave it out")
    return Prospect(scorer.identity, model_size(scorer.config, scorer.kind), scorer)


def model_size(config: Any, kind: Kind = "causal") -> Size:
    """The size of a model by its configuration; no memory is allocated."""
    with torch.device("meta"):
        try:
            model = auto_class(kind).from_config(config)
        except (ValueError, KeyError, AttributeError) as e:
            problem = f"its size can't be told: {str(e).splitlines()[0]}"
            raise BadInput("model configuration", problem) from e
    tables = {id(m.weight): m.weight for m in model.modules() if isinstance(m, nn.Embedding)}
    text = config.get_text_config()
    matrices = (p for p in model.parameters() if p.dim() > 1 and id(p) not in tables)
    widths = [max(p.shape[-2:]) for p in matrices]
    widest = max((n for n in widths if n < text.vocab_size), default=1)
    n_parameters = sum(p.numel() for p in model.parameters())
    n_embedding = sum(weight.numel() for weight in tables.values())
    return Size(n_parameters, n_embedding, text.hidden_size, widest, text.vocab_size)


def chosen_device(options: ModelOptions) -> str:
    """``cpu`` or ``cuda``: the device that ``auto`` stands for."""
    return "cuda" if options.device != "cpu" and devices.visible() else "cpu"


def free_bytes(options: ModelOptions) -> int:
    """Memory that the chosen device has left, in bytes."""
    return devices.free_bytes(chosen_device(options))


def _item_bytes(dtype: str) -> int:
    return int(getattr(torch, dtype).itemsize)
