"""Reads pairs from a user's file. A row that gives no pair is rejected with the reason."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from os.path import commonpath
from pathlib import Path
from typing import Any

from plumbline.eval_workers.pairs.file_rows import files_of, rows_of_file, value_at
from plumbline.eval_workers.pairs.parsed_pairs import Parsed, Row, filled, pair_row, shared_template
from plumbline.eval_workers.pairs.recipe import COLUMNS, Choices, Recipe
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.input.input_rows import number

#: Value of column `direction` -> the sentence that a stereotype favours. Recipes may replace this.
_SIDES = {"a": "a", "b": "b"}
#: A placeholder in the ``sentence`` of a recipe's choices.
SLOT = re.compile(r"\{([^{}]*)\}")


def read_pairs(name: str, source: Path, recipe: Recipe, groups: Sequence[str]) -> Parsed:
    """Return the pairs in a file, or in all files that are in a directory or match a pattern.

    A row has two sentences, a template, or several labelled texts. For labelled texts, the recipe's
    ``choices`` say which two to use. A template gives a pair for every two of ``groups``. Repeated
    rows are rejected. Raises ``BadInput`` if a file can't be read or lacks a column.
    """
    files = files_of(source)
    is_alone = len(files) == 1
    folder = commonpath([file.parent for file in files])
    parsed = Parsed(name)
    place_of: dict[str, str] = {}
    for path in files:
        file = path.name if is_alone else str(path.relative_to(folder))
        is_first = True
        for row_number, fields, problem in rows_of_file(path, recipe.rows):
            if is_first and not problem:
                _check_columns(path, fields, recipe)
                is_first = False
            place = f"row {row_number}" + ("" if is_alone else f" of {file}")
            values = json.dumps(sorted(fields.items(), key=str), default=str)
            if not problem and (same := place_of.setdefault(values, place)) != place:
                problem = f"the same as {same}"
            row: Row = {"source_file": file, "source_row": row_number}
            try:
                if problem:
                    raise ValueError(problem)
                default_id = f"{row_number:05d}" if is_alone else f"{file}:{row_number:05d}"
                parsed.take(_pairs(fields, recipe, default_id, groups, row))
            except ValueError as e:
                excerpt = " | ".join(str(v) for v in fields.values() if isinstance(v, str))
                parsed.reject(row, str(e), excerpt[:400])
    return parsed


def _check_columns(path: Path, fields: Mapping[str, Any], recipe: Recipe) -> None:
    if recipe.choices:
        return

    def is_missing(column: str) -> bool:
        return not {column, column.split(".")[0]} & fields.keys()

    required = {name: recipe.columns.get(name, name) for name in ("sentence_a", "sentence_b")}
    if "template" in recipe.fixed or not is_missing(recipe.columns.get("template", "template")):
        required = {}
    needed = [theirs for ours, theirs in required.items() if ours not in recipe.fixed]
    columns = dict.fromkeys([*recipe.columns.values(), *needed])
    missing = [column for column in columns if is_missing(column)]
    if missing:
        name = next((ours for ours, theirs in required.items() if theirs in missing), "template")
        fix = f"it has {', '.join(map(str, fields)) or 'none'}: rename the one for {name}"
        fix += ", or name it in a recipe, docs/pairs.md"
        raise BadInput(str(path), f"no column {', '.join(missing)}", fix)


def _pairs(
    fields: Mapping[str, Any], recipe: Recipe, default_id: str, groups: Sequence[str], source: Row
) -> list[Row]:
    """Return the pairs that a row gives. Raises ``ValueError`` with the reason if it gives none."""
    for column, taken in recipe.only.items():
        value = _text(value_at(fields, column))
        if not any(_matches(value, one) for one in taken):
            raise ValueError(f"{column} is {value!r}, the recipe accepts {', '.join(taken)}")
    column_of = {name: recipe.columns.get(name, name) for name in COLUMNS}
    found = {name: value_at(fields, column) for name, column in column_of.items()}
    for name in ("template", *(() if recipe.choices else ("sentence_a", "sentence_b"))):
        if not (found[name] is None or isinstance(found[name], str)):
            raise ValueError(f"{name} is {found[name]!r}, expected a text")
    text = {
        name: recipe.fixed.get(name, "") if value is None else _text(value)
        for name, value in found.items()
    }
    used = set(column_of.values())
    rest = {k: v for k, v in fields.items() if k and k not in used and v not in (None, "")}
    weight = number(text, "weight") if text["weight"] else None
    if weight is not None and weight < 0:
        raise ValueError(f"weight is {text['weight']!r}, expected a number of 0 or more")
    identifier, template = text["id"] or default_id, text["template"]
    common: Row = {
        "category": text["category"] or None,
        "weight": weight,
        "word": text["word"] or None,
        "extra": json.dumps(rest, ensure_ascii=False, default=str) if rest else None,
        **source,
    }
    for name in ("cluster", "cluster_2"):
        if text[name]:  # columns `job_1` and `job_2` both hold clusters of kind `job`
            kind = re.sub(r"[ _]?[0-9]+$", "", column_of[name])
            common[name] = f"{kind}: {text[name]}"
    if template and not text["sentence_a"]:
        return filled(template, identifier, groups, **common)
    directions = {value: side for side, values in recipe.direction.items() for value in values}
    directions = directions or _SIDES
    if text["direction"] and text["direction"] not in directions:
        expected = ", ".join(directions)
        raise ValueError(f"direction is {text['direction']!r}, expected one of {expected}")
    common["item_id"] = text["item"] or identifier
    common["direction"] = directions.get(text["direction"])
    a, b = text["sentence_a"], text["sentence_b"]
    if recipe.choices:
        a, b = _chosen(fields, recipe.choices)
    names = recipe.groups or ()
    usual = names if len(names) == 2 else ("a", "b")
    of_pair = text["group_a"] or usual[0], text["group_b"] or usual[1]
    if names and (unknown := [group for group in of_pair if group not in names]):
        raise ValueError(f"the group is {unknown[0]!r}, the recipe names {', '.join(names)}")
    return [pair_row(identifier, template or shared_template(a, b), (a, b), of_pair, **common)]


def _matches(value: str, taken: str) -> bool:
    """Return True if ``value`` matches ``taken``, in which each ``*`` stands for any text.

    >>> _matches("who?", "who?"), _matches("whom", "who?"), _matches("a [MASK] ran", "*[MASK]*")
    (True, False, True)
    """
    return bool(re.fullmatch(".*".join(map(re.escape, taken.split("*"))), value, re.DOTALL))


def _chosen(fields: Mapping[str, Any], choices: Choices) -> tuple[str, str]:
    """Return the two sentences of a row that lists several texts with their labels."""
    listed = _listed(fields, choices)
    values = {name: _text(value_at(fields, name)) for name in SLOT.findall(choices.sentence)}

    def sentence(side: str, names: Sequence[str]) -> str:
        found = [text for text, label in listed if label in names]
        if len(found) != 1:
            labels = ", ".join(label for _, label in listed)
            problem = f"{'several' if found else 'none'} of the labels {labels!r} mean sentence"
            raise ValueError(f"{problem} {side} ({' or '.join(names)!r}), expected one")
        choice = {"choice": found[0]}
        return SLOT.sub(lambda m: (values | choice)[m[1]], choices.sentence).strip()

    return sentence("a", choices.a), sentence("b", choices.b)


def _listed(fields: Mapping[str, Any], choices: Choices) -> list[tuple[str, str]]:
    listed = value_at(fields, choices.each)
    if isinstance(listed, Mapping):  # one list of texts, one list of labels
        columns = (listed.get(choices.text) or [], listed.get(choices.label) or [])
        return [(_text(t), _text(label)) for t, label in zip(*columns, strict=False)]
    if not isinstance(listed, list) or not all(isinstance(item, Mapping) for item in listed):
        raise ValueError(f"{choices.each} is not a list of texts")
    return [(_text(item.get(choices.text)), _text(item.get(choices.label))) for item in listed]


def _text(value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return value.strip() if isinstance(value, str) else str(value)
