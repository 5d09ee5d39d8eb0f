"""What is published about the text that models were trained on, with sources."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal, TypeAlias

from plumbline.warehouse.text.toml_file import parsed

#: Relation of a model's training text to a corpus.
Relation: TypeAlias = Literal["same", "deduplicated", "some", "other", "unpublished", "unknown"]


@dataclass(frozen=True)
class ModelText:
    """An entry of ``texts.toml``, which explains the fields."""

    family: str
    pattern: str
    year: int
    text: str
    source: str
    part: str = ""


def known(model: str) -> ModelText | None:
    """Return the entry whose pattern matches the model's name; ``None`` if there is none.

    >>> known("EleutherAI/pythia-70m-deduped").part, known("gpt-j-6b").family
    ('deduplicated', 'GPT-J')
    >>> known("someone/pythia-70m-chat") is known("meta-llama/Llama-2-7b-chat-hf") is None
    True
    """
    name = model.rpartition("/")[2]
    return next((m for m in _models() if re.fullmatch(m.pattern, name, re.IGNORECASE)), None)


def relation(model: str, corpus: str) -> Relation:
    """Return how a model's training text relates to a corpus; both are given by name.

    The result is ``unknown`` if the model or the corpus isn't listed.

    >>> [relation(m, "pile") for m in ("pythia-70m", "opt-125m", "mpt-7b", "Mistral-7B-v0.1")]
    ['same', 'some', 'other', 'unpublished']
    >>> relation("pythia-70m", "novels"), relation("a-model", "pile")
    ('unknown', 'unknown')
    """
    text, entry = _content()["corpora"].get(corpus), known(model)
    if text is None or entry is None:
        return "unknown"
    if not entry.text:
        return "unpublished"
    if entry.text != text:
        return "other"
    parts: dict[str, Relation] = {"whole": "same", "deduplicated": "deduplicated", "some": "some"}
    return parts[entry.part]


def described(model: str) -> dict[str, str | None]:
    """Return the columns ``family`` and ``training_text`` of table ``model``; ``None`` if unlisted.

    >>> described("EleutherAI/pythia-70m")
    {'family': 'Pythia', 'training_text': 'the Pile'}
    >>> described("models/alpha")
    {'family': None, 'training_text': None}
    """
    entry = known(model)
    return {
        "family": entry.family if entry else None,
        "training_text": entry.text if entry else None,
    }


@cache
def _content() -> dict[str, Any]:
    text = (resources.files(__name__) / "texts.toml").read_text(encoding="utf-8")
    return parsed(text, "texts of models")


@cache
def _models() -> list[ModelText]:
    return [ModelText(**entry) for entry in _content()["model"]]
