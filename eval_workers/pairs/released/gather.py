"""Figures of a benchmark's pairs in released files, and rejects for all other rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from plumbline.eval_workers.pairs.released.files import ReleasedFile
from plumbline.eval_workers.pairs.released.join import Places, TableLine, match, row_key
from plumbline.eval_workers.pairs.released.table import read_rows
from plumbline.eval_workers.work.rejects import rejected
from plumbline.warehouse.text.csv_rows import Record

Row: TypeAlias = "dict[str, Any]"
#: The figures of a row with the right number of fields, or what is wrong with it.
Figures: TypeAlias = "Callable[[ReleasedFile, Record], tuple[Any, ...] | str]"


def gather(
    files: Iterable[ReleasedFile],
    places: Places,
    columns: tuple[str, ...],
    figures: Figures,
    reject: Mapping[str, str],
) -> tuple[dict[str, TableLine], list[Row]]:
    """The line of each pair that has one, and rows of ``reject`` for all other lines.

    ``files`` are the parts of one benchmark, ``reject`` gives ``subject`` and ``run_id``. Raises
    ``BadInput`` for a file that can't be read to its end or lacks one of ``columns``.
    """
    by_pair: dict[str, TableLine] = {}
    rejects: list[Row] = []
    for file in files:
        shared: frozenset[str] = frozenset()
        lines: list[TableLine] = []
        unused: list[tuple[int, str, str]] = []
        for row in read_rows(file.path, columns):
            of_row = row.problem or figures(file, row)
            if isinstance(of_row, str):
                unused.append((row.number, of_row, row.fields.get("template", "")))
                continue
            if not lines:
                shared = places.shared(row.fields)
            lines.append(TableLine(row_key(row.fields, shared), of_row, row.number))
        matched, rest = match(lines, places.ids(shared, file.split))
        by_pair |= matched
        unused += [(line.row, reason, line.key[0]) for line, reason in rest]
        for number, reason, template in unused:
            source = {"source_file": file.name, "source_row": number}
            rejects.append({"stage": "import", **reject, **rejected(source, reason, template)})
    return by_pair, rejects
