"""Benchmarks, one file each, found by module name and imported only when used.

Other packages add benchmarks by entry points of ``plumbline.benchmarks``: see ``docs/extend.md``.
A benchmark module offers:

- ``NAMES``: the names a user types. A name contains the module's name, with `-` for `_`, as a part
  between hyphens: ``use-5`` is in ``use.py``, ``fr-pairs`` in ``pairs.py``. The name thus leads to
  its module without imports of the others.
- ``DESCRIPTION``: one line.
- ``DEFAULT_LOCATION``: path of the source below ``PLUMBLINE_DATA``; ``None`` if none is needed.
- ``read(name, source)``: returns a ``Parsed``; ``source`` is a path or ``None``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from plumbline.eval_workers.pairs.benchmarks._parsed import Parsed as Parsed
from plumbline.eval_workers.pairs.benchmarks._parsed import Row as Row
from plumbline.eval_workers.pairs.benchmarks.own.baseline import add_baselines
from plumbline.eval_workers.pairs.benchmarks.own.pair_warnings import pair_warnings
from plumbline.eval_workers.pairs.benchmarks.own.replaced import replace_pairs
from plumbline.warehouse.errors import BadInput, MissingComponent, UsageProblem
from plumbline.warehouse.plugins import Registry
from plumbline.warehouse.storage.store import Store

#: Number of reasons for rejects that an import shows at most.
_REASONS_SHOWN = 24


class Benchmark(Protocol):
    """The interface of a module of this package."""

    NAMES: tuple[str, ...]
    DESCRIPTION: str
    DEFAULT_LOCATION: str | None

    def read(self, name: str, source: Path | None) -> Parsed:
        """Pairs and rejects of a source. Raises ``BadInput`` if the source can't be read."""
        ...


@dataclass(frozen=True)
class Imported:
    """Outcome of an import; one row of the source may give several pairs or rejects.

    Attributes:
        warnings: lines about pairs that may be mistakes.
        unused: a line for each category and reason of rejects.
    """

    benchmark: str
    n_pairs: int
    n_rejects: int
    warnings: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """Lines to print: reasons for rejects, then warnings."""
        yield from self.unused[:_REASONS_SHOWN]
        if self.n_rejects > len(self.unused[:_REASONS_SHOWN]):
            yield f"All rows: plumbline sql \"FROM reject WHERE subject = '{self.benchmark}'\""
        yield from self.warnings


MODULES = Registry("benchmark", __name__, ".py", "plumbline.benchmarks", Benchmark)


def discover() -> dict[str, str]:
    """Name -> description of every benchmark with a module; imports all these modules.

    >>> "use-5" in discover()
    True
    """
    modules: list[Benchmark] = [MODULES.load(module) for module in MODULES.names()]
    return {name: module.DESCRIPTION for module in modules for name in module.NAMES}


def find(name: str) -> Benchmark:
    """The module of a benchmark. Raises ``UsageProblem`` unless exactly one module has the name.

    >>> find("use-10").DEFAULT_LOCATION
    'unstereo-eval/data/datasets/raw'
    """
    modules = _modules_of(name)
    if len(modules) > 1:
        problem = f"the modules {' and '.join(modules)} each have one of this name"
        raise UsageProblem(f"benchmark {name!r}", problem, "rename or uninstall one")
    if not modules:
        names = f"there are {', '.join(sorted(discover()))}"
        raise UsageProblem(f"benchmark {name!r}", "unknown", names)
    return next(iter(modules.values()))


def _modules_of(name: str) -> dict[str, Benchmark]:
    """The modules that have a benchmark of this name; imports only modules that may have it."""
    padded = f"_{name.replace('-', '_')}_"
    fitting = [m for m in MODULES.names() if f"_{m}_" in padded]
    loaded: dict[str, Benchmark] = {m: MODULES.load(m) for m in fitting}
    return {m: benchmark for m, benchmark in loaded.items() if name in benchmark.NAMES}


def default_source(name: str, data: str | Path = "") -> Path | None:
    """Path of a benchmark's source; ``None`` if it needs no source.

    ``data`` is the directory of the released files, by default ``PLUMBLINE_DATA``. Raises
    ``MissingComponent`` if a source is needed and neither directory is set.
    """
    location = find(name).DEFAULT_LOCATION
    return None if location is None else _under_data(name, location, data)


def _under_data(name: str, location: str, data: str | Path) -> Path:
    root = data or os.environ.get("PLUMBLINE_DATA")
    if not root:
        problem = f"its released files, {location}, are not installed"
        fix = "give --source PATH, or set PLUMBLINE_DATA, or `data` of plumbline.toml, to the "
        fix += "directory that holds them: docs/benchmarks.md"
        raise MissingComponent(f"benchmark {name}", problem, fix)
    return Path(root) / location


def released(name: str, data: str | Path = "") -> Path | None:
    """The released file of recipe ``name``, see ``default_source``; ``None`` if it is missing."""
    from plumbline.eval_workers.pairs.benchmarks.own.recipe import RECIPES, load

    location = load(name).location if name in RECIPES.names() else None
    root = data or os.environ.get("PLUMBLINE_DATA")
    path = Path(root) / location if root and location else None
    return path if path and path.exists() else None


@dataclass(frozen=True)
class How:
    """Options of an import.

    Attributes:
        groups: groups that templates are filled for. The default is the recipe's groups, else the
            groups of the first of ``fills``, else female and male.
        recipe: name or path of a recipe, for a user's own file.
        columns: texts ``ours=theirs``: a column of ours, and its name in the file.
        fills: texts ``placeholder=list``; the list has the words that fill it, by group.
    """

    groups: tuple[str, ...] = ()
    recipe: str = ""
    columns: tuple[str, ...] = ()
    fills: tuple[str, ...] = ()


def is_own(name: str, how: How) -> bool:
    """True if a benchmark is read from a user's file or by a recipe instead of by a module.

    >>> is_own("use-5", How()), is_own("mine", How()), is_own("crows-pairs", How())
    (False, True, True)
    """
    return bool(how.recipe or how.columns) or not _modules_of(name)


def import_benchmark(
    store: Store,
    name: str,
    source: Path | None,
    run_id: str,
    how: How | None = None,
    data: str | Path = "",
) -> Imported:
    """Read a benchmark into ``benchmark_pair`` and ``reject``, replacing earlier rows.

    ``source`` is a path; ``None`` means ``default_source(name, data)``. A name without a module
    means a recipe or the user's own pairs. Raises as ``default_source``; ``UsageProblem`` for an
    unknown name without a source; ``BadInput`` for a source that can't be read or has no usable
    pair. After an error nothing is written.
    """
    parsed, path = _read(name, source, how or How(), data)
    if not parsed.pairs:
        where, rows = f" in {path}" if path else "", "which has no rows"
        if parsed.rejects:
            first = parsed.rejects[0]["reason"]
            rows = f"{len(parsed.rejects)} rows rejected; the first: {first}"
        raise BadInput(f"benchmark {name}", f"no usable pair{where}, {rows}")
    add_baselines(parsed)
    pairs = [{"benchmark": name, **pair} for pair in parsed.pairs]
    rejects = [{**row, "run_id": run_id} for row in parsed.rejects]
    facts = [
        {"benchmark": name, "position": k, "fact": fact, "said": text, "run_id": run_id}
        for k, (fact, text) in enumerate(parsed.facts.items(), 1)
    ]
    with store.transaction(run_id, f"benchmark {name}"):
        replace_pairs(store, name, pairs, run_id)
        if facts or store.read("benchmark_fact", benchmark=name).num_rows:
            store.replace("benchmark_fact", facts, {"benchmark": name}, run_id)
        store.replace("reject", rejects, {"stage": "benchmark", "subject": name}, run_id)
    warnings = (*parsed.unexpected(), *pair_warnings(parsed.pairs))
    return Imported(name, len(pairs), len(rejects), warnings, (*parsed.unused(),))


def parsed(name: str, source: Path | None, how: How, data: str | Path = "") -> Parsed:
    """Read a benchmark without writing it. Raises what ``import_benchmark`` does for a source."""
    return _read(name, source, how, data)[0]


def _read(name: str, source: Path | None, how: How, data: str | Path) -> tuple[Parsed, Path | None]:
    if is_own(name, how):
        return _read_own(name, source, how, data)
    path = source if source is not None else default_source(name, data)
    if path is not None and not path.exists():
        raise BadInput(f"benchmark {name}", f"{path} does not exist", "give --source PATH")
    return for_groups(find(name).read(name, path), how), path


def _read_own(name: str, source: Path | None, how: How, data: str | Path) -> tuple[Parsed, Path]:
    from plumbline.eval_workers.pairs.benchmarks.own.filler import filler
    from plumbline.eval_workers.pairs.benchmarks.own.reader import read_pairs
    from plumbline.eval_workers.pairs.benchmarks.own.recipe import (
        NO_RECIPE,
        RECIPES,
        facts_in,
        load,
    )

    if source is not None and source.suffix == ".toml":
        from plumbline.eval_workers.pairs.benchmarks.pairs import read

        return for_groups(read(name, source), how), source
    recipe_name = how.recipe or (name if name in RECIPES.names() else "")
    recipe = (load(recipe_name) if recipe_name else NO_RECIPE).with_columns(how.columns)
    if source is None:
        if recipe.location is None:
            if recipe_name:
                fix = f"--source: {recipe.source}"
                raise UsageProblem(f"recipe {recipe_name}", "needs a file", fix)
            names = f"there are {', '.join(sorted([*discover(), *RECIPES.names()]))}"
            raise UsageProblem(f"benchmark {name!r}", "unknown", f"{names}; or give --source FILE")
        source = _under_data(name, recipe.location, data)
    groups = how.groups or recipe.filled_groups()
    parsed = read_pairs(name, source, recipe, filler(groups, how.fills))
    return replace(parsed, facts=recipe.facts() if recipe_name else facts_in(source)), source


def for_groups(parsed: Parsed, how: How) -> Parsed:
    """Fill a benchmark's templates for the groups of ``how``; unusable ones become rejects."""
    from plumbline.eval_workers.pairs.benchmarks.own.filler import between, filler

    if not how.groups and not how.fills:
        return parsed
    fills, filled = filler(how.groups, how.fills), replace(parsed, pairs=[], _seen=set())
    for pair in parsed.pairs:
        columns = {k: v for k, v in pair.items() if k not in _OF_SENTENCES}
        try:
            items = fills.items(str(pair["template"]), str(pair["pair_id"]))
        except ValueError as e:
            file, row = str(pair["source_file"]), int(str(pair["source_row"]))
            category = str(pair.get("category") or "")
            filled.reject(file, row, str(e), str(pair["template"]), category)
            continue
        filled.take([row for item in items for row in between(item, **columns)])
    return filled


#: Columns that are made anew when a template is filled.
_OF_SENTENCES = (
    *("pair_id", "item_id", "template", "sentence_a", "sentence_b", "group_a", "group_b"),
    "pronoun_first",
)
