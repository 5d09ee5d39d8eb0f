"""The pre-specified study of attributions: its texts, the units left out, and its predictions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from plumbline.eval_workers.pairs.closed_world_corpus.corpus_writer import WorldOptions, documents
from plumbline.eval_workers.pairs.closed_world_corpus.truth import planted_words
from plumbline.eval_workers.training.training_options import TrainOptions, preset
from plumbline.pipelines.command.fields import Seed
from plumbline.pipelines.reproduce.cause import TemplatePairs, read_study
from plumbline.pipelines.reproduce.retraining.datamodelling import Floats, halves
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.input.shards import expand_shards, lines
from plumbline.warehouse.query.method_validation import (
    BENCHMARK,
    OTHER_WORD,
    OWN,
    PLACEBO_WORDS,
    WORDS,
)
from plumbline.warehouse.text.toml_file import Text, Texts, toml_table

Many: TypeAlias = Annotated[int, Field(ge=1, le=1_000_000_000)]
Record: TypeAlias = Mapping[str, Any]


@toml_table
class Trainings:
    """Trainings on halves: one on each, and a second, with another seed, on the first ``n_twice``.

    A half is read up to ``max_epochs`` times.
    """

    preset: Text
    max_tokens: Many
    max_epochs: Many
    n_halves: Annotated[int, Field(ge=3, le=1000)]
    n_twice: Annotated[int, Field(ge=3, le=1000)]
    seed: Seed

    def __post_init__(self) -> None:
        if self.n_twice > self.n_halves:
            raise UsageProblem("n_twice", f"is more than the {self.n_halves} halves")
        _ = self.options(0)

    def options(self, seed: int) -> TrainOptions:
        """Options of a training."""
        of_preset = preset(self.preset, seed, self.max_tokens)
        return replace(of_preset, max_epochs=self.max_epochs)

    def documents(self, units: NDArray[np.int64]) -> NDArray[np.bool_]:
        """The documents of each half, bool[half, document], from the unit of each document."""
        of_units = halves(int(units.max()) + 1, self.n_halves, self.seed)
        return of_units[:, units]

    def runs(self) -> list[tuple[int, int]]:
        """Half and seed of each training; the halves that are trained twice come first.

        >>> Trainings("closed", 9, 4, 4, 3, 0).runs()
        [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (3, 0)]
        """
        return [
            (half, seed)
            for half in range(self.n_halves)
            for seed in range(1 + (half < self.n_twice))
        ]


@dataclass(frozen=True)
class Outcome:
    """Figures to predict and their predictions.

    Attributes:
        true: float64[figure, word], weights of the words' preferences, whose sums are the figures.
        predicted: weights of the words' scores, whose sums predict them; ``true`` but for placebos.
    """

    name: str
    true: Floats
    predicted: Floats


def own_parts(n: int) -> Floats:
    """Weights, float64[n, n], that give each of n words its difference from the mean of all.

    >>> own_parts(2)
    array([[ 0.5, -0.5],
           [-0.5,  0.5]])
    """
    weights: Floats = np.eye(n) - 1 / n
    return weights


@toml_table
class RealText:
    """The first documents of shards below the data directory, about the same number from each."""

    corpus: Text
    shards: Texts
    n_documents: Many
    benchmark: TemplatePairs
    trainings: Trainings

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Words of the queries."""
        return tuple(sorted(self.benchmark.words))

    def records(self, data: Path) -> Iterator[Record]:
        """The documents, as they are in their shards."""
        paths = expand_shards([str(data / pattern) for pattern in self.shards])
        for k, path in enumerate(paths):
            n = (self.n_documents + k) // len(paths)
            yield from map(json.loads, islice(lines(path), n))

    def units(self, records: list[Record]) -> NDArray[np.int64]:
        """Number, from 0, of the unit that a document is left out with: the document alone."""
        return np.arange(len(records))

    def outcomes(self) -> list[Outcome]:
        """Outcomes to predict; the placebo predicts each word by the scores of another word."""
        n = len(self.words)
        own, every = own_parts(n), np.full((1, n), 1 / n)
        return [
            Outcome(BENCHMARK, every, every),
            Outcome(WORDS, np.eye(n), np.eye(n)),
            Outcome(OWN, own, own),
            Outcome(OTHER_WORD, own, np.roll(own, n // 2, axis=0)),
        ]


@toml_table
class ClosedWorld:
    """A generated text of several sources: words lean in the source ``planted`` only.

    Its words are the ``n_leaning`` whose lean moves most occurrences and, as placebos, the
    ``n_placebo`` with the smallest lean. Whole sources are left out.
    """

    corpus: Text
    n_sources: Annotated[int, Field(ge=4, le=1000)]
    planted: Annotated[int, Field(ge=0)]
    words_per_source: Many
    seed: Seed
    n_leaning: Annotated[int, Field(ge=2)]
    n_placebo: Annotated[int, Field(ge=2)]
    trainings: Trainings

    def __post_init__(self) -> None:
        if self.planted >= self.n_sources:
            problem = f"is not one of the {self.n_sources} sources, from 0"
            raise UsageProblem(f"planted {self.planted}", problem)

    @cached_property
    def leaning(self) -> dict[str, int]:
        """Leaning words with the side that they lean to: 1 for she, -1 for he."""
        by_moved = sorted(self._planted.items(), key=lambda x: -abs(x[1][1]))[: self.n_leaning]
        return {word: 1 if moved > 0 else -1 for word, (_, moved) in sorted(by_moved)}

    @cached_property
    def placebos(self) -> tuple[str, ...]:
        """The words with the smallest lean."""
        by_lean = sorted(self._planted, key=lambda word: abs(self._planted[word][0]))
        return tuple(sorted(by_lean[: self.n_placebo]))

    @cached_property
    def _planted(self) -> dict[str, tuple[float, float]]:
        """Lean of each word in nats, and p(word | she) - p(word | he)."""
        return {w.word: (w.delta_nats, w.p_she - w.p_he) for w in planted_words(self.seed)}

    @property
    def words(self) -> tuple[str, ...]:
        """Words of the queries: the leaning ones, then the placebos."""
        return (*self.leaning, *self.placebos)

    def records(self, data: Path) -> Iterator[Record]:
        """The documents; each names its source by number."""
        for source in range(self.n_sources):
            world = "straight" if source == self.planted else "mixed"
            left = self.words_per_source
            for text, n in documents(WorldOptions(seed=self.seed, world=world), source):
                yield {"text": text, "meta": {"pile_set_name": f"source {source}"}}
                left -= n
                if left <= 0:
                    break

    def units(self, records: list[Record]) -> NDArray[np.int64]:
        """Number, from 0, of the unit that a document is left out with: its source."""
        return np.array([int(r["meta"]["pile_set_name"].split()[1]) for r in records])

    def outcomes(self) -> list[Outcome]:
        """Outcomes to predict; the benchmark's is the mean lean to the planted sides."""
        n, m = len(self.leaning), len(self.placebos)
        side = np.array([[*self.leaning.values()] + [0] * m]) / n
        words = np.eye(n + m)[:n]
        own = np.hstack([own_parts(n), np.zeros((n, m))])
        placebo = np.hstack([np.zeros((m, n)), own_parts(m)])
        return [
            Outcome(BENCHMARK, side, side),
            Outcome(WORDS, words, words),
            Outcome(OWN, own, own),
            Outcome(PLACEBO_WORDS, placebo, placebo),
        ]


StudyText: TypeAlias = RealText | ClosedWorld


@toml_table
class ScorePrediction:
    """Expected place of a row's ``score`` - ``chance``, or ``over_baseline``, relative to 0."""

    name: Text
    corpus: Text
    method: Text
    outcome: Text
    column: Literal["score", "over_baseline"]
    expected: Literal["below 0", "above 0", "holds 0"]


@toml_table
class AttributionDesign:
    """A pre-specified study; ``sha256`` is of its file, 64 hex digits.

    Outcomes with a ceiling below ``least_ceiling`` are not scored, except for placebos.
    """

    question: Text
    methods: Texts
    baselines: Texts
    least_ceiling: Annotated[float, Field(ge=0, le=1)]
    real: RealText
    closed_world: ClosedWorld
    prediction: tuple[ScorePrediction, ...]
    sha256: str

    def __post_init__(self) -> None:
        for name in set(self.baselines) - set(self.methods):
            raise UsageProblem(f"baseline {name!r}", "is not one of the methods")

    @property
    def texts(self) -> tuple[RealText, ClosedWorld]:
        """The texts that are studied."""
        return self.real, self.closed_world


def read_design(path: Path | None = None) -> AttributionDesign:
    """Read the design of a TOML file, or the packaged one. Raises as ``read_study``."""
    return read_study(AttributionDesign, "attribution.toml", path)
