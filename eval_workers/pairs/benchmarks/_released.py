"""Reading of released tables: their path, their usable rows, their identifiers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from plumbline.eval_workers.pairs.benchmarks._parsed import Parsed
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.text.csv_rows import Record, records

#: Values of a released yes or no.
TRUTH = ("True", "False")


def locate(source: Path, stem: str) -> Path:
    """The table ``<stem>.csv`` or ``<stem>.csv.gz`` in a directory, or the file itself."""
    if source.is_file():
        return source
    for name in (f"{stem}.csv", f"{stem}.csv.gz"):
        if (source / name).is_file():
            return source / name
    raise BadInput(f"{source}", f"holds neither {stem}.csv nor {stem}.csv.gz", "give --source PATH")


def usable(
    parsed: Parsed,
    path: Path,
    columns: tuple[str, ...],
    allowed: Mapping[str, Sequence[str]],
    *,
    excerpt: str = "template",
    delimiter: str = ",",
) -> Iterator[Record]:
    """Rows of a table whose columns have ``allowed`` values; rejects the others.

    ``excerpt`` is the column that a reject shows. Raises as ``records``.
    """
    for record in records(path, columns, delimiter):
        problem = record.problem
        for column, values in allowed.items():
            if problem is None and (value := record.fields[column]) not in values:
                problem = f"{column} is {value!r}, expected {' or '.join(values)}"
        if problem:
            parsed.reject(path.name, record.number, problem, record.fields.get(excerpt, ""))
        else:
            yield record


def index_id(prefix: str, value: str) -> str:
    """A pair's identifier from a table's own index, sorted as text like the index; empty if none.

    >>> index_id("dev-", "7"), index_id("", "x")
    ('dev-00007', '')
    """
    return f"{prefix}{int(value):05d}" if value.isascii() and value.isdigit() else ""
