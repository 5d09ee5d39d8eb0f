"""N-gram models of word counts, with back-off."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Increased when the probabilities of a text, or the files of a model, change.
VERSION = 2
#: End of an English sentence: a mark (not of a title), closing quotes or brackets, white space.
SENTENCE_END = re.compile(r"[.!?](?<!\bMr.)(?<!\bMs.)(?<!\bDr.)(?<!\bMrs.)[\"'”’)]*\s+")


@dataclass(frozen=True)
class NgramOptions:
    """Options of a count-based model; ``order``: number of words in its longest n-grams."""

    order: int = 5
