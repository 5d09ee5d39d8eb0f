"""What the intervals of `reproduce anatomy` cover, in worlds whose shares are planted.

A log ratio is a sum of effects, each drawn for all models, for a family and for a model: a
constant, a slope on each of three properties, and effects of words, of frames (or of two
occupations) and of pairs. Models are as many, and in families of the sizes, as UnStereoEval's 28.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from plumbline.eval_workers.scoring.statistics.components import (
    AVERAGE,
    SHARED,
    Floats,
    Ints,
    LogRatioTable,
    by_family,
    shares,
)

ABOUT = (
    "How often 95% intervals of shares of the mean square contain the planted share: of these "
    "models, over words; of other families, over families too. Over all parts, and the lowest part."
)
DRAWS = 200
_FAMILIES = np.repeat(np.arange(7), (14, 4, 3, 2, 2, 2, 1))
#: Deviations of effects for all models, a family, a model.
_USE = {
    "constant": (0.5, 0.6, 1.0),
    "start": (0.5, 0.4, 0.8),
    "number": (0.0, 0.0, 0.0),
    "delta": (0.4, 0.1, 0.1),
    "word": (0.4, 0.2, 0.5),
    "pair": (0.6, 0.5, 1.2),
}
_OCCUPATIONS = {
    "constant": (1.0, 0.2, 0.3),
    "start": (0.0, 0.0, 0.0),
    "number": (0.0, 0.1, 0.2),
    "delta": (0.8, 0.2, 0.2),
    "word": (0.5, 0.2, 0.2),
    "frame": (0.5, 0.2, 0.3),
    "pair": (0.9, 0.3, 0.8),
}


class World(NamedTuple):
    """How many words, pairs and frames (crossed with words; 0 for none), and what is planted."""

    n_words: int
    n_pairs: int
    n_frames: int
    planted: dict[str, tuple[float, float, float]]
    are_alike: bool = False


WORLDS = {
    "as USE": World(120, 900, 0, _USE),
    "few words": World(20, 150, 0, _USE),
    "frames": World(80, 240, 60, _OCCUPATIONS),
    "two occupations": World(40, 700, 40, _OCCUPATIONS, are_alike=True),
}


def effects(sizes: tuple[float, float, float], n: int, draw: np.random.Generator) -> Floats:
    """n effects on the models, float64[n, model]: random for all, for each family and model."""
    families = draw.normal(0, sizes[1], (n, _FAMILIES.max() + 1))[:, _FAMILIES]
    own = draw.normal(0, sizes[2], (n, len(_FAMILIES)))
    return np.asarray(draw.normal(0, sizes[0], (n, 1)) + families + own)


def drawn(world: World, draw: np.random.Generator) -> tuple[LogRatioTable, dict[str, Floats]]:
    """A table of the world, and each part's products of these models."""
    word = draw.permutation(np.arange(world.n_pairs) % (world.n_words - world.n_words // 3))
    word[: world.n_words] = np.arange(world.n_words)  # some words have more pairs than others
    x = {
        "start": draw.integers(0, 2, world.n_pairs) - 0.5,
        "number": draw.poisson(1.0, world.n_pairs) - 1.0,
        "delta": draw.normal(size=world.n_words)[word],
    }
    clusters: Ints = word[:, None]
    kinds = ["word"]
    if world.n_frames:
        other = draw.integers(0, world.n_frames, world.n_pairs)
        other += other == word if world.are_alike else 0
        other %= world.n_frames
        clusters = np.column_stack([word, other + (0 if world.are_alike else world.n_words)])
        kinds.append("word" if world.are_alike else "frame")
    y, truth = np.zeros((world.n_pairs, len(_FAMILIES))), {}
    variance = {"constant": 1.0, "start": 0.25, "number": 1.0, "delta": 1.0}
    for part in ("constant", *x):
        sizes = world.planted[part]
        # What all models share is planted as it is.
        slopes = sizes[0] + effects((0.0, *sizes[1:]), 1, draw)
        y += x.get(part, np.ones(world.n_pairs))[:, None] * slopes
        truth[part] = variance[part] * slopes.T @ slopes
    for kind in dict.fromkeys(kinds):
        columns = [k for k, name in enumerate(kinds) if name == kind]
        of = effects(world.planted[kind], clusters.max() + 1, draw)
        y += of[clusters[:, columns]].sum(axis=1)
        truth[kind] = len(columns) * _products(world.planted[kind])
    y += effects(world.planted["pair"], world.n_pairs, draw)
    truth["pair"] = _products(world.planted["pair"])
    table = LogRatioTable(y, {k: v[:, None] for k, v in x.items()}, clusters, kinds, _FAMILIES)
    return table, truth


def _products(sizes: tuple[float, float, float]) -> Floats:
    """Expected products of two models' effects."""
    is_same = _FAMILIES[:, None] == _FAMILIES
    every, family, own = (size**2 for size in sizes)
    return np.asarray(every + family * is_same + own * np.eye(len(_FAMILIES)))


def planted(world: World) -> dict[str, Floats]:
    """Each part's share by who shares it, over all families that there could be."""
    times = {"start": 0.25, "word": 1 + world.are_alike}
    of = {
        part: times.get(part, 1.0) * np.array([*np.square(sizes), np.sum(np.square(sizes))])
        for part, sizes in world.planted.items()
        if part != "frame" or (world.n_frames and not world.are_alike)
    }
    total = sum(figures[-1] for figures in of.values())
    return {part: figures / total for part, figures in of.items()}


def rows(draws: int, seed: int) -> list[dict[str, object]]:
    """A row per world."""
    return [_row(name, draws, np.random.default_rng([seed, k])) for k, name in enumerate(WORLDS)]


def _row(name: str, draws: int, draw: np.random.Generator) -> dict[str, object]:
    world, found = WORLDS[name], []
    expected = planted(world)
    for _ in range(draws):
        table, truth = drawn(world, draw)
        total = sum(np.trace(of) for of in truth.values()) / len(_FAMILIES)
        for share in shares(table):
            if share.order == AVERAGE:
                k = SHARED.index(share.shared)
                here = by_family(truth[share.part], _FAMILIES)[k] / total
                there = expected[share.part][k]
                found.append(
                    [
                        share.share_low <= here <= share.share_high,
                        share.families_low <= there <= share.families_high,
                        share.share - here,
                        share.share_high - share.share_low,
                        share.families_high - share.families_low,
                    ]
                )
    here, there, error, width, wide = np.array(found).reshape(draws, -1, 5).transpose(2, 0, 1)
    return {
        "world": name,
        "these models: coverage": float(here.mean()),
        "lowest part": float(here.mean(axis=0).min()),
        "width": float(width.mean()),
        "largest bias": float(np.abs(error.mean(axis=0)).max()),
        "other families: coverage": float(there.mean()),
        "lowest part ": float(there.mean(axis=0).min()),
        "width ": float(wide.mean()),
    }
