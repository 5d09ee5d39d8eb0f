"""The code points of one chunk, for the compiled rules that split it."""

from __future__ import annotations

from plumbline.jobs.kernel.cache import compiled
from plumbline.jobs.kernel.memory import get32

_ZERO, _NINE = ord("0"), ord("9")


class SplitState:
    """Addresses of the tables of ``language_tables.Tables``, and of scratch memory for a chunk."""

    flags: int
    lower: int
    slots: int  # of the table of words ``Tables.listed``, whose letters are code points
    mask: int
    offsets: int
    arena: int
    cuts: int
    parts: int
    is_unit: int
    runs: int
    cps: int  # code points of the chunk, 32-bit
    ends: int  # where the chunk's pieces end, 64-bit
    tail: int  # scratch of `split_chunk`, 64-bit
    word: int  # a piece in lowercase
    n_answered: int  # chunks that spaCy has split, see ``tokenizer.Answers``; 0 for English
    answer_starts: int  # index in ``answers`` of each such chunk's first piece, 64-bit
    answers: int  # where these chunks' pieces end, in characters, 64-bit


@compiled
def point(s: SplitState, k: int) -> int:
    """Code point k of the chunk."""
    return get32(s.cps, k)


@compiled
def kind_of(s: SplitState, k: int) -> int:
    """The flags of code point k of the chunk."""
    return get32(s.flags, get32(s.cps, k))


@compiled
def is_digit(s: SplitState, k: int) -> bool:
    """True if code point k is an ASCII digit."""
    return _ZERO <= get32(s.cps, k) <= _NINE
