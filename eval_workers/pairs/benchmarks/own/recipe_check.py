"""Checks a recipe, with or without its data: all problems, and the pairs it would import."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from plumbline.eval_workers.pairs.benchmarks import ImportOptions, read_pairs_of
from plumbline.eval_workers.pairs.benchmarks.own.baseline import add_baselines
from plumbline.eval_workers.pairs.benchmarks.own.pair_warnings import pair_warnings
from plumbline.eval_workers.pairs.benchmarks.own.parsed_pairs import Parsed
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


def check_recipe(
    benchmark: str, source: Path | None, options: ImportOptions, data: str | Path = ""
) -> Checked:
    """Check the recipe of an import, and the rows that the import would read.

    Without ``source`` (a file, directory or address), the rows are those at the recipe's location
    under ``data``; a recipe without a location is checked alone.
    """
    checked, name = Checked(), options.recipe or benchmark
    try:
        tables = content(name)
        checked.problems += map(str, toml_file.problems(Recipe, tables, name))
        names_groups = "group_a" in f"{tables.get('columns')} {tables.get('fixed')}"
        checked.warnings += [
            f"{name}: {key} is missing: {what} (add {example})"
            for key, (what, example) in _TO_SHARE.items()
            if key not in tables and not (key == "groups" and names_groups)
        ]
        if not checked.problems and (source or toml_file.checked(Recipe, tables, name).location):
            _check_rows(*read_pairs_of(benchmark, source, options, data), checked)
    except PlumblineError as e:
        checked.problems.append(str(e))
    return checked


def _check_rows(parsed: Parsed, source: Path | None, checked: Checked) -> None:
    checked.parsed = parsed
    add_baselines(parsed)
    checked.rejects += parsed.unused()
    checked.warnings += (line.removeprefix("Warning: ") for line in pair_warnings(parsed))
    if not parsed.pairs:
        checked.problems.append(f"{source}: no row makes a pair (each reason is a line above)")
