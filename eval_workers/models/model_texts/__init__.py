"""Look up what is published about the text that a model was trained on."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import Any, Literal, TypeAlias

from plumbline.warehouse.text.toml_file import parsed

#: How a model's training text relates to a corpus.
Relation: TypeAlias = Literal["same", "deduplicated", "some", "other", "unpublished", "unknown"]


def known(model: str) -> dict[str, Any] | None:
    """Return the entry of ``texts.toml`` for the model, or ``None`` if it has no entry.

    >>> known("EleutherAI/pythia-70m-deduped")["part"], known("gpt-j-6b")["family"]
    ('deduplicated', 'GPT-J')
    >>> known("someone/pythia-70m-chat") is known("meta-llama/Llama-2-7b-chat-hf") is None
    True
    """
    name, entries = model.rpartition("/")[2], _content()["model"]
    return next((m for m in entries if re.fullmatch(m["pattern"], name, re.IGNORECASE)), None)


def relation(model: str, corpus: str) -> Relation:
    """Return how the model's training text relates to a corpus; `unknown` if either isn't listed.

    >>> [relation(m, "pile") for m in ("pythia-70m", "opt-125m", "mpt-7b", "Mistral-7B-v0.1")]
    ['same', 'some', 'other', 'unpublished']
    >>> relation("pythia-70m", "novels"), relation("a-model", "pile")
    ('unknown', 'unknown')
    """
    text, entry = _content()["corpora"].get(corpus), known(model)
    if text is None or entry is None:
        return "unknown"
    if not entry["text"]:
        return "unpublished"
    if entry["text"] != text:
        return "other"
    part: Relation = entry["part"]
    return part


def described(model: str) -> dict[str, str | None]:
    """Return a model's ``family`` and ``training_text``, which are columns of table ``model``.

    Both are ``None`` if the model isn't listed.

    >>> described("EleutherAI/pythia-70m")
    {'family': 'Pythia', 'training_text': 'the Pile'}
    >>> described("models/alpha")
    {'family': None, 'training_text': None}
    """
    entry = known(model) or {}
    return {"family": entry.get("family"), "training_text": entry.get("text")}


def text_name(corpus: str) -> str:
    """Return the well-known name of a corpus. If ``texts.toml`` has none, return ``corpus``.

    >>> text_name("pile"), text_name("novels")
    ('the Pile', 'novels')
    """
    name: str = _content()["corpora"].get(corpus, corpus)
    return name


@cache
def _content() -> dict[str, Any]:
    text = (resources.files(__name__) / "texts.toml").read_text(encoding="utf-8")
    return parsed(text, "texts of models")
