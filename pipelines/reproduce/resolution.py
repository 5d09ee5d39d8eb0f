"""The smallest change that a measure of lean resolves, and that of the released Pythia scores.

"Resolves": a two-sided test at 5% finds it with power 80%. As a share of what exchanging she and he
in all of the text would do, which turns a lean b into -b, a change of 2 |b|, measures on any scale
compare. That share is the smallest share of pronouns exchanged that is seen, *if* the lean follows
the text in proportion, which the study of docs/cause-study.md contradicts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

from plumbline.eval_workers.scoring.statistics.options import MeasureOptions
from plumbline.warehouse.query.connection import connect
from plumbline.warehouse.storage.opening import OpenWarehouse

LEVEL, POWER = 0.05, 0.8
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Resolved:
    """What a measure resolves between two models, by where its error comes from.

    Attributes:
        instrument, measure: the benchmark, and what is computed on it.
        model: whose lean it is. ``basis``: whose difference from it, and what varies.
        n: units that vary: words, pairs, checkpoints or trainings.
        lean: the figure that exchanging all pronouns would turn round; None where it has no side.
        difference: the second model's figure less the first's; None without a second.
        se: standard error of a difference, with ``df`` degrees of freedom (infinite: normal).
        smallest: the smallest true difference resolved, in the measure's unit.
    """

    instrument: str
    measure: str
    model: str
    basis: str
    n: int
    lean: float | None
    difference: float | None
    se: float
    df: float
    smallest: float

    @property
    def share(self) -> float | None:
        """``smallest`` as a share of the whole exchange's change; above 1: resolves not even that.

        None where there is no lean (None or NaN), infinite where it is 0.
        """
        if self.lean is None or math.isnan(self.lean):
            return None
        return self.smallest / (2 * abs(self.lean)) if self.lean else math.inf

    @property
    def ci(self) -> tuple[float, float] | None:
        """Student's 95% interval of the difference, None without one."""
        if self.difference is None:
            return None
        half = float(stats.t.ppf(1 - LEVEL / 2, self.df)) * self.se
        return self.difference - half, self.difference + half


def smallest_effect(se: float, df: float = math.inf) -> float:
    """The true difference that a t test with this standard error finds with power 80%.

    ``df`` are those behind the standard error; normal without. 0 for an error of 0, NaN for NaN or
    less than one degree of freedom.

    >>> round(smallest_effect(1.0), 3), round(smallest_effect(0.5, df=5), 3)
    (2.802, 1.757)
    """
    return se * _multiple(df) if df >= 1 else math.nan


@cache
def _multiple(df: float) -> float:
    t = float(stats.t.ppf(1 - LEVEL / 2, df))
    if math.isinf(df):
        return t + float(stats.norm.ppf(POWER))  # the other side's power is below 1e-6

    def missing(effect: float) -> float:
        return float(stats.nct.sf(t, df, effect)) - POWER

    return float(optimize.brentq(missing, 0, 100))


def smallest_if_all_one_way(n: int) -> float:
    """The smallest difference of two paired shares of ``n`` that any pairing could resolve.

    Pairing wins most where the two models differ in as few pairs as the difference needs, all to
    one side. Then the exact sign test needs k of them, the least k with 2 (1/2)^k <= 5%, and a
    binomial count of n pairs reaches k with power 80% at the share returned. NaN below k pairs.

    >>> round(smallest_if_all_one_way(320), 4)
    0.0246
    """
    k = math.ceil(1 - math.log2(LEVEL))
    return float(stats.beta.ppf(POWER, k, n - k + 1)) if n >= k else math.nan


def clustered(
    y: Floats, cluster: NDArray[np.generic], x: Floats | None = None
) -> tuple[float, float, int]:
    """Slope of y on x, or the mean of y without x; its error over clusters; how many there are.

    y, cluster and x are arrays of one length. The error is the sandwich of Liang and Zeger (1986)
    with the usual correction G / (G - 1) (n - 1) / (n - k) for G clusters, n rows, k coefficients.
    Both are NaN with fewer than k + 1 clusters, or x without spread.

    >>> mean, se, n = clustered(np.array([1.0, 1.0, 4.0]), np.array(["a", "a", "b"]))
    >>> round(mean, 3), round(se, 3), n
    (2.0, 1.333, 2)
    """
    columns = [np.ones(len(y))] if x is None else [np.ones(len(y)), x - x.mean()]
    design = np.column_stack(columns)
    of_row = np.unique(cluster, return_inverse=True)[1]
    n, k, g = len(y), design.shape[1], int(of_row.max(initial=-1)) + 1
    if g <= k or (x is not None and np.ptp(x) == 0):
        return math.nan, math.nan, g
    bread = np.linalg.inv(design.T @ design)
    found = bread @ (design.T @ y)
    scores = np.zeros((g, k))
    np.add.at(scores, of_row, (y - design @ found)[:, None] * design)
    variance = (bread @ (scores.T @ scores) @ bread)[-1, -1] * g / (g - 1) * (n - 1) / (n - k)
    return float(found[-1]), math.sqrt(variance), g


#: The measures on a benchmark: each pair's figure, and what it is set against.
MEASURES = ("slope on delta", "slope on MaxPMI", "mean log ratio", "PD")
#: What varies: words of two models' own pairs, words of the same pairs, or the training.
UNPAIRED, PAIRED, TRAININGS = "words, unpaired", "words, same pairs", "between trainings"
_DEDUPED = "-deduped"
_PAIRS = """
    SELECT a.benchmark, a.model, a.pair_id, lower(a.word) AS word, a.log_ratio_nats,
        a.max_pmi_nats, d.delta_nats,
        100 * lean(a.log_ratio_nats, $epsilon_nats) AS leans_percent
    FROM scored_pair_association AS a
    LEFT JOIN word_delta AS d
        ON d.corpus = a.corpus AND d.contrast = a.contrast AND d.word = lower(a.word)
    WHERE a.corpus = $corpus AND a.contrast = 'she/he' AND a.word IS NOT NULL
        AND a.model LIKE 'EleutherAI/pythia-%' AND a.model_key IN
            (SELECT model_key FROM model WHERE backend = 'released')
    ORDER BY a.benchmark, a.model, a.pair_id
"""
_Scores = Mapping[str, NDArray[Any]]


def of_pythia(store: OpenWarehouse, corpus: str) -> list[Resolved]:
    """What each measure resolves between Pythia and Pythia-deduped, by benchmark and size.

    The two of a size are scored on the same pairs; sizes of which one is not at hand are left out.
    Rows with basis ``unpaired`` and ``paired`` vary over words, and a row ``between trainings`` of
    all sizes takes the two for trainings of one kind, which overstates the noise: the text differs
    too. There the lean is the mean size of the models' leans.
    """
    found: list[Resolved] = []
    for (benchmark, size), (plain, deduped) in _both(store, corpus).items():
        for measure in MEASURES:
            found += _of_pair(benchmark, measure, f"pythia-{size}", plain, deduped)
    trainings: dict[tuple[str, str], list[Resolved]] = {}
    for row in found:
        if row.basis == PAIRED:
            trainings.setdefault((row.instrument, row.measure), []).append(row)
    return found + [row for rows in trainings.values() for row in _between_trainings(rows)]


def parameters(size: str) -> float:
    """Parameters in millions of a size such as 70m or 1.4b.

    >>> parameters("70m"), parameters("1.4b")
    (70.0, 1400.0)
    """
    return float(size[:-1]) * {"m": 1, "b": 1000}[size[-1]]


def _both(store: OpenWarehouse, corpus: str) -> dict[tuple[str, str], tuple[_Scores, _Scores]]:
    """Scores of both models on the pairs that both scored, by benchmark and size."""
    with connect(store, _PAIRS) as connection:
        given = {"corpus": corpus, "epsilon_nats": MeasureOptions().params()["epsilon_nats"]}
        table = connection.sql(_PAIRS, params=given).to_arrow_table()
    columns = {name: table[name].to_numpy() for name in table.column_names}
    where = np.char.add(columns["benchmark"].astype(str), columns["model"].astype(str))
    parts = {}
    for name in np.unique(where):
        part = {column: values[where == name] for column, values in columns.items()}
        size = part["model"][0].removeprefix("EleutherAI/pythia-")
        parts[part["benchmark"][0], size] = part
    found = {}
    # use-5 before use-10, and small models before large ones.
    for benchmark, size in sorted(
        parts, key=lambda k: (len(k[0]), k[0], parameters(k[1].split("-")[0]))
    ):
        if (other := parts.get((benchmark, size + _DEDUPED))) is not None:
            plain = parts[benchmark, size]
            _, a, b = np.intersect1d(plain["pair_id"], other["pair_id"], return_indices=True)
            found[benchmark, size] = (_taken(plain, a), _taken(other, b))
    return found


def _taken(scores: _Scores, rows: NDArray[np.int64]) -> _Scores:
    return {name: values[rows] for name, values in scores.items()}


def _of_pair(
    benchmark: str, measure: str, model: str, plain: _Scores, deduped: _Scores
) -> Iterator[Resolved]:
    column = "leans_percent" if measure == "PD" else "log_ratio_nats"
    first, second = (scores[column].astype(float) for scores in (plain, deduped))
    word, x = plain["word"].astype(str), None
    if measure.startswith("slope"):
        x = plain["delta_nats" if measure.endswith("delta") else "max_pmi_nats"].astype(float)
        known = np.isfinite(x)
        word, x, first, second = word[known], x[known], first[known], second[known]
    if measure == "slope on delta":  # over words, as the view `fit` has it
        word, x, first, second = _by_word(word, x, first, second)
    (lean, se, n), (other, other_se, _), (_, paired_se, _) = (
        clustered(y, word, x) for y in (first, second, second - first)
    )
    for basis, error in ((UNPAIRED, math.hypot(se, other_se)), (PAIRED, paired_se)):
        smallest = smallest_effect(error, n - 1)
        given = (n, lean, other - lean, error, n - 1, smallest)
        yield Resolved(benchmark, measure, model, basis, *given)


def _by_word(word: NDArray[np.str_], *columns: Floats | None) -> tuple[Any, ...]:
    words, of_row, n = np.unique(word, return_inverse=True, return_counts=True)
    return words, *(np.bincount(of_row, weights=c) / n for c in columns)


def _between_trainings(rows: list[Resolved]) -> Iterator[Resolved]:
    """The root mean square of the differences of pairs of trainings, one pair per size."""
    differences = np.array([row.difference for row in rows], float)
    lean = float(np.mean([abs(row.lean or 0.0) for row in rows]))
    se, n = math.sqrt(np.mean(differences**2)), len(rows)
    given = (n, lean, None, se, n, smallest_effect(se, n))
    yield Resolved(rows[0].instrument, rows[0].measure, "all sizes", TRAININGS, *given)
