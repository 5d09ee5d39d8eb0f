"""A forward pass over a tree of texts (``local.tree``), also with gradients."""

from __future__ import annotations

from typing import Any

import torch

from plumbline.eval_workers.models.local.tree import Tree


def hidden_of_tree(model: Any, made: Tree) -> torch.Tensor:
    """Last hidden states of a causal model, one row per node."""
    device = model.device
    ends = torch.tensor(made.ends, device=device)
    hidden: torch.Tensor = model.base_model(
        input_ids=torch.tensor(made.tokens, device=device)[None],
        position_ids=torch.tensor(made.depths, device=device)[None],
        attention_mask=_mask(ends, model.dtype)[None, None],
        use_cache=False,
    ).last_hidden_state
    return hidden[0]


def _mask(ends: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Added to attention scores: 0 at a node's ancestors and itself, else the lowest value."""
    nodes = torch.arange(len(ends), device=ends.device)
    attends = (nodes <= nodes[:, None]) & (nodes[:, None] < ends)
    mask = torch.zeros(attends.shape, dtype=dtype, device=ends.device)
    return mask.masked_fill_(~attends, torch.finfo(dtype).min)
