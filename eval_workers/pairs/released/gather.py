"""The figures that released files hold of a benchmark's pairs, and the rows that hold none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from plumbline.eval_workers.pairs.released.files import ReleasedFile
from plumbline.eval_workers.pairs.released.join import Line, Places, match, row_key
from plumbline.eval_workers.pairs.released.table import read_rows
from plumbline.eval_workers.work.rejects import reject_row
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
) -> tuple[dict[str, Line], list[Row]]:
    """The line of each pair that has one, and rows of ``reject`` for all other rows.

    ``files`` are the parts of one benchmark, ``reject`` gives ``subject`` and ``run_id``. Raises
    ``BadInput`` for a file that can't be read to its end or lacks one of ``columns``.
    """
    found: dict[str, Line] = {}
    rejects: list[Row] = []
    for file in files:
        shared: frozenset[str] = frozenset()
        lines: list[Line] = []
        for row in read_rows(file.path, columns):
            of_row = row.problem or figures(file, row)
            if isinstance(of_row, str):
                template = row.fields.get("template", "")
                rejects.append(_reject(reject, file, row.number, of_row, template))
                continue
            if not lines:
                shared = places.shared(row.fields)
            lines.append(Line(row_key(row.fields, shared), of_row, row.number))
        matched, unused = match(lines, places.ids(shared, file.split))
        found |= matched
        rejects += [_reject(reject, file, x.row, reason, x.key[0]) for x, reason in unused]
    return found, rejects


def _reject(
    common: Mapping[str, str], file: ReleasedFile, row: int, reason: str, template: str
) -> Row:
    rejected = reject_row(
        stage="import",
        subject=common["subject"],
        source_file=file.name,
        source_row=row,
        reason=reason,
        excerpt=template,
    )
    return {**rejected, "run_id": common["run_id"]}
