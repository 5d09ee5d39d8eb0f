"""Measures the continuations of a prompt set with a scoring function, and writes three tables.

The tables hold the figures B, V and F, which ``prompt_figures`` defines:

- ``fairpair_prompt`` for each prompt.
- ``fairpair_set`` for the whole set, and for subsets of its prompts.
- ``fairpair_convergence`` for the whole set, with fewer samples and with folds.
"""

from __future__ import annotations

import json
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np

from plumbline.eval_workers.fairpair.fairpair_options import FigureOptions, texts_of
from plumbline.eval_workers.fairpair.perturbed_set import PerturbedSamples
from plumbline.eval_workers.fairpair.phi import SCORING_FUNCTIONS, Floats, Phi
from plumbline.eval_workers.fairpair.prompt_figures import (
    OF_PROMPT,
    QUANTITIES,
    folds,
    measure,
    over_prompts,
)
from plumbline.eval_workers.fairpair.significance import adjusted, fairpair_f, group_means, weighted
from plumbline.warehouse.storage.store import Store

Row: TypeAlias = dict[str, Any]
#: Side and identifier of a prompt.
_Key: TypeAlias = tuple[str, str]

#: Side of a prompt -> its other side.
_OTHER = {"original": "perturbed", "perturbed": "original"}
_PROMPT = {"original": "prompt", "perturbed": "perturbed_prompt"}


@dataclass(frozen=True)
class Group:
    """The two groups of texts to compare for one version of a prompt, sorted by sample.

    A prompt has two versions, which are about two people; ``side`` names one version. ``pg`` has
    the valid perturbations of this version's continuations. ``gp`` has the continuations of the
    other version. Texts don't include the prompt. For side `original`, ``pg`` is p(g(x)) and ``gp``
    is g(p(x)). For side `perturbed`, ``pg`` is p(g(p(x))) and ``gp`` is g(x). ``scored_by``
    replaces the texts by a scoring function's items.
    """

    side: str
    prompt: Row
    pg: list[Any]
    gp: list[Any]

    def scored_by(self, phi: Phi) -> Group:
        return replace(self, pg=phi.items(self.pg), gp=phi.items(self.gp))

    @property
    def prompt_id(self) -> str:
        return str(self.prompt["prompt_id"])

    @property
    def cluster(self) -> str:
        return str(self.prompt["occupation"] or self.prompt["topic"] or self.prompt_id)

    @property
    def n_each(self) -> int:
        """The number of samples in the smaller group."""
        return min(len(self.pg), len(self.gp))


def read_groups(store: Store, sampled: PerturbedSamples, as_published: bool = False) -> list[Group]:
    """Return the groups of every prompt that has perturbed samples, sorted by side, then prompt.

    By default, ``gp`` leaves out texts that have no valid perturbation, because ``pg`` lacks such
    texts too. With ``as_published``, ``gp`` has all texts, as in section 3.3 of the paper. ``pg``
    is empty if no perturbation is valid.
    """
    keys = asdict(sampled)
    rows = store.read("perturbed_continuation", **keys)
    read = store.read("probe_prompt", probe_set=sampled.probe_set).to_pylist()
    prompts = {str(row["prompt_id"]): row for row in read}
    pg, gp = defaultdict[_Key, list[str]](list), defaultdict[_Key, list[str]](list)
    failed = set()
    # A resumed run may have stored the rows out of order.
    for row in rows.sort_by("sample").to_pylist():
        side, prompt_id = row["side"], row["prompt_id"]
        texts = pg[side, prompt_id]
        if row["is_valid"]:
            prompt = prompts[prompt_id][_PROMPT[_OTHER[side]]]
            texts.append(row["perturbed_text"].removeprefix(prompt))
        elif not as_published:
            failed.add((side, prompt_id, row["sample"]))
    del keys["perturber"]
    for row in store.read("continuation", **keys).sort_by("sample").to_pylist():
        if (row["side"], row["prompt_id"], row["sample"]) not in failed:
            gp[_OTHER[row["side"]], row["prompt_id"]].append(row["continuation"])
    return [
        Group(side, prompts[prompt_id], texts, gp[side, prompt_id])
        for (side, prompt_id), texts in sorted(pg.items())
    ]


#: Columns of ``probe_prompt`` that divide prompts into subsets, if they have several values.
_SUBSETS = ("axis", "entity_group", "descriptors", "topic", "language")
#: Numbers of samples and of folds to try for convergence. Numbers for which no prompt has enough
#: samples are left out; the smallest and the largest number of samples of any prompt are added.
_SIZES = (2, 5, 10, 20, 50, 100, 200, 500)
_FOLDS = (2, 5, 10, 20, 50, 100, 200)
#: Random draws for each number; dividing into folds takes far longer than drawing a subset.
_N_DRAWS, _N_FOLD_DRAWS = 50, 4


def measure_set(
    store: Store, sampled: PerturbedSamples, phi_name: str, options: FigureOptions, run_id: str
) -> None:
    """Measure both versions of every prompt in a set, and write the three tables of this module.

    Replaces earlier rows with the same scoring function, column ``texts`` and number of folds. The
    same samples and options always give the same figures. Raises ``UsageProblem`` for an unknown
    scoring function.
    """
    phi: Phi = SCORING_FUNCTIONS.load(phi_name)
    texts, seed = texts_of(options.as_published), options.seed
    groups = read_groups(store, sampled, options.as_published)
    prompts, sets, converged = list[Row](), list[Row](), list[Row]()
    for _, of_one in groupby(groups, lambda group: group.side):  # one side at a time saves memory
        of_side = [group.scored_by(phi) for group in of_one]
        measured = [
            (group, measure(phi, group.pg, group.gp, options, prompt_rng(seed, group)))
            for group in of_side
        ]
        prompts += _prompt_rows(measured)
        sets += _set_rows(measured, options)
        converged += convergence_rows(phi, of_side, seed)
    folded = f"{texts}-folds-{options.folds}"
    tables: dict[str, tuple[list[Row], str, dict[str, Any]]] = {
        "fairpair_prompt": (prompts, folded, asdict(options)),
        "fairpair_set": (sets, folded, asdict(options)),
        "fairpair_convergence": (converged, texts, {"seed": seed}),
    }
    shared = {**asdict(sampled), "phi": phi_name, "texts": texts, "n_folds": options.folds}
    with store.transaction(run_id, "fairpair"):
        for table, (rows, unit, used) in tables.items():
            shared["options"] = json.dumps(used, sort_keys=True)
            rows = [{**shared, **row} for row in rows]
            store.publish(table, rows, unit=unit, run_id=run_id)


def prompt_rng(seed: int, group: Group) -> np.random.Generator:
    """Return a random generator that depends only on the seed, the prompt and the side."""
    name = f"{group.side} {group.prompt_id}".encode()
    return np.random.default_rng([seed, zlib.crc32(name)])


#: The two groups of texts of each prompt, and its figures.
_Measured: TypeAlias = list[tuple[Group, Row]]


def _prompt_rows(measured: _Measured) -> Iterator[Row]:
    q_values = adjusted([figures["p_permutation"] for _, figures in measured])
    for (group, figures), q_permutation in zip(measured, q_values, strict=True):
        yield {
            "side": group.side,
            "prompt_id": group.prompt_id,
            **{name: figures[name] for name in OF_PROMPT},
            "q_permutation": q_permutation,
        }


def _set_rows(measured: _Measured, options: FigureOptions) -> Iterator[Row]:
    """Yield a row for all prompts together, then a row for each subset (see ``_SUBSETS``)."""
    subsets = {"all": measured}
    for column in _SUBSETS:
        values = {str(v) for group, _ in measured if (v := group.prompt[column]) is not None}
        for value in sorted(values) if len(values) > 1 else ():
            members = [m for m in measured if str(m[0].prompt[column]) == value]
            subsets[f"{column} = {value}"] = members
    for name, members in subsets.items():
        clusters = [group.cluster for group, _ in members]
        figures = over_prompts([figures for _, figures in members], options, clusters)
        yield {"side": members[0][0].side, "subset": name, **figures}


def convergence_rows(phi: Phi, groups: Sequence[Group], seed: int) -> Iterator[Row]:
    """Yield the rows of ``fairpair_convergence`` for one side.

    ``groups`` has the items that ``phi`` made from the texts. For each prompt, the same number of
    samples is drawn at random from both groups. Prompts with too few samples are left out. F is
    computed from the means of B, V_pg and V_gp over the prompts.
    """
    groups = [group for group in groups if group.n_each >= 2]
    counts = {group.n_each for group in groups} or {0}
    sizes = sorted({s for s in (*_SIZES, min(counts), max(counts)) if 2 <= s <= max(counts)})
    drawn: dict[tuple[int, int], list[Floats]] = {(0, size): [] for size in sizes}
    for group in groups:  # one distance matrix at a time is in memory
        rng = prompt_rng(seed, group)
        distances = phi.distances([*group.pg, *group.gp])
        for size in sizes:
            if size <= group.n_each:
                drawn[0, size].append(_subsets(distances, group, size, rng))
    for k in _FOLDS:
        if large_enough := [group for group in groups if k <= group.n_each]:
            n_samples = max(group.n_each for group in large_enough)
            drawn[k, n_samples] = [_divided(phi, group, k, seed) for group in large_enough]
    for (k, n_samples), figures in drawn.items():
        means = np.mean(figures, axis=0)
        for quantity, values in zip(QUANTITIES, (*means, fairpair_f(*means)), strict=True):
            defined = values[~np.isnan(values)]
            yield {
                "side": groups[0].side,
                "n_folds": k,
                "n_samples": n_samples,
                "quantity": quantity,
                "mean": float(defined.mean()) if defined.size else None,
                "sd": float(defined.std(ddof=1)) if defined.size > 1 else None,
                "n_draws": len(defined),
                "n_prompts": len(figures),
            }


def _subsets(distances: Floats, group: Group, size: int, rng: np.random.Generator) -> Floats:
    """Return B, V_pg and V_gp (as rows) of random subsets of ``size`` samples (as columns)."""
    firsts = (np.tile(np.arange(len(i)) < size, (_N_DRAWS, 1)) for i in (group.pg, group.gp))
    left, right = (rng.permuted(first, axis=1).astype(np.float64) for first in firsts)
    return weighted(distances, left, right)


def _divided(phi: Phi, group: Group, k: int, seed: int) -> Floats:
    """Return B, V_pg and V_gp (as rows) of random divisions into ``k`` folds (as columns)."""
    rng = prompt_rng(seed, group)
    draws = []
    for _ in range(_N_FOLD_DRAWS):
        left, right = (folds(phi, i, k, group.n_each, rng)[0] for i in (group.pg, group.gp))
        draws.append(group_means(phi.distances([*left, *right]), len(left)))
    return np.array(draws).T
