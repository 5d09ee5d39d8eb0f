"""`plumbline attribute`: the training documents that made a preference of a model."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.pipelines.attribution.contract import METHODS
from plumbline.pipelines.command.base import WARNING, Command, Context, Done, On, Row, planned
from plumbline.pipelines.command.fields import ContrastOption, Seed
from plumbline.pipelines.commands._corpus import lookup_rows
from plumbline.pipelines.report.plain import plain
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.options import STRICT
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.progress import progress

if TYPE_CHECKING:
    from plumbline.pipelines.attribution.attributed_text import TrainingText
    from plumbline.pipelines.attribution.contract import Query


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Attribute(ContrastOption, Command):
    """Show which documents of the training text made a preference of a model.

    The preference is the mean log ratio over a word's pairs, or over a benchmark's. Each method
    scores every document that the model read: a document with a score above 0 makes the model more
    female. The table attribution has the documents and words with the highest and lowest scores,
    and every source with a score. After an interruption run the same command again: a method that
    is done is not repeated.

    Example: plumbline attribute --model models/small-novels --corpus novels --word nurse
    """

    reads = "corpus"
    deployable = True

    model: Annotated[
        str,
        Field(description="Directory or hub id of a causal model, or a name of `plumbline train`."),
    ]
    corpus: Annotated[str, Field(description="Corpus that it was trained on, as counted.")]
    word: Annotated[
        tuple[str, ...],
        Field(description="Word whose pairs make the preference; repeatable."),
        On(repeated=True),
    ] = ()
    benchmark: Annotated[
        str | None,
        Field(description="Benchmark of the pairs; with --word only the word's pairs in it."),
    ] = None
    method: Annotated[
        tuple[str, ...],
        Field(description="Method, such as counts, ngram, gradients, bm25 or random; repeatable."),
        On(repeated=True),
    ] = ("counts", "ngram")
    n: Annotated[
        int, Field(ge=1, le=10_000, description="Documents and words to keep for each side.")
    ] = 5
    seed: Annotated[Seed, Field(description="Seed of the methods' draws.")] = 0

    def __post_init__(self) -> None:
        if not (self.word or self.benchmark):
            raise UsageProblem("--word and --benchmark", "are both missing", "give one of them")

    def check(self) -> None:
        """Raise for unknown methods."""
        for name in self.method:
            METHODS.find(name)

    def plan(self, store: Store | None) -> Iterator[Row]:
        """Pairs, documents and what each method does with them."""
        from plumbline.eval_workers.training.trained_models import training_of

        assert store is not None, "this command makes no warehouse"
        for query in self._queries(store):
            yield planned(query.name, "pairs", len(query.pairs), "pairs")
        yield from lookup_rows(store, [self.corpus])
        n_tokens = training_of(Path(self._model(store))).get("figures", {}).get("n_tokens")
        note = "if it was trained on these shards" if n_tokens else "not known: all documents count"
        yield planned(self.model, "tokens read", n_tokens, "tokens", note)
        for name in self.method:
            yield planned(f"method {name}", METHODS.load(name).DESCRIPTION, None)

    def run(self, context: Context) -> Done:
        from plumbline.pipelines.attribution.attributed_text import training_text
        from plumbline.pipelines.attribution.attribution_rows import attribute
        from plumbline.pipelines.attribution.contract import Subject
        from plumbline.pipelines.report.rows import Rows
        from plumbline.pipelines.report.sections.behind_preference import QUERY, attribution_section
        from plumbline.warehouse.query.method_validation import (
            OF_BENCHMARKS,
            OF_WORDS,
            validation,
        )

        store, queries = context.store, self._queries(context.store)
        model = self._model(store)
        shown = partial(progress, unit="parts")
        with shown(f"look through {self.corpus}") as update:
            text = training_text(store, self.corpus, model, update)
        subject = Subject(store, model, text, self.contrast, seed=self.seed)
        arguments = (subject, queries, self.method, self.benchmark, self.n, context.run_id, shown)
        rows = context.stage(f"attribute {self.model}", attribute, *arguments)
        answers = map(attribution_section, Rows(rows).groups("query", "method"))
        said = [line for section in answers for line in (*plain(section), "")]
        said.append(_read(text))
        studies = store.read("datamodelling_score").to_pylist()
        outcomes = OF_WORDS if self.word else OF_BENCHMARKS
        for verdict in (validation(studies, name, outcomes) for name in self.method):
            said.append(f"{'' if verdict.is_trusted else WARNING}{verdict}")
        return Done(
            table=rows,
            said=said,
            wrote=("attribution",),
            next="plumbline sql 'FROM attribution'",
            query=QUERY,
            params={"asked": list(dict.fromkeys(row["asked_id"] for row in rows))},
        )

    def _queries(self, store: Store) -> list[Query]:
        from plumbline.pipelines.attribution.queries import of_benchmark, of_words

        if self.word:
            return of_words(store, self.word, self.benchmark)
        assert self.benchmark is not None
        return [of_benchmark(store, self.benchmark)]

    def _model(self, store: Store) -> str:
        """The directory of a model that `plumbline train` made; else ``model`` itself."""
        rows = store.read("trained_model", model=self.model).to_pylist()
        is_there = Path(self.model).exists() or not rows
        return self.model if is_there else str(rows[0]["path"])


def _read(text: TrainingText) -> str:
    if text.n_read is None:
        unknown = f"what the model read of {text.corpus} isn't known"
        return f"{WARNING}{unknown}: every document is taken as read"
    others = "" if len(text.read) == len(text) else "; the others have a score of 0"
    return f"The model read {len(text.read):,} of {len(text):,} documents{others}."
