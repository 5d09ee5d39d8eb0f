"""Measures a set's continuations and writes ``fairpair_prompt`` and ``fairpair_set``."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np

from plumbline.eval_workers.fairpair.fairpair_options import FigureOptions, texts_of
from plumbline.eval_workers.fairpair.figures.fairpair_f import (
    PromptFigures,
    fairpair_f,
    folds,
    prompt_figures,
    ratios,
)
from plumbline.eval_workers.fairpair.figures.significance import (
    FEWEST_RESAMPLED,
    adjusted,
    by_cluster,
    gap,
    interval,
    interval_over_prompts,
    p_value,
    permuted_gaps,
    resampled,
    t_test,
)
from plumbline.eval_workers.fairpair.figures.text_groups import Group, PerturbedSamples, read_groups
from plumbline.eval_workers.fairpair.phi import Floats, Means, Phi, block_means, find
from plumbline.warehouse.storage.store import Store

Row = dict[str, object]

#: Columns of ``probe_prompt``; each value is a subset of prompts if there are several values.
_SUBSETS = ("axis", "entity_group", "descriptors", "topic", "language")


def score_set(
    store: Store,
    sampled: PerturbedSamples,
    phi_name: str,
    options: FigureOptions,
    run_id: str,
) -> None:
    """Measure every prompt and side of a set and write both tables.

    Rows of the same scoring
    function, ``texts`` and number of folds are replaced. The same samples, options and seed give
    the same figures. Raises as ``read_groups`` and ``find``.
    """
    phi = find(phi_name)
    by_side: dict[str, _Measured] = {}
    for group in read_groups(store, sampled, options.as_published):
        rng = prompt_rng(options.seed, group)
        measured = measure(phi, *group.items(phi), options, rng)
        by_side.setdefault(group.side, []).append((group, measured))
    shared = shared_columns(sampled, phi_name, options, options.as_published, run_id)
    shared["n_folds"] = options.folds
    prompts = [{**shared, **row} for pairs in by_side.values() for row in _prompt_rows(pairs)]
    sets = []
    for side, pairs in by_side.items():
        for subset, members in _subsets(pairs):
            clusters = [group.cluster for group, _ in members]
            figures = over_prompts([measured for _, measured in members], options, clusters)
            sets.append({**shared, "side": side, "subset": subset, **asdict(figures)})
    unit = f"{texts_of(options.as_published)}-folds-{options.folds}"
    with store.transaction(run_id, "fairpair"):
        store.publish("fairpair_prompt", prompts, unit=unit, run_id=run_id)
        store.publish("fairpair_set", sets, unit=unit, run_id=run_id)


def shared_columns(
    sampled: PerturbedSamples, phi_name: str, options: Any, as_published: bool, run_id: str
) -> Row:
    """Columns that are the same in all rows of a step; ``options`` is a dataclass."""
    return {
        **asdict(sampled),
        "phi": phi_name,
        "texts": texts_of(as_published),
        "options": json.dumps(asdict(options), sort_keys=True),
        "run_id": run_id,
    }


def prompt_rng(seed: int, group: Group) -> np.random.Generator:
    """Random generator of one prompt and side, independent of other prompts."""
    name = f"{group.side} {group.prompt_id}".encode()
    return np.random.default_rng([seed, zlib.crc32(name)])


def _prompt_rows(pairs: _Measured) -> Iterator[Row]:
    p_values = adjusted([measured.p_permutation for _, measured in pairs])
    for (group, measured), q_permutation in zip(pairs, p_values, strict=True):
        yield {
            "side": group.side,
            "prompt_id": group.prompt_id,
            **asdict(measured.figures),
            "fairpair_f_low": measured.fairpair_f_low,
            "fairpair_f_high": measured.fairpair_f_high,
            "p_permutation": measured.p_permutation,
            "q_permutation": q_permutation,
        }


def _subsets(pairs: _Measured) -> Iterator[tuple[str, _Measured]]:
    """The full set, then one subset per value of each column with several values."""
    yield "all", pairs
    for column in _SUBSETS:
        values = {str(v) for g, _ in pairs if (v := g.prompt[column]) is not None}
        for value in sorted(values) if len(values) > 1 else ():
            yield f"{column} = {value}", [p for p in pairs if str(p[0].prompt[column]) == value]


@dataclass(frozen=True)
class PromptMeasures:
    """Figures of one prompt, F's interval, and the gap B - mean V with its permutation test.

    ``gap``, ``p_permutation`` and ``permuted`` are ``None`` where B or a V is not defined.
    """

    figures: PromptFigures
    fairpair_f_low: float | None
    fairpair_f_high: float | None
    gap: float | None
    p_permutation: float | None
    permuted: Floats | None


#: Each prompt's two groups of texts, and its measures.
_Measured: TypeAlias = "list[tuple[Group, PromptMeasures]]"


@dataclass(frozen=True)
class SetFigures:
    """Figures of many prompts; the columns of table ``fairpair_set`` describe the fields."""

    n_prompts: int
    n_left_out: int
    bias_b: float | None
    variability_pg: float | None
    variability_gp: float | None
    fairpair_f: float | None
    fairpair_f_low: float | None
    fairpair_f_high: float | None
    gap: float | None
    t_statistic: float | None
    p_t: float | None
    p_permutation: float | None


def measure(
    phi: Phi,
    pg: Sequence[Any],
    gp: Sequence[Any],
    options: FigureOptions,
    rng: np.random.Generator,
) -> PromptMeasures:
    """Measure one prompt from the items of p(g(x)) and of g(p(x)), valid samples only.

    F has no interval if a group has fewer than four samples (or folds). With folds, each group
    gives as many samples as the smaller one has, and the test exchanges only folds of equal size.

    >>> from plumbline.eval_workers.fairpair.phi import find
    >>> options, rng = FigureOptions(n_permutations=99), np.random.default_rng(0)
    >>> apart = measure(find("vader"), [0, 0.2] * 5, [1, 0.8] * 5, options, rng)
    >>> round(apart.figures.bias_b, 9), round(apart.figures.fairpair_f, 6), apart.p_permutation
    (0.8, 51.84, 0.01)
    """
    n_pg, n_gp = len(pg), len(gp)
    n_samples, k = min(n_pg, n_gp), options.folds
    strata = None
    if k > n_samples:
        nan = float("nan")
        return PromptMeasures(prompt_figures(Means(nan, nan, nan), n_pg, n_gp, k), *[None] * 5)
    if k:
        (pg, sizes), (gp, others) = (folds(phi, g, k, n_samples, rng) for g in (pg, gp))
        strata = np.array([*sizes, *others])
    distances = phi.distances([*pg, *gp])
    means = block_means(distances, len(pg))
    figures = prompt_figures(means, n_pg, n_gp, k)
    low = high = None
    if figures.fairpair_f is not None and min(len(pg), len(gp)) >= FEWEST_RESAMPLED:
        draws = resampled(distances, len(pg), options.n_resamples, rng)
        low, high = interval(ratios(*draws), options.level)
    if n_samples < 2:
        return PromptMeasures(figures, low, high, None, None, None)
    permuted = permuted_gaps(distances, len(pg), options.n_permutations, rng, strata)
    observed = gap(means)
    return PromptMeasures(figures, low, high, observed, p_value(observed, permuted), permuted)


def over_prompts(
    measured: Sequence[PromptMeasures],
    options: FigureOptions,
    clusters: Sequence[str] | None = None,
) -> SetFigures:
    """F of the means of B, V_pg and V_gp over prompts, with interval and tests.

    F = mean(B)^2 / (mean(V_pg) mean(V_gp)), as in the published Table 3: a prompt with little
    variability can't dominate the means. Prompts whose B or V is not defined are left out and
    counted. Interval and t-test are over clusters of similar prompts, such as the prompts of an
    occupation; by default each prompt is a cluster. The two sides of a prompt are similar, too:
    don't mix sides in one call.

    >>> over_prompts([], FigureOptions()).fairpair_f is None
    True
    """
    if clusters is None:
        clusters = [str(k) for k in range(len(measured))]
    kept = [m for m in measured if m.permuted is not None]
    ids = [cluster for m, cluster in zip(measured, clusters, strict=True) if m.permuted is not None]
    n_left_out = len(measured) - len(kept)
    if not kept:
        return SetFigures(0, n_left_out, *[None] * 10)
    rows = [(f.bias_b, f.variability_pg, f.variability_gp) for f in (m.figures for m in kept)]
    figures = np.array(rows, np.float64)
    b, v_pg, v_gp = figures.mean(axis=0).tolist()
    rng = np.random.default_rng(options.seed)
    low, high = interval_over_prompts(
        by_cluster(figures, ids), options.level, options.n_resamples, rng
    )
    tested = t_test(figures[:, 0] - figures[:, 1], ids)
    permuted = np.mean([m.permuted for m in kept if m.permuted is not None], axis=0)
    mean_gap = float(np.mean([m.gap for m in kept if m.gap is not None]))
    return SetFigures(
        *(len(kept), n_left_out, b, v_pg, v_gp, fairpair_f(b, v_pg, v_gp), low, high),
        *(mean_gap, *tested, p_value(mean_gap, permuted)),
    )
