"""Show a word or phrase in its contexts, and how often it occurs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.pipelines.command.base import Command, Context, Done, On, Row
from plumbline.pipelines.command.fields import Seed
from plumbline.pipelines.commands.corpus.corpus_fields import CorpusName, lookup_rows
from plumbline.warehouse.options import STRICT
from plumbline.warehouse.text.progress import progress

if TYPE_CHECKING:
    from plumbline.warehouse.storage.store import Store


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Concordance(CorpusName, Command):
    """Show a word or phrase in its contexts, and count it: alone, or near a group of words.

    'nurse NEAR she her' counts the occurrences of nurse less than a window away from she or her;
    a group of the corpus's word lists in capitals, as FEMALE, stands for its words. Counts are
    exact, over the kept documents (`--evidence`); intervals are over documents, or over sources if
    the corpus has ten or more.

    Example: plumbline corpus concordance 'old woman' 'nurse NEAR FEMALE' --corpus novels
    """

    records = False

    queries: Annotated[
        tuple[str, ...],
        Field(min_length=1, description="Words, phrases of up to five, or 'WORD NEAR OTHER...'."),
        On(positional=True, metavar="QUERY"),
    ]
    n: Annotated[int, Field(ge=0, le=10**6, description="Lines to draw for each.")] = 10
    seed: Annotated[Seed, Field(description="Seed of the lines drawn.")] = 0

    def plan(self, store: Store | None) -> Iterator[Row]:
        """The documents, once for each query."""
        return lookup_rows(store, [self.corpus] * len(self.queries))

    def run(self, context: Context) -> Done:
        from plumbline.jobs.evidence.explanation import Sampling
        from plumbline.jobs.evidence.index import NEAR
        from plumbline.jobs.evidence.occurrences import occurrences
        from plumbline.pipelines.report.model import Section, table
        from plumbline.pipelines.report.plain import plain
        from plumbline.pipelines.report.rows import Rows
        from plumbline.pipelines.report.word_answers import CONCORDANCE, found_in

        rows: list[Row] = []
        said: list[str] = []
        for query in self.queries:
            with progress(f"look through {self.corpus}", "shards") as update:
                arguments = (self.corpus, query, Sampling(self.n, self.seed), update)
                counts, lines = occurrences(context.store, *arguments)
            rows.append(counts)
            if lines:
                near = [("near", "target")] if NEAR in query.split() else []
                columns = [*CONCORDANCE, *near, ("where", found_in)]
                caption = f"{len(lines)} drawn, with equal chances for each occurrence"
                shown = table(caption, Rows(lines), columns)
                said += [*plain(Section("", query, tables=[shown])), ""]
        names = dict.fromkeys(name for row in rows for name in row)  # rows of NEAR have more
        rows = [{name: row.get(name) for name in names} for row in rows]
        return Done(rows=rows, said=said, next=self.line("why WORD"))
