"""How often `lasting_changes` finds a change in curves with memory: of none, and of one.

A model's curves are autoregressions of first order with normal innovations that are correlated by
a half. The last one shifts in its middle by three or ten standard deviations of an innovation, or
by three and back after a third of the checkpoints. A shift is found if the curve is cut within an
eighth of the checkpoints of it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.signal import lfilter

from plumbline.eval_workers.scoring.statistics.change_points import (
    ALPHA,
    LEAST_POWER,
    lasting_changes,
)

ABOUT = "Shares of simulated models with a lasting change at 5%; random orders are the old test."
DRAWS = 200
CHECKPOINTS = (8, 16, 24, 48, 96, 154)
Floats = npt.NDArray[np.float64]


def rows(draws: int, seed: int) -> list[dict[str, object]]:
    """A row for each number of curves and of checkpoints, and each autocorrelation."""
    worlds = [(n, k, rho) for n in (1, 4) for k in CHECKPOINTS for rho in (0.0, 0.5, 0.9)]
    return [row(draws, seed, *world) for world in worlds]


def row(draws: int, seed: int, n_curves: int, n_steps: int, rho: float) -> dict[str, object]:
    """Shares of models with a find, and the power that is stated of the last curve."""
    rng = np.random.default_rng(seed)
    models = [autoregressions(rng, n_curves, n_steps, rho) for _ in range(draws)]
    flat = [tested(curves, 0, None) for curves in models]
    told = {
        "false finds": np.mean([bool(finds) for finds, _ in flat]),
        "stated power": np.mean([power for _, power in flat]),
        "with a verdict": np.mean([power >= LEAST_POWER for _, power in flat]),
    }
    for name, shift, stop in (
        ("3", 3, None),
        ("10", 10, None),
        ("3 and back", 3, 5 * n_steps // 6),
    ):
        cuts = [tested(curves, shift, stop)[0] for curves in models]
        near = [{cut for cut in of if is_near(cut, n_curves, n_steps, stop)} for of in cuts]
        told[f"shift of {name} found"] = np.mean([bool(of) for of in near])
        told[f"{name}, and a false find"] = np.mean(
            [of > hits for of, hits in zip(cuts, near, strict=True)]
        )
    world = {"curves": n_curves, "checkpoints": n_steps, "rho": rho}
    return {**world, "by random orders": float(np.mean([shuffled(rng, m) for m in models])), **told}


def autoregressions(rng: np.random.Generator, n_curves: int, n_steps: int, rho: float) -> Floats:
    """Curves (rows) of one model, as if they had run for ever."""
    common, own = rng.normal(0, 0.5**0.5, (2, n_curves, n_steps))
    innovations = common[:1] + own
    innovations[:, 0] /= (1 - rho**2) ** 0.5
    return np.asarray(lfilter([1.0], [1.0, -rho], innovations, axis=1))


def tested(curves: Floats, shift: float, stop: int | None) -> tuple[set[tuple[int, int]], float]:
    """Changes that are found once the last curve shifts, and the power stated of its whole."""
    moved = curves.copy()
    moved[-1, curves.shape[1] // 2 : stop] += shift
    cuts = lasting_changes(list(moved), [np.arange(curves.shape[1])] * len(curves), n_series=299)
    power = next(of for (i, _), (_, _, of) in cuts.items() if i == len(curves) - 1)
    return {cut for cut, (_, p, _) in cuts.items() if p is not None and p <= ALPHA}, power


def is_near(cut: tuple[int, int], n_curves: int, n_steps: int, stop: int | None) -> bool:
    """Whether a cut is one of the last curve where it shifts."""
    places = (n_steps // 2, stop or n_steps // 2)
    return cut[0] == n_curves - 1 and min(abs(cut[1] - at) for at in places) <= n_steps / 8


def shuffled(rng: np.random.Generator, curves: Floats, n_orders: int = 299) -> bool:
    """Whether a cut is found among random orders of checkpoints, as if they were exchangeable."""
    n = curves.shape[1]
    order = np.argsort(rng.random((n_orders, n)), axis=1)
    order = np.vstack([np.arange(n), order])
    k = np.arange(1, n)
    centred = curves - curves.mean(axis=1, keepdims=True)
    sums = np.cumsum(centred[:, order], axis=2)[..., :-1]
    peaks = np.round((np.abs(sums) / np.sqrt(k * (n - k))).max(axis=2), 9)
    ranks = (peaks[:, None] >= peaks[..., None]).mean(axis=2).min(axis=0)
    return bool((ranks <= ranks[0]).mean() <= ALPHA)
