"""A forward pass over trees of texts (``local.tree``), also with gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from plumbline.eval_workers.models.local.tree import Tree

#: Widths are multiples of this: a GPU's attention has a start-up cost for each new shape.
_STEP = {"cpu": 1, "cuda": 64}


def hidden_of_trees(model: Any, trees: Sequence[Tree]) -> torch.Tensor:
    """Last hidden states of a causal model, ``[tree, node, unit]``: each tree in its own row.

    Rows are as wide as the largest tree, on a GPU rounded up. The columns after a tree's last node
    are padding, which no node of a tree attends to.
    """
    step = _STEP[model.device.type]
    width = -(-max(len(tree.tokens) for tree in trees) // step) * step

    def rows(values: list[list[int]], padding: Sequence[int]) -> torch.Tensor:
        padded = [[*row, *padding[len(row) :]] for row in values]
        return on_device(padded, model.device)

    nothing = [0] * width
    ends = rows([tree.ends for tree in trees], range(1, width + 1))  # padding sees only itself
    hidden: torch.Tensor = model.base_model(
        input_ids=rows([tree.tokens for tree in trees], nothing),
        position_ids=rows([tree.depths for tree in trees], nothing),
        attention_mask=_mask(ends, model.dtype)[:, None],
        use_cache=False,
    ).last_hidden_state
    return hidden


def on_device(values: Any, device: torch.device) -> torch.Tensor:
    """A tensor of integers on the device; the caller doesn't wait for the copy to a GPU."""
    here = torch.tensor(values)
    return here.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else here


def _mask(ends: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A term of attention scores: 0 for a node's ancestors and itself, else the lowest value.

    Its shape is ``[tree, node, attended node]``.
    """
    nodes = torch.arange(ends.shape[1], device=ends.device)
    attends = (nodes <= nodes[:, None]) & (nodes[:, None] < ends[:, None])
    mask = torch.zeros(attends.shape, dtype=dtype, device=ends.device)
    return mask.masked_fill_(~attends, torch.finfo(dtype).min)
