"""Print rows as a table, CSV or JSON."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Iterable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from itertools import chain

from rich.console import Console
from rich.table import Table
from rich.text import Text

from plumbline.warehouse.text.escape import csv_cell, terminal

#: Maximum number of rows to print; a line below the rows gives the total.
MAX_ROWS = 1000


def show(
    console: Console,
    names: Sequence[str],
    rows: Sequence[Sequence[object]],
    numbers: Sequence[bool] = (),
) -> None:
    """Print rows as a table or, if the terminal is too narrow, as one block of lines per row.

    If the output isn't a terminal, the table is as wide as needed. ``numbers`` has True for each
    column to right-align. If ``numbers`` is empty, columns that contain numbers are right-aligned.
    """
    if not names:
        return
    names, shown = [terminal(name) for name in names], rows[:MAX_ROWS]
    cells = [[_cell(v) for v in row] for row in shown]
    widths = [max([len(name), *(len(row[i]) for row in cells)]) + 3 for i, name in enumerate(names)]
    if console.is_terminal and sum(widths) > console.width and len(names) > 1:
        _show_blocks(console, names, cells)
    else:
        are_numbers = numbers or [_is_number(r[i] for r in shown) for i in range(len(names))]
        _show_table(console, names, cells, are_numbers, sum(widths) + 1)
    more = f", the first {MAX_ROWS:,} shown" if len(rows) > MAX_ROWS else ""
    console.print(Text(f"{len(rows):,} row{'' if len(rows) == 1 else 's'}{more}", style="dim"))


def _cell(value: object) -> str:
    if value is None:
        return ""
    return terminal(f"{value:.6g}" if isinstance(value, float) else str(value))


def _is_number(values: Iterable[object]) -> bool:
    return all(isinstance(v, int | float) or v is None for v in values)


def _show_table(
    console: Console,
    names: Sequence[str],
    cells: Sequence[Sequence[str]],
    numbers: Sequence[bool],
    width: int,
) -> None:
    table = Table(show_edge=False)
    for name, is_number in zip(names, numbers, strict=True):
        # Wrap a single column that is wider than the terminal instead of cutting it.
        table.add_column(Text(name), justify="right" if is_number else "left", overflow="fold")
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    if not console.is_terminal:
        console.width = max(width, console.width)
    console.print(table)


def _show_blocks(console: Console, names: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    longest = max(map(len, names))
    for number, row in enumerate(cells, 1):
        console.print(Text(f"row {number}", style="bold"))
        for name, cell in zip(names, row, strict=True):
            line = Text(f"  {name:<{longest}}  ", style="dim") + Text(cell)
            console.print(line, soft_wrap=True)  # keep paths on one line for copying


def print_csv(names: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows as CSV.

    Text that a spreadsheet would read as a formula is prefixed with ``'``. On a terminal, control
    characters are escaped.
    """
    escaped = terminal if sys.stdout.isatty() else str
    writer = csv.writer(sys.stdout, lineterminator="\n")
    for row in chain([names], rows):
        writer.writerow([escaped(str(csv_cell(_csv_value(value)))) for value in row])


def print_json(value: object) -> None:
    # Control characters never reach the terminal, because ``json.dumps`` escapes them.
    print(json.dumps(json_value(value), indent=2, allow_nan=False))


def json_value(value: object) -> object:
    """Return a value for JSON: NaN and infinity as null, times as ISO 8601, bytes as hexadecimal.

    >>> json_value([float("nan"), date(2024, 5, 1), {1: b"a"}])
    [None, '2024-05-01', {'1': '61'}]
    """
    if isinstance(value, float | Decimal):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): json_value(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(inner) for inner in value]
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def _csv_value(value: object) -> object:
    if isinstance(value, list | tuple | dict):
        return json.dumps(json_value(value), ensure_ascii=False)
    if isinstance(value, Decimal):
        return f"{value:f}"  # str() might write an exponent
    return "" if value is None else value if isinstance(value, str | float) else json_value(value)
