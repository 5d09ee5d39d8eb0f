"""Rows of a released table joined to pairs by template, word and verdict.

Neither a row's place nor its index can be trusted: a doubled or missing row would move all that
follow, and the index of the preprocessed sets counts natural rows only. Pairs that agree in
template, word and verdict hold the same sentences, so figures of one are those of the other.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from plumbline.eval_workers.pairs.released.files import grouped
from plumbline.warehouse.text.csv_rows import truth

#: Template, then the word and the verdict of naturalness where both sides know them.
Key = tuple[str, object, object]
_OPTIONAL = ("word", "is_natural")


class TableLine(NamedTuple):
    """A readable row of a released table: the key of its pair, its figures, its number."""

    key: Key
    figures: tuple[Any, ...]
    row: int


def row_key(fields: Mapping[str, str], shared: frozenset[str]) -> Key:
    """The key of a table's row.

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
        """Of ``word`` and ``is_natural``, those that a table has and some pair has a value for."""
        return frozenset(c for c in self._columns if c in columns)

    def ids(self, shared: frozenset[str], split: str | None) -> Mapping[Key, Sequence[str]]:
        """Identifiers of the pairs of one part (without one, of all) by key, in source order."""
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

    Of more rows than pairs the surplus goes if all hold the same figures; if they differ, all go.

    >>> lines = [TableLine(("t", None, None), ("-1",), row) for row in (1, 2)]
    >>> found, rest = match(lines, {("t", None, None): ["a"]})
    >>> found["a"].row, [reason for _, reason in rest]
    (1, ['repeats row 1, and the benchmark holds such a pair 1 time(s)'])
    """
    found: dict[str, TableLine] = {}
    unused: list[tuple[TableLine, str]] = []
    for key, group in grouped(lines, lambda line: line.key).items():
        places = ids.get(key, ())
        used = group
        if len(group) > len(places):
            same = len({line.figures for line in group}) == 1
            used = group[: len(places)] if same else []
            reason = _surplus_reason(key, group, len(places), same)
            unused += [(line, reason) for line in group[len(used) :]]
        found.update(zip(places, used, strict=False))
    return found, unused


def _surplus_reason(key: Key, group: Sequence[TableLine], n_places: int, same: bool) -> str:
    if not n_places:
        _, word, natural = key
        with_word = f", word {word!r}" if word is not None else ""
        verdict = f", is_natural {natural}" if natural is not None else ""
        return f"no pair of the benchmark has this template{with_word}{verdict}"
    holds = f"the benchmark holds such a pair {n_places} time(s)"
    if same:
        return f"repeats row {group[0].row}, and {holds}"
    rows = ", ".join(str(line.row) for line in group[:5])
    return f"rows {rows} are of one template with different figures, and {holds}"
