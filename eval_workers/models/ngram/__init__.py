"""Back-off n-gram models of counts."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: To be raised when the probabilities of a text, or the files of a model, change.
VERSION = 2
#: End of an English sentence: a mark, closing quotes, a blank, and no title before it.
SENTENCE_END = re.compile(r"[.!?](?<!\bMr.)(?<!\bMs.)(?<!\bDr.)(?<!\bMrs.)[\"'”’)]*\s+")


@dataclass(frozen=True)
class NgramOptions:
    """A count-based model; ``order``: its longest n-grams, in words."""

    order: int = 5
