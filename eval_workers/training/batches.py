"""Order of rows in a seeded training run."""

from __future__ import annotations

from functools import lru_cache

import numpy as np


def rows_of_step(step: int, n_rows: int, batch_rows: int, seed: int) -> np.ndarray:
    """Rows (int64) of a step's batch, from step 0; each once per epoch, reshuffled every epoch.

    Depends on the step alone, so that a run can resume at any step. A batch may reach into the next
    epoch; ``n_rows`` is 1 or more.

    >>> both = [rows_of_step(step, 4, 2, seed=0).tolist() for step in (0, 1)]
    >>> sorted(both[0] + both[1])
    [0, 1, 2, 3]
    """
    places = range(step * batch_rows, (step + 1) * batch_rows)
    return np.array([_order(place // n_rows, n_rows, seed)[place % n_rows] for place in places])


@lru_cache(maxsize=2)
def _order(epoch: int, n_rows: int, seed: int) -> np.ndarray:
    return np.random.default_rng([seed, epoch]).permutation(n_rows)
