"""`plumbline corpus concordance` shows words in context, `corpus words` samples seed words."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from plumbline.jobs.kernel.corpus_options import VocabularyOptions
from plumbline.pipelines.command.base import Command, Context, Done, On, Row
from plumbline.pipelines.command.fields import ContrastOption, CorpusName, InputFile, Several
from plumbline.pipelines.report.model import Section, table
from plumbline.pipelines.report.rows import Rows
from plumbline.pipelines.report.word_answers import CONCORDANCE, found_in, plain
from plumbline.warehouse import wordlists
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.options import Seed, part
from plumbline.warehouse.storage.store import Store


class Concordance(CorpusName, Command):
    """Show lines that contain a word or phrase, and count its occurrences.

    'nurse NEAR she her' finds nurse only if she or her is within the corpus's window. FEMALE stands
    for all words in the group female of the corpus's word lists. The command searches all documents
    that `corpus count --evidence` kept. Intervals treat sources as independent of each other. With
    fewer than ten sources, intervals treat documents as independent instead.

    Example: plumbline corpus concordance 'old woman' 'nurse NEAR FEMALE' --corpus novels
    """

    records = False

    queries: Annotated[
        tuple[str, ...],
        Field(min_length=1, description="Words, phrases (up to 5 words), or 'WORD NEAR OTHER...'."),
        On(positional=True, metavar="QUERY"),
    ]
    n: Annotated[int, Field(ge=0, le=10**6, description="Number of lines to show per query.")] = 10
    seed: Annotated[Seed, Field(description="Random seed for choosing the lines.")] = 0

    def run(self, context: Context) -> Done:
        from plumbline.jobs.evidence.concordance import Sampling, concordance
        from plumbline.jobs.evidence.index import NEAR

        rows: list[Row] = []
        said: list[str] = []
        for query in self.queries:
            sampling = Sampling(self.n, self.seed)
            counts, lines = concordance(context.store, self.corpus, query, sampling)
            rows.append(counts)
            if lines:
                near = [("near", "target")] if NEAR in query.split() else []
                columns = [*CONCORDANCE, *near, ("where", found_in)]
                caption = f"{len(lines)} drawn, with equal chances for each occurrence"
                shown = table(caption, Rows(lines), columns)
                said += [*plain(Section("", query, tables=[shown])), ""]
        names = dict.fromkeys(name for row in rows for name in row)  # a NEAR query adds columns
        rows = [{name: row.get(name) for name in names} for row in rows]
        return Done(rows=rows, said=said, next=self.line("why WORD"))


#: Columns to print for a seed word, and maximum number of words to print.
_SHOWN, _MOST = ("position", "word", "n_word", "delta_nats", "verdict", "why"), 20


class CorpusWords(CorpusName, ContrastOption, VocabularyOptions, Command):
    """Sample words that hardly lean, to use as seed words of a benchmark.

    The range of deltas is split into 19 equal intervals. Words are sampled from the middle one.
    Candidates are English words (according to fastText or WordNet) that have only the letters a-z
    and aren't rare. In a made-up corpus, every word is a candidate. The first run stores the
    candidates. Give --quantile, --any-language or --language-model to choose new candidates.

    With --accept or --reject, the command records your verdicts on words, and samples nothing.
    Later samples leave rejected words out.

    Example: plumbline corpus words --corpus pile --n 500 --seed 0 --exclude gendered
    """

    n: Annotated[int | None, Field(ge=1, le=10**9, description="Number of words to sample.")] = 500
    seed: Annotated[Seed, Field(description="Random seed of the sample.")] = 0
    exclude: Annotated[
        Several,
        Field(description="Word list to leave out: name or TOML file. Can be repeated."),
    ] = ()
    language_model: Annotated[
        InputFile | None,
        Field(description="fastText model (lid.176.ftz or lid.176.bin) that detects English."),
        On(variable="PLUMBLINE_LID"),
    ] = None
    accept: Annotated[tuple[str, ...], Field(description="Words to accept, comma-separated.")] = ()
    reject: Annotated[tuple[str, ...], Field(description="Words to reject, comma-separated.")] = ()
    why: Annotated[str, Field(description="Reason to record with --accept or --reject.")] = ""

    def __post_init__(self) -> None:
        if self.why and not (self.accept or self.reject):
            raise UsageProblem("--why", "is for verdicts only", "add --accept or --reject")

    def run(self, context: Context) -> Done:
        if self.accept or self.reject:
            return self._vetted(context)
        return self._sampled(context.store)

    def _decided(self, store: Store) -> list[str]:
        """Choose the candidates, unless an earlier run chose them. Return lines to print."""
        from plumbline.jobs.seed_words.vocabulary import build_vocabulary

        rules = part(VocabularyOptions, self)
        is_known = store.units("vocabulary", corpus=self.corpus) or store.units(
            "planted_word", corpus=self.corpus
        )
        if is_known and not (self.language_model or rules != VocabularyOptions()):
            return []
        done = build_vocabulary(store, self.corpus, rules, self.language_model)
        reasons = ", ".join(f"{reason} {n:,}" for reason, n in done["by_reason"].items())
        return [
            *(f"Skipped: {line}" for line in done["missing"]),
            "Candidates: {n_kept:,} of {n_words:,} words, checked by {checks}, counted more than "
            "{rarest:,.0f} times ({})".format(reasons, **done),
        ]

    def _sampled(self, store: Store) -> Done:
        from plumbline.jobs.counting.corpus_lookup import corpus_contrast, corpus_deltas
        from plumbline.jobs.seed_words.sample import select_seed_words

        contrast = corpus_contrast(store, self.corpus, self.contrast)
        exclude = [word for name in self.exclude for word in wordlists.load(name).targets]
        corpus_deltas(store, self.corpus, contrast)  # raise before anything is written
        decided = self._decided(store)
        drawn_from, words = select_seed_words(
            store, self.corpus, self.n, self.seed, contrast, exclude
        )
        return Done(
            rows=[{name: row[name] for name in _SHOWN} for row in words],
            most=_MOST,
            said=[
                *decided,
                "Sampled {:,} of {n_within:,} words whose delta is between {low_nats:.4f} and "
                "{high_nats:.4f} nats; {n_defined:,} candidates have a delta; {n_excluded:,} "
                "excluded, {n_rejected:,} rejected".format(len(words), **drawn_from),
            ],
            next=f"{self.line('corpus words')} --accept w1,w2 --reject w3 --why TEXT",
            query="FROM seed_word WHERE corpus = $corpus AND contrast = $contrast AND seed = $seed "
            "ORDER BY position",
            params={"corpus": self.corpus, "contrast": contrast, "seed": self.seed},
        )

    def _vetted(self, context: Context) -> Done:
        from plumbline.jobs.seed_words.sample import vet

        given = self.accept, self.reject, self.why
        done = vet(context.store, self.corpus, *given, context.run_id)
        counts = {f"n_{verdict}": done[verdict] for verdict in ("accepted", "rejected")}
        return Done(
            rows=[{"corpus": self.corpus, "n_given": len(self.accept + self.reject), **counts}],
            next=self.line("corpus words"),
            **self.rows_of("seed_verdict", "word"),
        )
