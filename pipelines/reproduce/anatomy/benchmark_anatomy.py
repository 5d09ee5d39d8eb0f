"""Parts of released models' log ratios that properties of pairs predict, and US without them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plumbline.eval_workers.scoring.statistics import components
from plumbline.eval_workers.scoring.statistics.cluster_covariances import (
    NO_CLUSTER,
    clustered_variance,
    influences,
    n_clusters,
    variances,
)
from plumbline.eval_workers.scoring.statistics.components import (
    CONSTANT,
    Floats,
    Ints,
    LogRatioTable,
    Share,
    freedom,
    interval,
    shares,
)
from plumbline.eval_workers.scoring.statistics.measure_options import MeasureOptions
from plumbline.warehouse.query.connection import connect, query, sql

if TYPE_CHECKING:
    from plumbline.warehouse.storage.opening import OpenWarehouse

#: Properties of a pair and their columns in ``reproduce/anatomy_pair``.
PROPERTIES = {
    "start": ("pronoun_first",),
    "number": ("n_pronouns",),
    "form": ("n_own", "n_object", "n_self"),
    "delta": ("max_pmi_nats", "sum_delta_nats"),
    "length": ("n_words",),
}
NOTHING = "nothing"
_PAIRS, _SCORES = "reproduce/anatomy_pair", "reproduce/anatomy_score"


@dataclass(frozen=True)
class Without:
    """US when parts are subtracted from each model's log ratios.

    Attributes:
        taken: name of the parts. Those named *and ...* are subtracted together with the constant.
        us: US of each model in percent.
        gain: mean gain in US over models, in points; for *and ...* over the constant alone.
        gain_low, gain_high: its 95% interval over words; families_*: over words and families.
    """

    taken: str
    us: Floats
    gain: float
    gain_low: float
    gain_high: float
    families_low: float
    families_high: float


@dataclass(frozen=True)
class BenchmarkAnatomy:
    """A benchmark: mean square of its log ratios (nats squared), shares of its parts, and US."""

    benchmark: str
    n_pairs: int
    n_clusters: int
    models: tuple[str, ...]
    n_families: int
    mean_square: float
    shares: Sequence[Share]
    us: Sequence[Without]


def tables(store: OpenWarehouse, corpus: str) -> Iterator[tuple[str, list[str], LogRatioTable]]:
    """Name, models and table of each benchmark with released scores and MaxPMI of the corpus.

    Tables have the natural pairs, and the models that scored all of them.
    """
    with connect(store, sql(_PAIRS) + sql(_SCORES)) as connection:
        params = {"corpus": corpus}
        pairs, scores = (query(connection, name, params) for name in (_PAIRS, _SCORES))
    by_model = scores.group_by(["model", "family"]).aggregate([])
    families = dict(zip(*(by_model[c].to_pylist() for c in ("model", "family")), strict=True))
    benchmarks = pc.unique(pairs["benchmark"]).to_pylist()
    for benchmark in sorted(benchmarks, key=lambda name: (len(name), name)):
        own_pairs = pairs.filter(pc.equal(pairs["benchmark"], benchmark))
        own_scores = scores.filter(pc.equal(scores["benchmark"], benchmark))
        ratios = {
            model: own_scores.filter(pc.equal(own_scores["model"], model))["log_ratio_nats"]
            for model in sorted(pc.unique(own_scores["model"]).to_pylist(), key=str.lower)
        }
        complete = {m: values for m, values in ratios.items() if len(values) == own_pairs.num_rows}
        if complete:
            models, y = list(complete), np.column_stack(list(complete.values()))
            yield benchmark, models, _table(own_pairs, y, [families[m] for m in models])


def within(table: LogRatioTable, eta_nats: float) -> LogRatioTable:
    """Pairs whose MaxPMI is within ``eta_nats`` of 0."""
    return table.only(np.abs(table.properties["delta"][:, 0]) <= eta_nats)


def _table(pairs: pa.Table, y: Floats, families: Sequence[str]) -> LogRatioTable:
    every = [pairs[column] for column in ("cluster_1", "cluster_2")]
    used = [column for column in every if pc.count_distinct(column).as_py() > 1] or every[:1]
    names = pa.chunked_array([chunk for column in used for chunk in column.chunks], pa.string())
    numbers = pc.fill_null(pc.index_in(names, pc.unique(names.drop_null())), NO_CLUSTER)
    properties = {
        name: np.column_stack([pairs[column] for column in columns])
        for name, columns in PROPERTIES.items()
    }
    return LogRatioTable(
        y,
        properties,
        numbers.to_numpy().astype(np.int64).reshape(len(used), -1).T,
        [next(filter(None, column.to_pylist())).partition(": ")[0] for column in used],
        np.unique(families, return_inverse=True)[1],
    )


def anatomy(benchmark: str, models: Sequence[str], table: LogRatioTable) -> BenchmarkAnatomy:
    """Shares of the mean square, and US without each part."""
    return BenchmarkAnatomy(
        benchmark,
        len(table.y),
        n_clusters(table.clusters),
        tuple(models),
        len(np.unique(table.families)),
        float((table.y**2).mean()),
        shares(table),
        list(without(table)),
    )


def without(table: LogRatioTable) -> Iterator[Without]:
    """US of the log ratios, then minus cross-fitted predictions of parts (``without_fit``)."""
    y, clusters = table.y, table.clusters
    varying = {name: x for name, x in table.properties.items() if np.ptp(x, axis=0).any()}
    none = np.empty((len(y), 0))

    def fitted(x: Floats) -> Floats:
        return components.without_fit(y, x, clusters)

    def clustered(rest: Floats) -> Floats:
        return components.without_near(rest, components.of_cluster(rest, clusters), clusters)

    centred = fitted(none)
    every = fitted(np.hstack([none, *varying.values()]))
    kinds = " and ".join(dict.fromkeys(table.kinds))
    words = clustered(every)
    others = components.of_other_families(words, table.families)
    rests = {
        NOTHING: y,
        CONSTANT: centred,
        **{f"and {name}": fitted(x) for name, x in varying.items()},
        f"and {kinds}": clustered(centred),
        "and all": every,
        f"and all, {kinds}": words,
        "and all, other families": components.without_near(words, others, clusters),
    }
    epsilon = MeasureOptions().epsilon
    even = {name: 100.0 * (np.abs(rest) <= epsilon) for name, rest in rests.items()}
    for name, percent in even.items():
        before = even[CONSTANT if name.startswith("and ") else NOTHING]
        gain = _gain(percent - before, clusters, table.families)
        yield Without(name, percent.mean(axis=0), *gain)


def _gain(gains: Floats, clusters: Ints, families: Ints) -> tuple[float, ...]:
    """Mean of ``gains`` [pair, model]; its interval over clusters, then over families too."""
    mean = gains.mean(keepdims=True)[0]

    def error(values: Floats, ids: Ints) -> tuple[Floats, float]:
        return variances(clustered_variance(influences(values[:, None]), ids)), freedom(ids)

    words = error(gains.mean(axis=1), clusters)
    other = error(gains.mean(axis=0), families[:, None])
    ends = (*interval(mean, words), *interval(mean, words, other))
    return tuple(float(value[0]) for value in (mean, *ends))
