"""Measures a set's continuations with a scoring function: figures, convergence, calibration.

- Figures (``fairpair_prompt``, ``fairpair_set``): B, V and F for prompts and for subsets of them.
- Convergence (``fairpair_convergence``): B, V and F of the set from fewer samples and with folds.
- Calibration (``fairpair_calibration``): each prompt's samples are split into two random halves,
  which don't differ. So F's interval should contain 1, and tests should reject as often as their
  level says.
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
from plumbline.eval_workers.fairpair.figures.prompt_figures import (
    PromptFigures,
    folds,
    measure,
    over_prompts,
)
from plumbline.eval_workers.fairpair.figures.significance import adjusted, fairpair_f, weighted
from plumbline.eval_workers.fairpair.phi import Floats, Phi, find
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.storage.store import Store

Row: TypeAlias = dict[str, Any]
#: Side and identifier of a prompt.
_Key: TypeAlias = tuple[str, str]

#: Side -> the other side, whose continuations are about the counterpart.
_OTHER = {"original": "perturbed", "perturbed": "original"}
_PROMPT = {"original": "prompt", "perturbed": "perturbed_prompt"}


@dataclass(frozen=True)
class PerturbedSamples:
    """The key of a set's perturbed samples: the first columns of ``perturbed_continuation``."""

    probe_set: str
    model_key: str
    sampling_key: str
    perturber: str


@dataclass(frozen=True)
class Group:
    """The two groups of texts for one prompt and side, in sample order, without their prompts.

    ``pg`` has valid perturbations, ``gp`` has continuations of the counterpart's prompt. They are
    p(g(x)) and g(p(x)) on the side `original`, p(g(p(x))) and g(x) on the side `perturbed`.
    """

    side: str
    prompt: Row
    pg: list[str]
    gp: list[str]

    @property
    def prompt_id(self) -> str:
        """The identifier of the prompt."""
        return str(self.prompt["prompt_id"])

    @property
    def cluster(self) -> str:
        """The cluster of similar prompts: the occupation, else the topic, else only the prompt."""
        return str(self.prompt["occupation"] or self.prompt["topic"] or self.prompt_id)


def read_groups(store: Store, sampled: PerturbedSamples, as_published: bool = False) -> list[Group]:
    """Return the groups of every prompt that has perturbed samples, sorted by side, then prompt.

    g(p(x)) is also limited to texts that have a valid perturbation, since whether a text can be
    perturbed depends on its content. ``as_published`` keeps all of g(p(x)), like section 3.3 of the
    paper. A prompt without a valid sample has an empty ``pg``. Raises ``BadInput`` if nothing was
    perturbed, or if the prompt of a continuation is unknown.
    """
    keys = asdict(sampled)
    rows = store.read("perturbed_continuation", **keys)
    if not rows.num_rows:
        names = ", ".join(keys.values())
        problem = f"no row of {names} (probe set, model key, sampling key, perturber)"
        raise BadInput("table perturbed_continuation", problem, "sample and perturb them first")
    read = store.read("probe_prompt", probe_set=sampled.probe_set).to_pylist()
    prompts = {str(row["prompt_id"]): row for row in read}
    pg, gp = defaultdict[_Key, list[str]](list), defaultdict[_Key, list[str]](list)
    failed = set()
    # Files have samples in the order in which they were drawn, over several runs if resumed.
    for row in rows.sort_by("sample").to_pylist():
        side, prompt_id = row["side"], row["prompt_id"]
        if prompt_id not in prompts:
            problem = f"prompt {prompt_id} of {sampled.probe_set} has continuations but no row"
            raise BadInput("table probe_prompt", problem, "write the set of prompts again")
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


#: The items of both groups of a prompt.
Items: TypeAlias = tuple[Sequence[object], Sequence[object]]
Prompt: TypeAlias = tuple[Group, Items]

#: Columns of ``probe_prompt`` that divide prompts into subsets, if they have several values.
_SUBSETS = ("axis", "entity_group", "descriptors", "topic", "language")
_QUANTITIES = ("bias_b", "variability_pg", "variability_gp", "fairpair_f")
#: Columns of ``fairpair_prompt`` that ``measure`` gives.
_OF_PROMPT = (
    *("n_pg", "n_gp", *_QUANTITIES, "reason"),
    *("fairpair_f_low", "fairpair_f_high", "p_permutation"),
)
#: Columns of ``fairpair_calibration`` that ``over_prompts`` gives.
_OF_SPLIT = (
    *("n_prompts", "n_left_out", "fairpair_f", "fairpair_f_low", "fairpair_f_high"),
    *("p_t", "p_permutation"),
)


@dataclass(frozen=True)
class Convergence:
    """The numbers of samples and of folds to try, and how many random draws to make of each.

    A number that no prompt has enough samples for is left out; the smallest and the largest number
    of samples of any prompt are added. Divisions into folds take far longer than subsets.
    """

    sizes: tuple[int, ...] = (2, 5, 10, 20, 50, 100, 200, 500)
    folds: tuple[int, ...] = (2, 5, 10, 20, 50, 100, 200)
    n_draws: int = 50
    n_fold_draws: int = 4
    seed: int = 0
    as_published: bool = False


@dataclass(frozen=True)
class Calibration:
    """How often to split each prompt's samples; a test rejects if its p-value is at most alpha."""

    measure: FigureOptions
    n_splits: int = 10
    alpha: float = 0.05


def measure_set(
    store: Store, sampled: PerturbedSamples, phi_name: str, options: FigureOptions, run_id: str
) -> None:
    """Measure every prompt and side of a set, and write the four tables.

    Rows that have the same scoring function, ``texts`` and number of folds are replaced. The same
    samples, options and seed give the same figures. Raises what ``read_groups`` and ``find`` raise.
    """
    phi, texts = find(phi_name), texts_of(options.as_published)
    groups = read_groups(store, sampled, options.as_published)
    convergence = Convergence(seed=options.seed, as_published=options.as_published)
    # P-values are exact with fewer draws, too.
    calibration = Calibration(replace(options, n_permutations=199, n_resamples=200))
    prompts, sets, converged, calibrated = list[Row](), list[Row](), list[Row](), list[Row]()
    for _, of_one in groupby(groups, lambda group: group.side):  # one side's items in memory
        of_side = [(group, (phi.items(group.pg), phi.items(group.gp))) for group in of_one]
        measured = [
            (group, measure(phi, *items, options, prompt_rng(options.seed, group)))
            for group, items in of_side
        ]
        prompts += _prompt_rows(measured)
        sets += _set_rows(measured, options)
        converged += convergence_rows(phi, of_side, convergence)
        calibrated += calibration_rows(phi, of_side, calibration)
    tables: dict[str, tuple[list[Row], Any]] = {
        "fairpair_prompt": (prompts, options),
        "fairpair_set": (sets, options),
        "fairpair_convergence": (converged, convergence),
        "fairpair_calibration": (calibrated, calibration),
    }
    shared = {**asdict(sampled), "phi": phi_name, "texts": texts, "n_folds": options.folds}
    with store.transaction(run_id, "fairpair"):
        for table, (rows, used) in tables.items():
            shared["options"] = json.dumps(asdict(used), sort_keys=True)
            rows = [{**shared, **row, "run_id": run_id} for row in rows]
            folded = "" if used is convergence else f"-folds-{options.folds}"
            store.publish(table, rows, unit=f"{texts}{folded}", run_id=run_id)


def prompt_rng(seed: int, group: Group) -> np.random.Generator:
    """Return a random generator for one prompt and side, independent of other prompts."""
    name = f"{group.side} {group.prompt_id}".encode()
    return np.random.default_rng([seed, zlib.crc32(name)])


#: The two groups of texts of each prompt, and its figures.
_Measured: TypeAlias = list[tuple[Group, PromptFigures]]


def _prompt_rows(measured: _Measured) -> Iterator[Row]:
    q_values = adjusted([figures.p_permutation for _, figures in measured])
    for (group, figures), q_permutation in zip(measured, q_values, strict=True):
        yield {
            "side": group.side,
            "prompt_id": group.prompt_id,
            **{name: getattr(figures, name) for name in _OF_PROMPT},
            "q_permutation": q_permutation,
        }


def _set_rows(measured: _Measured, options: FigureOptions) -> Iterator[Row]:
    """Yield the figures of a side's prompts, then of each subset (see ``_SUBSETS``)."""
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


def convergence_rows(phi: Phi, prompts: Sequence[Prompt], options: Convergence) -> Iterator[Row]:
    """Yield rows of ``fairpair_convergence`` for a side's prompts.

    A draw takes the same number of samples from both groups of every prompt that has enough. F is
    computed from the means of B and V over these prompts. If a draw takes all samples, every draw
    gives the same F.
    """
    prompts = [prompt for prompt in prompts if _n_each(prompt[1]) >= 2]
    counts = {_n_each(items) for _, items in prompts} or {0}
    sizes = sorted({s for s in (*options.sizes, min(counts), max(counts)) if 2 <= s <= max(counts)})
    drawn: dict[tuple[int, int], list[Floats]] = {(0, size): [] for size in sizes}
    for group, items in prompts:  # the outer loop: only one matrix of distances is in memory
        rng = prompt_rng(options.seed, group)
        distances = phi.distances([*items[0], *items[1]])
        for size in sizes:
            if size <= _n_each(items):
                drawn[0, size].append(_subsets(distances, items, size, options.n_draws, rng))
    for k in options.folds:
        large_enough = [(group, items) for group, items in prompts if 2 <= k <= _n_each(items)]
        if large_enough:
            n_samples = max(_n_each(items) for _, items in large_enough)
            drawn[k, n_samples] = [_divided(phi, *prompt, k, options) for prompt in large_enough]
    for (k, n_samples), figures in drawn.items():
        means = np.mean(figures, axis=0)
        for quantity, values in zip(_QUANTITIES, (*means, fairpair_f(*means)), strict=True):
            defined = values[~np.isnan(values)]
            yield {
                "side": prompts[0][0].side,
                "n_folds": k,
                "n_samples": n_samples,
                "quantity": quantity,
                "mean": float(defined.mean()) if defined.size else None,
                "sd": float(defined.std(ddof=1)) if defined.size > 1 else None,
                "n_draws": len(defined),
                "n_prompts": len(figures),
            }


def _n_each(items: Items) -> int:
    return min(len(items[0]), len(items[1]))


def _subsets(
    distances: Floats, items: Items, size: int, n_draws: int, rng: np.random.Generator
) -> Floats:
    """Return B, V_pg and V_gp of random subsets, an array of shape (3, draws)."""
    left, right = (
        rng.permuted(np.tile(np.arange(len(group)) < size, (n_draws, 1)), axis=1).astype(np.float64)
        for group in items
    )
    return weighted(distances, left, right)


def _divided(phi: Phi, group: Group, items: Items, k: int, options: Convergence) -> Floats:
    """Return B, V_pg and V_gp of random divisions into folds, an array of shape (3, draws)."""
    rng = prompt_rng(options.seed, group)
    draws = []
    for _ in range(options.n_fold_draws):
        left, right = (folds(phi, group_items, k, _n_each(items), rng)[0] for group_items in items)
        draws.append(phi.means(left, right))
    return np.array(draws).T


def calibration_rows(phi: Phi, prompts: Sequence[Prompt], options: Calibration) -> Iterator[Row]:
    """Yield rows of ``fairpair_calibration`` for a side's prompts, one row per split.

    The group ``gp`` is split: g(p(x)) or g(x), which are continuations that weren't perturbed.
    """
    used, alpha = options.measure, options.alpha
    items_and_rngs = [(gp, prompt_rng(used.seed, group)) for group, (_, gp) in prompts]
    for split in range(options.n_splits):
        measured = [halved(phi, items, used, rng) for items, rng in items_and_rngs]
        figures, p_values = over_prompts(measured, used), [m.p_permutation for m in measured]
        ends = [(m.fairpair_f_low, m.fairpair_f_high) for m in measured]
        intervals = [(low, high) for low, high in ends if low is not None and high is not None]
        yield {
            "side": prompts[0][0].side,
            "split": split,
            **{name: figures[name] for name in _OF_SPLIT},
            "alpha": alpha,
            "n_below": sum(p is not None and p <= alpha for p in p_values),
            "n_found": sum(p is not None and p <= alpha for p in adjusted(p_values)),
            "n_intervals": len(intervals),
            "n_holding": sum(low <= 1 <= high for low, high in intervals),
        }


def halved(
    phi: Phi, items: Sequence[object], options: FigureOptions, rng: np.random.Generator
) -> PromptFigures:
    """Split one prompt's items at random into two halves of equal size; measure these as groups.

    If the number of items is odd, one is left out.
    """
    half = len(items) // 2
    order = rng.permutation(len(items)).tolist()
    left, right = ([items[k] for k in part] for part in (order[:half], order[half : 2 * half]))
    return measure(phi, left, right, options, rng)
