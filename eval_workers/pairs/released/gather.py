"""Assigns rows of released files to a benchmark's pairs, and makes rejects of all other rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from plumbline.eval_workers.pairs.released.released_files import ReleasedFile
from plumbline.warehouse.input.input_rows import Record, read_text, records_of, rejected, truth

Row: TypeAlias = "dict[str, Any]"
#: Takes a row with the right number of fields; returns its figures, or the problem with the row.
Figures: TypeAlias = "Callable[[ReleasedFile, Record], tuple[Any, ...] | str]"
#: Template, then word and ``is_natural``, each ``None`` unless both table and benchmark have it.
_Key: TypeAlias = "tuple[str, object, object]"
#: A row's number in its file, and its figures.
_Line: TypeAlias = "tuple[int, tuple[Any, ...]]"
_OPTIONAL = ("word", "is_natural")
_CUT = "the file ends in this row without a line end: it may be cut short"


def gather(
    files: Iterable[ReleasedFile],
    pairs: Sequence[Mapping[str, Any]],
    columns: tuple[str, ...],
    figures: Figures,
    reject: Mapping[str, str],
) -> tuple[dict[str, tuple[Any, ...]], list[Row]]:
    """Pair id -> its figures in the files; and rows of ``reject`` for all unused lines.

    ``files`` are the parts of one benchmark, ``pairs`` its rows; ``reject`` has the rejects'
    ``subject`` and ``run_id``. Raises ``BadInput`` for a file that can't be read to its end or
    lacks one of ``columns``, and as ``figures``.
    """
    by_pair: dict[str, tuple[Any, ...]] = {}
    rejects: list[Row] = []
    known = {name for name in _OPTIONAL if any(pair[name] is not None for pair in pairs)}
    in_order = sorted(pairs, key=lambda pair: (pair["source_file"], pair["source_row"]))
    for file in files:
        lines: dict[_Key, list[_Line]] = {}
        unused: list[tuple[int, str, str]] = []
        shared = known
        for row in read_rows(file.path, columns):
            values = row.problem or figures(file, row)
            if isinstance(values, str):
                unused.append((row.number, values, row.fields.get("template", "")))
                continue
            shared = known & row.fields.keys()
            word = (row.fields["word"] or None) if "word" in shared else None
            natural = truth(row.fields["is_natural"]) if "is_natural" in shared else None
            key: _Key = (row.fields["template"], word, natural)
            lines.setdefault(key, []).append((row.number, values))
        ids: dict[_Key, list[str]] = {}
        for pair in in_order:
            if file.split in (None, pair["split"]):
                optional = (pair[name] if name in shared else None for name in _OPTIONAL)
                ids.setdefault((pair["template"], *optional), []).append(pair["pair_id"])
        for wanted, group in lines.items():
            places = ids.get(wanted, ())
            used, reason = _used(wanted, group, len(places))
            by_pair.update(zip(places, (values for _, values in used), strict=False))
            unused += [(number, reason, wanted[0]) for number, _ in group[len(used) :]]
        for number, reason, template in unused:
            source = {"source_file": file.name, "source_row": number}
            rejects.append({"stage": "import", **reject, **rejected(source, reason, template)})
    return by_pair, rejects


def _used(key: _Key, lines: list[_Line], n_places: int) -> tuple[list[_Line], str]:
    """The lines of a key that are used for its pairs, and why the lines after them aren't.

    Of equal lines the surplus is unused; if there are more lines than pairs and their figures
    differ, all are.

    >>> _used(("t", None, None), [(1, (-1,)), (2, (-1,))], 1)
    ([(1, (-1,))], 'repeats row 1, and the benchmark holds such a pair 1 time(s)')
    """
    if not n_places:
        _, word, natural = key
        with_word = f", word {word!r}" if word is not None else ""
        verdict = f", is_natural {natural}" if natural is not None else ""
        return [], f"no pair of the benchmark has this template{with_word}{verdict}"
    holds = f"the benchmark holds such a pair {n_places} time(s)"
    if len(lines) <= n_places or len({values for _, values in lines}) == 1:
        return lines[:n_places], f"repeats row {lines[0][0]}, and {holds}"
    rows = ", ".join(str(number) for number, _ in lines[:5])
    return [], f"rows {rows} are of one template with different figures, and {holds}"


def read_rows(path: Path, columns: tuple[str, ...]) -> list[Record]:
    """All rows of a table that has ``columns``; see ``records_of``.

    A last row without a line end has a problem, since a cut number still reads like a number.
    Raises ``BadInput`` for a file that can't be read to its end or lacks a column.
    """
    content = read_text(path)
    rows = list(records_of(content, str(path), columns))
    if rows and not content.endswith(("\n", "\r")):
        rows[-1] = rows[-1]._replace(problem=rows[-1].problem or _CUT)
    return rows


def finite(text: str) -> float | None:
    """The number in a field; ``None`` if the text isn't a finite number.

    >>> finite("-3.5"), finite("nan"), finite("")
    (-3.5, None, None)
    """
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
