"""The form in which a sentence is scored: as written, or as for UnStereoEval's released scores.

These scores (Belem et al., ICLR 2024) are of sentences without straight double quotes, in lower
case except for the first letter. The form `released` gives the sentences of all 16,668 released
pairs exactly.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
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


def reads_as_written(text: str, read: str, *, is_framed: bool = False) -> bool:
    """True if a model that decodes a text as ``read`` has read the same words.

    If ``is_framed``, ``read`` may begin with other words. Case, accents, white space and
    punctuation don't count: many tokenizers drop them.

    >>> reads_as_written("She's na\u00efve.", "she ' s naive")
    True
    >>> reads_as_written("Yes, she ran.", "Yes, he ran."), reads_as_written("She ran.", "")
    (False, False)
    >>> reads_as_written("Go on.", "x: Go on.", is_framed=True)
    True
    """
    if text == read:
        return True
    written, decoded = _letters(text), _letters(read)
    return decoded.endswith(written) if is_framed else decoded == written


def _letters(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text.casefold())
    return re.sub(r"[\W_]+", "", "".join(c for c in plain if not unicodedata.combining(c)))
