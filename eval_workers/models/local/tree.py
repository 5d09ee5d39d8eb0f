"""Lay out token sequences as a tree, so that shared beginnings are computed once.

In a causal model a token's log-probability depends only on the tokens before it. So sequences with
the same beginning can share that part of the computation. A tree lists its nodes in depth-first
order. BOS is the root. A node attends to itself and its ancestors, and its position is its depth.
The subtree of node ``k`` consists of the nodes ``k`` to ``ends[k] - 1``, so node ``j`` attends to
``k`` if and only if ``k <= j < ends[k]``. A sequence's last token predicts nothing: it is no node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from plumbline.eval_workers.models.scoring_contract import Tokens

Item = TypeVar("Item")
#: Takes items, the start index of a part and a limit; returns the part's end index (exclusive).
EndOfPart = Callable[[Sequence[Item], int, int], int]
#: Row widths are multiples of this, because a GPU's attention has a start-up cost per new shape.
_STEP = {"cpu": 1, "cuda": 64}


@dataclass(frozen=True)
class Tree:
    """The nodes of one forward pass, and for each sequence the nodes that predict its tokens.

    ``tokens``, ``depths`` and ``ends`` have one entry per node. ``paths`` has one list per
    sequence, which is as long as the sequence and goes from the root down.
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


def end_of_tree(sequences: Sequence[Tokens], start: int, n_nodes: int) -> int:
    """Return the end index of the longest run of sequences whose tree has ``n_nodes`` or fewer.

    The run begins at ``sequences[start]``. Sequences are sorted. A tree of a single sequence may
    exceed the limit.

    >>> sequences = [(1, 2, 3), (1, 2, 4), (1, 5, 6), (7, 8)]
    >>> [end_of_tree(sequences, 0, n) for n in (1, 3, 4, 5)]
    [1, 2, 3, 4]
    """
    n = len(sequences[start])
    for end in range(start + 1, len(sequences)):
        n += len(sequences[end]) - 1 - n_shared(sequences[end - 1], sequences[end])
        if n > n_nodes:
            return end
    return len(sequences)


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


def parts(items: Sequence[Item], end_of: EndOfPart[Item], limit: int) -> Iterator[list[Item]]:
    """Yield the items in consecutive parts, each as long as ``end_of`` allows.

    >>> list(parts("abcde", lambda items, start, limit: min(start + limit, len(items)), 2))
    [['a', 'b'], ['c', 'd'], ['e']]
    """
    start = 0
    while start < len(items):
        end = end_of(items, start, limit)
        yield list(items[start:end])
        start = end


def hidden_of_trees(model: Any, trees: Sequence[Tree]) -> torch.Tensor:
    """Return a causal model's last hidden states, ``[tree, node, unit]``; gradients pass through.

    Rows are as wide as the largest tree (on a GPU, rounded up). The columns after a tree's last
    node are padding, to which no node of a tree attends.
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
    """Return the integers as a tensor on the device, without waiting for the copy to a GPU."""
    here = torch.tensor(values)
    return here.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else here


def _mask(ends: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return the mask to add to attention scores, ``[tree, node, attended node]``.

    It is 0 for a node and its ancestors, and the lowest value of the dtype for all other nodes.
    """
    nodes = torch.arange(ends.shape[1], device=ends.device)
    attends = (nodes <= nodes[:, None]) & (nodes[:, None] < ends[:, None])
    mask = torch.zeros(attends.shape, dtype=dtype, device=ends.device)
    return mask.masked_fill_(~attends, torch.finfo(dtype).min)
