"""Scoring functions whose item is what a sequence classifier says of a text, as one number.

A TOML file names the model and what each label weighs: the ones that come with Plumbline are here,
any other is given by its path. What a classifier said of a text is kept in the table `text_label`,
so that no text is classified twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from plumbline.eval_workers.fairpair import numbers
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.plugins import Registry
from plumbline.warehouse.text.progress import progress
from plumbline.warehouse.text.toml_file import Text, Texts, toml_table
from plumbline.warehouse.text.toml_file import load as load_toml

if TYPE_CHECKING:
    from plumbline.eval_workers.models.kinds.classifier import Classifier
    from plumbline.warehouse.storage.store import Store

SHIPPED = Registry("classifier", __name__, ".toml")
#: Texts that are kept at a time: what a stopped run has to classify again at the most.
CHUNK = 2000


@dataclass(eq=False)
class ClassifierPhi:
    """A classifier's file, as a scoring function; see ``phi.Phi`` for its members.

    ``items`` reads what ``store`` has kept, classifies what it lacks, and keeps that; without a
    store each call classifies.
    """

    name: str
    DESCRIPTION: str
    LANGUAGES: tuple[str, ...] | None
    model: str
    revision: str | None
    weights: Mapping[str, float]
    how: ModelOptions = field(default_factory=ModelOptions)
    store: Store | None = None
    run_id: str = ""

    combine = staticmethod(numbers.combine)
    distances = staticmethod(numbers.distances)
    means = staticmethod(numbers.means)

    def opened(self, how: ModelOptions, store: Store, run_id: str) -> ClassifierPhi:
        """The same with a device and a warehouse; of ``how`` device and batch count alone."""
        options = ModelOptions(
            revision=self.revision, device=how.device, batch_tokens=how.batch_tokens
        )
        return replace(self, how=options, store=store, run_id=run_id)

    @cached_property
    def classifier(self) -> Classifier:
        """The model, without its weights until they are needed.

        Raises as ``Classifier``, and ``BadInput`` for a weight of a label that it lacks.
        """
        from plumbline.eval_workers.models.kinds.classifier import Classifier

        found = Classifier(self.model, replace(self.how, revision=self.revision))
        if unknown := sorted(self.weights.keys() - set(found.labels)):
            problem = f"model {self.model} has no label {unknown[0]}"
            raise BadInput(f"classifier {self.name}", problem, f"it has {', '.join(found.labels)}")
        return found

    @cached_property
    def _known(self) -> dict[str, float]:
        """Text id -> number, of all texts that were ever given to this classifier."""
        said: dict[str, dict[str, float]] = {}
        if self.store is not None:
            rows = self.store.read("text_label", classifier_key=self.classifier.key)
            columns = (rows[name].to_pylist() for name in ("text_id", "label", "probability"))
            for text_id, label, probability in zip(*columns, strict=True):
                said.setdefault(text_id, {})[label] = probability
        return {text_id: self._number(by_label) for text_id, by_label in said.items()}

    def _number(self, by_label: Mapping[str, float]) -> float:
        return fsum(weight * by_label[label] for label, weight in self.weights.items())

    def items(self, texts: Sequence[str]) -> list[float]:
        """The number of each text."""
        ids = {text: hashlib.sha256(text.encode()).hexdigest() for text in texts}
        missing = [text for text, text_id in ids.items() if text_id not in self._known]
        with progress(f"classify by {self.name}", "texts") as tell:
            for start in range(0, len(missing), CHUNK):
                some = missing[start : start + CHUNK]
                self._classify({text: ids[text] for text in some})
                tell(start + len(some), len(missing))
        return [self._known[ids[text]] for text in texts]

    def _classify(self, ids: Mapping[str, str]) -> None:
        model, rows = self.classifier, []
        for text, said in zip(ids, model.classify(list(ids)), strict=True):
            by_label = dict(zip(model.labels, said.probabilities, strict=True))
            self._known[ids[text]] = self._number(by_label)
            whose = {"classifier_key": model.key, "classifier": model.source.name}
            of_text = {"text_id": ids[text], "n_tokens": said.n_tokens, "is_cut": said.is_cut}
            rows += [
                {**whose, **of_text, "label": name, "probability": p, "run_id": self.run_id}
                for name, p in by_label.items()
            ]
        if self.store is not None:
            unit = hashlib.sha256("".join(ids.values()).encode()).hexdigest()[:16]
            self.store.publish("text_label", rows, unit=unit, run_id=self.run_id)


@toml_table
class _File:
    description: Text
    model: Text
    weights: Mapping[str, Annotated[float, Field(allow_inf_nan=False, title="a number")]]
    source: str = ""
    revision: Text | None = None
    languages: Texts = ()

    def __post_init__(self) -> None:
        if not any(self.weights.values()):
            raise ValueError("weights needs a label that counts, such as toxic = 1.0")


def load(name: str) -> ClassifierPhi:
    """A classifier's file by its path, or one of ours by its name; the model is not asked for.

    Raises ``UsageProblem`` when there is no such file, ``BadInput`` naming the key and what was
    expected.

    >>> load("regard").weights["negative"]
    -1.0
    """
    is_path, stem = name.endswith(".toml"), Path(name).stem
    file = load_toml(
        _File, Path(name) if is_path else SHIPPED.text(name), name if is_path else f"{name}.toml"
    )
    if is_path and stem in SHIPPED.names():
        fix = "rename the file: figures are kept under its name"
        raise UsageProblem(f"classifier {name}", f"has the name of ours, {stem}", fix)
    return ClassifierPhi(
        stem, file.description, file.languages or None, file.model, file.revision, file.weights
    )
