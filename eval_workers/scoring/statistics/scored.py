"""The pairs of a benchmark as arrays: their clusters, and their figures under every model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plumbline.eval_workers.scoring.statistics.cluster_covariances import (
    NO_CLUSTER,
    Bools,
    Floats,
    Ints,
)
from plumbline.warehouse.query.connection import connect, query, sql
from plumbline.warehouse.storage.opening import OpenWarehouse

if TYPE_CHECKING:
    import duckdb


_CELL, _LEAN = "benchmarks/cell", "benchmarks/lean"


@dataclass(frozen=True)
class Cells:
    """Natural pairs of one benchmark and groups, sorted by identifier.

    ``clusters`` are as in ``clustered_variance``, ``strata`` as in ``influences``.
    """

    benchmark: str
    groups: str
    clusters: Ints
    strata: Ints | None

    def only(self, is_kept: Bools) -> Cells:
        """The pairs in the mask ``is_kept``."""
        strata = None if self.strata is None else self.strata[is_kept]
        return Cells(self.benchmark, self.groups, self.clusters[is_kept], strata)


@dataclass(frozen=True)
class ScoredPairs:
    """Figures of scored pairs (rows) under every model (columns); NaN without a score.

    ``models``: key and name of each. The macro ``lean`` gives ``lean``, ``aufc`` gives ``area``.
    """

    cells: Cells
    models: Sequence[tuple[str, str]]
    lean: Floats
    area: Floats

    @property
    def even(self) -> Floats:
        """1 where a pair has no preference, 0 where it has one, NaN without a score."""
        return np.where(np.isnan(self.lean), np.nan, self.lean == 0)


def cells(root: str | Path, benchmark: str) -> list[Cells]:
    """The pairs of a benchmark, for each of its groups; empty if it isn't in the warehouse."""
    with connect(root, sql(_CELL)) as connection:
        return _cells_of(connection, benchmark)


def scored(root: str | Path | OpenWarehouse, epsilon_nats: float) -> Iterator[ScoredPairs]:
    """The scored pairs of each benchmark and groups, sorted by both names."""
    with connect(root, sql(_CELL) + sql(_LEAN)) as connection:
        for benchmark, parts in groupby(_cells_of(connection, None), lambda cells: cells.benchmark):
            params = {"benchmark": benchmark, "epsilon_nats": epsilon_nats}
            rows = query(connection, _LEAN, params)
            for each in parts:
                if (of_groups := rows.filter(pc.equal(rows["groups"], each.groups))).num_rows:
                    yield _scored(each, of_groups)


def _cells_of(connection: duckdb.DuckDBPyConnection, benchmark: str | None) -> list[Cells]:
    """Cells of one benchmark or of all, sorted by benchmark and groups."""
    rows = query(connection, _CELL, {"benchmark": benchmark})
    sets = rows.group_by(["benchmark", "groups"]).aggregate([]).to_pylist()
    result = []
    for keys in sorted(sets, key=lambda keys: (keys["benchmark"], keys["groups"])):
        in_set = pc.and_(*(pc.equal(rows[column], keys[column]) for column in keys))
        result.append(_cells(keys["benchmark"], keys["groups"], rows.filter(in_set)))
    return result


def _cells(benchmark: str, groups: str, rows: pa.Table) -> Cells:
    every = [rows[f"cluster_{place}"] for place in (1, 2)]
    # A dimension with one cluster is dropped; if both have one, the first stays.
    names = [column for column in every if pc.count_distinct(column).as_py() > 1] or every[:1]
    known = pa.chunked_array([chunk for column in names for chunk in column.chunks], pa.string())
    numbers = pc.index_in(known, pc.unique(known.drop_null()))
    clusters = pc.fill_null(numbers, NO_CLUSTER).to_numpy().reshape(len(names), -1).T
    has_strata = rows["stratum"].null_count < len(rows)
    strata = rows["stratum"].combine_chunks().dictionary_encode("encode") if has_strata else None
    parts = None if strata is None else strata.indices.to_numpy().astype(np.int64)
    return Cells(benchmark, groups, clusters.astype(np.int64), parts)


def _scored(pairs: Cells, rows: pa.Table) -> ScoredPairs:
    keys = pc.unique(rows["model_key"])
    place, model = rows["place"].to_numpy(), pc.index_in(rows["model_key"], keys).to_numpy()
    figures = []
    for column in ("lean", "area"):
        figure = np.full((len(pairs.clusters), len(keys)), np.nan)
        figure[place, model] = rows[column].to_numpy()
        figures.append(figure)
    is_scored = ~np.isnan(figures[0]).all(axis=1)
    names = dict(zip(rows["model_key"].to_pylist(), rows["model"].to_pylist(), strict=True))
    lean, area = (figure[is_scored] for figure in figures)
    return ScoredPairs(pairs.only(is_scored), list(names.items()), lean, area)
