"""The house rules on top of spaCy's own tokenizer: what the kernel is held to."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Collection
from functools import lru_cache
from typing import Any


@lru_cache(maxsize=1)
def tokenizer() -> Any:
    import spacy

    return spacy.blank("en").tokenizer


def strip(token: str) -> str:
    """Drop what is no letter or number from the start, and no letter, mark or number at the end."""
    start = next((i for i, c in enumerate(token) if unicodedata.category(c)[0] in "LN"), None)
    if start is None:
        return ""
    end = max(i for i, c in enumerate(token) if unicodedata.category(c)[0] in "LMN")
    return token[start : end + 1]


def reference_tokens(text: str, targets: Collection[str]) -> list[str]:
    """Kept tokens by spaCy's tokenizer, stop words by spaCy's list."""
    from spacy.lang.en.stop_words import STOP_WORDS

    kept = []
    for token in tokenizer()(text):
        lowered = token.text.lower()
        word = strip(lowered)
        if word and (word in targets or (word not in STOP_WORDS and lowered not in STOP_WORDS)):
            kept.append(word)
    return kept


def agreement(ours: list[str], theirs: list[str]) -> tuple[int, int]:
    """Tokens in common as multisets, and the larger of the two lengths."""
    common = Counter(ours) & Counter(theirs)
    return sum(common.values()), max(len(ours), len(theirs))
