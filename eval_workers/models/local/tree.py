"""Lay out token sequences as a tree, in which shared beginnings are computed only once.

In a causal model, a token's log-probability depends only on the tokens before it. So sequences with
the same beginning can share that part of the computation. A tree lists its nodes in depth-first
order. BOS is the root. A node attends to itself and its ancestors, and its position is its depth.
The subtree of node ``k`` consists of the nodes ``k`` to ``ends[k] - 1``, so node ``j`` attends to
``k`` if and only if ``k <= j < ends[k]``. A sequence's last token has no node: it predicts nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from plumbline.eval_workers.models.scoring_contract import Tokens

#: Trees are padded to a multiple of this many nodes, because a new size costs a GPU extra time.
_STEP = {"cpu": 1, "cuda": 64}


@dataclass(frozen=True)
class Tree:
    """A tree of token sequences. Its nodes are numbered from 0. Node 0 is BOS.

    Attributes:
        tokens: the token of each node.
        depths: the depth of each node. BOS has depth 0.
        ends: for each node, the number of the last node in its subtree, plus 1.
        paths: for each sequence, the nodes that predict its tokens, in the sequence's order.
    """

    tokens: list[int]
    depths: list[int]
    ends: list[int]
    paths: list[list[int]]


def n_shared(first: Tokens, second: Tokens) -> int:
    """Return how many leading tokens two sequences share, not counting the last token of each.

    >>> n_shared((5, 6, 7), (5, 6, 8, 9)), n_shared((5,), (5,))
    (2, 0)
    """
    most = min(len(first), len(second)) - 1
    for n in range(most):
        if first[n] != second[n]:
            return n
    return most


def of_trees(sequences: Iterable[Tokens], n_nodes: int) -> Iterator[list[Tokens]]:
    """Split sorted sequences into groups that form trees of at most ``n_nodes`` nodes.

    Each group has as many sequences as fit. A sequence that is too long forms a larger tree alone.

    >>> list(of_trees([(1, 2, 3), (1, 2, 4), (1, 5, 6), (7, 8)], 4))
    [[(1, 2, 3), (1, 2, 4), (1, 5, 6)], [(7, 8)]]
    """
    part: list[Tokens] = []
    n = 0
    for sequence in sequences:
        n += len(sequence) - 1 - n_shared(part[-1], sequence) if part else len(sequence)
        if part and n > n_nodes:
            yield part
            part, n = [], len(sequence)
        part.append(sequence)
    if part:
        yield part


def tree(sequences: Sequence[Tokens], bos: int) -> Tree:
    """Build the tree of sorted sequences, none of which is empty.

    >>> t = tree([(1, 2, 3), (1, 2, 4), (1, 5, 6)], bos=0)
    >>> t.tokens, t.depths, t.ends
    ([0, 1, 2, 5], [0, 1, 2, 2], [4, 4, 3, 4])
    >>> t.paths
    [[0, 1, 2], [0, 1, 2], [0, 1, 3]]
    """
    tokens, depths, ends, paths = [bos], [0], [0], []
    path, before = [0], sequences[0][:1]
    for sequence in sequences:
        n_kept = n_shared(before, sequence) + 1
        for node in path[n_kept:]:
            ends[node] = len(tokens)
        del path[n_kept:]
        for depth in range(n_kept, len(sequence)):
            path.append(len(tokens))
            tokens.append(sequence[depth - 1])
            depths.append(depth)
            ends.append(0)
        paths.append(path[:])
        before = sequence
    for node in path:
        ends[node] = len(tokens)
    return Tree(tokens, depths, ends, paths)


def hidden_of_trees(model: Any, trees: Sequence[Tree]) -> torch.Tensor:
    """Return a causal model's last hidden states for each node of each tree, with gradients.

    The dimensions of the result are trees, nodes and hidden units. Each tree is padded after its
    last node to the size of the largest tree (rounded up on a GPU). No node of a tree attends to
    padding.
    """
    step = _STEP[model.device.type]
    width = -(-max(len(tree.tokens) for tree in trees) // step) * step

    def rows(values: list[list[int]], padding: Sequence[int]) -> torch.Tensor:
        padded = [[*row, *padding[len(row) :]] for row in values]
        return on_device(padded, model.device)

    nothing = [0] * width
    ends = rows([tree.ends for tree in trees], range(1, width + 1))  # padding attends to itself
    hidden: torch.Tensor = model.base_model(
        input_ids=rows([tree.tokens for tree in trees], nothing),
        position_ids=rows([tree.depths for tree in trees], nothing),
        attention_mask=_mask(ends, model.dtype)[:, None],
        use_cache=False,
    ).last_hidden_state
    return hidden


def on_device(values: Any, device: torch.device) -> torch.Tensor:
    """Copy integers into a tensor on the device, without waiting for a GPU to finish the copy."""
    here = torch.tensor(values)
    return here.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else here


def _mask(ends: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return the mask that is added to attention scores.

    Its dimensions are trees, nodes and attended nodes. A value is 0 if the attended node is the
    node itself or an ancestor. Otherwise it is the lowest value of ``dtype``.
    """
    nodes = torch.arange(ends.shape[1], device=ends.device)
    attends = (nodes <= nodes[:, None]) & (nodes[:, None] < ends[:, None])
    mask = torch.zeros(attends.shape, dtype=dtype, device=ends.device)
    return mask.masked_fill_(~attends, torch.finfo(dtype).min)
