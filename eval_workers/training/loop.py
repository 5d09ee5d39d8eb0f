"""The training loop of `train` and `disclosure tune`.

A step adds up the gradients of the parts of a batch, bounds their norm and lets the optimiser move
the weights. There is no resumption: an interrupted training starts again.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
import torch

from plumbline.warehouse.errors import BadInput

#: Figures of a step or a part of its batch by name, such as losses.
Figures: TypeAlias = dict[str, float]
#: Computes the share of a part in the loss of its batch, and in the step's figures.
Part: TypeAlias = Callable[[], tuple[torch.Tensor, Figures]]


def trainable(model: Any) -> list[torch.nn.Parameter]:
    """The parameters of a model that have gradients."""
    return [weight for weight in model.parameters() if weight.requires_grad]


def shuffled(n_items: int, batch: int, seed: int) -> Iterator[list[int]]:
    """Yield batches of item numbers without end.

    Each epoch has every number once, in a new order. A batch may reach into the next epoch.
    ``n_items`` is 1 or more.

    >>> first, second = itertools.islice(shuffled(4, 2, seed=0), 2)
    >>> sorted(first + second)
    [0, 1, 2, 3]
    """
    orders = (
        np.random.default_rng([seed, epoch]).permutation(n_items) for epoch in itertools.count()
    )
    numbers = itertools.chain.from_iterable(orders)
    while True:
        yield [int(number) for number in itertools.islice(numbers, batch)]


def fit(
    weights: Sequence[torch.nn.Parameter],
    batches: Iterable[Sequence[Part]],
    optimizer: torch.optim.Optimizer,
    clip_norm: float,
    what: str,
    schedule: torch.optim.lr_scheduler.LRScheduler | None = None,
    n_lanes: int = 1,
) -> Generator[Figures, None, None]:
    """Take one step per batch and yield its figures, with the ``gradient_norm`` before clipping.

    ``clip_norm`` may be infinite. ``n_lanes`` parts of a batch are computed at the same time, each
    on one core: small models are twice as fast as with all cores in each matrix product. Gradients
    are added in the order of the parts, so the number of lanes doesn't change the weights. Who
    stops before the last step closes the generator, which gives torch its threads back.

    Raises ``BadInput`` about ``what`` for a loss or gradient that is not finite; the weights are
    then those before the step.
    """
    with _lanes(n_lanes) as pool:
        for step, parts in enumerate(batches, 1):
            figures: Counter[str] = Counter()
            sums: list[torch.Tensor] = []
            for gradients, of_part in pool.map(lambda part: _gradients(part, weights), parts):
                figures.update(of_part)
                sums = [a + b for a, b in zip(sums, gradients, strict=True)] if sums else gradients
            for weight, gradient in zip(weights, sums, strict=True):
                weight.grad = gradient
            norm = float(torch.nn.utils.clip_grad_norm_(weights, clip_norm))
            check_finite({**figures, "gradient_norm": norm}, what, step)
            optimizer.step()
            if schedule is not None:
                schedule.step()
            yield {**figures, "gradient_norm": norm}


def check_finite(figures: Figures, what: str, step: int) -> None:
    """Raise ``BadInput`` about ``what`` if a figure of ``step`` (from 1) is not finite."""
    if not all(map(math.isfinite, figures.values())):
        problem = f"a loss or its gradient is not finite at step {step}"
        raise BadInput(what, problem, "try a lower learning rate")


@contextmanager
def _lanes(n_lanes: int) -> Iterator[ThreadPoolExecutor]:
    """A pool of ``n_lanes`` threads; if there are several, each computes on one core."""
    n_threads = torch.get_num_threads()
    if n_lanes > 1:
        torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(n_lanes) as pool:
            yield pool
    finally:
        torch.set_num_threads(n_threads)


def _gradients(
    part: Part, weights: Sequence[torch.nn.Parameter]
) -> tuple[list[torch.Tensor], Figures]:
    loss, figures = part()
    # An unused weight, such as an expert that no token was sent to, has a gradient of 0.
    return list(torch.autograd.grad(loss, weights, materialize_grads=True)), figures
