"""The frozen warehouse's outputs: rows of tables and views; help, pages and printed lines."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from plumbline.pipelines.command import registry
from plumbline.warehouse.query.connection import connect
from plumbline.warehouse.query.reference import questions
from plumbline.warehouse.schema.catalog import TABLES
from tools.frozen.plain import fixer, text_of
from tools.frozen.rebuild import WAREHOUSE, Printed, run
from tools.frozen.recipe import expanded
from tools.frozen.rows import Relation

#: Commands that only read, besides the questions of docs/sql.md. `doctor` depends on the machine.
READING = (
    "--version",
    "corpus list",
    "corpus list letters",
    "corpus list closed-world-straight",
    "corpus concordance cook --corpus letters",
    "benchmark show",
    "benchmark show world --n 3",
    "benchmark show three",
    "benchmark show written --n 4",
    "benchmark build other --corpus letters --words lamp,kettle --model scripted --dry-run",
    "score choose --model chat --benchmark three --n 2 --dry-run",
    "report table",
    "report table models --format markdown",
    "report table models --format latex",
    "report table models --format csv",
    "report figure",
    "report table methods",
    "reproduce fairpair --as GPT2=closed",
    "reproduce disclosure --as 'LLaMA2 7B=closed'",
    "reproduce lists --corpus letters --list she-he",
    "runs",
    "runs --command measure --format json",
    "runs 20200101T000002",
    "runs 20200101T000002 --format json",
    "warehouse check",
    "warehouse restore",
    "sql 'SELECT count(*) FROM pair_count'",
    "sql 'SELECT count(*) FROM pair_count' --at 1",
    "sql 'SELECT corpus, n_tokens, n_words FROM corpus ORDER BY corpus'",
    "sql 'SELECT corpus, n_tokens, n_words FROM corpus ORDER BY corpus' --format json",
    "sql \"FROM seed_verdict WHERE corpus = 'none'\"",
    "sql 'SELECT nothing FROM corpus'",
    "sql nonsense",
    "scoer",
    "score",
    "why --n x",
)
_PLAIN, _CALM = (
    "(SELECT model_key FROM model WHERE model = 'closed' AND backend <> 'released'"
    f" AND adapter IS {what} NULL)"
    for what in ("", "NOT")
)
#: Table macros and their arguments.
MACROS = {
    "corpus_agreement": "",
    "deduplication": "",
    "deduplication_mean": "",
    "disclosure": "",
    "disclosure_change": f"[{_PLAIN}], [{_CALM}]",
    "disclosure_prompt": "",
    "disclosure_strategy": "",
    "instruction_sweep": "",
    "preference_against": f"{_PLAIN}, 'world'",
    "preference_pairwise": "",
}


@dataclass
class Outputs:
    """The outputs of the warehouse in the working directory."""

    printed: Sequence[Printed]

    @cached_property
    def fix(self) -> Callable[[str], str]:
        return fixer()

    def relations(self) -> dict[str, Relation]:
        """Return every table, every view, and table macros."""
        with connect(WAREHOUSE) as connection:
            named = {name for (name,) in connection.execute("SHOW TABLES").fetchall()}
            found = {name: self._relation(connection, name) for name in {*named, *TABLES}}
            for name, given in MACROS.items():
                found[name] = self._relation(connection, f"{name}({given})")
        return found

    def _relation(self, connection: Any, name: str) -> Relation:
        cursor = connection.execute(f"FROM {name}")
        columns = [column[0] for column in cursor.description]
        return Relation.of(columns, cursor.fetchall(), self.fix)

    def texts(self) -> dict[str, str]:
        """Return what commands printed, the report's pages and the benchmarks' cards, by name."""
        queries = [["sql", query, "--format", "csv"] for _, _, query in questions()]
        reading = [expanded(tuple(shlex.split(line)), {}) for line in READING]
        report = run(["report", "--out", "pages"])
        printed = [*self.printed, *map(run, reading), *map(_sorted, map(run, queries)), report]
        texts = {" ".join(one.command): str(one) for one in printed}
        texts |= {str(p): p.read_text("utf-8") for p in Path("out/benchmarks").rglob("*.md")}
        pages = {path: path.read_text("utf-8") for path in sorted(Path("pages").rglob("*.*"))}
        texts |= {str(p): text_of(text) for p, text in pages.items() if p.suffix == ".html"}
        plots = [f"## {p}\n{text}" for p, text in pages.items() if p.suffix in (".csv", ".js")]
        texts["pages/*.csv"] = "\n".join(plots)
        return {" ".join(name.split()): self.fix(text) for name, text in texts.items()}


def helps() -> dict[str, str]:
    """Return the help of every command and group, by name."""
    return {" ".join([*words, "--help"]): str(run([*words, "--help"])) for words in _commands()}


def _commands() -> Iterator[list[str]]:
    found: list[list[str]] = [[]]
    for name in registry.targets():
        words = name.split()
        found += [words[:n] for n in range(1, len(words) + 1) if words[:n] not in found]
    yield from found


def _sorted(printed: Printed) -> Printed:
    """Sort rows of CSV, since queries leave the order of equal rows open."""
    heading, *rows = printed.out.splitlines() or [""]
    return replace(printed, out="\n".join([heading, *sorted(rows)]))
