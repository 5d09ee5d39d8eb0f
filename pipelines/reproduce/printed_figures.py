"""Printed figures of the three papers: rows of a CSV file for each paper."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.input.csv_rows import number, records
from plumbline.warehouse.query.connection import arrow_rows, sql

Row = Mapping[str, Any]
Fields = Mapping[str, str]

#: Number of pairs of a benchmark.
SIZE = "benchmark_size"
#: US of the model's ``-deduped`` twin minus US of the model, in points (Table 2).
DEDUPLICATION = "deduplication"
_METRICS = (SIZE, "US", "US_std", "PD", "AuFC", "gap", DEDUPLICATION)


def _whole(fields: Fields, name: str) -> int:
    return number(fields, name, int)


def _finite(fields: Fields, name: str) -> float:
    return number(fields, name, float)


def _text(fields: Fields, name: str) -> str:
    if not fields[name]:
        raise ValueError(f"{name} is empty")
    return fields[name]


def _metric(fields: Fields, name: str) -> str:
    if fields[name] not in _METRICS:
        raise ValueError(f"{name} is {fields[name]!r}, expected one of {', '.join(_METRICS)}")
    return fields[name]


def _limit(fields: Fields, name: str) -> float | None:
    return None if fields[name] == "inf" else _finite(fields, name)


def _base(fields: Fields, name: str) -> float:
    return math.e if fields[name] in ("e", "") else _finite(fields, name)


#: How a column of a file is read, by the column and the name that it has in the rows.
_Columns = dict[tuple[str, str], Callable[[Fields, str], object]]
_OF_RELEASE: _Columns = {
    ("table", "table"): _whole,
    ("dataset", "benchmark"): lambda fields, name: fields[name].lower(),
    ("eta", "eta_nats"): _limit,
    ("metric", "metric"): _metric,
    ("value", "value"): _finite,
    ("hf_id", "model"): lambda fields, name: fields[name],
    ("log_base", "log_base"): _base,
}
_OF_RUNS: _Columns = {
    ("table", "table"): _whole,
    ("inputs", "inputs"): _text,
    # Tables name losses in TeX, and write the same method with and without a hyphen.
    ("method", "method"): lambda fields, name: (
        _text(fields, name).replace("-", " ").replace("\\mathcal{L}", "L")
    ),
    ("model", "model"): _text,
    ("metric", "metric"): _text,
    ("value", "value"): _finite,
}
_COLUMNS = {"unstereoeval": _OF_RELEASE, "fairpair": _OF_RUNS, "disclosure": _OF_RUNS}


def figures(paper: str, path: Path | None = None) -> list[Row]:
    """Printed figures of ``unstereoeval``, ``fairpair`` or ``disclosure``, in the file's order.

    They come from the packaged CSV file, or from ``path``, which has the same columns in any order.

    Columns of a row, for UnStereoEval: ``table``, ``benchmark``, ``eta_nats`` (limit of the table
    on |MaxPMI|, None without one), ``metric``, ``value`` (US and its deviation in percent; PD, gap
    and deduplication in percentage points), ``model`` (hub id, empty for a size of a benchmark) and
    ``log_base`` (base of the log ratios under an AuFC). For the other papers: ``table``,
    ``inputs`` (the prompts), ``method`` (the treatment or the measure), ``model``, ``metric`` and
    ``value``.

    Raises ``BadInput`` for a file that can't be read and for an invalid row, with its number.

    >>> [len(figures(paper)) for paper in ("unstereoeval", "fairpair", "disclosure")]
    [2781, 62, 486]
    """
    if path is None:
        with resources.as_file(resources.files(__package__) / f"{paper}.csv") as packaged:
            return figures(paper, packaged)
    columns = _COLUMNS[paper]
    rows: list[Row] = []
    for record in records(path, tuple(name for name, _ in columns)):
        try:
            if record.problem:
                raise ValueError(record.problem)
            rows.append({to: read(record.fields, name) for (name, to), read in columns.items()})
        except ValueError as e:
            raise BadInput(f"{path}, row {record.number}", str(e), "mend or remove the row") from e
    return rows


def joined(name: str, **relations: pa.Table) -> list[dict[str, Any]]:
    """Rows of the query ``sql/reproduce/<name>.sql`` over relations, without a warehouse."""
    with duckdb.connect() as connection:
        for relation, table in relations.items():
            connection.register(relation, table)
        return list(arrow_rows(connection, sql(f"reproduce/{name}")).to_pylist())
