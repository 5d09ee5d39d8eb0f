"""What the method finds when there is nothing to find: one prompt's own samples in two halves.

Both halves of a random split are drawn from one distribution by construction, so F should be 1
within its interval, and tests should speak up as often as their level says. Tables of the real
comparison are read beside this: with such prompts, texts and numbers of samples.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from plumbline.eval_workers.fairpair.figures.fairpair_set import prompt_rng
from plumbline.eval_workers.fairpair.figures.significance import adjusted
from plumbline.eval_workers.fairpair.figures.summary import (
    Measured,
    measure,
    over_prompts,
)
from plumbline.eval_workers.fairpair.figures.texts import Sampled, read_groups
from plumbline.eval_workers.fairpair.options import FigureOptions, texts_of
from plumbline.eval_workers.fairpair.phi import Phi, find
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.storage.store import Store

Row = dict[str, object]


@dataclass(frozen=True)
class CalibrationOptions:
    """How often samples are split, and how halves are measured.

    Attributes:
        n_splits: random splits of every prompt's samples.
        alpha: level of the tests that are counted, prompt by prompt.
        measure: as for the real comparison; fewer draws do, as p-values stay exact.

    >>> CalibrationOptions(n_splits=0)
    Traceback (most recent call last):
    ...
    plumbline.warehouse.errors.UsageProblem: splits 0: there should be 1 at least
    """

    n_splits: int = 10
    alpha: float = 0.05
    measure: FigureOptions = field(
        default_factory=lambda: FigureOptions(n_permutations=199, n_resamples=200)
    )

    def __post_init__(self) -> None:
        if self.n_splits < 1:
            raise UsageProblem(f"splits {self.n_splits}", "there should be 1 at least")
        if not 0 < self.alpha < 1:
            raise UsageProblem(f"alpha {self.alpha}", "should be between 0 and 1, such as 0.05")


def calibrate_set(
    store: Store,
    sampled: Sampled,
    phi_name: str,
    options: CalibrationOptions,
    run_id: str,
    phi: Phi | None = None,
) -> int:
    """Write ``fairpair_calibration`` of a set, a row a side and split; returns how many.

    Split are the continuations g(p(x)) of a side, which no perturbation has touched; a half holds
    half as many samples as the real comparison has. Earlier rows of the same texts and number of
    folds are replaced. The same samples, options and seed give the same rows. Raises as
    ``read_groups`` and ``find`` do.
    """
    phi, seed = phi or find(phi_name), options.measure.seed
    groups = read_groups(store, sampled, options.measure.as_published)
    shared = {
        **asdict(sampled),
        "phi": phi_name,
        "texts": texts_of(options.measure.as_published),
        "n_folds": options.measure.folds,
        "alpha": options.alpha,
        "options": json.dumps(asdict(options), sort_keys=True),
        "run_id": run_id,
    }
    rows: list[Row] = []
    for side in sorted({group.side for group in groups}):
        some = [
            (phi.items(group.gp), prompt_rng(seed, group)) for group in groups if group.side == side
        ]
        for split in range(options.n_splits):
            measured = [halved(phi, items, options.measure, rng) for items, rng in some]
            figures = found_nothing(measured, options)
            rows.append({**shared, "side": side, "split": split, **figures})
    unit = f"{texts_of(options.measure.as_published)}-folds-{options.measure.folds}"
    store.publish("fairpair_calibration", rows, unit=unit, run_id=run_id)
    return len(rows)


def halved(
    phi: Phi, items: Sequence[object], options: FigureOptions, rng: np.random.Generator
) -> Measured:
    """One prompt's items, split at random into halves of as many, measured as two groups.

    >>> options = FigureOptions(n_permutations=9, n_resamples=9)
    >>> found = halved(find("vader"), [0.1, 0.2, 0.4], options, np.random.default_rng(0))
    >>> found.figures.n_pg, found.figures.n_gp, found.figures.fairpair_f is None
    (1, 1, True)
    """
    half = len(items) // 2
    order = rng.permutation(len(items)).tolist()
    left, right = ([items[k] for k in part] for part in (order[:half], order[half : 2 * half]))
    return measure(phi, left, right, options, rng)


def found_nothing(measured: Sequence[Measured], options: CalibrationOptions) -> Row:
    """The figures of one split: F over prompts, and what tests and intervals say of each.

    >>> found_nothing([], CalibrationOptions())["n_below"]
    0
    """
    figures = over_prompts(measured, options.measure)
    p_values = [one.p_permutation for one in measured]
    ends = [(m.fairpair_f_low, m.fairpair_f_high) for m in measured]
    intervals = [(low, high) for low, high in ends if low is not None and high is not None]
    return {
        "n_prompts": figures.n_prompts,
        "n_left_out": figures.n_left_out,
        "fairpair_f": figures.fairpair_f,
        "fairpair_f_low": figures.fairpair_f_low,
        "fairpair_f_high": figures.fairpair_f_high,
        "p_t": figures.p_t,
        "p_permutation": figures.p_permutation,
        "n_below": sum(p is not None and p <= options.alpha for p in p_values),
        "n_found": sum(p is not None and p <= options.alpha for p in adjusted(p_values)),
        "n_intervals": len(intervals),
        "n_holding": sum(low <= 1 <= high for low, high in intervals),
    }
