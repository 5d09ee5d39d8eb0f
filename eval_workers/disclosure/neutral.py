"""Find gendered words in prompts, and derive neutral prompts from sentences."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import Any

from plumbline.warehouse.text.toml_file import read
from plumbline.warehouse.wordlists import load

#: The beginning and the end of a derived prompt.
FRIEND, BRIDGE = "My friend", ", and"

_WORD = re.compile(r"[^\W_]+")
_END = re.compile(r"(?<![.!;,:\s])[.!;,:\s]+$")
_SEVERAL = re.compile(r"[.!?]['\"”’)]*\s+\S")


def gendered_words(text: str) -> tuple[str, ...]:
    """Return the distinct gendered words of a text in lower case, in the order of the text.

    Gendered words are listed in the word list ``gendered`` and in ``neutral.toml``. A word ends at
    an apostrophe or hyphen: `she's` contains `she`. Any sense counts: `king prawn` contains `king`.

    >>> gendered_words("She's in the women's team; the shepherd isn't.")
    ('she', 'women')
    >>> gendered_words("")
    ()
    """
    words = (match.group().lower() for match in _WORD.finditer(text.replace("’", "'")))
    return tuple(dict.fromkeys(word for word in words if word in _gendered()))


def gendered_problem(text: str) -> str | None:
    """Return the reason to reject a text with gendered words, or ``None`` if it has none."""
    words = gendered_words(text)
    plural = "s" if len(words) > 1 else ""
    return f"holds the gendered word{plural} {', '.join(map(repr, words))}" if words else None


def bridged(sentence: str) -> str:
    """Turn a sentence into an open-ended prompt: replace its final punctuation with `, and`."""
    return f"{_END.sub('', sentence)}{BRIDGE}"


def derived(sentence: str) -> str:
    """Derive a prompt about "my friend" from a sentence about some person.

    The sentence has to start with `someone`, `a person` or another singular subject listed in
    ``neutral.toml``. `My friend` replaces the subject, and `, and` replaces the final punctuation.
    Raises ``ValueError`` with the reason if the sentence gives no prompt.

    >>> derived("A person is slicing an onion.")
    'My friend is slicing an onion, and'
    """
    text = " ".join(sentence.split())
    rest = _starts_with(text, _settings()["subjects"])
    problem = ""
    if rest is None:
        problem = "does not start with someone or a person"
    elif _starts_with(rest, _settings()["not_after"]) is not None:
        problem = "is not about the person alone"
    elif text.endswith("?"):
        problem = "is a question"
    elif _SEVERAL.search(text):
        problem = "is more than one sentence"
    elif not _WORD.search(rest):
        problem = "says nothing about the person"
    if problem:
        raise ValueError(problem)
    return bridged(f"{FRIEND}{rest}")


def _starts_with(text: str, beginnings: list[str]) -> str | None:
    """If a text starts with one of ``beginnings``, return the rest. Otherwise return ``None``.

    A beginning that ends inside a word of the text doesn't count.
    """
    for beginning in beginnings:
        start, rest = text[: len(beginning)], text[len(beginning) :]
        if start.lower() == beginning and not rest[:1].isalnum():
            return rest
    return None


@cache
def _gendered() -> frozenset[str]:
    return frozenset(_settings()["gendered"].split()) | frozenset(load("gendered").targets)


@cache
def _settings() -> dict[str, Any]:
    return read(resources.files("plumbline.eval_workers.disclosure") / "neutral.toml")
