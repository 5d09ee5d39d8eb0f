"""Import benchmarks, list them, and show their pairs."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import Field

from plumbline.eval_workers.pairs import benchmarks, recipe
from plumbline.pipelines.command.base import Command, Context, Done, On, Row, planned
from plumbline.pipelines.command.fields import DataOption
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.input.remote_files import located
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.escape import say


class BenchmarkImport(DataOption, Command):
    """Import benchmarks into the warehouse. Unusable rows go to table `reject`.

    For your own pairs, choose a name that `benchmark show` doesn't list and give --source, as in
    plumbline benchmark import my-pairs --source pairs.csv (docs/pairs.md). --dry-run reads
    everything and shows what would be imported.

    Example: plumbline benchmark import winobias winogender use-5
    """

    makes_warehouse = True

    names: Annotated[
        tuple[str, ...],
        Field(min_length=1, description="Benchmarks to import; `benchmark show` lists them."),
        On(positional=True),
    ]
    source: Annotated[
        str | None,
        Field(description="File, directory or hf:// address to read; default: under --data."),
        On(metavar="FILE"),
    ] = None
    recipe: Annotated[
        str, Field(description="Recipe that turns rows into pairs: a name, or a TOML file.")
    ] = ""
    groups: Annotated[
        tuple[str, ...],
        Field(description="Groups to fill templates with, such as she,he,they."),
    ] = ()

    def chosen(self) -> tuple[tuple[str, ...], Path | None]:
        """Return the names and their source."""
        return tuple(dict.fromkeys(self.names)), located(self.source) if self.source else None

    def plan(self, store: Store | None) -> Iterator[Row]:
        """Yield the pairs and rejected rows of each source; print problems on standard error."""
        names, source = self.chosen()
        how = self.data or "", self.groups, self.recipe
        for name in names:
            parsed, path = benchmarks.read_pairs_of(name, source, *how)
            benchmarks.check_has_pairs(name, parsed, path)
            for line in benchmarks.caveats(parsed):
                say(line, err=True)
            groups = Counter(f"{pair['group_a']}/{pair['group_b']}" for pair in parsed.pairs)
            kinds = ", ".join(f"{kind} {n:,}" for kind, n in groups.most_common())
            yield planned(name, "pairs", len(parsed.pairs), "", kinds)
            first = str(parsed.rejects[0]["reason"]) if parsed.rejects else ""
            yield planned(name, "rejected", len(parsed.rejects), "rows", first)

    def run(self, context: Context) -> Done:
        """Import each benchmark; if one fails, those before it stay imported."""
        names, source = self.chosen()
        how = self.data or "", self.groups, self.recipe
        done = list[benchmarks.Imported]()
        for name in names:
            work = (benchmarks.import_benchmark, context.store, name, source, context.run_id)
            done.append(context.stage(f"import {name}", *work, *how))
        return Done(
            rows=[
                {"benchmark": one.benchmark, "n_pairs": one.n_pairs, "n_rejected": one.n_rejects}
                for one in done
            ],
            said=[line for one in done for line in one.said],
            next=f"plumbline score --model ID_OR_PATH --benchmark {shlex.quote(done[0].benchmark)}",
            query="FROM benchmark_pair WHERE list_contains($names, benchmark) "
            "ORDER BY benchmark, pair_id",
            params={"names": list(names)},
        )


#: How many pairs each benchmark has, and how many are natural (NULL if none was judged).
_HELD = """
SELECT benchmark, count(*) AS n_pairs,
    CASE WHEN count(is_natural) > 0 THEN count_if(is_natural)::BIGINT END AS n_natural
FROM benchmark_pair GROUP BY benchmark ORDER BY benchmark
"""
_FIRST = """
SELECT pair_id, word, is_natural, template, group_a, sentence_a, group_b, sentence_b
FROM benchmark_pair WHERE benchmark = $benchmark ORDER BY pair_id LIMIT $n
"""


class BenchmarkShow(Command):
    """List benchmarks, or show the first pairs of one.

    The list has the benchmarks that can be imported, and the benchmarks in the warehouse.

    Example: plumbline benchmark show winobias --n 3
    """

    opens_warehouse = False  # the list needs no warehouse
    records = False

    name: Annotated[
        str, Field(description="A benchmark in the warehouse; default: list."), On(positional=True)
    ] = ""
    n: Annotated[int, Field(ge=1, le=1_000_000, description="Pairs to show.")] = 5

    def run(self, context: Context) -> Done:
        return self._pairs() if self.name else self._list()

    def _list(self) -> Done:
        recipes = {name: recipe.load(name).about for name in recipe.RECIPES.names()}
        known = {**benchmarks.discover(), **recipes}
        store = Store.existing(self.warehouse)
        held = {row["benchmark"]: row for row in rows_of(store.root, _HELD)} if store else {}
        blank = {"n_pairs": None, "n_natural": None}
        return Done(
            rows=[
                {"benchmark": name, **blank, **held.get(name, {}), "about": known.get(name, "")}
                for name in {**known, **held}
            ],
            next="plumbline benchmark import NAME, or plumbline benchmark show NAME",
        )

    def _pairs(self) -> Done:
        store = Store.open(self.warehouse, create=False, reads="benchmark_pair")
        rows = rows_of(store.root, _FIRST, {"benchmark": self.name, "n": self.n})
        if not rows:
            fix = f"run `plumbline benchmark import {self.name}`"
            raise UsageProblem(f"benchmark {self.name!r}", "is not in the warehouse", fix)
        return Done(
            rows=rows,
            next=f"plumbline score --model ID_OR_PATH --benchmark {shlex.quote(self.name)}",
        )
