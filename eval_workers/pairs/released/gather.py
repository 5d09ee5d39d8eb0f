"""Assigns rows of released files to a benchmark's pairs, and makes rejects of all other rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from plumbline.eval_workers.pairs.released.released_files import ReleasedFile, grouped
from plumbline.warehouse.input.csv_rows import Record, read_text, records_of, truth
from plumbline.warehouse.rejects import rejected

Row: TypeAlias = "dict[str, Any]"
#: Takes a row with the right number of fields; returns its figures, or the problem with the row.
Figures: TypeAlias = "Callable[[ReleasedFile, Record], tuple[Any, ...] | str]"


def gather(
    files: Iterable[ReleasedFile],
    places: Places,
    columns: tuple[str, ...],
    figures: Figures,
    reject: Mapping[str, str],
) -> tuple[dict[str, TableLine], list[Row]]:
    """Pair id -> its line in the files; and rows of ``reject`` for all other lines.

    ``files`` are the parts of one benchmark; ``reject`` has the rejects' ``subject`` and
    ``run_id``. Raises ``BadInput`` for a file that can't be read to its end or lacks one of
    ``columns``, and as ``figures``.
    """
    by_pair: dict[str, TableLine] = {}
    rejects: list[Row] = []
    for file in files:
        shared: frozenset[str] = frozenset()
        lines: list[TableLine] = []
        unused: list[tuple[int, str, str]] = []
        for row in read_rows(file.path, columns):
            values = row.problem or figures(file, row)
            if isinstance(values, str):
                unused.append((row.number, values, row.fields.get("template", "")))
                continue
            if not lines:
                shared = places.shared(row.fields)
            lines.append(TableLine(row_key(row.fields, shared), values, row.number))
        matched, rest = match(lines, places.ids(shared, file.split))
        by_pair |= matched
        unused += [(line.row, reason, line.key[0]) for line, reason in rest]
        for number, reason, template in unused:
            source = {"source_file": file.name, "source_row": number}
            rejects.append({"stage": "import", **reject, **rejected(source, reason, template)})
    return by_pair, rejects


_CUT = "the file ends in this row without a line end: it may be cut short"


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


#: Template, then word and ``is_natural``, each ``None`` unless both table and benchmark have it.
Key = tuple[str, object, object]
_OPTIONAL = ("word", "is_natural")


class TableLine(NamedTuple):
    """A usable row of a released table: the key of its pair, its figures, its row number."""

    key: Key
    figures: tuple[Any, ...]
    row: int


def row_key(fields: Mapping[str, str], shared: frozenset[str]) -> Key:
    """The key of a table's row; ``shared`` are the optional columns to use.

    >>> row_key({"template": "{pronoun} ran.", "word": "run"}, frozenset({"word"}))
    ('{pronoun} ran.', 'run', None)
    """
    word = (fields["word"] or None) if "word" in shared else None
    natural = truth(fields["is_natural"]) if "is_natural" in shared else None
    return fields["template"], word, natural


class Places:
    """The pairs of a benchmark, by the key of a table's row."""

    def __init__(self, pairs: Sequence[Mapping[str, Any]]) -> None:
        self._pairs = sorted(pairs, key=lambda p: (p["source_file"], p["source_row"]))
        self._columns = {c for c in _OPTIONAL if any(p[c] is not None for p in pairs)}
        self._ids: dict[tuple[frozenset[str], str | None], dict[Key, list[str]]] = {}

    def __len__(self) -> int:
        return len(self._pairs)

    def shared(self, columns: Container[str]) -> frozenset[str]:
        """The columns of ``_OPTIONAL`` that are in ``columns`` and set in some pair."""
        return frozenset(c for c in self._columns if c in columns)

    def ids(self, shared: frozenset[str], split: str | None) -> Mapping[Key, Sequence[str]]:
        """Key -> ids of the pairs of a part (``None``: of all parts), in the source's order."""
        ids = self._ids.setdefault((shared, split), {})
        if not ids:
            for pair in self._pairs:
                if split is None or pair["split"] == split:
                    word, natural = (pair[c] if c in shared else None for c in _OPTIONAL)
                    ids.setdefault((pair["template"], word, natural), []).append(pair["pair_id"])
        return ids


def match(
    lines: Iterable[TableLine], ids: Mapping[Key, Sequence[str]]
) -> tuple[dict[str, TableLine], list[tuple[TableLine, str]]]:
    """The line of each pair, and the unused lines with the reason.

    If a key has more lines than pairs, the surplus is unused; if the figures of these lines differ,
    all of them are unused.

    >>> lines = [TableLine(("t", None, None), ("-1",), row) for row in (1, 2)]
    >>> matched, rest = match(lines, {("t", None, None): ["a"]})
    >>> matched["a"].row, [reason for _, reason in rest]
    (1, ['repeats row 1, and the benchmark holds such a pair 1 time(s)'])
    """
    by_pair: dict[str, TableLine] = {}
    unused: list[tuple[TableLine, str]] = []
    for key, group in grouped(lines, lambda line: line.key).items():
        places = ids.get(key, ())
        used = group
        if len(group) > len(places):
            are_equal = len({line.figures for line in group}) == 1
            used = group[: len(places)] if are_equal else []
            reason = _surplus_reason(key, group, len(places), are_equal)
            unused += [(line, reason) for line in group[len(used) :]]
        by_pair.update(zip(places, used, strict=False))
    return by_pair, unused


def _surplus_reason(key: Key, group: Sequence[TableLine], n_places: int, are_equal: bool) -> str:
    if not n_places:
        _, word, natural = key
        with_word = f", word {word!r}" if word is not None else ""
        verdict = f", is_natural {natural}" if natural is not None else ""
        return f"no pair of the benchmark has this template{with_word}{verdict}"
    holds = f"the benchmark holds such a pair {n_places} time(s)"
    if are_equal:
        return f"repeats row {group[0].row}, and {holds}"
    rows = ", ".join(str(line.row) for line in group[:5])
    return f"rows {rows} are of one template with different figures, and {holds}"
