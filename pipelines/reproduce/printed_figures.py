"""Printed figures of the three papers: rows of a CSV file for each paper."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Any

import duckdb
import pyarrow as pa

from plumbline.warehouse.query.connection import arrow_rows, sql

Row = Mapping[str, Any]

#: Number of pairs of a benchmark.
SIZE = "benchmark_size"
#: US of the model's ``-deduped`` twin minus US of the model, in points (Table 2).
DEDUPLICATION = "deduplication"
_OF_RELEASE = """
SELECT
    "table"::BIGINT AS "table", lower(dataset) AS benchmark, nullif(eta, 'inf')::DOUBLE AS eta_nats,
    metric, value::DOUBLE AS value, coalesce(hf_id, '') AS model,
    coalesce(nullif(log_base, 'e')::DOUBLE, exp(1)) AS log_base
FROM read_csv($path, all_varchar := true)
"""
#: Tables name losses in TeX, and write the same method with and without a hyphen.
_OF_RUNS = r"""
SELECT
    "table"::BIGINT AS "table", inputs,
    replace(replace(method, '-', ' '), '\mathcal{L}', 'L') AS method,
    model, metric, value::DOUBLE AS value
FROM read_csv($path, all_varchar := true)
"""


def figures(paper: str) -> list[Row]:
    """Printed figures of ``unstereoeval``, ``fairpair`` or ``disclosure``, in the file's order.

    Columns of a row, for UnStereoEval: ``table``, ``benchmark``, ``eta_nats`` (limit of the table
    on |MaxPMI|, None without one), ``metric``, ``value`` (US and its deviation in percent; PD, gap
    and deduplication in percentage points), ``model`` (hub id, empty for a size of a benchmark) and
    ``log_base`` (base of the log ratios under an AuFC). For the other papers: ``table``,
    ``inputs`` (the prompts), ``method`` (the treatment or the measure), ``model``, ``metric`` and
    ``value``.

    >>> [len(figures(paper)) for paper in ("unstereoeval", "fairpair", "disclosure")]
    [2781, 62, 486]
    """
    text = _OF_RELEASE if paper == "unstereoeval" else _OF_RUNS
    file = resources.files(__package__) / f"{paper}.csv"
    with resources.as_file(file) as path, duckdb.connect() as connection:
        return list(arrow_rows(connection, text, {"path": str(path)}).to_pylist())


def joined(name: str, **relations: pa.Table) -> list[dict[str, Any]]:
    """Rows of the query ``sql/reproduce/<name>.sql`` over relations, without a warehouse."""
    with duckdb.connect() as connection:
        for relation, table in relations.items():
            connection.register(relation, table)
        return list(arrow_rows(connection, sql(f"reproduce/{name}")).to_pylist())
