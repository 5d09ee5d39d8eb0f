"""`plumbline why`: show how words lean in a corpus, and the text behind the lean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from plumbline.pipelines.command.base import Command, Context, Done, On
from plumbline.pipelines.command.fields import ContrastOption, Several
from plumbline.pipelines.report.model import counted
from plumbline.pipelines.report.rows import Rows
from plumbline.pipelines.report.word_answers import QUERIES, headline, plain
from plumbline.warehouse.errors import (
    MissingComponent,
    PlumblineError,
    UsageProblem,
)
from plumbline.warehouse.options import Seed
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store

if TYPE_CHECKING:
    from plumbline.jobs.evidence.concordance import Sampling

# Leaves out the q-value. It is corrected for tests of all words, but the user named a few.
_LEANS = """
SELECT * EXCLUDE (q) FROM word_lean
WHERE corpus = $corpus AND contrast = $contrast AND list_contains($words, word)
"""


class Why(ContrastOption, Command):
    """Show how far words lean, with intervals, and the sources and sentences behind each lean.

    Counts come from the documents that `corpus count --evidence` kept. Sentences are read from the
    shards. The answers are also stored in the tables word_evidence, word_source, word_copies,
    word_collocate and word_snippet.

    A phrase in quotes counts as one word. 'nurse NEAR doctor' counts nurse only if doctor is within
    the corpus's window.

    `--top 20000` prints no answers, but stores them for the 20,000 most frequent words. The
    report's page words.html shows them. `--n 0` leaves out the sentences.

    Example: plumbline why nurse captain wept --corpus novels
    """

    reads = "corpus"

    words: Annotated[
        tuple[str, ...],
        Field(description="Words; or, in quotes, a phrase or 'WORD NEAR OTHER...'."),
        On(positional=True),
    ] = ()
    top: Annotated[
        int | None,
        Field(ge=1, le=10**9, description="Explain the N most frequent words instead of WORDS."),
    ] = None
    corpus: Annotated[Several, Field(description="Corpus; default: all. Can be repeated.")] = ()
    n: Annotated[
        int, Field(ge=0, le=10**6, description="Number of sentences to show near she, and near he.")
    ] = 5
    seed: Annotated[Seed, Field(description="Random seed for choosing the sentences.")] = 0

    def __post_init__(self) -> None:
        if self.top and self.words:
            raise UsageProblem("--top", "explains the most frequent words", "give no other words")
        if not self.top and not any(map(str.strip, self.words)):
            raise UsageProblem("words", "none given", "plumbline why nurse captain")

    def run(self, context: Context) -> Done:
        """Explain the words in each corpus. Show only leans if a corpus's documents aren't stored.

        If no corpus has an answer, raises the first error.
        """
        from plumbline.pipelines.report.templates import word_sections  # slow to import

        store, lines, problems = context.store, list[str](), list[PlumblineError]()
        rows: dict[str, list[dict[str, Any]]] = {name: [] for name in QUERIES}
        for corpus in self.corpora(store):
            try:
                if self.top:
                    lines.append(self._top(store, corpus, self.top))
                else:
                    lines += self._explain(store, corpus, rows, problems)
            except (MissingComponent, UsageProblem) as e:  # try the other corpora, too
                problems.append(e)
        if not lines and not rows["word_evidence"]:
            raise problems[0]
        shown = {name: Rows(some, QUERIES[name]) for name, some in rows.items()}
        said = [line for section in word_sections(shown) for line in (*plain(section), "")]
        return Done(
            table=rows["word_evidence"],
            said=[*said, *lines, *map(str, problems)],
            next="plumbline report, or plumbline sql 'FROM word_snippet'",
            query="FROM word_evidence WHERE run_id = $run ORDER BY corpus, frequency_rank, word",
            params={"run": context.run_id},
        )

    def corpora(self, store: Store) -> list[str]:
        """Return the names in --corpus, or all corpora. Raises ``UsageProblem`` if none exist."""
        names = list(self.corpus) or sorted(store.read("corpus")["corpus"].to_pylist())
        if not names:
            fix = "run `plumbline corpus count`, docs/corpora.md"
            raise UsageProblem("corpora", "there are none yet", fix)
        return names

    def _sampling(self) -> Sampling:
        from plumbline.jobs.evidence.concordance import Sampling

        return Sampling(self.n, self.seed)

    def _top(self, store: Store, corpus: str, top: int) -> str:
        from plumbline.jobs.evidence.explanation import explain_top

        n_words = explain_top(store, corpus, top, self.contrast, self._sampling())
        return f"{corpus}: explained the leans of {n_words:,} words"

    def _explain(
        self,
        store: Store,
        corpus: str,
        rows: Mapping[str, list[dict[str, Any]]],
        problems: list[PlumblineError],
    ) -> list[str]:
        """Explain the words in a corpus. Adds answers to ``rows``, and errors to ``problems``.

        If the corpus's documents aren't stored, returns a line about each word's lean instead.
        """
        from plumbline.jobs.counting.corpus_lookup import unknown_words
        from plumbline.jobs.counting.kept_documents import evidence_of
        from plumbline.jobs.evidence.explanation import explain
        from plumbline.jobs.evidence.index import NEAR, normalised

        texts = dict.fromkeys(map(normalised, filter(str.strip, self.words)))
        asked = {text: text.split(f" {NEAR}")[0].split() for text in texts}
        unknown = unknown_words(store, corpus, [w for words in asked.values() for w in words])
        problems += unknown.values()
        known = [text for text, words in asked.items() if not unknown.keys() & set(words)]
        if not known:
            return []
        try:
            evidence_of(store, corpus)
        except (MissingComponent, UsageProblem) as e:
            words = [word for text in known for word in asked[text]]
            lines = list(_leans_by_counts(store, corpus, words, self.contrast))
            problems.append(e)
            return lines
        for table, some in explain(store, corpus, known, self.contrast, self._sampling()).items():
            rows[table] += some
        return []


def _leans_by_counts(
    store: Store, corpus: str, words: Sequence[str], contrast: str
) -> Iterator[str]:
    """Yield a line about each word's lean, from the view `word_lean`.

    Raises ``UsageProblem`` if the corpus has no deltas for ``contrast``, such as she/he.
    """
    from plumbline.jobs.association.associations import sides_of
    from plumbline.jobs.counting.corpus_lookup import corpus_contrast, corpus_deltas, corpus_row

    contrast = corpus_contrast(store, corpus, contrast)
    corpus_deltas(store, corpus, contrast)
    side_a, side_b = sides_of(store, corpus_row(store, corpus), contrast)
    fixed = {"n_clusters": None, "clusters": None, "side_a": side_a, "side_b": side_b}
    found = rows_of(store, _LEANS, {"corpus": corpus, "contrast": contrast, "words": words})
    leans = {lean["word"]: lean | fixed for lean in found}
    for word in dict.fromkeys(words):
        if lean := leans.get(word):
            yield f"{headline(lean)} It occurs {counted(lean['n_word'], 'time')}."
        else:
            why = f"it is a word of {contrast}, or doesn't occur near one"
            yield f"“{word}” has no lean in {corpus}: {why}."
