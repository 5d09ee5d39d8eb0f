"""When the curves of a model's checkpoints change, and from when on its words lean.

Two things make a curve go up and down: that other words would have given another figure, and that
a model does so from checkpoint to checkpoint, for all words at once. So a step is tested twice: has
the curve moved since the step before, more than the words explain; and has it changed for good,
more than the order of the checkpoints explains.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from plumbline.eval_workers.statistics.multiplicity import holm
from plumbline.warehouse.query.connection import rows_of

Floats: TypeAlias = npt.NDArray[np.float64]
Row: TypeAlias = Mapping[str, Any]

#: Rate of false finds: of any change at all for `changes`, of their share for `onsets`.
ALPHA = 0.05
#: Fewer checkpoints have no curve.
LEAST_STEPS = 3
_MODEL = ("series", "setting")
_WORDS = (*_MODEL, "benchmark", "groups")
_CURVE = (*_WORDS, "corpus", "contrast", "measure")


def changes(root: str | Path) -> list[dict[str, object]]:
    """Rows of ``change_point``, without their run, for models with three checkpoints or more."""
    text = "FROM checkpoint_curve WHERE measure <> 'explained variance' ORDER BY ALL"
    rows = rows_of(root, text)
    return [row for of in _groups(rows, _MODEL) for row in _changes_of(_groups(of, _CURVE))]


def _changes_of(curves: Sequence[Sequence[Row]]) -> list[dict[str, object]]:
    """Rows of the curves of one model, which are tested together."""
    curves = [of for of in curves if len(of) >= LEAST_STEPS]
    steps = [np.array([r["step"] for r in of]) for of in curves]
    tested = [r for of in curves for r in of[1:]]
    moved = holm([_p_of_t(r["change"], r["change_se"], r["df"]) for r in tested])
    lasting = lasting_changes([np.array([r["value"] for r in of]) for of in curves], steps)
    before = [r["step"] for of in curves for r in of[:-1]]
    at = [(i, k) for i, of in enumerate(curves) for k in range(1, len(of))]
    return [
        {
            **{column: row[column] for column in (*_CURVE, "step", "change")},
            "step_before": step_before,
            "p_moved": p,
            **dict(zip(("shift", "p_lasting"), lasting.get(place, (None, None)), strict=True)),
            "n_tests": len(tested),
        }
        for row, step_before, p, place in zip(tested, before, moved, at, strict=True)
    ]


def _p_of_t(value: float, se: float | None, df: float | None) -> float | None:
    """Two-sided p of a mean by Student's t; ``None`` where nothing varies."""
    from scipy.special import stdtr

    return float(2 * stdtr(df, -abs(value) / se)) if se and df else None


def lasting_changes(
    curves: Sequence[Floats], steps: Sequence[npt.NDArray[np.int64]], n_orders: int = 4999
) -> dict[tuple[int, int], tuple[float, float]]:
    """Where curves change for good: (curve, place of the first checkpoint after) -> shift and p.

    A curve is cut in two where its means differ most, for their numbers of checkpoints (CUSUM).
    Under the null hypothesis its checkpoints may stand in any order: p is the share of random
    orders, the same for all curves, in which some curve is cut as improbably (min-p of Westfall
    and Young 1993). Both parts of a curve that is cut with p <= ``ALPHA`` are tested in turn, all
    such parts together (binary segmentation). The last cut of each curve is returned with its p,
    whatever it is; parts without a cut have none.

    With K checkpoints, p of a change after the j-th can't be below 2 / C(K, j) for one curve, and
    about that times their number for several: of 8, a single curve's change can be found at 5%
    only after the third to fifth, of fewer than 7 none. A steady drift is a change,
    too, found near its middle; a single checkpoint off the others is none.

    Args:
        steps: those of each curve; checkpoints of the same step change places together.

    >>> flat = np.array([1.0, 2, 1, 2, 1, 2, 1, 2, 1, 2])
    >>> found = lasting_changes([flat, flat + np.repeat([0, 8], 5)], [np.arange(10)] * 2)
    >>> [cut for cut, (shift, p) in found.items() if p <= 0.05], round(found[1, 5][0], 1)
    ([(1, 5)], 8.2)
    """
    rng = np.random.default_rng(0)
    every = np.unique(np.concatenate([*steps, np.array([], np.int64)]))
    found: dict[tuple[int, int], tuple[float, float]] = {}
    parts = [(i, 0, len(curve)) for i, curve in enumerate(curves)]
    while parts := [part for part in parts if part[2] - part[1] > 1]:
        keys = rng.random((n_orders, every.size))
        cuts, ranks = [], []
        for i, start, end in parts:
            order = np.argsort(keys[:, np.searchsorted(every, steps[i][start:end])])
            values = curves[i][start:end]
            cusum = _cusum(np.vstack([values, values[order]]))
            cuts.append(start + 1 + int(cusum[0].argmax()))
            peak = np.round(cusum.max(axis=1), 9)  # orders that tie on paper tie here
            ranks.append((peak.size - np.searchsorted(np.sort(peak), peak)) / peak.size)
        least = np.sort(np.min(ranks, axis=0))
        after = []
        for (i, start, end), cut, rank in zip(parts, cuts, ranks, strict=True):
            p = float(np.searchsorted(least, rank[0], side="right") / least.size)
            shift = curves[i][cut:end].mean() - curves[i][start:cut].mean()
            if p <= ALPHA or (start, end) == (0, len(curves[i])):
                found[i, cut] = (float(shift), p)
            if p <= ALPHA:
                after += [(i, start, cut), (i, cut, end)]
        parts = after
    return found


def _cusum(values: Floats) -> Floats:
    """For each row, how far the means before and after each inner place differ, standardised."""
    n = values.shape[1]
    k = np.arange(1, n)
    centred = values - values.mean(axis=1, keepdims=True)
    cusum: Floats = np.abs(np.cumsum(centred, axis=1)[:, :-1]) / np.sqrt(k * (n - k) / n)
    return cusum


def word_onsets(root: str | Path) -> list[dict[str, object]]:
    """Rows of ``word_onset``, without their run, for words with two pairs or more."""
    rows = rows_of(root, "FROM checkpoint_word WHERE n_pairs > 1 ORDER BY ALL")
    return [row for of in _groups(rows, _WORDS) for row in _onsets_of(_groups(of, ("word",)))]


def _onsets_of(words: Sequence[Sequence[Row]]) -> list[dict[str, object]]:
    """Rows of the words of one model and benchmark, which are tested together."""
    most = max(map(len, words))
    if most < LEAST_STEPS:
        return []
    words = [of for of in words if len(of) == most]
    means = np.array([[r["mean_log_ratio_nats"] for r in of] for of in words])
    p = [
        [_p_of_t(r["mean_log_ratio_nats"], r["se_nats"], r["n_pairs"] - 1) for r in of]
        for of in words
    ]
    places, q = onsets(means, np.array([[1.0 if v is None else v for v in of] for of in p]))
    return [
        {
            **{column: of[-1][column] for column in (*_WORDS, "word", "n_pairs")},
            "last_nats": of[-1]["mean_log_ratio_nats"],
            "p": p_of[-1] if p_of[-1] is not None else 1.0,
            "q": float(q_of),
            "onset_step": None if place < 0 else of[place]["step"],
        }
        for of, p_of, q_of, place in zip(words, p, q, places, strict=True)
    ]


def onsets(means: Floats, p: Floats) -> tuple[npt.NDArray[np.int64], Floats]:
    """From which step each word leans to one side until the last; -1 where it shows no lean.

    Words lean at the last step by Benjamini and Hochberg at ``ALPHA``. The steps of each of these
    R of m words are then tested backwards from the last, each at ALPHA R / m, until one fails or
    leans to the other side. As a test is made only after all later ones succeeded, the number of
    steps needs no further correction; and the share of words with a wrong onset, too early or with
    no lean at all, is at most ALPHA in the mean (Benjamini and Bogomolov 2014).

    Args:
        means, p: of each word (rows) at each step, ``p`` that of a mean of 0.

    Returns:
        The place of each word's step, and its q at the last step.

    >>> means = np.array([[0.1, -0.5, 0.6, 0.7], [0.1, 0.1, 0.1, 0.1]])
    >>> onsets(means, np.array([[0.9, 0.001, 0.001, 0.001], [0.5, 0.5, 0.5, 0.5]]))
    (array([ 2, -1]), array([0.002, 0.5  ]))
    """
    from scipy import stats

    q = np.asarray(stats.false_discovery_control(p[:, -1]))
    leans = q <= ALPHA
    level = ALPHA * leans.sum() / len(q)
    holds = (p <= level) & (np.sign(means) == np.sign(means[:, -1:]))
    n_steps = np.cumprod(holds[:, ::-1], axis=1).sum(axis=1)
    return np.where(leans, means.shape[1] - n_steps, -1), q


def _groups(rows: Sequence[Row], columns: Sequence[str]) -> list[list[Row]]:
    """Rows by their values in columns, by step in each."""
    found: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda r: r["step"]):
        found[tuple(row[column] for column in columns)].append(row)
    return [found[key] for key in sorted(found, key=str)]
