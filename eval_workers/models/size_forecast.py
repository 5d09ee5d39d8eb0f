"""Forecast of a model's parameters and memory without loading its weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from plumbline.eval_workers.models import devices, open_backend
from plumbline.eval_workers.models.kinds.model_kind import Kind, auto_class
from plumbline.eval_workers.models.local import loading
from plumbline.eval_workers.models.local.source import NGRAM
from plumbline.eval_workers.models.model_options import ModelOptions, Quantisation
from plumbline.warehouse.errors import BadInput, UsageProblem

#: Upper estimates of a token's vectors in memory at once, besides the logits. Hidden states: the
#: residual stream, its norm, queries, keys and values. Wide vectors: inside the feed-forward layer.
_HIDDEN_VECTORS, _WIDE_VECTORS = 4, 3
#: Bytes per logit besides those of its own dtype: a copy in float32, and its exponential.
_SOFTMAX_BYTES = 4 + 4
#: Bytes per quantised weight; in nf4, 64 weights share a scale in float32.
_QUANTISED: dict[Quantisation, float] = {"int8": 1.0, "nf4": 0.5 + 4 / 64}


@dataclass(frozen=True)
class Size:
    """A model's size from its configuration.

    ``n_embedding`` parameters are embeddings; the ``n_exact`` in embeddings and output layer are
    never quantised. A token's vectors have the widths ``hidden`` (hidden state), ``widest`` (the
    widest besides the logits) and ``n_vocabulary`` (logits).
    """

    n_parameters: int
    n_embedding: int
    hidden: int
    widest: int
    n_vocabulary: int
    n_exact: int = 0

    def weight_bytes(self, dtype: str, quantisation: Quantisation | None) -> int:
        """Memory of the weights in bytes.

        >>> size = Size(12, 2, 2, 3, 2, n_exact=4)
        >>> size.weight_bytes("bfloat16", None), size.weight_bytes("bfloat16", "int8")
        (24, 16)
        """
        exact = _item_bytes(dtype)
        each = exact if quantisation is None else _QUANTISED[quantisation]
        return self.n_exact * exact + round((self.n_parameters - self.n_exact) * each)

    def forward_bytes(self, dtype: str, n_tokens: int) -> int:
        """Upper estimate of a forward pass's memory in bytes.

        It has the activations of all tokens, and the softmax of all their logits. A CPU computes
        the logits in small parts, and takes less.

        >>> Size(12, 2, 2, 3, 5).forward_bytes("float32", 10)
        1280
        """
        vectors = _HIDDEN_VECTORS * self.hidden + _WIDE_VECTORS * self.widest + self.n_vocabulary
        of_token = vectors * _item_bytes(dtype) + self.n_vocabulary * _SOFTMAX_BYTES
        return n_tokens * of_token


def prospect(model: str, options: ModelOptions) -> Any:
    """Open a model whose size is known, with its tokenizer and configuration alone.

    Raises the errors of ``open_backend``; ``UsageProblem`` for an n-gram model and for backends
    that don't read a configuration.
    """
    opened: Any = open_backend(model, options)
    what = "" if hasattr(opened, "config") else f"a model of the backend {opened.identity.backend}"
    if not what and getattr(opened.config, "model_type", None) == NGRAM:
        what = "an n-gram model"
    if what:
        problem = f"the size of {what} is unknown"
        raise UsageProblem("--dry-run", problem, "leave it out")
    return opened


def model_size(config: Any, kind: Kind = "causal") -> Size:
    """The size of a model by its configuration; no weights are allocated."""
    with torch.device("meta"):
        try:
            model = auto_class(kind).from_config(config, trust_remote_code=False)
        except (ValueError, KeyError, AttributeError) as e:
            problem = f"its size can't be determined: {loading.first_line(e)}"
            raise BadInput("model configuration", problem) from e
    tables = {id(m.weight): m.weight for m in model.modules() if isinstance(m, nn.Embedding)}
    head = getattr(model.get_output_embeddings(), "weight", None)
    exact = tables if head is None else {**tables, id(head): head}
    text = config.get_text_config()
    matrices = (p for p in model.parameters() if p.dim() > 1 and id(p) not in tables)
    widths = [max(p.shape[-2:]) for p in matrices]
    widest = max((n for n in widths if n < text.vocab_size), default=1)
    n_parameters = sum(p.numel() for p in model.parameters())
    n_embedding = sum(weight.numel() for weight in tables.values())
    n_exact = sum(weight.numel() for weight in exact.values())
    return Size(n_parameters, n_embedding, text.hidden_size, widest, text.vocab_size, n_exact)


def chosen_device(options: ModelOptions) -> str:
    """``cpu`` if the options say so or no GPU is visible, else ``cuda``."""
    return "cuda" if options.device != "cpu" and devices.visible() else "cpu"


def free_bytes(options: ModelOptions) -> int:
    """Free memory of the chosen device, in bytes."""
    return devices.free_bytes(chosen_device(options))


def _item_bytes(dtype: str) -> int:
    return int(getattr(torch, dtype).itemsize)
