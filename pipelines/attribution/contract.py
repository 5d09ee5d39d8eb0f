"""The contract of methods that attribute a model's preferences to documents of its training text.

A method is a module with the members of ``Attributor``, in the package ``attributors`` or under
another package's entry point ``plumbline.attribution``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from plumbline.jobs.association.associations import contrasts_of
from plumbline.jobs.association.target_lists import targets_of
from plumbline.jobs.corpus_lookup import corpus_contrast, corpus_lists
from plumbline.jobs.evidence.sightings import ALL_SOURCES, Inquiry, Sightings, look
from plumbline.pipelines.attribution.attributed_text import TrainingText
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.plugins import Registry
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.wordlists import WordPair

Floats = NDArray[np.float64]
#: Called with the number of parts done and of all parts.
Progress = Callable[[int, int], None]


def silent(_done: int, _of: int) -> None:
    """Report no progress."""


@dataclass(frozen=True)
class TextPair:
    """Two versions of a sentence, made for ``word`` (lowercase), and their weight in a query."""

    text_f: str
    text_m: str
    word: str | None
    weight: float


@dataclass(frozen=True)
class Query:
    """A preference: sum over pairs of weight (log p(text_f) - log p(text_m)), in nats.

    The weights sum to 1. Examples of ``name``: ``word nurse``, ``benchmark winobias``.
    """

    name: str
    pairs: tuple[TextPair, ...]

    @property
    def words(self) -> set[str]:
        """The words that the query's pairs were made for."""
        return {pair.word for pair in self.pairs if pair.word}

    def weights(self, words: Sequence[str]) -> list[float]:
        """The total weight of the pairs that were made for each word."""
        return [sum(pair.weight for pair in self.pairs if pair.word == word) for word in words]

    def texts(self) -> Iterator[tuple[str, float]]:
        """Each sentence and the weight of its log-probability, pair after pair."""
        for pair in self.pairs:
            yield pair.text_f, pair.weight
            yield pair.text_m, -pair.weight


@dataclass(frozen=True)
class Subject:
    """A model whose preferences are attributed, and its training text.

    Attributes:
        store: the warehouse.
        model: a directory or a name, as ``plumbline score`` takes it.
        text: the documents of the counted corpus that the model was trained on.
        contrast: a pair of female and male words such as ``she/he``, or the name of a word list.
        seed: seed of methods that sample.
    """

    store: Store
    model: str
    text: TrainingText
    contrast: str = "she/he"
    seed: int = 0

    @property
    def pairs(self) -> tuple[WordPair, ...]:
        """The pairs of the contrast. Raises ``UsageProblem`` if the corpus lacks that contrast."""
        corpus, by_name = self.text.corpus, contrasts_of(self.store, self.text.evidence.corpus)
        contrast = corpus_contrast(self.store, corpus, self.contrast)
        if contrast not in by_name:
            problem, fix = f"is not one of corpus {corpus}", f"one of {', '.join(by_name)}"
            raise UsageProblem(f"contrast {self.contrast!r}", problem, fix)
        return by_name[contrast]

    def inquiry(self, words: Iterable[str]) -> Inquiry:
        """The inquiry for words near the contrast; a word that the corpus lacks is no error."""
        evidence, pairs = self.text.evidence, self.pairs
        counts = self.store.read("word_count", corpus=self.text.corpus)
        return Inquiry(
            tuple(dict.fromkeys(words)),
            tuple(dict.fromkeys(pair.a for pair in pairs)),
            tuple(dict.fromkeys(pair.b for pair in pairs)),
            targets_of(corpus_lists(self.store, evidence.corpus)),
            evidence.options.rule,
            evidence.options.window,
            counts["word"].combine_chunks(),
        )

    def sightings(self, words: Iterable[str], progress: Progress) -> Sightings:
        """Occurrences of words in the documents."""
        question = self.inquiry(words)
        return look(self.text.evidence, question, progress=progress, most_sources=ALL_SOURCES)


class Attributor(Protocol):
    """The module of a method.

    Attributes:
        DESCRIPTION: one line on the method, for the command and the page.
        UNIT: unit of a score, such as ``nats of delta``. With ``arbitrary units``, only the sign
            and the order of scores have a meaning.
    """

    DESCRIPTION: str
    UNIT: str

    def scores(
        self, queries: Sequence[Query], subject: Subject, progress: Progress = silent
    ) -> Floats:
        """Expected effect of *having* each document on each preference, float64[query, document].

        A positive effect makes the model more female. The documents are in the order of
        ``subject.text``. A document that the method can't score has 0, never NaN.

        Raises:
            UsageProblem: the method can't score this model, text or query.
            MissingComponent: a package that it needs is not installed.
        """


METHODS = Registry(
    "method of attribution",
    "plumbline.pipelines.attribution.attributors",
    ".py",
    "plumbline.attribution",
    Attributor,
)
