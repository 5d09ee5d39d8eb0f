"""Reads benchmarks and stores their pairs. A benchmark is a module, a recipe or a user's file.

Other packages add benchmarks through ``plumbline.benchmarks`` entry points: see ``docs/extend.md``.
A benchmark module describes one or more benchmarks, and defines four names:

- ``NAMES``: the names a user types.
- ``DESCRIPTION``: one line that describes its benchmarks.
- ``DEFAULT_LOCATION``: path of the source below ``PLUMBLINE_DATA``; ``None`` if there is no source.
- ``read(name, source)``: a function that returns a ``Parsed``; ``source`` is a path or ``None``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from plumbline.eval_workers.pairs.parsed_pairs import USUAL, checked_groups
from plumbline.eval_workers.pairs.parsed_pairs import Parsed as Parsed
from plumbline.eval_workers.pairs.parsed_pairs import Row as Row
from plumbline.eval_workers.pairs.reader import read_pairs
from plumbline.eval_workers.pairs.recipe import NO_RECIPE, RECIPES, facts_in, load
from plumbline.warehouse.errors import BadInput, MissingComponent, UsageProblem, did_you_mean
from plumbline.warehouse.plugins import Registry
from plumbline.warehouse.storage.store import Store

#: Columns whose values are replaced when a template is filled for other groups.
_FILLED = (
    *("pair_id", "item_id", "template", "sentence_a", "sentence_b", "group_a", "group_b"),
    "pronoun_first",
)


class Benchmark(Protocol):
    """The interface that each benchmark module of this package has."""

    NAMES: tuple[str, ...]
    DESCRIPTION: str
    DEFAULT_LOCATION: str | None

    def read(self, name: str, source: Path | None) -> Parsed:
        """Return a source's pairs and rejects. Raises ``BadInput`` if the source can't be read."""
        ...


MODULES = Registry("benchmark", __name__, ".py", "plumbline.benchmarks", Benchmark)


def discover() -> dict[str, str]:
    """Import all benchmark modules, and map each benchmark's name to its description.

    >>> "use-5" in discover()
    True
    """
    modules: list[Benchmark] = [MODULES.load(module) for module in MODULES.names()]
    return {name: module.DESCRIPTION for module in modules for name in module.NAMES}


def find(name: str) -> Benchmark:
    """Return the module of a benchmark. Raises ``UsageProblem`` if none or several have the name.

    >>> find("use-10").DEFAULT_LOCATION
    'unstereo-eval/data/datasets/raw'
    """
    loaded: dict[str, Benchmark] = {module: MODULES.load(module) for module in MODULES.names()}
    modules = {module: one for module, one in loaded.items() if name in one.NAMES}
    if len(modules) > 1:
        problem = f"the modules {' and '.join(modules)} each have one of this name"
        raise UsageProblem(f"benchmark {name!r}", problem, "rename or uninstall one")
    if not modules:
        raise _unknown(name, discover())
    return next(iter(modules.values()))


def _unknown(name: str, known: Iterable[str], otherwise: str = "") -> UsageProblem:
    fix = did_you_mean(name, known, f"there are {', '.join(sorted(known))}{otherwise}")
    return UsageProblem(f"benchmark {name!r}", "unknown", fix)


def default_source(name: str, data: str | Path = "") -> Path | None:
    """Return the default path of a benchmark's or recipe's file; ``None`` if there is no default.

    ``data`` is the directory that holds the released files; the default is the environment variable
    ``PLUMBLINE_DATA``. Raises what ``under_data`` raises.
    """
    is_recipe = name in RECIPES.names()
    location = load(name).location if is_recipe else find(name).DEFAULT_LOCATION
    return None if location is None else under_data(f"benchmark {name}", location, data)


def under_data(what: str, location: str, data: str | Path) -> Path:
    """Return the path of ``location`` in the folder ``data``, by default in ``PLUMBLINE_DATA``.

    The first folder of ``location`` is the name of a repository. ``data`` holds a clone of this
    repository, or is the clone itself. Raises ``MissingComponent`` if neither ``data`` nor
    ``PLUMBLINE_DATA`` is set. ``what`` names the missing component in the error.
    """
    if root := data or os.environ.get("PLUMBLINE_DATA"):
        inside = Path(root, *Path(location).parts[1:])
        is_clone = inside.exists() and inside != Path(root)
        return inside if is_clone else Path(root) / location
    problem = f"its released files, {location}, are not installed"
    fix = "give --source PATH, or set PLUMBLINE_DATA, or `data` of plumbline.toml, to the "
    fix += "directory that holds them: docs/benchmarks.md"
    raise MissingComponent(what, problem, fix)


def import_benchmark(
    store: Store,
    name: str,
    source: Path | None,
    run_id: str,
    data: str | Path = "",
    groups: tuple[str, ...] = (),
    recipe: str = "",
) -> Parsed:
    """Read a benchmark, and store its pairs and rejects, replacing earlier rows. Return both.

    The arguments are those of ``read_pairs_of``. Raises what ``read_pairs_of`` raises, and
    ``BadInput`` if there is no usable pair. If there is an error, nothing is written.
    """
    parsed, path = read_pairs_of(name, source, data, groups, recipe)
    replace_benchmark(store, name, parsed, path, run_id)
    return parsed


def replace_benchmark(
    store: Store, name: str, parsed: Parsed, path: Path | None, run_id: str
) -> None:
    """Write the pairs, facts and rejects of a benchmark, replacing its earlier rows.

    Raises ``BadInput``, and writes nothing, if there are no pairs.
    """
    check_has_pairs(name, parsed, path)
    with store.transaction(run_id, f"benchmark {name}"):
        replace_pairs(store, name, parsed.pairs, run_id)
        if parsed.facts or store.read("benchmark_fact", benchmark=name).num_rows:
            replace_facts(store, name, parsed.facts, run_id)
        rejects = {"stage": "benchmark", "subject": name}
        store.replace("reject", parsed.rejects, rejects, run_id)


def caveats(parsed: Parsed) -> list[str]:
    """Return warnings: one about the metric PD, unless all pairs compare female and male."""
    usual = all((pair["group_a"], pair["group_b"]) == USUAL for pair in parsed.pairs)
    line = f"{parsed.name}: PD also depends on how frequent the differing words are"
    return [] if usual else [f"{line}: docs/pairs.md"]


def check_has_pairs(name: str, parsed: Parsed, path: Path | None) -> None:
    """Raise ``BadInput`` if a benchmark has no pairs. The error names ``path``, their source."""
    if not parsed.pairs:
        where, rows = f" in {path}" if path else "", "which has no rows"
        if parsed.rejects:
            rows = f"{len(parsed.rejects)} rows rejected; the first: {parsed.rejects[0]['reason']}"
        raise BadInput(f"benchmark {name}", f"no usable pair{where}, {rows}")


def read_pairs_of(
    name: str,
    source: Path | None,
    data: str | Path = "",
    groups: tuple[str, ...] = (),
    recipe: str = "",
) -> tuple[Parsed, Path | None]:
    """Return the pairs of a benchmark, and the path they were read from. Writes nothing.

    ``name`` is the name of a benchmark or recipe, or any new name for the user's own file.
    ``source`` is a path; ``None`` means ``default_source(name, data)``. ``recipe`` is the name or
    path of the recipe for the user's own file. Templates are filled for ``groups``; the default is
    the recipe's groups, or else female and male.

    Raises what ``default_source`` raises, and ``BadInput`` if the source can't be read. Raises
    ``UsageProblem`` for an unknown name without a source.
    """
    from plumbline.eval_workers.pairs.benchmarks import pairs

    if not recipe and name in discover():
        source = source if source is not None else default_source(name, data)
        if source is not None and not source.exists():
            raise BadInput(f"benchmark {name}", f"{source} does not exist", "give --source PATH")
        return for_groups(find(name).read(name, source), groups), source
    if source is not None and source.suffix == ".toml":
        return for_groups(pairs.read(name, source), groups), source
    recipe = recipe or (name if name in RECIPES.names() else "")
    return _read_own(name, source, data, groups, recipe)


def _read_own(
    name: str, source: Path | None, data: str | Path, groups: tuple[str, ...], recipe_name: str
) -> tuple[Parsed, Path]:
    """Read a user's file, with a recipe if one is named. Return the pairs and the file's path."""
    recipe = load(recipe_name) if recipe_name else NO_RECIPE
    if source is None and recipe.location:
        source = under_data(f"benchmark {name}", recipe.location, data)
    elif source is None and recipe_name:
        raise UsageProblem(f"recipe {recipe_name}", "needs a file", f"--source: {recipe.source}")
    elif source is None:
        raise _unknown(name, [*discover(), *RECIPES.names()], "; or give --source FILE")
    groups = checked_groups(groups or recipe.filled_groups())
    facts = recipe.facts() if recipe_name else facts_in(source)
    return replace(read_pairs(name, source, recipe, groups), facts=facts), source


def for_groups(parsed: Parsed, groups: tuple[str, ...]) -> Parsed:
    """Fill a benchmark's templates for the chosen groups; reject templates that can't be filled."""
    if not groups:
        return parsed
    groups = checked_groups(groups)
    chosen = replace(parsed, pairs=[], _seen=set())
    for pair in parsed.pairs:
        columns = {k: v for k, v in pair.items() if k not in _FILLED}
        pair_id, template = str(pair["pair_id"]), str(pair["template"])
        chosen.add(pair_id=pair_id, template=template, groups=groups, **columns)
    return chosen


def replace_facts(store: Store, benchmark: str, facts: Mapping[str, str], run_id: str) -> None:
    """Replace the facts about a benchmark. The card and the report keep the order of ``facts``."""
    rows = [
        {"position": k, "fact": fact, "said": text}
        for k, (fact, text) in enumerate(facts.items(), 1)
    ]
    store.replace("benchmark_fact", rows, {"benchmark": benchmark}, run_id)


def replace_pairs(
    store: Store, benchmark: str, pairs: Sequence[dict[str, Any]], run_id: str
) -> None:
    """Replace the pairs of a benchmark, and delete the results for removed or changed pairs.

    ``Table.made_from`` says which tables hold such results. If a pair was removed or changed, all
    rejects from scoring the benchmark are deleted too, since any of them may be about that pair.
    """
    held = store.read("benchmark_pair", benchmark=benchmark).to_pylist()
    store.replace("benchmark_pair", list(pairs), {"benchmark": benchmark}, run_id)
    earlier, now = (
        {(row["pair_id"], row["sentence_a"], row["sentence_b"]) for row in rows}
        for rows in (held, pairs)
    )
    if earlier - now:
        for subject in set(store.read("reject", stage="score")["subject"].to_pylist()):
            if subject.partition("/")[2] == benchmark:
                store.replace("reject", [], {"stage": "score", "subject": subject}, run_id)
