"""What the frozen warehouse gives: tables, views, pages, help texts, and what commands print."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from plumbline.pipelines.cli.app import ENTRIES, Group
from plumbline.warehouse.query.connection import connect
from plumbline.warehouse.query.reference import questions
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.store import Store
from tools.frozen.plain import fixer, text_of
from tools.frozen.rebuild import WAREHOUSE, Printed, run
from tools.frozen.rows import shown_rows

#: Commands that read, beside the queries of `plumbline sql`. Those of a line depend on no other.
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
    "why nurse captain --corpus letters",
    "why nurse captain --corpus letters --format markdown --n 2 --seed 1",
    "why nurse captain --corpus letters --format json",
    "why nurse captain --corpus letters --format csv",
    "why unheardof --corpus letters",
    "corpus compare letters:letters letters:diaries",
    "disclosure prompts mine --derive neutral.csv --column text",
    "fairpair report --out fairpair",
    "report --out report --site site",
    "table",
    "table models --format markdown",
    "figure",
    "card models/closed",
    "cite",
    "reproduce fairpair --as GPT2=models/closed",
    "reproduce disclosure --as LLaMA2-7B=models/closed",
    "reproduce lists --corpus letters",
    "intervene text straight/*.zst --out changed --dose 0.5",
    "intervene show changed --n 3",
    "runs list",
    "runs list --command measure --json",
    "runs show 20200101T000002",
    "runs show 20200101T000002 --json",
    "runs compare 20200101T000002 20200101T000003",
    "warehouse check",
    "warehouse history --limit 3",
    "warehouse compact --dry-run",
    "warehouse push copy --dry-run",
    "sql .tables",
    "sql nonsense",
    "sql --init init.sql --relative",
    "scoer",
    "score",
    "why --n x",
)
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
#: Table macros whose parameters have no defaults: what they are given.
MACROS = {
    "disclosure_change": "{both}",
    "disclosure_difference": "{both}",
    "fairpair_difference": "{both}",
    "group_preference": "0.65",
    "group_share": "0.65",
    "opinion_agreement": "1.0",
    "perplexity_difference": "{both}",
    "preference_against": "{both}",
    "preference_difference": "{both}",
    "scored_subset": "[0.5, 0.65]",
    "texts_with": "['she']",
    "us_curve": "[0.3, 0.65]",
}


@dataclass
class Outputs:
    """The outputs of the warehouse in the working directory, by kind: file name to text."""

    printed: Sequence[Printed]

    @cached_property
    def fix(self) -> Callable[[str], str]:
        runs = sorted(set(Store.open(WAREHOUSE).read("run")["run_id"].to_pylist()))
        names = {run: f"RUN-{k:02d}" for k, run in enumerate(runs, 1)}
        return fixer({run: name for run, name in names.items() if run[:4] != "2020"}, Path())

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
            return {"views.txt": self._relations(connection, sorted(names - TABLES.keys()))}

    def _relations(self, connection: Any, names: Sequence[str]) -> str:
        found = []
        for name in names:
            cursor = connection.execute(f'FROM "{name}"')
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

    def queries(self) -> dict[str, str]:
        asked = [*QUERIES, *((q.query, "--format", "csv") for q in questions())]
        found = [run(["sql", *words]) for words in asked]
        return {"queries.txt": self.fix("\n\n".join(map(str, found)))}

    def report(self) -> dict[str, str]:
        run(["report", "--out", "pages", "--site", "site-pages"])
        found = {}
        for top in ("pages", "site-pages"):
            for path in sorted(Path(top).rglob("*.html")):
                found[f"{path.with_suffix('')}.txt"] = self.fix(text_of(path.read_text("utf-8")))
        plots = [self._plot(path) for path in sorted(Path("pages").rglob("*.csv"))]
        return {**found, "plots.txt": "\n\n".join(plots)}

    def _plot(self, path: Path) -> str:
        with path.open(encoding="utf-8", newline="") as file:
            columns, *rows = list(csv.reader(file))
        return shown_rows(str(path), columns, [[_value(v) for v in row] for row in rows], self.fix)


#: Kinds of outputs, methods of `Outputs`.
KINDS = ("building", "tables", "views", "help", "reading", "queries", "report")


def commands() -> Iterator[list[str]]:
    """The words of every command and group."""

    def below(entries: Any, words: list[str]) -> Iterator[list[str]]:
        for name, entry in entries.items():
            yield [*words, name]
            if isinstance(entry, Group):
                yield from below(entry.entries, [*words, name])

    yield []
    yield from below(ENTRIES, [])


def _words(line: str) -> list[str]:
    from tools.frozen.recipe import expanded

    return expanded(tuple(line.split()), {})


def _value(cell: str) -> Any:
    try:
        return int(cell) if cell.lstrip("-").isdigit() else float(cell)
    except ValueError:
        return cell or None
