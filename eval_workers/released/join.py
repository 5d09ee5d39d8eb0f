"""Which row of a released table is about which pair: told by the template, not by its place.

Neither a row's place nor its index can be trusted: a row that is doubled or missing would move all
that follow, and the index of the preprocessed sets counts natural rows only. Pairs that agree in
template, word and verdict hold the same sentences, so whichever of them a row is given to, its
figures are theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plumbline.warehouse.text.csv_rows import Record, truth

#: Template, then the word and the verdict of naturalness where both sides know them.
Key = tuple[str, object, object]


@dataclass(frozen=True)
class Line:
    """A readable row of a released table: what tells its pair, its figures as text, its number."""

    key: Key
    figures: tuple[str, ...]
    row: int


def shared_columns(rows: Iterable[Record], pairs: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """Of ``word`` and ``is_natural``, those that the table has and some pair has a value for."""
    have = next((row.fields.keys() for row in rows if row.problem is None), ())
    known = (c for c in ("word", "is_natural") if any(p[c] is not None for p in pairs))
    return frozenset(c for c in known if c in have)


def row_key(fields: Mapping[str, str], shared: frozenset[str]) -> Key:
    """The key of a table's row.

    >>> row_key({"template": "{pronoun} ran.", "word": "run"}, frozenset({"word"}))
    ('{pronoun} ran.', 'run', None)
    """
    word = (fields["word"] or None) if "word" in shared else None
    natural = truth(fields["is_natural"]) if "is_natural" in shared else None
    return fields["template"], word, natural


def pair_ids(
    pairs: Iterable[Mapping[str, Any]], shared: frozenset[str], split: str | None
) -> dict[Key, list[str]]:
    """Identifiers of the pairs of one part (of all without one) by key, in the source's order."""
    found: dict[Key, list[str]] = {}
    for pair in sorted(pairs, key=lambda p: (p["source_file"], p["source_row"])):
        if split is None or pair["split"] == split:
            word, natural = (pair[c] if c in shared else None for c in ("word", "is_natural"))
            found.setdefault((pair["template"], word, natural), []).append(pair["pair_id"])
    return found


def match(
    lines: Iterable[Line], ids: Mapping[Key, Sequence[str]]
) -> tuple[dict[str, Line], list[tuple[Line, str]]]:
    """The line of each pair, and the lines that are none's with the reason.

    Of more rows than pairs the surplus goes when all hold the same figures; when they differ,
    nothing tells which are right, and all of them go.

    >>> one, two = Line(("t", None, None), ("-1",), 1), Line(("t", None, None), ("-1",), 2)
    >>> found, rest = match([one, two], {("t", None, None): ["a"]})
    >>> found["a"].row, [reason for _, reason in rest]
    (1, ['repeats row 1, and the benchmark holds such a pair 1 time(s)'])
    """
    groups: dict[Key, list[Line]] = {}
    for line in lines:
        groups.setdefault(line.key, []).append(line)
    found: dict[str, Line] = {}
    unused: list[tuple[Line, str]] = []
    for key, group in groups.items():
        places = ids.get(key, ())
        used = group
        if len(group) > len(places):
            same = len({line.figures for line in group}) == 1
            used = group[: len(places)] if same else []
            reason = _surplus_reason(key, group, len(places), same)
            unused += [(line, reason) for line in group[len(used) :]]
        found.update(zip(places, used, strict=False))
    return found, unused


def _surplus_reason(key: Key, group: Sequence[Line], n_places: int, same: bool) -> str:
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
