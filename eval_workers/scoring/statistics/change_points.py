"""Change points of checkpoints' curves, and the onset of words' leans.

A curve goes up and down for two reasons: other words would give another figure, and the model
fluctuates from checkpoint to checkpoint, for all words at once. So a step is tested twice: has the
curve moved since the step before, by more than the choice of words explains; and has it changed
for good, by more than the autocorrelation of checkpoints explains. A word's lean is its mean log
ratio relative to the other words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from plumbline.eval_workers.scoring.statistics.cluster_covariances import Floats, Ints
from plumbline.eval_workers.scoring.statistics.ranks import holm
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.opening import OpenWarehouse

Row: TypeAlias = Mapping[str, Any]

#: Error rate: in `changes` the chance of any false discovery, in `onsets` their mean share.
ALPHA = 0.05
#: Fewest checkpoints of a curve.
LEAST_STEPS = 3
#: Fewest checkpoints of a test for lasting changes: it estimates an autocorrelation.
LEAST_TESTED = 12
#: Size of the lasting change for which power is given, in standard deviations of an innovation.
SHIFT = 3
#: With less power a test has no verdict.
LEAST_POWER = 0.3
#: Largest autocorrelation of neighbouring checkpoints; at 1 a curve has no level.
MOST_RHO = 0.98
_TINY = 1e-300
_MODEL = ("series", "setting")
_WORDS = (*_MODEL, "benchmark", "groups")
_CURVE = (*_WORDS, "corpus", "contrast", "measure")
_LAST = ("word", "n_pairs", "relative_nats", "relative_nats_low", "relative_nats_high")


def changes(root: str | Path | OpenWarehouse) -> list[dict[str, object]]:
    """Rows of ``change_point``, without ``run_id``, for models with three checkpoints or more."""
    text = "FROM checkpoint_curve WHERE measure <> 'explained variance' ORDER BY ALL"
    rows = rows_of(root, text)
    return [row for part in _groups(rows, _MODEL) for row in _changes_of(_groups(part, _CURVE))]


def _changes_of(curves: Sequence[Sequence[Row]]) -> list[dict[str, object]]:
    """Rows of the curves of one model, which are tested together."""
    curves = [curve for curve in curves if len(curve) >= LEAST_STEPS]
    steps = [np.array([r["step"] for r in curve]) for curve in curves]
    lasting = lasting_changes([np.array([r["value"] for r in curve]) for curve in curves], steps)
    tested = [
        (row, before["step"], lasting.get((i, k), (None,) * 3))
        for i, curve in enumerate(curves)
        for k, (before, row) in enumerate(pairwise(curve), 1)
    ]
    moved = holm([_p_of_t(r["change"], r["change_se"], r["df"]) for r, _, _ in tested])
    return [
        {
            **{column: row[column] for column in (*_CURVE, "step", "change")},
            "step_before": step_before,
            "q_moved": p,
            **dict(zip(("shift", "q_lasting", "power"), change, strict=True)),
            "n_tests": len(tested),
        }
        for (row, step_before, change), p in zip(tested, moved, strict=True)
    ]


def _p_of_t(value: float, se: float | None, df: float | None) -> float | None:
    """Two-sided p of a mean by Student's t; ``None`` if ``se`` or ``df`` is 0 or unknown."""
    from scipy.special import stdtr

    return float(2 * stdtr(df, -abs(value) / se)) if se and df else None


def lasting_changes(
    curves: Sequence[Floats], steps: Sequence[Ints], n_series: int = 4999
) -> dict[tuple[int, int], tuple[float, float | None, float]]:
    """Lasting changes: indices of curve and of first checkpoint after -> shift, p, power.

    A curve is cut in two where its means differ most (CUSUM). Under the null hypothesis it is an
    autoregression of first order that never shifts. Such series are drawn with the autocorrelation
    and the innovations that each curve has around its two means; p is the share of draws in which
    some curve is cut as clearly (sieve bootstrap, Bühlmann 1997; min-p, Westfall and Young 1993).
    Innovations are drawn from the same checkpoints for all curves, which keeps their dependence.
    Power is the share of these series that are found to change if they shift in their middle by
    ``SHIFT`` standard deviations of an innovation. If it is below ``LEAST_POWER``, p is ``None``.

    Both parts of a curve that is cut with p <= ``ALPHA`` are tested in turn, all such parts
    together (binary segmentation). Returns the first cut of each curve, and later significant ones.
    A steady drift looks like autocorrelation, so it is rarely found; a single outlying checkpoint
    isn't a change. ``python -m tools.simulations lasting_changes`` prints the rate of false
    discoveries and the power. ``steps`` has the steps of each curve, which may differ.

    >>> noise = np.random.default_rng(0).normal(0, 1, (2, 40))
    >>> curves = [noise[0], noise[1] + np.repeat([0, 8], 20)]
    >>> changed = lasting_changes(curves, [np.arange(40)] * 2).items()
    >>> [(cut, round(shift)) for cut, (shift, p, power) in changed if p and p <= 0.05]
    [((1, 20), 8)]
    """
    rng = np.random.default_rng(0)
    all_steps = np.unique(np.concatenate([*steps, np.array([], np.int64)]))
    cuts: dict[tuple[int, int], tuple[float, float | None, float]] = {}
    parts = [(i, 0, len(curve)) for i, curve in enumerate(curves) if len(curve) > 1]
    while parts:
        draws = rng.random((n_series, all_steps.size))
        tests = [
            _test(curves[i][start:end], draws[:, np.searchsorted(all_steps, steps[i][start:end])])
            for i, start, end in parts
        ]
        least_ranks = np.min([ranks for _, ranks, _ in tests], axis=0)
        next_parts = []
        for (i, start, end), (place, ranks, of_shifted) in zip(parts, tests, strict=True):
            cut = start + place
            power = float((_rank(-of_shifted, -least_ranks) <= ALPHA).mean())
            p = float(_rank(-ranks[:1], -least_ranks)[0]) if power >= LEAST_POWER else None
            is_found = p is not None and p <= ALPHA
            if is_found or (start, end) == (0, len(curves[i])):
                shift = curves[i][cut:end].mean() - curves[i][start:cut].mean()
                cuts[i, cut] = (float(shift), p, power)
            if is_found:
                next_parts += [(i, start, cut), (i, cut, end)]
        parts = [(i, start, end) for i, start, end in next_parts if end - start >= LEAST_TESTED]
    return cuts


def _test(curve: Floats, draws: Floats) -> tuple[int, Floats, Floats]:
    """Index of a curve's cut; ranks of its and the null series' cuts; ranks of shifted ones' cuts.

    ``draws`` [series, checkpoint], from 0 to 1, choose the innovations of the null series.
    """
    from scipy.signal import lfilter

    cut, size, rho, innovations = (figures[0] for figures in _cuts(curve[None]))
    if curve.size < LEAST_TESTED or np.ptp(curve) <= 1e-9 * np.abs(curve).max():
        return int(cut), np.ones(len(draws) + 1), np.ones(len(draws))
    series = (innovations - innovations.mean())[(draws * innovations.size).astype(int)]
    series[:, 0] /= np.sqrt(1 - rho**2)  # as if each series had run for ever
    series = lfilter([1.0], [1.0, -rho], series, axis=1)
    sizes = np.append(size, _cuts(series)[1])
    series[:, curve.size // 2 :] += SHIFT * innovations.std()
    return int(cut), _rank(sizes, sizes), _rank(_cuts(series)[1], sizes)


def _rank(values: Floats, among: Floats) -> Floats:
    """For each value, the share of ``among`` that is at least as large."""
    return np.asarray((among.size - np.searchsorted(np.sort(among), values)) / among.size)


def _cuts(values: Floats) -> tuple[Ints, Floats, Floats, Floats]:
    """For each row its cut, the cut's clearness, and the row's autocorrelation and innovations.

    The clearness is the largest CUSUM divided by the residuals' long-run standard deviation.
    Residuals are from the means before and after the cut: with one mean, a shift would look like
    autocorrelation.
    """
    n = values.shape[1]
    k = np.arange(1, n)
    sums = np.cumsum(values - values.mean(axis=1, keepdims=True), axis=1)[:, :-1]
    cusum = np.abs(sums) / np.sqrt(k * (n - k) / n)
    cut = cusum.argmax(axis=1) + 1
    is_after = np.arange(n) >= cut[:, None]
    after = (values * is_after).sum(axis=1)
    before = (values.sum(axis=1) - after) / cut
    rest = values - np.where(is_after, (after / (n - cut))[:, None], before[:, None])
    rho = _autocorrelation(values, rest)
    innovations = rest[:, 1:] - rho[:, None] * rest[:, :-1]
    size = cusum.max(axis=1) * (1 - rho) / np.maximum(innovations.std(axis=1), _TINY)
    return cut, size, rho, innovations


def _autocorrelation(values: Floats, rest: Floats) -> Floats:
    """Autocorrelation in each row of ``rest``: ``values`` less the means before and after a cut.

    Subtracting these means lowers the estimate by about (4 + 9 rho) / n, as simulated with 24 to
    154 checkpoints; a correction by 6 and 10 keeps the rate of false finds up to a rho of 0.9.
    Further shifts would still raise the estimate. They hardly change differences of values, whose
    mean squares at lags 2 and 1 have the ratio 1 + rho (after Chakar et al. 2017). This ratio is
    noisier, so it only bounds the estimate, with 3 / sqrt(n) to spare.
    """
    n = values.shape[1]
    r = (rest[:, 1:] * rest[:, :-1]).sum(axis=1) / np.maximum((rest**2).sum(axis=1), _TINY)
    lag_1, lag_2 = (((values[:, d:] - values[:, :-d]) ** 2).mean(axis=1) for d in (1, 2))
    most = lag_2 / np.maximum(lag_1, _TINY) - 1 + 3 / np.sqrt(n)
    return np.asarray(np.clip(np.minimum((n * r + 6) / max(n - 10, 1), most), 0, MOST_RHO))


def word_onsets(root: str | Path | OpenWarehouse) -> list[dict[str, object]]:
    """Rows of ``word_onset``, without ``run_id``, for words with two pairs or more."""
    text = "FROM checkpoint_word WHERE n_pairs > 1 AND relative_nats IS NOT NULL ORDER BY ALL"
    rows = rows_of(root, text)
    return [row for part in _groups(rows, _WORDS) for row in _onsets_of(_groups(part, ("word",)))]


def _onsets_of(words: Sequence[Sequence[Row]]) -> list[dict[str, object]]:
    """Rows of the words of one model and benchmark, which are tested together."""
    most = max(map(len, words))
    if most < LEAST_STEPS:
        return []
    words = [rows for rows in words if len(rows) == most]
    means = np.array([[r["relative_nats"] for r in rows] for rows in words])
    p_values = [
        [_p_of_t(r["relative_nats"], r["relative_nats_se"], r["n_pairs"] - 1) for r in rows]
        for rows in words
    ]
    p = np.array([[1.0 if p is None else p for p in row] for row in p_values])  # no p: equal pairs
    places, q = onsets(means, p)
    return [
        {
            **{column: rows[-1][column] for column in (*_WORDS, *_LAST)},
            "last_nats": rows[-1]["mean_log_ratio_nats"],
            "p": float(word_p[-1]),
            "q": float(word_q),
            "onset_step": None if place < 0 else rows[place]["step"],
        }
        for rows, word_p, word_q, place in zip(words, p, q, places, strict=True)
    ]


def onsets(means: Floats, p: Floats) -> tuple[Ints, Floats]:
    """The onset of each word's lean, as an index of steps, and each word's q at the last step.

    From its onset on a word leans to one side. The onset is -1 if q, by Benjamini and Hochberg, is
    above ``ALPHA``. For each of the other R of m words, steps are tested backwards from the last,
    each at ALPHA R / m, until one fails or leans to the other side. A step is tested only after all
    later ones succeeded. So the mean share of words with a wrong onset, too early or without any
    lean, is at most ALPHA (Benjamini and Bogomolov 2014). ``means`` [word, step] are leans relative
    to other words, ``p`` the p-values of no lean.

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
    """Rows grouped by their values in ``columns``; each group is sorted by step."""
    groups: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda r: r["step"]):
        groups[tuple(row[column] for column in columns)].append(row)
    return [groups[key] for key in sorted(groups, key=str)]
