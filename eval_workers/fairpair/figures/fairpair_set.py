"""Step from continuations to ``fairpair_prompt`` and ``fairpair_set``."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from plumbline.eval_workers.fairpair.figures.significance import adjusted
from plumbline.eval_workers.fairpair.figures.summary import PromptMeasures, measure, over_prompts
from plumbline.eval_workers.fairpair.figures.texts import Group, PerturbedSamples, read_groups
from plumbline.eval_workers.fairpair.options import FigureOptions, texts_of
from plumbline.eval_workers.fairpair.phi import Phi, find
from plumbline.warehouse.storage.store import Store

Row = dict[str, object]
Pairs = list[tuple[Group, PromptMeasures]]

#: Columns of ``probe_prompt`` whose values make subsets of a set.
_SUBSETS = ("axis", "entity_group", "descriptors", "topic", "language")


def score_set(
    store: Store,
    sampled: PerturbedSamples,
    phi_name: str,
    options: FigureOptions,
    run_id: str,
    phi: Phi | None = None,
) -> None:
    """Measure every prompt and side of a set and write both tables.

    ``phi`` is the function of that name if it is open already. Rows of the same scoring function,
    texts and number of folds are replaced. The same samples, options and seed give the same
    figures. Raises as ``read_groups`` and ``find``.
    """
    phi = phi or find(phi_name)
    by_side: dict[str, Pairs] = {}
    for group in read_groups(store, sampled, options.as_published):
        rng = prompt_rng(options.seed, group)
        measured = measure(phi, *group.items(phi), options, rng)
        by_side.setdefault(group.side, []).append((group, measured))
    shared = shared_columns(sampled, phi_name, options, options.as_published, run_id)
    shared["n_folds"] = options.folds
    prompts = [{**shared, **row} for pairs in by_side.values() for row in _prompt_rows(pairs)]
    sets = []
    for side, pairs in by_side.items():
        for subset, some in _subsets(pairs):
            clusters = [group.cluster for group, _ in some]
            figures = over_prompts([measured for _, measured in some], options, clusters)
            sets.append({**shared, "side": side, "subset": subset, **asdict(figures)})
    unit = f"{texts_of(options.as_published)}-folds-{options.folds}"
    with store.together(run_id, "fairpair"):
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


def _subsets(pairs: Pairs) -> Iterator[tuple[str, Pairs]]:
    """The full set, then one subset per value of each grouping column."""
    yield "all", pairs
    for column in _SUBSETS:
        values = {str(v) for g, _ in pairs if (v := g.prompt[column]) is not None}
        for value in sorted(values) if len(values) > 1 else ():
            yield f"{column} = {value}", [p for p in pairs if str(p[0].prompt[column]) == value]
