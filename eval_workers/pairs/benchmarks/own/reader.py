"""Reads the rows of a user's file: each row gives pairs, or a reject with the reason."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from plumbline.eval_workers.pairs.benchmarks._parsed import Parsed, Row, pair_row, shared_template
from plumbline.eval_workers.pairs.benchmarks.own.file_rows import (
    SourceRow,
    files_of,
    rows_of_file,
    value_at,
)
from plumbline.eval_workers.pairs.benchmarks.own.filler import Filler, between
from plumbline.eval_workers.pairs.benchmarks.own.recipe import COLUMNS, Choices, Recipe
from plumbline.warehouse.errors import BadInput

#: Value of column `direction` -> side that a stereotype favours, unless the recipe lists others.
_SIDES = {"a": "a", "b": "b", "sentence_a": "a", "sentence_b": "b", "stereo": "a"}
_SIDES |= {"antistereo": "b"}
#: A placeholder in the ``sentence`` of a recipe's choices.
SLOT = re.compile(r"\{([^{}]*)\}")
#: Columns whose values have to be texts in the file, not numbers or lists.
_TEXTS = ("sentence_a", "sentence_b", "template")


class Unusable(ValueError):
    """Raised for a row that makes no pair; the text is the reason."""


def read_pairs(name: str, source: Path, recipe: Recipe, filler: Filler) -> Parsed:
    """The pairs of a file, or of all files of a directory or pattern.

    A row has two sentences, a template, or the labelled texts that the recipe's ``choices``
    describe. A template makes a pair for every two groups of ``filler`` and each position in its
    lists of words. A row that equals an earlier row in every column is rejected. Raises
    ``BadInput`` for a file that can't be read or lacks a column.
    """
    files = files_of(source)
    is_alone = len(files) == 1
    parsed = Parsed(name, expected=recipe.expected)
    place_of: dict[bytes, str] = {}
    for path in files:
        is_first = True
        for row in rows_of_file(path, recipe.rows):
            if is_first and not row.problem:
                _check_columns(path, row, recipe)
                is_first = False
            file = row.file if is_alone else str(path.relative_to(_common_directory(files)))
            place = f"row {row.number}" + ("" if is_alone else f" of {file}")
            if row.problem is None and (same := place_of.setdefault(_digest(row), place)) != place:
                row = replace(row, problem=f"the same as {same}")
            number = f"{row.number:05d}"
            default_id = number if is_alone else f"{file}:{number}"
            try:
                _check_row(row, recipe)
                parsed.take(_pairs(row, file, default_id, recipe, filler))
            except ValueError as e:
                excerpt = " | ".join(str(v) for v in row.fields.values() if isinstance(v, str))
                category = _value(row, recipe, "category")
                parsed.reject(file, row.number, str(e), excerpt[:400], category)
    return parsed


def _digest(row: SourceRow) -> bytes:
    """Hash of a row's columns and values; the order of the columns does not matter."""
    fields = json.dumps(sorted(row.fields.items(), key=str), default=str)
    return hashlib.blake2b(fields.encode(), digest_size=16).digest()


def _common_directory(files: Sequence[Path]) -> Path:
    parents = set.intersection(*({*path.parents} for path in files))
    return max(parents, key=lambda path: len(path.parts))


def _check_columns(path: Path, row: SourceRow, recipe: Recipe) -> None:
    """Raise ``BadInput`` if a file's first row lacks a required column or one of the recipe."""
    if recipe.choices:
        return
    required = ["template"] if _has(row, recipe, "template") else ["sentence_a", "sentence_b"]
    missing = [name for name in required if not _has(row, recipe, name)]
    unknown = [column for column in recipe.columns.values() if not _is_there(row.fields, column)]
    if missing or unknown:
        absent = ", ".join(dict.fromkeys([*unknown, *(recipe.columns.get(n, n) for n in missing)]))
        has = ", ".join(map(str, row.fields)) or "none"
        name = next(iter(missing), required[0])
        fix = f"it has {has}: name them with --column {name}=NAME, docs/pairs.md"
        raise BadInput(str(path), f"no column {absent}", fix)


def _is_there(fields: Mapping[str, Any], column: str) -> bool:
    return column in fields or ("." in column and column.split(".")[0] in fields)


def _has(row: SourceRow, recipe: Recipe, name: str) -> bool:
    return name in recipe.fixed or _is_there(row.fields, recipe.columns.get(name, name))


def _check_row(row: SourceRow, recipe: Recipe) -> None:
    if row.problem:
        raise Unusable(row.problem)
    for column, values in recipe.only.items():
        value = _text(value_at(row.fields, column))
        if not any(_matches(value, taken) for taken in values):
            raise Unusable(f"{column} is {value!r}, the recipe takes {', '.join(values)}")


def _matches(value: str, taken: str) -> bool:
    """True if ``value`` is ``taken``, where each ``*`` is any text.

    >>> _matches("who?", "who?"), _matches("whom", "who?"), _matches("a [MASK] ran", "*[MASK]*")
    (True, False, True)
    """
    return bool(re.fullmatch(".*".join(map(re.escape, taken.split("*"))), value, re.DOTALL))


def _value(row: SourceRow, recipe: Recipe, name: str) -> str:
    """A row's value of a column of ours; without one, the recipe's fixed value."""
    field = value_at(row.fields, recipe.columns.get(name, name))
    return recipe.fixed.get(name, "") if field is None else _text(field)


def _pairs(row: SourceRow, file: str, default_id: str, recipe: Recipe, filler: Filler) -> list[Row]:
    """Rows of ``benchmark_pair``, without ``benchmark``, that a source row makes."""

    def value(name: str) -> str:
        field = value_at(row.fields, recipe.columns.get(name, name))
        if name in _TEXTS and not (field is None or isinstance(field, str)):
            raise Unusable(f"{name} is {field!r}, expected a text")
        return _value(row, recipe, name)

    identifier = value("id") or default_id
    common: Row = {
        "category": value("category") or None,
        "weight": _weight(value("weight")),
        "word": value("word") or None,
        **_clusters(recipe, value),
        "extra": _extra(row.fields, recipe),
        "source_file": file,
        "source_row": row.number,
    }
    template = value("template")
    if template and not value("sentence_a"):
        items = filler.items(template, identifier)
        return [pair for item in items for pair in between(item, **common)]
    direction = _direction(value("direction"), recipe.direction)
    if recipe.choices:
        a, b = _chosen(row.fields, recipe.choices)
    else:
        a, b = value("sentence_a"), value("sentence_b")
    common |= {"item_id": value("item") or identifier, "direction": direction}
    usual = recipe.groups if recipe.groups and len(recipe.groups) == 2 else ("a", "b")
    groups = value("group_a") or usual[0], value("group_b") or usual[1]
    for group in groups if recipe.groups else ():
        if group not in (recipe.groups or ()):
            group_names = ", ".join(recipe.groups or ())
            raise Unusable(f"the group is {group!r}, the recipe names {group_names}")
    return [pair_row(identifier, template or shared_template(a, b), (a, b), groups, **common)]


def _clusters(recipe: Recipe, value: Callable[[str], str]) -> Row:
    """Clusters of the row, each with the name of its column in front.

    A number at the end of the column's name is left out: ``job_1`` and ``job_2`` hold names of one
    kind.
    """
    columns = {name: recipe.columns.get(name, name) for name in ("cluster", "cluster_2")}
    return {
        name: f"{re.sub(r'[ _]?[0-9]+$', '', column)}: {cluster}"
        for name, column in columns.items()
        if (cluster := value(name))
    }


def _weight(text: str) -> float | None:
    if not text:
        return None
    try:
        weight = float(text)
    except ValueError:
        weight = math.nan
    if not 0 <= weight < math.inf:
        raise Unusable(f"weight is {text!r}, expected a number of 0 or more")
    return weight


def _direction(text: str, values_of: Mapping[str, Sequence[str]]) -> str | None:
    if not text:
        return None
    sides = {value: side for side, values in values_of.items() for value in values} or _SIDES
    if text not in sides:
        raise Unusable(f"direction is {text!r}, expected one of {', '.join(sides)}")
    return sides[text]


def _chosen(fields: Mapping[str, Any], choices: Choices) -> tuple[str, str]:
    """The two sentences of a row that lists several texts with their labels."""
    listed = _listed(fields, choices)
    labels_of_a = set(choices.a)
    if choices.a_in:
        labels = value_at(fields, choices.a_in)
        labels_of_a = {*_labels(labels)}
    neither = [text for text, labels in listed if {*labels} & {*choices.neither}]
    of_a = [text for text, labels in listed if _means(labels, labels_of_a, choices)]
    rest = [text for text, _ in listed if text not in (*of_a, *neither)]
    of_b = [t for t, labels in listed if {*labels} & {*choices.b}] if choices.b else rest
    for side, found in (("a", of_a), ("b", of_b)):
        if len(found) != 1:
            all_labels = ", ".join("/".join(labels) for _, labels in listed)
            how_many = "several" if found else "none"
            meant = f" ({' or '.join(sorted(labels_of_a))!r})" * (side == "a")
            problem = f"{how_many} of the labels {all_labels!r} mean sentence {side}{meant}"
            raise Unusable(f"{problem}, expected one")
    return _sentence(fields, choices, of_a[0]), _sentence(fields, choices, of_b[0])


def _listed(fields: Mapping[str, Any], choices: Choices) -> list[tuple[str, list[str]]]:
    """The texts of a row, each with its labels."""
    if not choices.each:
        pairs = zip(choices.texts, choices.labels, strict=True)
        return [(_text(value_at(fields, t)), _labels(value_at(fields, n))) for t, n in pairs]
    listed = value_at(fields, choices.each)
    if isinstance(listed, Mapping):  # one list per column, as in data sets on the hub
        columns = (listed.get(choices.text) or [], listed.get(choices.label) or [])
        return [(_text(t), _labels(label)) for t, label in zip(*columns, strict=False)]
    if not isinstance(listed, list) or not all(isinstance(item, Mapping) for item in listed):
        raise Unusable(f"{choices.each} is not a list of texts")
    return [(_text(item.get(choices.text)), _labels(item.get(choices.label))) for item in listed]


def _labels(value: object) -> list[str]:
    return [*map(_text, value)] if isinstance(value, list) and value else [_text(value)]


def _means(labels: Sequence[str], names: set[str], choices: Choices) -> bool:
    """True if a label means one of ``names``.

    With ``a_in`` a part of the last one may (Black in F-Black); the others are words of the text.
    """
    for part in [*labels, *(labels[-1].split("-") if choices.a_in else ())]:
        synonyms = {part, *(s for same in choices.same if part in same for s in same)}
        if {a.lower() for a in synonyms} & {w.lower() for w in names}:
            return True
    return False


def _sentence(fields: Mapping[str, Any], choices: Choices, choice: str) -> str:
    def put(match: re.Match[str]) -> str:
        return choice if match[1] == "choice" else _text(value_at(fields, match[1]))

    return SLOT.sub(put, choices.sentence).strip()


def _text(value: object) -> str:
    """A value as text; empty for ``None`` and NaN."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return value.strip() if isinstance(value, str) else str(value)


def _extra(fields: Mapping[str, Any], recipe: Recipe) -> str | None:
    """The values of all other columns, as a JSON object; ``None`` if there are none."""
    used = {recipe.columns.get(name, name) for name in COLUMNS}
    extra = {k: v for k, v in fields.items() if k and k not in used and v not in (None, "")}
    return json.dumps(extra, ensure_ascii=False, default=str) if extra else None
