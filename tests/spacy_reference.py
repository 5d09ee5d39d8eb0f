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


def main(shards: list[str]) -> None:
    """Print the agreement on whole shards: ``python -m tests.spacy_reference SHARDS...``."""
    from pathlib import Path

    from jobs.text import DEFAULT_TARGETS, tokenize
    from warehouse.shards import documents

    for shard in shards:
        common = total = n_documents = n_identical = 0
        for text in documents(Path(shard)):
            ours, theirs = tokenize(text), reference_tokens(text, DEFAULT_TARGETS)
            same, length = agreement(ours, theirs)
            common, total = common + same, total + length
            n_documents, n_identical = n_documents + 1, n_identical + (ours == theirs)
        share = f"{common / total:.6%}" if total else "no tokens"
        print(f"{shard}: {total:,} kept, {n_identical:,} of {n_documents:,} identical, {share}")


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
