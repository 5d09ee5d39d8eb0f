"""The counting kernel: text to counts of words and pairs, in compiled code.

:class:`Counter` counts documents; :func:`tokenize` returns the words that it counts.
"""

from plumbline.jobs.kernel.compiling import warm_up
from plumbline.jobs.kernel.cooccurrences import RULES
from plumbline.jobs.kernel.counter import (
    Counter,
    Reject,
    ShardCounts,
    Spill,
    count_texts,
)
from plumbline.jobs.kernel.language_tables import TOKENIZER_VERSION
from plumbline.jobs.kernel.limits import Limits, limits_within
from plumbline.jobs.kernel.memory import SLACK
from plumbline.jobs.kernel.token_stream import TARGET_BYTES, Recount
from plumbline.jobs.kernel.tokenizer import (
    DEFAULT_TARGETS,
    Targets,
    stop_words,
    tokenize,
    tokenize_all,
    tokenizer_version,
    words,
)

__all__ = [
    "DEFAULT_TARGETS",
    "RULES",
    "SLACK",
    "TARGET_BYTES",
    "TOKENIZER_VERSION",
    "Counter",
    "Limits",
    "Recount",
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
