"""The form in which a sentence is scored: as written, or as for UnStereoEval's released scores.

These scores (Belem et al., ICLR 2024) are of sentences without straight double quotes, in lower
case except for the first letter. The form `released` gives the sentences of all 16,668 released
pairs exactly.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from itertools import zip_longest
from typing import Any

from plumbline.warehouse.errors import UsageProblem


def _released(text: str) -> str:
    # Quotes are removed first: the letter after an opening quote becomes the capital.
    return text.replace('"', "").capitalize()


#: The function of each form on a sentence.
TEXT_FORMS: dict[str, Callable[[str], str]] = {"written": str, "released": _released}


def in_form(text: str, form: str) -> str:
    """A sentence in a text form. Raises ``UsageProblem`` for an unknown form.

    >>> in_form('"She met the CEO of BBC," Ann said.', "released")
    'She met the ceo of bbc, ann said.'
    >>> in_form("She met the CEO.", "written")
    'She met the CEO.'
    """
    if form not in TEXT_FORMS:
        raise UsageProblem(f"--text-form {form}", f"is not one of {', '.join(TEXT_FORMS)}")
    return TEXT_FORMS[form](text)


def pair_in_form(pair: dict[str, Any], form: str) -> dict[str, Any]:
    """A row of ``benchmark_pair`` with its sentences in a text form.

    >>> pair = {"pair_id": "1", "sentence_a": "She, a CEO.", "sentence_b": "He, a CEO."}
    >>> pair_in_form(pair, "released")["sentence_b"]
    'He, a ceo.'
    """
    texts = ("sentence_a", "sentence_b", "baseline_a", "baseline_b")
    return pair | {c: in_form(text, form) for c in texts if (text := pair.get(c)) is not None}


def reworded(text: str, read: str, *, is_framed: bool = False) -> str | None:
    """The first word of ``text`` that a model reads differently, as a message; else ``None``.

    ``read`` is the decoded text; if ``is_framed``, it may begin with other words. Case, accents,
    white space and punctuation don't count: many tokenizers drop them.

    >>> reworded("She's naïve.", "she ' s naive"), reworded("Go on.", "x: Go on.", is_framed=True)
    (None, None)
    >>> reworded("Yes, she ran.", "Yes, he ran."), reworded("She ran.", "")
    ("reads 'he' instead of 'she'", "reads nothing instead of 'she'")
    """
    if text == read:
        return None
    written, decoded = _words(text), _words(read)
    if is_framed:
        if "".join(decoded).endswith("".join(written)):
            return None
        decoded = decoded[max(len(decoded) - len(written), 0) :]
    if "".join(decoded) == "".join(written):
        return None
    a, b = next((a, b) for a, b in zip_longest(written, decoded, fillvalue="") if a != b)
    return f"reads {repr(b) if b else 'nothing'} instead of {repr(a) if a else 'nothing'}"


def _words(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKD", text.casefold())
    return re.findall(r"[^\W_]+", "".join(c for c in plain if not unicodedata.combining(c)))
