"""The smallest change that a measure of lean resolves, in general and on released Pythia scores.

A measure resolves a change if a two-sided 5% test finds it with power 80%. To compare measures on
different scales, the change is divided by 2 |b|: exchanging every she and he in the text would turn
a lean b into -b. This share is the smallest detectable share of exchanged pronouns *if* the lean
follows the text in proportion; the study of docs/cause-study.md contradicts that.
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

from plumbline.eval_workers.scoring.statistics.measure_options import MeasureOptions
from plumbline.warehouse.query.connection import arrow_rows, connect
from plumbline.warehouse.storage.opening import OpenWarehouse

LEVEL, POWER = 0.05, 0.8
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Resolved:
    """The smallest difference between two models that a measure resolves, by source of error.

    Attributes:
        instrument, measure: the benchmark and the measure on it.
        model: the model of ``lean``. basis: the source of the error, such as ``PAIRED``.
        n: units that vary: words, pairs, checkpoints or trainings.
        lean: the figure that exchanging all pronouns would reverse; None for an unsigned measure.
        difference: the second model's figure minus the first's; None for noise of one model.
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
        """``smallest`` divided by 2 |lean|, the change that exchanging all pronouns makes.

        Above 1, not even that change is resolved. None without a lean (None or NaN), infinite if
        it is 0.
        """
        if self.lean is None or math.isnan(self.lean):
            return None
        return self.smallest / (2 * abs(self.lean)) if self.lean else math.inf

    @property
    def ci(self) -> tuple[float, float] | None:
        """Student's 95% interval of the difference; None without a difference."""
        if self.difference is None:
            return None
        half = float(stats.t.ppf(1 - LEVEL / 2, self.df)) * self.se
        return self.difference - half, self.difference + half


def smallest_effect(se: float, df: float = math.inf) -> float:
    """True difference that a t test with this standard error finds with power 80%.

    ``df`` are the degrees of freedom of the standard error; infinite: a normal distribution. 0 for
    an error of 0, NaN for NaN or less than one degree of freedom.

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
    """Smallest difference between two models' shares of the same ``n`` pairs, in the best case.

    In the best case the models differ in as few pairs as possible, all in one direction. The exact
    sign test then needs k such pairs, the least k with 2 (1/2)^k <= 5%. The function returns the
    share at which a binomial count of n pairs reaches k with probability 80%; NaN if n < k.

    >>> round(smallest_if_all_one_way(320), 4)
    0.0246
    """
    k = math.ceil(1 - math.log2(LEVEL))
    return float(stats.beta.ppf(POWER, k, n - k + 1)) if n >= k else math.nan


def clustered(
    y: Floats, cluster: NDArray[np.generic], x: Floats | None = None
) -> tuple[float, float, int]:
    """Slope of y on x, or the mean of y without x; its error over clusters; number of clusters.

    y, cluster and x are arrays of one length. The error is the sandwich of Liang and Zeger (1986)
    with the usual correction G / (G - 1) (n - 1) / (n - k) for G clusters, n rows, k coefficients.
    Estimate and error are NaN with fewer than k + 1 clusters, or if x is constant.

    >>> mean, se, n = clustered(np.array([1.0, 1.0, 4.0]), np.array(["a", "a", "b"]))
    >>> round(mean, 3), round(se, 3), n
    (2.0, 1.333, 2)
    """
    columns = [np.ones(len(y))] if x is None else [np.ones(len(y)), x - x.mean()]
    design = np.column_stack(columns)
    cluster_of_row = np.unique(cluster, return_inverse=True)[1]
    n, k, g = len(y), design.shape[1], int(cluster_of_row.max(initial=-1)) + 1
    if g <= k or (x is not None and np.ptp(x) == 0):
        return math.nan, math.nan, g
    bread = np.linalg.inv(design.T @ design)
    coefficients = bread @ (design.T @ y)
    scores = np.zeros((g, k))
    np.add.at(scores, cluster_of_row, (y - design @ coefficients)[:, None] * design)
    variance = (bread @ (scores.T @ scores) @ bread)[-1, -1] * g / (g - 1) * (n - 1) / (n - k)
    return float(coefficients[-1]), math.sqrt(variance), g


#: Measures on a benchmark.
MEASURES = ("slope on delta", "slope on MaxPMI", "mean log ratio", "PD")
#: Sources of error: words, with models independent or scored on the same pairs; or the training.
UNPAIRED, PAIRED, TRAININGS = "words, unpaired", "words, same pairs", "between trainings"
_PAIRS = """
    WITH pythia AS (
        SELECT a.benchmark, replace(a.model, 'EleutherAI/pythia-', '') AS size, a.pair_id,
            lower(a.word) AS word, a.max_pmi_nats, d.delta_nats, a.log_ratio_nats,
            100 * lean(a.log_ratio_nats, $epsilon_nats) AS leans_percent
        FROM scored_pair_association AS a
        LEFT JOIN word_delta AS d
            ON d.corpus = a.corpus AND d.contrast = a.contrast AND d.word = lower(a.word)
        WHERE a.corpus = $corpus AND a.contrast = 'she/he' AND a.word IS NOT NULL
            AND a.model LIKE 'EleutherAI/pythia-%' AND a.model_key IN
                (SELECT model_key FROM model WHERE backend = 'released')
    )
    SELECT plain.*, deduped.log_ratio_nats AS deduped_log_ratio_nats,
        deduped.leans_percent AS deduped_leans_percent
    FROM pythia AS plain JOIN pythia AS deduped ON deduped.benchmark = plain.benchmark
        AND deduped.size = plain.size || '-deduped' AND deduped.pair_id = plain.pair_id
    ORDER BY plain.benchmark, plain.size, plain.pair_id
"""


def of_pythia(store: OpenWarehouse, corpus: str) -> list[Resolved]:
    """Resolution of each measure between Pythia and Pythia-deduped, by benchmark and size.

    Both models of a size are scored on the same pairs; sizes without both are left out. Rows with
    basis ``UNPAIRED`` and ``PAIRED`` have errors over words. A row ``TRAININGS`` is over all sizes
    and takes the two models of a size as trainings on one text. That overstates the noise: their
    texts differ too. Its lean is the mean absolute lean of the models that are not deduped.
    """
    epsilon = MeasureOptions().params()["epsilon_nats"]
    with connect(store, _PAIRS) as connection:
        params = {"corpus": corpus, "epsilon_nats": epsilon}
        table = arrow_rows(connection, _PAIRS, params)
    scores = {name: table[name].to_numpy() for name in table.column_names}
    keys = set(zip(scores["benchmark"], scores["size"], strict=True))
    resolved: list[Resolved] = []
    # use-5 before use-10, and small models before large ones.
    for benchmark, size in sorted(keys, key=lambda k: (len(k[0]), k[0], parameters(k[1]))):
        rows = (scores["benchmark"] == benchmark) & (scores["size"] == size)
        size_scores = {name: values[rows] for name, values in scores.items()}
        for measure in MEASURES:
            resolved += _between_models(benchmark, measure, f"pythia-{size}", size_scores)
    trainings: dict[tuple[str, str], list[Resolved]] = {}
    for row in resolved:
        if row.basis == PAIRED:
            trainings.setdefault((row.instrument, row.measure), []).append(row)
    return resolved + list(map(_between_trainings, trainings.values()))


def parameters(size: str) -> float:
    """Parameters in millions of a size such as 70m or 1.4b.

    >>> parameters("70m"), parameters("1.4b")
    (70.0, 1400.0)
    """
    return float(size[:-1]) * {"m": 1, "b": 1000}[size[-1]]


def _between_models(
    benchmark: str, measure: str, model: str, scores: Mapping[str, NDArray[Any]]
) -> Iterator[Resolved]:
    column = "leans_percent" if measure == "PD" else "log_ratio_nats"
    first, second = (scores[name].astype(float) for name in (column, f"deduped_{column}"))
    word, x = scores["word"].astype(str), None
    if measure.startswith("slope"):
        x = scores["delta_nats" if measure.endswith("delta") else "max_pmi_nats"].astype(float)
        defined = np.isfinite(x)
        word, x, first, second = (of_row[defined] for of_row in (word, x, first, second))
    if measure == "slope on delta":  # over means of words, as in the view `fit`
        word, index, n_rows = np.unique(word, return_inverse=True, return_counts=True)
        x, first, second = (np.bincount(index, weights=y) / n_rows for y in (x, first, second))
    (lean, se, n), (other, other_se, _), (_, paired_se, _) = (
        clustered(y, word, x) for y in (first, second, second - first)
    )
    for basis, error in ((UNPAIRED, math.hypot(se, other_se)), (PAIRED, paired_se)):
        figures = (n, lean, other - lean, error, n - 1, smallest_effect(error, n - 1))
        yield Resolved(benchmark, measure, model, basis, *figures)


def _between_trainings(rows: list[Resolved]) -> Resolved:
    """Row ``TRAININGS``: its error is the root mean square difference over sizes."""
    differences = np.array([row.difference for row in rows], float)
    lean = float(np.mean([abs(row.lean or 0.0) for row in rows]))
    se, n = math.sqrt(np.mean(differences**2)), len(rows)
    figures = (n, lean, None, se, n, smallest_effect(se, n))
    return Resolved(rows[0].instrument, rows[0].measure, "all sizes", TRAININGS, *figures)
