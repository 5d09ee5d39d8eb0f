"""The step from continuations to ``fairpair_prompt`` and ``fairpair_set``."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np

from plumbline.eval_workers.fairpair.figures.significance import adjusted
from plumbline.eval_workers.fairpair.figures.summary import (
    Measured,
    SetFigures,
    measure,
    over_prompts,
)
from plumbline.eval_workers.fairpair.figures.texts import Group, Sampled, read_groups
from plumbline.eval_workers.fairpair.options import FigureOptions, texts_of
from plumbline.eval_workers.fairpair.phi import Phi, find
from plumbline.warehouse.storage.store import Store

Row = dict[str, object]
Pairs = list[tuple[Group, Measured]]

#: Columns of ``probe_prompt`` whose values make subsets of a set.
_SUBSETS = ("axis", "entity_group", "descriptors", "topic", "language")


@dataclass(frozen=True)
class Scored:
    """Outcome of ``score_set``: rows written, and those of prompts whose F is NULL."""

    n_prompts: int
    n_sets: int
    n_without_f: int


def score_set(
    store: Store,
    sampled: Sampled,
    phi_name: str,
    options: FigureOptions,
    run_id: str,
    phi: Phi | None = None,
) -> Scored:
    """Measure every prompt and side of a set and write both tables, replacing earlier rows.

    ``phi`` is the function of that name where it is open already. Rows of other scoring functions,
    texts and numbers of folds stay. The same samples, options and seed give the same figures.
    Raises ``BadInput`` where nothing was perturbed (see ``read_groups``), ``UsageProblem`` for an
    unknown scoring function.
    """
    phi = phi or find(phi_name)
    found: Pairs = []
    for group in read_groups(store, sampled, options.as_published):
        rng = prompt_rng(options.seed, group)
        found.append((group, measure(phi, *group.items(phi), options, rng)))
    shared = {
        **asdict(sampled),
        "phi": phi_name,
        "texts": texts_of(options.as_published),
        "n_folds": options.folds,
        "options": json.dumps(asdict(options), sort_keys=True),
        "run_id": run_id,
    }
    sides = sorted({group.side for group, _ in found})
    by_side = {side: [one for one in found if one[0].side == side] for side in sides}
    prompts = [{**shared, **row} for pairs in by_side.values() for row in _prompt_rows(pairs)]
    sets = [
        {**shared, "side": side, "subset": subset, **asdict(_over(some, options))}
        for side, pairs in by_side.items()
        for subset, some in _subsets(pairs)
    ]
    unit = f"{texts_of(options.as_published)}-folds-{options.folds}"
    with store.together(run_id, "fairpair"):
        store.publish("fairpair_prompt", prompts, unit=unit, run_id=run_id)
        store.publish("fairpair_set", sets, unit=unit, run_id=run_id)
    without = sum(row["fairpair_f"] is None for row in prompts)
    return Scored(len(prompts), len(sets), without)


def prompt_rng(seed: int, group: Group) -> np.random.Generator:
    """Random numbers of one prompt and side, the same whatever else is measured."""
    name = f"{group.side} {group.prompt_id}".encode()
    return np.random.default_rng([seed, zlib.crc32(name)])


def _prompt_rows(pairs: Pairs) -> Iterator[Row]:
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


def _over(pairs: Pairs, options: FigureOptions) -> SetFigures:
    return over_prompts([m for _, m in pairs], options, [group.cluster for group, _ in pairs])


def _subsets(pairs: Pairs) -> Iterator[tuple[str, Pairs]]:
    """All prompts, then those of each value of a column that tells prompts apart."""
    yield "all", pairs
    for column in _SUBSETS:
        values = {str(v) for g, _ in pairs if (v := g.prompt[column]) is not None}
        for value in sorted(values) if len(values) > 1 else ():
            yield f"{column} = {value}", [p for p in pairs if str(p[0].prompt[column]) == value]
