"""Scoring functions from TOML files; an item is the weighted sum of a classifier's probabilities.

Labels are kept in the table `text_label`, so no text is classified twice.
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
#: Texts per commit, and the most that are classified again after an interruption.
CHUNK = 2000


@dataclass(eq=False)
class ClassifierPhi:
    """The scoring function of a classifier's file; see ``phi.Phi`` for its members.

    With a ``store``, ``items`` reads the labels stored there and adds those of other texts.
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
        """A copy with a warehouse, and with the device and batch size of ``how``."""
        options = ModelOptions(
            revision=self.revision, device=how.device, batch_tokens=how.batch_tokens
        )
        return replace(self, how=options, store=store, run_id=run_id)

    @cached_property
    def classifier(self) -> Classifier:
        """The model, without its weights until they are needed.

        Raises as ``Classifier``, and ``BadInput`` for a weight of a label that the model lacks.
        """
        from plumbline.eval_workers.models.kinds.classifier import Classifier

        model = Classifier(self.model, replace(self.how, revision=self.revision))
        if unknown := sorted(self.weights.keys() - set(model.labels)):
            problem = f"model {self.model} has no label {unknown[0]}"
            raise BadInput(f"classifier {self.name}", problem, f"it has {', '.join(model.labels)}")
        return model

    @cached_property
    def _numbers(self) -> dict[str, float]:
        """Text id -> number, for all texts that this classifier has classified."""
        labels: dict[str, dict[str, float]] = {}
        if self.store is not None:
            rows = self.store.read("text_label", classifier_key=self.classifier.key)
            columns = (rows[name].to_pylist() for name in ("text_id", "label", "probability"))
            for text_id, label, probability in zip(*columns, strict=True):
                labels.setdefault(text_id, {})[label] = probability
        return {text_id: self._number(by_label) for text_id, by_label in labels.items()}

    def _number(self, by_label: Mapping[str, float]) -> float:
        return fsum(weight * by_label[label] for label, weight in self.weights.items())

    def items(self, texts: Sequence[str]) -> list[float]:
        """The number of each text: the sum of its labels' probabilities times their weights."""
        ids = {text: hashlib.sha256(text.encode()).hexdigest() for text in texts}
        missing = [text for text, text_id in ids.items() if text_id not in self._numbers]
        with progress(f"classify by {self.name}", "texts") as tell:
            for start in range(0, len(missing), CHUNK):
                chunk = missing[start : start + CHUNK]
                self._classify({text: ids[text] for text in chunk})
                tell(start + len(chunk), len(missing))
        return [self._numbers[ids[text]] for text in texts]

    def _classify(self, ids: Mapping[str, str]) -> None:
        model, rows = self.classifier, []
        for text, output in zip(ids, model.classify(list(ids)), strict=True):
            by_label = dict(zip(model.labels, output.probabilities, strict=True))
            self._numbers[ids[text]] = self._number(by_label)
            shared = {
                "classifier_key": model.key,
                "classifier": model.source.name,
                "text_id": ids[text],
                "n_tokens": output.n_tokens,
                "is_cut": output.is_cut,
                "run_id": self.run_id,
            }
            rows += [{**shared, "label": name, "probability": p} for name, p in by_label.items()]
        if self.store is not None:
            unit = hashlib.sha256("".join(ids.values()).encode()).hexdigest()[:16]
            self.store.publish("text_label", rows, unit=unit, run_id=self.run_id)


@toml_table
class _ClassifierFile:
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
    """Read a classifier's file, by its path or, if packaged, by its name; loads no model yet.

    Raises ``UsageProblem`` without such a file and for a path with the name of a packaged one,
    ``BadInput`` naming the key and what was expected.

    >>> load("regard").weights["negative"]
    -1.0
    """
    is_path, stem = name.endswith(".toml"), Path(name).stem
    source = Path(name) if is_path else SHIPPED.text(name)
    file = load_toml(_ClassifierFile, source, name if is_path else f"{name}.toml")
    if is_path and stem in SHIPPED.names():
        fix = "rename the file: figures are kept under its name"
        raise UsageProblem(f"classifier {name}", f"has the name of ours, {stem}", fix)
    return ClassifierPhi(
        stem, file.description, file.languages or None, file.model, file.revision, file.weights
    )
