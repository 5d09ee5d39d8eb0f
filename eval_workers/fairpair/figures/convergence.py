"""Convergence of B, V and F of a set with the number of samples, and with folds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from plumbline.eval_workers.fairpair.fairpair_options import texts_of
from plumbline.eval_workers.fairpair.figures.fairpair_f import folds, ratios
from plumbline.eval_workers.fairpair.figures.fairpair_set import prompt_rng, shared_columns
from plumbline.eval_workers.fairpair.figures.significance import weighted
from plumbline.eval_workers.fairpair.figures.text_groups import Group, PerturbedSamples, read_groups
from plumbline.eval_workers.fairpair.phi import Floats, Phi, find
from plumbline.warehouse.storage.store import Store

Row = dict[str, object]
Items = tuple[Sequence[object], Sequence[object]]

_QUANTITIES = ("bias_b", "variability_pg", "variability_gp", "fairpair_f")


@dataclass(frozen=True)
class ConvergenceOptions:
    """Sizes, folds and draws to compute.

    Attributes:
        sizes: numbers of samples drawn from each group. A number that no prompt has is left out;
            the smallest and the largest number that a prompt has are added.
        folds: numbers of folds to divide a prompt's samples into. A number is left out if no
            prompt has so many samples.
        n_draws: number of random subsets of each size.
        n_fold_draws: number of random divisions into folds, which take far longer than subsets.
        as_published: see ``FigureOptions``.
    """

    sizes: tuple[int, ...] = (2, 5, 10, 20, 50, 100, 200, 500)
    folds: tuple[int, ...] = (2, 5, 10, 20, 50, 100, 200)
    n_draws: int = 50
    n_fold_draws: int = 4
    seed: int = 0
    as_published: bool = False


def converge_set(
    store: Store,
    sampled: PerturbedSamples,
    phi_name: str,
    options: ConvergenceOptions,
    run_id: str,
) -> int:
    """Write ``fairpair_convergence`` of a set in place of its rows with these ``texts``.

    Returns the number of rows. A draw takes the same number of samples from both groups of every
    prompt with so many samples; F comes from the means of B and V over these prompts. Draws of all
    samples give the same F. Raises as ``read_groups`` and ``find``.
    """
    phi, rows = find(phi_name), list[Row]()
    shared = shared_columns(sampled, phi_name, options, options.as_published, run_id)
    groups = read_groups(store, sampled, options.as_published)
    for side in sorted({group.side for group in groups}):
        of_side = [
            (group, group.items(phi))
            for group in groups
            if group.side == side and min(len(group.pg), len(group.gp)) >= 2
        ]
        rows += [{**shared, "side": side, **row} for row in _side_rows(phi, of_side, options)]
    unit = texts_of(options.as_published)
    store.publish("fairpair_convergence", rows, unit=unit, run_id=run_id)
    return len(rows)


def _side_rows(
    phi: Phi, prompts: Sequence[tuple[Group, Items]], options: ConvergenceOptions
) -> Iterator[Row]:
    least, most = (pick((_n_each(items) for _, items in prompts), default=0) for pick in (min, max))
    sizes = sorted({size for size in (*options.sizes, least, most) if 2 <= size <= most})
    # The loop over prompts is the outer one: only one matrix of distances is in memory.
    drawn: dict[int, list[Floats]] = {size: [] for size in sizes}
    for group, items in prompts:
        rng = prompt_rng(options.seed, group)
        distances = phi.distances([*items[0], *items[1]])
        for size in sizes:
            if size <= _n_each(items):
                drawn[size].append(_subsets(distances, items, size, options.n_draws, rng))
    for size in sizes:
        yield from _rows(drawn[size], {"n_folds": 0, "n_samples": size})
    for k in options.folds:
        large_enough = [(group, items) for group, items in prompts if 2 <= k <= _n_each(items)]
        if large_enough:
            figures = [_divided(phi, group, items, k, options) for group, items in large_enough]
            n_samples = max(_n_each(items) for _, items in large_enough)
            yield from _rows(figures, {"n_folds": k, "n_samples": n_samples})


def _n_each(items: Items) -> int:
    return min(len(items[0]), len(items[1]))


def _subsets(
    distances: Floats, items: Items, size: int, n_draws: int, rng: np.random.Generator
) -> Floats:
    """B, V_pg and V_gp of random subsets, an array of shape (3, draws)."""
    left, right = (
        rng.permuted(np.tile(np.arange(len(group)) < size, (n_draws, 1)), axis=1).astype(np.float64)
        for group in items
    )
    return weighted(distances, left, right)


def _divided(phi: Phi, group: Group, items: Items, k: int, options: ConvergenceOptions) -> Floats:
    """B, V_pg and V_gp of random divisions into folds, an array of shape (3, draws)."""
    rng, columns = prompt_rng(options.seed, group), []
    for _ in range(options.n_fold_draws):
        left, right = (folds(phi, group_items, k, _n_each(items), rng)[0] for group_items in items)
        means = phi.means(left, right)
        columns.append((means.between, means.within_left, means.within_right))
    return np.array(columns).T


def _rows(figures: Sequence[Floats], keys: Row) -> Iterator[Row]:
    """One row per quantity, from one array of figures per prompt, each of shape (3, draws)."""
    means = np.mean(figures, axis=0)
    for quantity, values in zip(_QUANTITIES, (*means, ratios(*means)), strict=True):
        defined = values[~np.isnan(values)]
        yield {
            **keys,
            "quantity": quantity,
            "mean": float(defined.mean()) if defined.size else None,
            "sd": float(defined.std(ddof=1)) if defined.size > 1 else None,
            "n_draws": len(defined),
            "n_prompts": len(figures),
        }
