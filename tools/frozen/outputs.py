"""What the frozen warehouse gives: tables, views, pages, help texts, and what commands print."""

from __future__ import annotations

import csv
import re
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
from tools.frozen.rows import shown_rows

#: Commands that only read, beside the queries of `plumbline sql`. `doctor` is about the machine.
READING = (
    "",
    "--version",
    "config",
    "corpus list",
    "corpus status --corpus letters letters.jsonl",
    "corpus status --corpus closed-world-straight straight/*.zst",
    "corpus verify --corpus letters",
    "corpus verify --corpus closed-world-straight",
    "benchmark list",
    "benchmark show world --n 3",
    "benchmark show three",
    "benchmark show written --n 4",
    "benchmark compare world written",
    "benchmark build other --corpus letters --words lamp,kettle --model scripted --dry-run",
    "choose --model chat --benchmark three --n 2 --dry-run",
    "table models --format markdown",
    "table models --format latex",
    "table models --format csv",
    "card closed-swapped",
    "cite",
    "report methods",
    "reproduce fairpair --as GPT2=closed",
    "reproduce disclosure --as 'LLaMA2 7B=closed'",
    "reproduce lists --corpus letters",
    "intervene text straight/*.zst --out changed --dose 0.5",
    "intervene show changed --n 3",
    "runs list",
    "runs list --command measure --format json",
    "runs show 20200101T000002",
    "runs show 20200101T000002 --format json",
    "runs compare 20200101T000002 20200101T000003",
    "warehouse check",
    "warehouse history --limit 3",
    "warehouse compact --dry-run",
    "sql 'SELECT count(*) FROM pair_count'",
    "sql 'SELECT count(*) FROM pair_count' --at 1",
    "sql nonsense",
    "sql --init init.sql --relative",
    "scoer",
    "score",
    "why --n x",
)
#: Commands that make the whole report to print a part of it.
READING_SLOWLY = ("table", "figure", "fairpair report --out fairpair")
#: Pages of models that say the same of others.
_LIKE_OTHERS = re.compile(r"closed-step-(?!0|140)|exchange-(?!gender-1-0)")
#: Queries, with options.
QUERIES = (
    ("SELECT corpus, n_tokens, n_words FROM corpus ORDER BY corpus",),
    ("SELECT corpus, n_tokens, n_words FROM corpus ORDER BY corpus", "--format", "csv"),
    ("SELECT corpus, n_tokens, n_words FROM corpus ORDER BY corpus", "--format", "json"),
    ("SELECT corpus, n_tokens, n_words FROM corpus ORDER BY corpus", "--format", "jsonl"),
    ("DESCRIBE word_lean",),
    ("SELECT nothing FROM corpus",),
    ("FROM seed_verdict WHERE corpus = 'none'",),
)
#: Table macros with what they are given; those that compare two models are in the report.
MACROS = (
    "benchmark_difference()",
    "benchmark_figure()",
    "benchmark_word()",
    "corpus_agreement()",
    "deduplication()",
    "deduplication_mean()",
    "disclosure()",
    "disclosure_prompt()",
    "disclosure_strategy()",
    "group_preference(0.65)",
    "group_share(0.65)",
    "instruction_sweep()",
    "opinion_agreement(1.0)",
    "preference_pairwise()",
    "scored_subset([0.5, 0.65])",
    "texts_with('family')",
    "us_curve([0.3, 0.65])",
    "us_difference('closed', 'closed-swapped', 'world')",
    "us_gap('closed', 'world', 'closed-world-straight', 0.65, NULL)",
)


@dataclass
class Outputs:
    """The outputs of the warehouse in the working directory, by kind: file name to text."""

    printed: Sequence[Printed]

    @cached_property
    def fix(self) -> Callable[[str], str]:
        return fixer()

    def kind(self, name: str) -> dict[str, str]:
        """The files of one of ``KINDS``."""
        texts: dict[str, str] = getattr(self, name)()
        return {file: text.rstrip() + "\n" for file, text in texts.items()}

    def tables(self) -> dict[str, str]:
        with connect(WAREHOUSE) as connection:
            return {"tables.txt": self._relations(connection, sorted(TABLES))}

    def views(self) -> dict[str, str]:
        with connect(WAREHOUSE) as connection:
            names = {name for (name,) in connection.execute("SHOW TABLES").fetchall()}
            views = [*sorted(names - TABLES.keys()), *MACROS]
            return {"views.txt": self._relations(connection, views)}

    def _relations(self, connection: Any, names: Sequence[str]) -> str:
        found = []
        for name in names:
            cursor = connection.execute(f"FROM {name}")
            columns = [column[0] for column in cursor.description]
            found.append(shown_rows(name, columns, cursor.fetchall(), self.fix))
        return "\n\n".join(found)

    def building(self) -> dict[str, str]:
        return {"building.txt": self.fix("\n\n".join(map(str, self.printed)))}

    def help(self) -> dict[str, str]:
        return {"help.txt": "\n\n".join(str(run([*words, "--help"])) for words in commands())}

    def reading(self) -> dict[str, str]:
        found = [run(_words(line)) for line in READING]
        return {"reading.txt": self.fix("\n\n".join(map(str, found)))}

    def reading_slowly(self) -> dict[str, str]:
        found = [run(_words(line)) for line in READING_SLOWLY]
        return {"reading_slowly.txt": self.fix("\n\n".join(map(str, found)))}

    def queries(self) -> dict[str, str]:
        asked = [*QUERIES, *((q.query, "--format", "csv") for q in questions())]
        found = [run(["sql", *words]) for words in asked]
        return {"queries.txt": self.fix("\n\n".join(map(_sorted, found)))}

    def report(self) -> dict[str, str]:
        printed = str(run(["report", "--site", "pages"]))
        found = {"printed.txt": self.fix(printed)}
        words = []
        for path in sorted(Path("pages").rglob("*.html")):
            text = self.fix(text_of(path.read_text("utf-8")))
            if path.parent.name == "words":
                words.append(f"## {path}\n{text}")
            elif not _LIKE_OTHERS.match(path.name):
                found[f"{path.relative_to('pages').with_suffix('')}.txt"] = text
        plots = [self._plot(path) for path in sorted(Path("pages").glob("*.csv"))]
        return {**found, "of-words.txt": "\n\n".join(words), "plots.txt": "\n\n".join(plots)}

    def cards(self) -> dict[str, str]:
        """Cards of benchmarks, which `benchmark build` wrote."""
        paths = sorted(Path("out/cards").glob("*/README.md"))
        return {f"{path.parent.name}.txt": self.fix(path.read_text("utf-8")) for path in paths}

    def _plot(self, path: Path) -> str:
        with path.open(encoding="utf-8", newline="") as file:
            columns, *rows = list(csv.reader(file))
        return shown_rows(str(path), columns, [[_value(v) for v in row] for row in rows], self.fix)


#: Kinds of outputs, methods of `Outputs`.
KINDS = (
    *("building", "cards", "tables", "views", "help", "reading", "reading_slowly", "queries"),
    "report",
)


def commands() -> Iterator[list[str]]:
    """The words of every command and group."""

    found = [[]]
    for name in registry.targets():
        words = name.split()
        found += [words[:n] for n in range(1, len(words) + 1) if words[:n] not in found]
    yield from found


def _words(line: str) -> list[str]:
    return expanded(tuple(shlex.split(line)), {})


def _sorted(printed: Printed) -> str:
    """With the rows of CSV in one order: questions leave open which of equals is first."""
    if "csv" not in printed.command:
        return str(printed)
    heading, *rows = printed.out.splitlines() or [""]
    return str(replace(printed, out="\n".join([heading, *sorted(rows)])))


def _value(cell: str) -> Any:
    try:
        return int(cell) if cell.lstrip("-").isdigit() else float(cell)
    except ValueError:
        return cell or None
