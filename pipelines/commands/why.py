"""`plumbline why`: how words lean and how certain that is, with sources, copies and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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

# Leave out q, which corrects for all words of a contrast: the user asked about these words.
_LEANS = """
SELECT * EXCLUDE (q) FROM word_lean
WHERE corpus = $corpus AND contrast = $contrast AND list_contains($words, word)
"""


@dataclass(frozen=True)
class WordAnswers:
    """What `why` found: rows by table, and lines on words and corpora without rows."""

    lines: tuple[str, ...]
    rows: Mapping[str, Rows]


class Why(ContrastOption, Command):
    """Show how far words lean, how certain that is, and the sources and sentences behind the lean.

    Counts come from the documents that `corpus count --evidence` kept; only sentences are read from
    the shards. The answers are also stored in the tables word_evidence, word_source, word_copies,
    word_collocate and word_snippet.

    A phrase in quotes counts as one word. 'nurse NEAR doctor' counts nurse where it is less than a
    window away from doctor.

    `--top 20000` stores the leans, sources and sentences of the most frequent words for the
    report's word explorer, and prints no answers. `--n 0` leaves out the sentences.

    Example: plumbline why nurse captain wept --corpus novels
    """

    reads = "corpus"

    words: Annotated[
        tuple[str, ...],
        Field(description="Words, as counted; in quotes a phrase, or 'WORD NEAR OTHER...'."),
        On(positional=True),
    ] = ()
    top: Annotated[
        int | None,
        Field(ge=1, le=10**9, description="Explain this many of the most frequent words instead."),
    ] = None
    corpus: Annotated[Several, Field(description="Corpus; repeatable; default: all.")] = ()
    n: Annotated[int, Field(ge=0, le=10**6, description="Sentences to draw for each side.")] = 5
    seed: Annotated[Seed, Field(description="Seed of the sentences drawn.")] = 0

    def __post_init__(self) -> None:
        if self.top and self.words:
            raise UsageProblem("--top", "explains the most frequent words", "give no other words")
        if not self.top and not any(map(str.strip, self.words)):
            raise UsageProblem("words", "none given", "plumbline why nurse captain")

    def run(self, context: Context) -> Done:
        query = "FROM word_evidence WHERE run_id = $run ORDER BY corpus, frequency_rank, word"
        done = Done(query=query, params={"run": context.run_id})
        if self.top:
            lines = tuple(self.answer_top(context.store, self.top))
            return replace(done, said=lines, next="plumbline report")
        answers = self.answers(context.store)
        further = "plumbline report, or plumbline sql 'FROM word_snippet'"
        leans, lines = list(answers.rows["word_evidence"]), tuple(rendered(answers))
        return replace(done, table=leans, said=lines, next=further)

    def asked(self) -> list[str]:
        """Return the words and phrases, lowercase, each once."""
        from plumbline.jobs.evidence.index import normalised

        return list(dict.fromkeys(map(normalised, filter(str.strip, self.words))))

    def corpora(self, store: Store) -> list[str]:
        """Return the corpora of --corpus, or all. Raises ``UsageProblem`` if there is no corpus."""
        names = list(self.corpus) or sorted(store.read("corpus")["corpus"].to_pylist())
        if not names:
            fix = "run `plumbline corpus count`, docs/corpora.md"
            raise UsageProblem("corpora", "there are none yet", fix)
        return names

    def answers(self, store: Store) -> WordAnswers:
        """Explain words in corpora; show only leans by counts for a corpus without kept documents.

        Raises ``UsageProblem`` if no corpus holds any of the words, and the errors of ``explain``.
        """
        from plumbline.jobs.counting.corpus_lookup import unknown_words
        from plumbline.jobs.evidence.explanation import explain
        from plumbline.jobs.evidence.index import NEAR

        asked = {text: text.split(f" {NEAR}")[0].split() for text in self.asked()}
        every = [word for words in asked.values() for word in words]
        lines: list[str] = []
        problems: list[PlumblineError] = []
        rows: dict[str, list[dict[str, Any]]] = {name: [] for name in QUERIES}
        for name in self.corpora(store):
            unknown = unknown_words(store, name, every)
            problems += unknown.values()
            known = [text for text, words in asked.items() if not unknown.keys() & set(words)]
            if not known:
                continue
            try:
                if problem := _without_documents(store, name):
                    words = [word for text in known for word in asked[text]]
                    lines += _leans_by_counts(store, name, words, self.contrast)
                    problems.append(problem)
                    continue
                tables = explain(store, name, known, self.contrast, self._sampling())
                for table, some in tables.items():
                    rows[table] += some
            except UsageProblem as e:  # another corpus may have this contrast
                problems.append(e)
        if not lines and not rows["word_evidence"]:
            raise problems[0]
        shown = {name: Rows(some, QUERIES[name]) for name, some in rows.items()}
        return WordAnswers((*lines, *map(str, problems)), shown)

    def answer_top(self, store: Store, top: int) -> Iterator[str]:
        """Explain the most frequent words of each corpus; yield one line per corpus.

        Raises ``UsageProblem`` if no corpus kept its documents, and the errors of ``explain_top``.
        """
        from plumbline.jobs.evidence.explanation import explain_top

        names = self.corpora(store)
        problems: list[PlumblineError] = []
        for name in names:
            if problem := _without_documents(store, name):
                problems.append(problem)
                continue
            n_words = explain_top(store, name, top, self.contrast, self._sampling())
            yield f"{name}: explained the leans of {n_words:,} words"
        if len(problems) == len(names):
            raise problems[0]
        yield from map(str, problems)

    def _sampling(self) -> Sampling:
        from plumbline.jobs.evidence.concordance import Sampling

        return Sampling(self.n, self.seed)


def _without_documents(store: Store, corpus: str) -> PlumblineError | None:
    """Return the error that says why a corpus has no kept documents; ``None`` if it has some."""
    from plumbline.jobs.counting.kept_documents import evidence_of

    try:
        evidence_of(store, corpus)
    except (MissingComponent, UsageProblem) as e:
        return e
    return None


def _leans_by_counts(
    store: Store, corpus: str, words: Sequence[str], contrast: str
) -> Iterator[str]:
    """Yield a line on each word's lean, from the view `word_lean`.

    Raises ``UsageProblem`` for a contrast that the corpus doesn't have.
    """
    from plumbline.jobs.association.associations import contrasts_of, sides_of
    from plumbline.jobs.counting.corpus_lookup import corpus_contrast, corpus_row

    row, contrast = corpus_row(store, corpus), corpus_contrast(store, corpus, contrast)
    has_delta = set(store.read("word_delta", corpus=corpus)["contrast"].to_pylist())
    known = sorted(has_delta.union(contrasts_of(store, row) if row["targets"] else ()))
    if contrast not in known:
        problem = f"is not a contrast of corpus {corpus}"
        raise UsageProblem(f"contrast {contrast!r}", problem, f"one of {', '.join(known)}")
    side_a, side_b = sides_of(store, row, contrast)
    fixed = {"n_clusters": None, "clusters": None, "side_a": side_a, "side_b": side_b}
    found = rows_of(store, _LEANS, {"corpus": corpus, "contrast": contrast, "words": words})
    leans = {lean["word"]: lean | fixed for lean in found}
    for word in dict.fromkeys(words):
        if lean := leans.get(word):
            yield f"{headline(lean)} It occurs {counted(lean['n_word'], 'time')}."
        else:
            why = f"it is a word of {contrast}, or doesn't occur near one"
            fix = f"plumbline corpus associate --corpus {corpus}"
            yield f"“{word}” has no lean in {corpus}: {why}, or you have yet to run {fix}."


def rendered(word_answers: WordAnswers) -> Iterator[str]:
    """Yield the answers as lines of text."""
    from plumbline.pipelines.report.templates import word_sections  # slow to import

    for section in word_sections(word_answers.rows):
        yield from (*plain(section), "")
    yield from word_answers.lines
