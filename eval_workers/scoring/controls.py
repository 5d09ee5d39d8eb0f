"""Use linear regression to find out what predicts the log ratios of pairs.

The predictors are the word's association and frequency, the n-gram score, and the length. Each pair
is one observation (view ``control_point``). Pairs that share a word are not independent, so
standard errors come from a jackknife: all figures are computed again without each word in turn (CR3
of MacKinnon, Nielsen and Webb, 2023, doi:10.1016/j.jeconom.2022.04.001). With n words, intervals
use Student's t with n - 1 degrees of freedom. To measure the explained variance, each word's pairs
are predicted by a regression that was fitted to all other words.

An effect of the sentence frame could be mistaken for an effect of n-grams or length. So the mean of
a frame's pairs is first subtracted from each pair. Frames with few words share one mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtrit

from plumbline.eval_workers.scoring.scored_pairs import Floats, sums
from plumbline.warehouse.finding import verdict
from plumbline.warehouse.query.connection import arrow_rows, connect
from plumbline.warehouse.storage.opening import OpenWarehouse

#: Column of ``control_point`` -> name of the predictor in table ``control``.
PREDICTORS = {
    "delta_nats": "delta",
    "log_frequency": "log frequency",
    "ngram_log_ratio_nats": "n-gram log ratio",
    "length_words": "length",
}
#: Smallest number of words for reliable intervals, and for a frame to have its own mean.
LEAST_WORDS = 20
#: A partial correlation counts as 0 if its interval is within +-0.1 (Cohen's small effect).
SMALL = 0.1
_GROUP = ("subset", "model_key", "model", "benchmark", "groups", "corpus", "contrast", "ngram_key")
#: Smaller spreads and variances count as 0. A smaller eigenvalue means collinear predictors.
_ROUNDING = 1e-9

#: Figures of an effect that have an interval.
_FIGURES = ("coefficient", "correlation", "partial_correlation", "gain")

#: A figure, and the low and high end of its 95% interval.
Estimate = tuple[float, float, float]


def _columns(estimates: Sequence[Estimate] = (), r2: float | None = None) -> dict[str, Any]:
    """Return columns of table ``control``: the verdict, and the figures with their intervals."""
    unknown: Any = [(None,) * 3] * len(_FIGURES)
    row: dict[str, Any] = {"verdict": _verdict(*estimates) if estimates else "cannot be told"}
    for name, ends in zip(_FIGURES, estimates or unknown, strict=True):
        row |= dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
    return row | {"r2": r2}


def _verdict(coefficient: Estimate, _: Estimate, partial: Estimate, gain: Estimate) -> str:
    """Return whether the predictor has an effect: `predicts`, `does not` or `cannot be told`.

    It is `predicts` if the coefficient's interval excludes 0 and the gain is positive. It is
    `does not` if the coefficient's interval contains 0 and the interval of the partial correlation
    is within +-``SMALL``.
    """
    if verdict(*coefficient) != "cannot be told":
        return "predicts" if gain[0] > 0 else "cannot be told"
    return "does not" if verdict(*partial, small=SMALL) == "within" else "cannot be told"


def effects(x: Floats, y: Floats, words: Any) -> list[dict[str, Any]]:
    """Return the effect of each predictor on ``y``, as columns of table ``control``.

    ``x`` has one row per pair and one column per predictor. ``y`` has one value per pair. In an
    effect, all other predictors are held fixed, except in ``correlation``. ``r2`` is the share of
    variance that all predictors explain together. ``gain`` is how much ``r2`` falls without this
    predictor. Standard errors are clustered by word.

    All figures are ``None`` if there are fewer words than ``LEAST_WORDS``, or if predictors are
    collinear. They are also ``None`` if the predictor becomes constant when one word is left out.

    >>> x = np.array([[k % 5] for k in range(60)], float)
    >>> [effect] = effects(x, 2 * x[:, 0] + np.arange(60) % 2, np.arange(60) // 2)
    >>> round(effect["coefficient"], 3), effect["verdict"]
    (2.0, 'predicts')
    """
    _, cluster = np.unique(words, return_inverse=True)
    n_words = int(cluster.max(initial=-1)) + 1
    result = [_columns()] * x.shape[1]
    if n_words < LEAST_WORDS:
        return result
    data = np.column_stack([x, y])
    spread = data.std(axis=0)
    scale = np.where(spread > _ROUNDING, spread, 1.0)
    data = np.column_stack([np.ones(len(y)), (data - data.mean(axis=0)) / scale])
    by_word = sums(data[:, :, None] * data[:, None, :], cluster)
    without = by_word.sum(axis=0) - by_word
    least = np.diagonal(_covariance(without), axis1=1, axis2=2).min(axis=0)
    columns = np.flatnonzero(least[:-1] > _ROUNDING)
    used = [0, *(columns + 1), x.shape[1] + 1]
    by_word, without = (moments[:, used][:, :, used] for moments in (by_word, without))
    if least[-1] <= _ROUNDING or not len(columns):
        return result
    if np.linalg.eigvalsh(_covariance(without)[:, :-1, :-1]).min() <= _ROUNDING:
        return result  # predictors are collinear when a word is left out
    whole = _figures(by_word.sum(axis=0)[None])
    ends = [_jackknifed(a[0], b) for a, b in zip(whole, _figures(without), strict=True)]
    coefficients = ends[0] * scale[-1] / scale[columns]
    r2, gains = _out_of_sample(by_word, without)
    figures = [coefficients, np.tanh(ends[1]), np.tanh(ends[2])]
    for k, column in enumerate(columns):
        low_high: list[Any] = [tuple(map(float, figure[:, k])) for figure in figures]
        result[column] = _columns([*low_high, gains[k]], r2)
    return result


def minus_frame_means(frames: Any, words: Any, columns: Floats) -> tuple[Floats, int]:
    """Subtract from each row the mean of its frame. Return the new rows and the number of frames.

    Each argument has one entry or row per pair. All frames that have fewer than ``LEAST_WORDS``
    different words are treated as one frame.

    >>> minus_frame_means(["_ ran", "_ sat"], ["she", "he"], np.array([[1.0], [3.0]]))[0].tolist()
    [[-1.0], [1.0]]
    """
    n_words = Counter(frame for frame, _ in set(zip(frames, words, strict=True)))
    large = [frame if n_words[frame] >= LEAST_WORDS else "" for frame in frames]
    names, number, n_pairs = np.unique(large, return_inverse=True, return_counts=True)
    return columns - (sums(columns, number) / n_pairs[:, None])[number], len(names)


def _covariance(moments: Floats) -> Floats:
    """Compute the covariances of columns from the sums of their products. Column 0 is all ones."""
    mean = moments[:, 0, 1:] / moments[:, :1, 0]
    inner: Floats = moments[:, 1:, 1:] / moments[:, :1, :1]
    return inner - mean[:, :, None] * mean[:, None, :]


def _figures(moments: Floats) -> list[Floats]:
    """Return the coefficients, and Fisher's z of the correlations and of the partial correlations.

    Each of the three arrays has one row per matrix in ``moments`` and one column per predictor. The
    partial correlation of predictor k is b_k / sqrt(b_k^2 + s^2 (C^-1)_kk). Here b_k is the
    coefficient, s^2 is the residual variance, and C is the predictors' covariance matrix.
    """
    covariance = _covariance(moments)
    spread = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    of_y = covariance[:, :-1, -1]
    slopes = np.linalg.solve(covariance[:, :-1, :-1], of_y[..., None])[..., 0]
    residual = covariance[:, -1, -1] - (slopes * of_y).sum(axis=1)
    inverse = np.diagonal(np.linalg.inv(covariance[:, :-1, :-1]), axis1=1, axis2=2)
    partial = slopes / np.sqrt(slopes**2 + np.maximum(residual, _ROUNDING)[:, None] * inverse)
    alone = np.clip(of_y / spread[:, :-1] / spread[:, -1:], _ROUNDING - 1, 1 - _ROUNDING)
    return [slopes, np.arctanh(alone), np.arctanh(partial)]


def _jackknifed(value: Floats, without: Floats) -> Floats:
    """Return the values, then the low ends and the high ends of their jackknife intervals.

    ``value`` has one entry per predictor. Row i of ``without`` was computed without word i.
    """
    n = len(without)
    error = np.sqrt((n - 1) / n * ((without - value) ** 2).sum(axis=0))
    half = stdtrit(n - 1, 0.975) * error
    return np.stack([value, value - half, value + half])


def _out_of_sample(by_word: Floats, without: Floats) -> tuple[float, list[Estimate]]:
    """Return R^2 for words that were left out, and how much R^2 falls without each predictor.

    Each fall has a 95% interval. A fall is one sum over words divided by another. The interval is
    computed from each word's influence on the result.
    """
    every = list(range(by_word.shape[1] - 1))
    total = _squares(by_word, without, [0])
    left = _squares(by_word, without, every)
    gains = []
    for predictor in every[1:]:
        lost = _squares(by_word, without, [j for j in every if j != predictor]) - left
        gain = float(lost.sum() / total.sum())
        n = len(by_word)
        error = np.sqrt(n / (n - 1) * ((lost - gain * total) ** 2).sum()) / total.sum()
        half = float(stdtrit(n - 1, 0.975) * error)
        gains.append((gain, gain - half, gain + half))
    return float(1 - left.sum() / total.sum()), gains


def _squares(by_word: Floats, without: Floats, columns: list[int]) -> Floats:
    """Return each word's sum of squared errors, predicted by a fit to the pairs of all others."""
    pick = np.ix_(range(len(by_word)), columns, columns)
    slopes = np.linalg.solve(without[pick], without[:, columns, -1:])[..., 0]
    errors = np.concatenate([-slopes, np.ones((len(slopes), 1))], axis=1)
    used = [*columns, by_word.shape[1] - 1]
    part = by_word[np.ix_(range(len(by_word)), used, used)]
    return np.asarray(np.einsum("gi,gij,gj->g", errors, part, errors))


def effects_of_all(root: str | Path | OpenWarehouse) -> list[dict[str, object]]:
    """Compute the rows of table ``control``, without the column ``run_id``."""
    connection = connect(root, "control_point")
    query = f"FROM control_point ORDER BY {', '.join((*_GROUP, 'pair_id'))}"
    table = arrow_rows(connection, query).combine_chunks()
    keys = table.select(list(_GROUP)).to_pylist()
    starts = [i for i, key in enumerate(keys) if i == 0 or key != keys[i - 1]]
    rows: list[dict[str, object]] = []
    for start, end in pairwise([*starts, len(keys)]):
        part = table.slice(start, end - start)
        x = np.column_stack([part[c].to_numpy() for c in (*PREDICTORS, "log_ratio_nats")])
        words = part["word"].to_pylist()
        x, n_frames = minus_frame_means(part["frame"].to_pylist(), words, x)
        counts = {"n_pairs": len(x), "n_words": len(set(words)), "n_frames": n_frames}
        estimates = effects(x[:, :-1], x[:, -1], words)
        for name, effect in zip(PREDICTORS.values(), estimates, strict=True):
            rows.append(keys[start] | counts | {"predictor": name} | effect)
    return rows
