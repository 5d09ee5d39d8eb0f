"""The counting kernel: text to counts of words and pairs, in compiled code.

:class:`Counter` counts documents; :func:`tokenize` returns the words that it counts.
"""

from plumbline.jobs.kernel.cooccurrences import RULES
from plumbline.jobs.kernel.counter import (
    Counter,
    Reject,
    ShardCounts,
    Spill,
    count_texts,
    warm_up,
)
from plumbline.jobs.kernel.language_tables import TOKENIZER_VERSION, stop_words, tokenizer_version
from plumbline.jobs.kernel.memory import SLACK, Limits, limits_within
from plumbline.jobs.kernel.tokenizer import (
    DEFAULT_TARGETS,
    Targets,
    tokenize,
    tokenize_all,
    words,
)

__all__ = [
    "DEFAULT_TARGETS",
    "RULES",
    "SLACK",
    "TOKENIZER_VERSION",
    "Counter",
    "Limits",
    "Reject",
    "ShardCounts",
    "Spill",
    "Targets",
    "count_texts",
    "limits_within",
    "stop_words",
    "tokenize",
    "tokenize_all",
    "tokenizer_version",
    "warm_up",
    "words",
]
