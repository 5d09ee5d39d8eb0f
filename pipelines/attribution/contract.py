"""The contract of methods that say which documents of a text made a model's preference.

A method is a module of the package ``methods``, or of another package's entry point
``plumbline.attribution``, with the names of ``Attributor``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.pipelines.attribution.training_text import TrainingText
from plumbline.warehouse.plugins import Registry
from plumbline.warehouse.storage.store import Store

Floats = NDArray[np.float64]
#: Called with (parts done, parts in all).
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class TextPair:
    """Two versions of a sentence; ``word`` is the one that the pair was made for, lowercase."""

    text_f: str
    text_m: str
    word: str | None
    weight: float


@dataclass(frozen=True)
class Query:
    """A preference: sum over pairs of weight (log p(text_f) - log p(text_m)), in nats.

    The weights sum to 1. ``name`` is such as ``word nurse`` or ``benchmark winobias``.
    """

    name: str
    pairs: tuple[TextPair, ...]


@dataclass(frozen=True)
class Subject:
    """What is asked about.

    Attributes:
        store: the warehouse.
        model: as ``plumbline score`` takes it: a directory, or a name.
        text: the documents that it was trained on.
        contrast: the pair of words whose sides the pairs' sides are, such as ``she/he``.
        how: how the model is loaded.
        seed: of methods that draw.
    """

    store: Store
    model: str
    text: TrainingText
    contrast: str = "she/he"
    how: ModelOptions = field(default_factory=ModelOptions)
    seed: int = 0


class Attributor(Protocol):
    """The module of a method.

    Attributes:
        DESCRIPTION: a line on what it does, for the command and the page.
        UNIT: what a score is, such as ``nats of delta``; of ``arbitrary units`` only sign and order
            say something.
    """

    DESCRIPTION: str
    UNIT: str

    def scores(
        self, queries: Sequence[Query], subject: Subject, progress: Progress = lambda *_: None
    ) -> Floats:
        """Expected effect of *having* each document on each preference, float64[query, document].

        Above 0: it makes the model more female. The documents are those of ``subject.text``, in
        its order. Never NaN: a document that the method can say nothing of has 0.

        Raises:
            UsageProblem: the method can't say anything of this model, text or query.
            MissingComponent: a package that it needs is not installed.
        """


METHODS = Registry(
    "method of attribution",
    "plumbline.pipelines.attribution.methods",
    ".py",
    "plumbline.attribution",
    Attributor,
)
