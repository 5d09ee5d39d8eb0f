"""Compare printed figures with a warehouse's runs, for papers that released no results.

A row of ``warehouse/sql/reproduce/<paper>.sql`` is a run's figure, with the run's settings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.input.csv_rows import number, records
from plumbline.warehouse.storage.store import Store

Row = Mapping[str, Any]

#: Columns of a file of printed figures.
COLUMNS = ("table", "inputs", "method", "model", "metric", "value")
#: Columns that belong to a figure; all others, except ``Paper.by_set``, identify its run.
_OF_A_FIGURE = ("inputs", "method", "metric", "measured", "low", "high")
#: Outcomes: the interval holds the printed figure, doesn't hold it, or why that is not known.
OUTCOMES = (HOLDS, OUTSIDE, NO_INTERVAL, NOT_DEFINED, NOT_MEASURED) = (
    *("agrees", "outside", "no interval"),
    *("not defined", "not run"),
)
#: The printed "model" of a mean over models, which no run measures.
AVERAGE = "Average"
#: A setting that the paper does not give.
NOT_KNOWN = object()


@dataclass(frozen=True, order=True)
class Printed:
    """A printed figure: ``inputs`` are the prompts, ``method`` the treatment or the measure."""

    table: int
    inputs: str
    method: str
    model: str
    metric: str
    value: float

    @property
    def cell(self) -> tuple[str, str, str, str]:
        """Identity of the figure in any table."""
        return self.inputs, self.method, self.model.casefold(), self.metric


@dataclass(frozen=True)
class Paper:
    """A paper to compare with.

    Attributes:
        name: name of its command, its query and its file of printed figures.
        models: name of the list of its models, with the names that it prints.
        command: command line that measures the models.
        half_units: half a unit of the last printed digit, by metric.
        settings: returns the paper's settings for a row of the query, by column.
        by_set: columns that may differ between the sets of one run.
        misfits: returns lines on contradictions between printed figures and on claims about them.
        remarks: lines on how to read any comparison with it.
        claims: returns lines on claims without printed figures, from a warehouse and the printed
            names of its models.
    """

    name: str
    models: str
    command: str
    half_units: Mapping[str, float]
    settings: Callable[[Row], Mapping[str, object]]
    by_set: tuple[str, ...]
    misfits: Callable[[Sequence[Printed]], list[str]]
    remarks: tuple[str, ...]
    claims: Callable[[Store, Mapping[str, str]], list[str]] = lambda store, names: []


@dataclass(frozen=True)
class MeasuredRun:
    """A numbered run, and settings that differ from the paper's or that the paper doesn't give."""

    number: int
    printed_model: str
    model: str
    differs: tuple[str, ...]
    unknown: tuple[str, ...]


@dataclass(frozen=True)
class Beside:
    """A printed figure beside a run's; undefined or not run: ``measured`` None, ends NaN."""

    printed: Printed
    run: MeasuredRun | None
    measured: float | None
    low: float
    high: float
    outcome: str
    note: str = ""


def read(path: Path) -> list[Printed]:
    """Printed figures of a CSV with the columns ``COLUMNS``, in any order.

    In names of methods a hyphen becomes a blank, and ``\\mathcal{L}`` an L. Raises ``BadInput`` for
    a file that can't be read and for an invalid row, with its number.
    """
    figures = []
    for record in records(path, COLUMNS):
        row = record.fields
        try:
            if record.problem:
                raise ValueError(record.problem)
            if empty := [name for name in COLUMNS if not row[name]]:
                raise ValueError(f"{empty[0]} is empty")
            method = row["method"].replace("-", " ").replace("\\mathcal{L}", "L")
            names = (row["inputs"], method, row["model"], row["metric"])
            table, value = number(row, "table", int), number(row, "value", float)
            figures.append(Printed(table, *names, value))
        except ValueError as e:
            raise BadInput(f"{path}, row {record.number}", str(e), "mend or remove the row") from e
    return figures


def compare(
    paper: Paper, printed: Sequence[Printed], rows: Sequence[Row], names: Mapping[str, str]
) -> tuple[list[Beside], list[MeasuredRun]]:
    """Put each printed figure beside that of every run of its model; returns the runs, too.

    ``names``: printed name by the model's name in the warehouse. An interval holds a printed figure
    if it holds any value that rounds to it.
    """
    runs: dict[str, MeasuredRun] = {}
    rows_of: dict[tuple[str, str, str, str], list[tuple[MeasuredRun, Row]]] = {}
    figure_columns = (*_OF_A_FIGURE, *paper.by_set)
    for row in rows:
        if row["model"] not in names:
            continue
        key = repr({c: v for c, v in row.items() if c not in figure_columns})
        name = names[row["model"]]
        run = runs.setdefault(
            key, _run(len(runs) + 1, name, row, paper.settings(row), figure_columns)
        )
        cell = row["inputs"], row["method"], name.casefold(), row["metric"]
        rows_of.setdefault(cell, []).append((run, row))
    beside = []
    for figure in printed:
        note = "mean of the printed models" if figure.model == AVERAGE else ""
        nothing = Beside(figure, None, None, math.nan, math.nan, NOT_MEASURED, note)
        measured = rows_of.get(figure.cell, [])
        beside += [_beside(paper, figure, run, row) for run, row in measured] or [nothing]
    return beside, list(runs.values())


def _run(
    number: int, name: str, row: Row, settings: Mapping[str, object], figure_columns: Sequence[str]
) -> MeasuredRun:
    for_run = {column: value for column, value in settings.items() if column not in figure_columns}
    unknown = tuple(
        f"{column} {_shown(row[column])}"
        for column, value in for_run.items()
        if value is NOT_KNOWN and row[column] is not None
    )
    return MeasuredRun(number, name, row["model"], _differs(row, for_run), unknown)


def _beside(paper: Paper, figure: Printed, run: MeasuredRun, row: Row) -> Beside:
    low, high = (math.nan if row[end] is None else row[end] for end in ("low", "high"))
    half = paper.half_units.get(figure.metric, 0.0) + 1e-9
    if row["measured"] is None:
        outcome = NOT_DEFINED
    elif math.isnan(low) or math.isnan(high):
        outcome = NO_INTERVAL
    else:
        outcome = HOLDS if low - half <= figure.value <= high + half else OUTSIDE
    for_set = {c: v for c, v in paper.settings(row).items() if c in paper.by_set}
    unknown = (f"{c} {row[c]}" for c, v in for_set.items() if v is NOT_KNOWN and row[c])
    note = ", ".join([*_differs(row, for_set), *unknown])
    return Beside(figure, run, row["measured"], low, high, outcome, note)


def _differs(row: Row, settings: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(
        f"{column} {_shown(row[column])} (paper: {_shown(value)})"
        for column, value in settings.items()
        if value is not NOT_KNOWN and not _same(row[column], value)
    )


def _same(value: object, expected: object) -> bool:
    if isinstance(value, str) and isinstance(expected, str):
        return value.startswith(expected)  # versions of libraries follow
    return value == expected


def _shown(value: object) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else f"{value}"


def misfit_averages(printed: Sequence[Printed]) -> list[str]:
    """Rows `Average` that are not the mean of the printed figures above them.

    >>> rows = [Printed(3, "s", "j", m, "B", v) for m, v in (("a", 1.0), ("b", 2.0))]
    >>> misfit_averages([*rows, Printed(3, "s", "j", "Average", "B", 1.6)])
    ['Table 3, j B: Average printed 1.6, the 2 printed models give 1.500']
    """
    above: dict[tuple[int, str, str, str], list[float]] = {}
    for p in printed:
        if p.model != AVERAGE:
            above.setdefault((p.table, p.inputs, p.method, p.metric), []).append(p.value)
    lines = []
    for p in (p for p in printed if p.model == AVERAGE):
        values = above.get((p.table, p.inputs, p.method, p.metric), [])
        half = 0.005 if p.metric == "F" else 0.05
        if values and abs(sum(values) / len(values) - p.value) > half + 1e-9:
            lines.append(
                f"Table {p.table}, {p.method} {p.metric}: Average printed {p.value:g}, the "
                f"{len(values)} printed models give {sum(values) / len(values):.3f}"
            )
    return lines


def misfit_tables(printed: Sequence[Printed]) -> list[str]:
    """Figures that two tables print differently.

    >>> two = [Printed(t, "s", "m", "a", "ADD", v) for t, v in ((1, -4.71), (3, -4.711))]
    >>> misfit_tables(two)
    ['ADD of a, s, m: Table 1 prints -4.71, Table 3 -4.711']
    """
    first: dict[tuple[str, str, str, str], Printed] = {}
    lines = []
    for p in printed:
        other = first.setdefault(p.cell, p)
        if other.value != p.value:
            tables = f"Table {other.table} prints {other.value:g}, Table {p.table} {p.value:g}"
            lines.append(f"{p.metric} of {p.model}, {p.inputs}, {p.method}: {tables}")
    return lines


def tally(beside: Sequence[Beside]) -> Iterator[str]:
    """One line per outcome: numbers of distinct printed figures and of their runs.

    A figure with several runs counts for each of their outcomes.

    >>> one = Printed(1, "STS-B", "Original", "LLaMA2 7B", "GAS", 0.5)
    >>> runs = [MeasuredRun(k, "LLaMA2 7B", "tiny", (), ()) for k in (1, 2)]
    >>> list(tally([Beside(one, run, 0.5, 0.4, 0.6, HOLDS) for run in runs]))
    ['1 figure in 2 runs: agrees']
    """
    for outcome in OUTCOMES:
        alike = [b for b in beside if b.outcome == outcome]
        n_runs, n = len({b.run.number for b in alike if b.run}), len({b.printed for b in alike})
        where = f" in {n_runs:,} runs" if n_runs > 1 else ""
        if n:
            yield f"{n:,} figure{'' if n == 1 else 's'}{where}: {outcome}"


def as_rows(beside: Sequence[Beside]) -> list[dict[str, object]]:
    """Comparisons as flat rows, for a CSV; a number that is not finite is None."""
    return [
        {
            **asdict(b.printed),
            "measured": b.measured,
            "low": b.low if math.isfinite(b.low) else None,
            "high": b.high if math.isfinite(b.high) else None,
            "outcome": b.outcome,
            "run": b.run.number if b.run else None,
            "measured_model": b.run.model if b.run else None,
            "differs": "; ".join([*(b.run.differs if b.run else ()), *filter(None, [b.note])]),
            "paper_unknown": "; ".join(b.run.unknown) if b.run else "",
        }
        for b in beside
    ]


def shown_first(b: Beside) -> tuple[bool, bool]:
    """Sort key: figures outside of a run's interval, then other measured ones, then the rest."""
    return b.run is None, b.outcome != OUTSIDE


def shown_row(b: Beside) -> dict[str, object]:
    """The row to print for a comparison."""
    (row,) = as_rows([b])
    long = ("measured_model", "differs", "paper_unknown")  # `lines` prints these once per run
    return {**{name: value for name, value in row.items() if name not in long}, "note": b.note}


def lines(run: MeasuredRun) -> Iterator[str]:
    """Lines on a run: its settings that differ from the paper's or that the paper doesn't give."""
    differs = "; ".join(run.differs) or "nothing that is known"
    yield f"run {run.number}, {run.printed_model} by {run.model}: differs in {differs}"
    if run.unknown:
        yield f"  settings that the paper doesn't give: {'; '.join(run.unknown)}"
