"""Printed figures of UnStereoEval (Belem et al., ICLR 2024), and known contradictions.

``unstereoeval.csv`` has the figures of Tables 1-3 and 8-22: 2,731 figures of the 28 models, and 50
sizes of benchmarks, which the heads of Tables 1 and 8-14 print.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.input.csv_rows import Record, number, records

#: Number of pairs in the deviations of Tables 8-11: for every set the printed size of USE-5.
SD_N_PAIRS = 4404
#: Printed figures are rounded to 0.01.
TOLERANCE = 0.011
_COLUMNS = ("table", "dataset", "eta", "metric", "value", "hf_id", "log_base")
#: US of the model's ``-deduped`` twin minus US of the model, in points (Table 2).
DEDUPLICATION = "deduplication"
#: Number of pairs of a benchmark.
SIZE = "benchmark_size"
_METRICS = (SIZE, "US", "US_std", "PD", "AuFC", "gap", DEDUPLICATION)


@dataclass(frozen=True)
class PrintedFigure:
    """One printed figure.

    Attributes:
        eta_nats: limit of the table on |MaxPMI|, None without one.
        model: hub id, empty for sizes of benchmarks.
        log_base: base of the log ratios under an AuFC.
        value: US and its deviation in percent; PD, gap and ``deduplication`` in percentage points.
    """

    table: int
    metric: str
    benchmark: str
    eta_nats: float | None
    model: str
    log_base: float
    value: float


@dataclass(frozen=True)
class Known:
    """The size in the released data that a printed size contradicts, and an explanation."""

    released: float
    note: str


_OF_TABLE_1 = "Tables 13 and 14 print the sizes of Table 1"
#: Printed sizes that contradict the release, by benchmark, eta in nats and printed size.
_SIZES: dict[tuple[str, float | None, float], Known] = {
    ("use-5", None, 4404): Known(4405, "the paper counts 4,404 natural pairs, the release 4,405"),
    ("use-5", 0.65, 3701): Known(3698, "Tables 1 and 12 print 3,701, Table 10 prints 3,698"),
    ("winogender", 0.8, 159): Known(150, "Table 9 prints 159, Tables 1 and 12 print 150"),
    ("use-10", None, 4404): Known(4740, _OF_TABLE_1),
    ("use-10", 0.8, 3978): Known(3916, _OF_TABLE_1),
    ("use-10", 0.65, 3701): Known(3401, _OF_TABLE_1),
    ("use-20", None, 1586): Known(4839, _OF_TABLE_1),
    ("use-20", 0.8, 675): Known(3561, _OF_TABLE_1),
    ("use-20", 0.65, 409): Known(2828, _OF_TABLE_1),
}


def known(figure: PrintedFigure) -> Known | None:
    """The released size for a printed one that contradicts it; None for any other figure.

    >>> known(PrintedFigure(8, SIZE, "use-5", None, "", math.e, 4404)).released
    4405
    """
    key = (figure.benchmark, figure.eta_nats, figure.value)
    return _SIZES.get(key) if figure.metric == SIZE else None


def convention(figure: PrintedFigure) -> str:
    """The convention that reproduces a figure; empty if it is the one that the paper states."""
    if figure.metric == "US_std":
        return f"deviation with n = {SD_N_PAIRS:,}, not the set's own"
    if figure.metric == "AuFC" and figure.log_base == 10:
        return "log ratios to base 10, natural in Tables 20-22"
    if figure.table == 3 and figure.metric == "PD":
        return "the caption of Table 3 says eta 0.65; its PD are those at 0.5, of Table 18"
    return ""


def packaged() -> list[PrintedFigure]:
    """The figures of ``unstereoeval.csv``.

    >>> len([f for f in packaged() if f.model])
    2731
    """
    with resources.as_file(resources.files(__package__) / "unstereoeval.csv") as path:
        return read(path)


def read(path: Path) -> list[PrintedFigure]:
    """Read figures of a CSV with the columns of ``unstereoeval.csv``, in any order.

    ``eta`` is a number of nats or ``inf``, ``log_base`` is ``e``, a number or empty (e).

    Raises:
        BadInput: no such file, a missing column, or an invalid row (the error has its number).
    """
    return [_figure(path, record) for record in records(path, _COLUMNS)]


def _figure(path: Path, record: Record) -> PrintedFigure:
    row = record.fields
    try:
        if record.problem:
            raise ValueError(record.problem)
        if row["metric"] not in _METRICS:
            metrics = ", ".join(_METRICS)
            raise ValueError(f"metric is {row['metric']!r}, expected one of {metrics}")
        return PrintedFigure(
            table=number(row, "table", int),
            metric=row["metric"],
            benchmark=row["dataset"].lower(),
            eta_nats=None if row["eta"] == "inf" else number(row, "eta", float),
            model=row["hf_id"],
            log_base=math.e if row["log_base"] in ("e", "") else number(row, "log_base", float),
            value=number(row, "value", float),
        )
    except ValueError as e:
        raise BadInput(f"{path}, row {record.number}", str(e), "mend or remove the row") from e
