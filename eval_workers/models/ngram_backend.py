"""Score texts with an n-gram model, which ``plumbline train --preset 5gram`` makes by counting.

All words outside the vocabulary share the probability of one unknown word. The model can't continue
prompts.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import NoReturn

import tokenizers
from transformers import PretrainedConfig

from plumbline.eval_workers.models import is_ngram
from plumbline.eval_workers.models.local.causal_model import CausalModel
from plumbline.eval_workers.models.local.model_files import Files
from plumbline.eval_workers.models.local.source import find_source, silence
from plumbline.eval_workers.models.model_options import ModelOptions, refuse_options
from plumbline.eval_workers.models.ngram_model import VERSION, NgramModel
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.paths import json_object


class NgramBackend(CausalModel):
    """An n-gram model that scores texts. Opening it raises the errors of ``TextReader``."""

    supports = frozenset[str]()
    knows_all_words = False  # words outside the vocabulary count as one unknown word

    def __init__(self, model: str, options: ModelOptions) -> None:
        if not is_ngram(model):
            fix = "make one with plumbline train --preset 5gram"
            raise BadInput(f"model {model}", "is not the directory of an n-gram model", fix)
        refuse_options(options, ["dtype"], "an n-gram model has no weights of another type")
        silence()
        source = find_source(model, options.revision)
        fields = json_object(Path(source.location) / "config.json")
        if fields.get("version") != VERSION:
            problem = "was made by another version of Plumbline, whose files differ"
            raise BadInput(f"model {model}", problem, "train it again")
        super().__init__(model, options, Files(source, PretrainedConfig(**fields), None, "causal"))
        self.identity = replace(self.identity, dtype="float64")

    def versions(self) -> dict[str, str]:
        return {"n-grams": str(VERSION), "tokenizers": tokenizers.__version__}

    @cached_property
    def weights(self) -> NgramModel:
        return NgramModel.load(Path(self.source.location))

    def continue_(self, *_: object) -> NoReturn:
        """Raise ``UsageProblem``, because an n-gram model can't continue prompts."""
        problem = "is an n-gram model: it scores sentences, but can't continue a text"
        fix = "give a neural model: a hub id, or one from plumbline train with another preset"
        raise UsageProblem(f"model {self.source.name}", problem, fix)


open_model = NgramBackend
