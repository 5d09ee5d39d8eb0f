"""Checks a recipe, with or without its data: all problems, and the pairs it would import."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from plumbline.eval_workers.pairs.benchmarks._parsed import Parsed
from plumbline.eval_workers.pairs.benchmarks.own.baseline import add_baselines
from plumbline.eval_workers.pairs.benchmarks.own.file_rows import files_of, rows_of_file
from plumbline.eval_workers.pairs.benchmarks.own.filler import filler
from plumbline.eval_workers.pairs.benchmarks.own.pair_warnings import pair_warnings
from plumbline.eval_workers.pairs.benchmarks.own.reader import SLOT, read_pairs
from plumbline.eval_workers.pairs.benchmarks.own.recipe import Recipe, content
from plumbline.warehouse.errors import PlumblineError
from plumbline.warehouse.text import toml_file

#: Keys of a recipe that a shared benchmark needs: meaning and an example.
_TO_SHARE = {
    "licence": ("whether others may use the pairs", 'licence = "cc-by-4.0"'),
    "language": ("the code of their language", 'language = "en"'),
    "groups": ("who the sentences are about", 'groups = ["old", "young"]'),
    "citation": ("the BibTeX entry of the paper", "citation = '''@misc{key, ...}'''"),
}


@dataclass
class Checked:
    """A recipe's problems, one line each, and the pairs of its data.

    ``problems`` prevent an import; ``warnings`` name missing facts that sharing needs, and doubtful
    pairs; ``rejects`` give the reasons why rows make no pair. ``parsed`` is ``None`` if no row was
    parsed.
    """

    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    rejects: list[str] = field(default_factory=list)
    parsed: Parsed | None = None

    def groups(self) -> Counter[str]:
        """Number of pairs by the two groups that they compare, such as `old/young`."""
        pairs = self.parsed.pairs if self.parsed else []
        return Counter(f"{pair['group_a']}/{pair['group_b']}" for pair in pairs)


def check_recipe(name: str, source: Path | None) -> Checked:
    """Check a recipe, and its rows if ``source`` (a file, directory or address) is given."""
    checked = Checked()
    try:
        tables = content(name)
        checked.problems += map(str, toml_file.problems(Recipe, tables, name))
        checked.warnings += [
            f"{name}: {key} is missing: {what} (add {example})"
            for key, (what, example) in _TO_SHARE.items()
            if key not in tables and not (key == "groups" and _names_groups(tables))
        ]
        if not checked.problems and source is not None:
            _check_rows(name, toml_file.checked(Recipe, tables, name), source, checked)
    except PlumblineError as e:
        checked.problems.append(str(e))
    return checked


def _names_groups(recipe: Mapping[str, Any]) -> bool:
    tables = [recipe.get(name) for name in ("columns", "fixed")]
    return any(isinstance(table, dict) and "group_a" in table for table in tables)


def _check_rows(name: str, recipe: Recipe, source: Path, checked: Checked) -> None:
    fields = next(
        (r.fields for p in files_of(source) for r in rows_of_file(p, recipe.rows) if r.fields), {}
    )
    checked.problems += _columns_missing(name, recipe, source, fields)
    if checked.problems:
        return
    checked.parsed = parsed = read_pairs(name, source, recipe, filler(recipe.filled_groups()))
    parsed.facts = recipe.facts()
    add_baselines(parsed)
    checked.rejects += parsed.unused()
    warnings = (*parsed.unexpected(), *pair_warnings(parsed.pairs))
    checked.warnings += (line.removeprefix("Warning: ") for line in warnings)
    if not parsed.pairs:
        checked.problems.append(f"{source}: no row makes a pair (each reason is a line above)")


def _columns_missing(
    name: str, recipe: Recipe, source: Path, fields: Mapping[str, Any]
) -> Iterator[str]:
    """A line for each column that the recipe names and the first row of its data lacks."""
    for key, column in _columns_named(recipe):
        if column in fields or column.split(".")[0] in fields:
            continue
        near = get_close_matches(column, map(str, fields), 1)
        fix = f"did you mean {near[0]}" if near else f"it has {', '.join(map(str, fields))}"
        yield f"{name}: {key} is {column!r}, a column that {source} hasn't ({fix})"


def _columns_named(recipe: Recipe) -> Iterator[tuple[str, str]]:
    yield from ((f"columns.{ours}", theirs) for ours, theirs in recipe.columns.items())
    yield from ((f"only.{column}", column) for column in recipe.only)
    if choices := recipe.choices:
        for key in ("each", "a_in"):
            yield from [(f"choices.{key}", column)] if (column := getattr(choices, key)) else []
        for key in ("texts", "labels"):
            yield from ((f"choices.{key}", column) for column in getattr(choices, key))
        slots = SLOT.findall(choices.sentence)
        yield from (("choices.sentence", slot) for slot in slots if slot != "choice")
