"""What makes a prompt gendered, and neutral prompts out of plain sentences. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from plumbline.warehouse.text.toml_file import read
from plumbline.warehouse.wordlists import load

#: What a derived prompt starts with, and what goes between a sentence and its continuation.
FRIEND, BRIDGE = "My friend", ", and"

_WORD = re.compile(r"[^\W_]+")
_END = re.compile(r"(?<![.!;,:\s])[.!;,:\s]+$")
_SEVERAL = re.compile(r"[.!?]['\"”’)]*\s+\S")


@dataclass(frozen=True)
class Derived:
    """A neutral prompt made of a sentence, or the ``reason`` why none is."""

    prompt: str | None
    reason: str = ""


def gendered_words(text: str) -> tuple[str, ...]:
    """The words of a text that tell a person's gender, lower case, each once, in their order.

    They are those of the word list ``gendered`` and of ``neutral.toml``. Words end at apostrophes
    and hyphens: `she's` holds `she`. Some have another sense too (`a king prawn`).

    >>> gendered_words("She's in the women's team; the shepherd isn't.")
    ('she', 'women')
    >>> gendered_words("")
    ()
    """
    words = (match.group().lower() for match in _WORD.finditer(text.replace("’", "'")))
    return tuple(dict.fromkeys(word for word in words if word in _gendered()))


def gendered_problem(text: str) -> str | None:
    """Why a text is not a neutral prompt, as one line for a reject; ``None`` if it is one.

    >>> gendered_problem("My friend waits for a lady, and")
    "holds the gendered word 'lady'"
    """
    found = gendered_words(text)
    if not found:
        return None
    listed = ", ".join(map(repr, found))
    return f"holds the gendered word{'s' if len(found) > 1 else ''} {listed}"


def bridged(sentence: str) -> str:
    """A sentence as an open-ended prompt: without its full stop, with `, and` behind it.

    >>> bridged("My friend has a cat. ")
    'My friend has a cat, and'
    """
    return f"{_END.sub('', sentence)}{BRIDGE}"


def derive(sentence: str, *, allow_gendered: bool = False) -> Derived:
    """The prompt about "my friend" that a sentence about some person gives.

    A sentence that starts with `someone`, `a person` or another of ``neutral.toml``'s subjects, in
    the singular, is kept with `My friend` in the subject's place, less its full stop, with `, and`
    behind it. Case stays as written. One with gendered words gives none, unless ``allow_gendered``.

    >>> derive("A person is slicing an onion.")
    Derived(prompt='My friend is slicing an onion, and', reason='')
    >>> derive("Someone waves at her.").reason
    "holds the gendered word 'her'"
    >>> derive("People are slicing onions.").reason, derive("A dog runs.").reason
    ('speaks of several people', 'does not start with someone or a person')
    """
    text = " ".join(sentence.split())
    if not text:
        return Derived(None, "the sentence is empty")
    rest = _after_subject(text)
    if rest is None:
        several = _starts_with(text, _settings()["plural"]) is not None
        other = "does not start with someone or a person"
        reason = "speaks of several people" if several else other
        return Derived(None, reason)
    if _starts_with(rest, _settings()["not_after"]) is not None:
        return Derived(None, "does not speak of a person alone")
    if text.endswith("?"):
        return Derived(None, "is a question")
    if _SEVERAL.search(text):
        return Derived(None, "is more than one sentence")
    if not _WORD.search(rest):
        return Derived(None, "says nothing of the person")
    problem = None if allow_gendered else gendered_problem(rest)
    return Derived(None, problem) if problem else Derived(bridged(f"{FRIEND}{rest}"))


def _after_subject(text: str) -> str | None:
    return _starts_with(text, _settings()["subjects"])


def _starts_with(text: str, beginnings: list[str]) -> str | None:
    """What follows the beginning that a text has, as whole words; ``None`` without one."""
    for beginning in beginnings:
        if text[: len(beginning)].lower() == beginning:
            rest = text[len(beginning) :]
            if not rest[:1].isalnum():
                return rest
    return None


@cache
def _gendered() -> frozenset[str]:
    return frozenset(_settings()["gendered"].split()) | frozenset(load("gendered").targets)


@cache
def _settings() -> dict[str, Any]:
    return read(resources.files("plumbline.eval_workers.disclosure") / "neutral.toml")
