"""How often a board of models has a wrong set of ranks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import norm

from plumbline.eval_workers.scoring.statistics.ranks import board

ABOUT = (
    "Boards of models by US with planted effects of words on all models and on each; wrong: share "
    "of boards where a model's set of ranks lacks its true rank, or one that it shares."
)
DRAWS = 1000
#: Parts of the variance of a pair's latent log ratio: word, word and model, pair, pair and model.
_PARTS = (0.1, 0.1, 0.4, 0.4)


@dataclass(frozen=True)
class World:
    """Models and what they are ranked by: ``shares`` of pairs without a preference."""

    values: str
    clusters: str
    shares: npt.NDArray[np.float64]
    of_pair: npt.NDArray[np.int64]


def worlds(rng: np.random.Generator) -> Iterator[World]:
    """Equal models, ties and near ties, in the middle and at the end, of words of several sizes."""
    even = np.repeat(np.arange(40), 20)[:, None]
    unequal = np.repeat(np.arange(20), rng.integers(5, 60, 20))[:, None]
    two = np.array([rng.choice(40, 2, replace=False) for _ in range(800)])
    shapes = {"40": even, "20 unequal": unequal, "40, in both places": two}
    for n in (5, 12, 28):
        step = np.arange(n) // 3  # threes of equal models
        for values, shares in (
            ("equal", np.full(n, 0.3)),
            ("threes, near", 0.03 + 0.01 * step),
            ("threes, apart", 0.05 + 0.06 * step),
        ):
            for clusters, of_pair in shapes.items():
                yield World(values, clusters, shares, of_pair)


def rows(draws: int, seed: int) -> list[Mapping[str, object]]:
    """A line for each world."""
    rng = np.random.default_rng(seed)
    return [_row(world, draws, rng) for world in worlds(rng)]


def _row(world: World, draws: int, rng: np.random.Generator) -> Mapping[str, object]:
    n = len(world.shares)
    best = 1 + (world.shares[:, None] < world.shares).sum(axis=1)
    worst = n - (world.shares[:, None] > world.shares).sum(axis=1)
    n_wrong, n_ranks = 0, 0.0
    for _ in range(draws):
        found = board(_drawn(world, rng), world.of_pair)
        n_wrong += bool((found.low > best).any() or (found.high < worst).any())
        n_ranks += float((found.high - found.low + 1).mean())
    return {
        "models": n,
        "US": world.values,
        "words": world.clusters,
        "pairs": len(world.of_pair),
        "wrong": n_wrong / draws,
        "ranks in a set": n_ranks / draws,
    }


def _drawn(world: World, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Which pairs (rows) have no preference under each model (columns)."""
    n_pairs, n_places = world.of_pair.shape
    n_models, n_words = len(world.shares), int(world.of_pair.max()) + 1
    word, own, pair, rest = np.sqrt(_PARTS)
    lean = word * rng.standard_normal((n_words, 1))
    lean = (lean + own * rng.standard_normal((n_words, n_models))) / np.sqrt(n_places)
    latent = sum(lean[ids] for ids in world.of_pair.T)
    latent = latent + pair * rng.standard_normal((n_pairs, 1))
    latent = latent + rest * rng.standard_normal((n_pairs, n_models))
    return (latent < norm.ppf(world.shares)).astype(float)
