"""Calibration under the null hypothesis: each prompt's samples are split into two random halves.

F's interval should contain 1, and tests should reject as often as their level says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from plumbline.eval_workers.fairpair.fairpair_options import FigureOptions, texts_of
from plumbline.eval_workers.fairpair.figures.fairpair_set import (
    PromptMeasures,
    measure,
    over_prompts,
    prompt_rng,
    shared_columns,
)
from plumbline.eval_workers.fairpair.figures.significance import adjusted
from plumbline.eval_workers.fairpair.figures.text_groups import PerturbedSamples, read_groups
from plumbline.eval_workers.fairpair.phi import Phi, find
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.storage.store import Store

Row = dict[str, object]
#: Fields of ``SetFigures`` that become columns of a row.
_OVER_PROMPTS = (
    *("n_prompts", "n_left_out", "fairpair_f", "fairpair_f_low", "fairpair_f_high"),
    *("p_t", "p_permutation"),
)


@dataclass(frozen=True)
class CalibrationOptions:
    """Number of splits, and options for measuring halves.

    Attributes:
        n_splits: number of random splits of every prompt's samples.
        alpha: a prompt's test rejects if its p-value is at most this.
        measure: as for the real comparison, with fewer draws: p-values stay exact.

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
    sampled: PerturbedSamples,
    phi_name: str,
    options: CalibrationOptions,
    run_id: str,
) -> int:
    """Write ``fairpair_calibration`` of a set, one row per side and split; returns their number.

    The group ``gp`` of each side is split: g(p(x)) or g(x), continuations that weren't perturbed.
    Rows of the same ``texts`` and number of folds are replaced. The same samples, options and seed
    give the same rows. Raises as ``read_groups`` and ``find``.
    """
    phi, measuring = find(phi_name), options.measure
    groups = read_groups(store, sampled, measuring.as_published)
    shared = shared_columns(sampled, phi_name, options, measuring.as_published, run_id)
    shared |= {"n_folds": measuring.folds, "alpha": options.alpha}
    rows: list[Row] = []
    for side in sorted({group.side for group in groups}):
        items_and_rngs = [
            (phi.items(group.gp), prompt_rng(measuring.seed, group))
            for group in groups
            if group.side == side
        ]
        for split in range(options.n_splits):
            measured = [halved(phi, items, measuring, rng) for items, rng in items_and_rngs]
            figures = _split_figures(measured, options)
            rows.append({**shared, "side": side, "split": split, **figures})
    unit = f"{texts_of(measuring.as_published)}-folds-{measuring.folds}"
    store.publish("fairpair_calibration", rows, unit=unit, run_id=run_id)
    return len(rows)


def halved(
    phi: Phi, items: Sequence[object], options: FigureOptions, rng: np.random.Generator
) -> PromptMeasures:
    """Measure one prompt's items, split at random into two halves of equal size, as two groups.

    If the number of items is odd, one is left out.

    >>> options = FigureOptions(n_permutations=9, n_resamples=9)
    >>> halves = halved(find("vader"), [0.1, 0.2, 0.4], options, np.random.default_rng(0))
    >>> halves.figures.n_pg, halves.figures.n_gp, halves.figures.fairpair_f is None
    (1, 1, True)
    """
    half = len(items) // 2
    order = rng.permutation(len(items)).tolist()
    left, right = ([items[k] for k in part] for part in (order[:half], order[half : 2 * half]))
    return measure(phi, left, right, options, rng)


def _split_figures(measured: Sequence[PromptMeasures], options: CalibrationOptions) -> Row:
    """F over a split's prompts; numbers of rejections, also adjusted; intervals that hold 1."""
    figures = over_prompts(measured, options.measure)
    p_values = [m.p_permutation for m in measured]
    ends = [(m.fairpair_f_low, m.fairpair_f_high) for m in measured]
    intervals = [(low, high) for low, high in ends if low is not None and high is not None]
    return {
        **{name: getattr(figures, name) for name in _OVER_PROMPTS},
        "n_below": sum(p is not None and p <= options.alpha for p in p_values),
        "n_found": sum(p is not None and p <= options.alpha for p in adjusted(p_values)),
        "n_intervals": len(intervals),
        "n_holding": sum(low <= 1 <= high for low, high in intervals),
    }
