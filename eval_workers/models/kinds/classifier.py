"""Sequence classifiers: the probability of each label for a text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

# Imported before torch: this module configures MKL.
from plumbline.eval_workers.models.kinds.forward_passes import Passes, n_before_text

import tokenizers  # isort: skip
import torch  # isort: skip
import transformers  # isort: skip

from plumbline.eval_workers.models.kinds.model_kind import read_config
from plumbline.eval_workers.models.local import loading
from plumbline.eval_workers.models.local.weights import read_weights
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.scoring_contract import Tokens
from plumbline.warehouse.errors import BadInput

#: Tokenizers without a limit have a ``model_max_length`` above this.
_NO_LIMIT = 1_000_000


@dataclass(frozen=True)
class Classified:
    """A text's ``probabilities``, one per label in the order of ``Classifier.labels``.

    ``n_tokens`` counts the tokens of the whole text, special ones included. ``is_cut`` is true if
    the text's end was left out because it was longer than the model's context.
    """

    probabilities: tuple[float, ...]
    n_tokens: int
    is_cut: bool


class Classifier(Passes):
    """A sequence classifier loaded with transformers; its weights are read when first needed.

    Probabilities are the softmax over labels, in float32. For a single label, and for the problem
    type `multi_label_classification`, they are each label's sigmoid. The pipeline
    `text-classification` of transformers does the same. A pass holds texts of one length, without
    padding: a text's probabilities don't depend on other texts.

    Raises ``BadInput`` for a model that isn't a classifier, and the errors of ``read_config``.
    """

    def __init__(self, model: str, options: ModelOptions) -> None:
        self.options = options
        self.source, self._config = read_config(model, options)
        architectures = getattr(self._config, "architectures", None) or []
        if not any(name.endswith("ForSequenceClassification") for name in architectures):
            what = ", ".join(architectures) or f"model type {self._config.model_type}"
            fix = "give a model saved as ...ForSequenceClassification"
            raise BadInput(f"model {self.source.name}", f"{what} is not a classifier", fix)
        if self._config.problem_type == "regression":
            fix = "give one whose labels have probabilities"
            raise BadInput(f"model {self.source.name}", "predicts a number, not a label", fix)
        auto = transformers.AutoTokenizer.from_pretrained
        self._tokenizer = loading.load(self.source, auto)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the labels, in the configuration's order."""
        return tuple(self._config.id2label[i] for i in range(self._config.num_labels))

    @property
    def key(self) -> str:
        """Hash of model, revision, dtype and library versions (16 hex digits)."""
        versions = (transformers.__version__, torch.__version__, tokenizers.__version__)
        parts = [self.source.name, self.source.revision, self.options.dtype, *versions]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]

    def classify(self, texts: Sequence[str]) -> list[Classified]:
        """The probabilities of each text, in the order given (loads the weights)."""
        whole = self._ids(texts)
        longer = [i for i, ids in enumerate(whole) if len(ids) > self._n_context]
        inputs = dict(enumerate(whole))
        if longer:
            cut = self._ids([texts[i] for i in longer], max_length=self._n_context, truncation=True)
            inputs.update(zip(longer, cut, strict=True))
        distinct = sorted(set(inputs.values()), key=lambda ids: (len(ids), ids))
        probabilities = self._in_passes(distinct, self._pass)
        return [
            Classified(probabilities[inputs[i]], len(ids), len(ids) > self._n_context)
            for i, ids in enumerate(whole)
        ]

    def _ids(self, texts: Sequence[str], **settings: Any) -> list[Tokens]:
        ids = self._tokenizer(list(texts), verbose=False, **settings)["input_ids"] if texts else []
        return [tuple(of_text) for of_text in ids]

    @property
    def _n_context(self) -> int:
        """Most tokens of an input, special tokens included."""
        limit = int(self._tokenizer.model_max_length)
        positions = getattr(self._config, "max_position_embeddings", None)
        if limit < _NO_LIMIT or positions is None:
            return limit
        return int(positions) - n_before_text(self._config)

    @cached_property
    def _model(self) -> Any:
        loader = transformers.AutoModelForSequenceClassification.from_pretrained
        model = read_weights(self.source, loader, self._config, self.options)
        if model.config.pad_token_id is None:
            # Classifiers made of decoders read the last token before padding, and refuse several
            # texts without a padding token. Inputs aren't padded, so -1, an unused id, is enough.
            model.config.pad_token_id = -1
        return model

    @torch.inference_mode()
    def _pass(self, sequences: list[Tokens]) -> list[tuple[float, ...]]:
        inputs = torch.tensor(sequences, device=self._model.device)
        logits = self._model(input_ids=inputs, attention_mask=torch.ones_like(inputs)).logits
        if (
            self._config.num_labels == 1
            or self._config.problem_type == "multi_label_classification"
        ):
            probabilities = torch.sigmoid(logits.float())
        else:
            probabilities = torch.softmax(logits.float(), dim=1)
        return [tuple(row) for row in probabilities.tolist()]
