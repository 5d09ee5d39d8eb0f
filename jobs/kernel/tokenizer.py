"""The tokeniser as plain functions: a string in, its words out, by the very kernel that counts.

Tokens are the words that spaCy's English rules give, lowercased, with everything that is neither a
letter, a mark nor a number stripped from both ends; what then holds no letter or number is no word.
Kept tokens are the words that are no English stop word, plus all target words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from plumbline.jobs.kernel.bits import SLACK
from plumbline.jobs.kernel.growth import Limits, grow
from plumbline.jobs.kernel.memory import DONE, FULL, N_IDS, NEED, Memory, new_memory
from plumbline.jobs.kernel.scan import scan_text
from plumbline.jobs.kernel.tables import TOKENIZER_VERSION, tables

__all__ = ["DEFAULT_TARGETS", "TOKENIZER_VERSION", "tokenize", "tokenize_all", "words"]

#: Targets `tokenize` keeps unless told otherwise: the pronouns that are spaCy stop words.
DEFAULT_TARGETS = ("he", "she", "his", "her", "him", "hers", "himself", "herself")

_LIMITS = Limits()


def tokenize(text: str, targets: Sequence[str] = DEFAULT_TARGETS) -> list[str]:
    """Kept tokens of a text in order: words that are no stop words, and all targets.

    Args:
        text: any string. NUL separates words like a blank; runs without whitespace longer than
            65,536 bytes are cut there.
        targets: lowercase words kept although they may be stop words.

    Raises:
        UnicodeEncodeError: when the text holds a lone surrogate.

    >>> tokenize("She couldn't see the U.S. Army's well-known captain, could she?")
    ['she', 'u.s', 'army', 'known', 'captain', 'she']
    >>> tokenize("")
    []
    """
    return _run(text, list(targets), keep_stops=False)


def words(text: str) -> list[str]:
    """All word tokens of a text in order, before the stop filter.

    Raises:
        UnicodeEncodeError: when the text holds a lone surrogate.

    >>> words("You can't pay $5.00 for 10km, can you?")
    ['you', 'ca', "n't", 'pay', '5.00', 'for', '10', 'km', 'can', 'you']
    """
    return _run(text, [], keep_stops=True)


def tokenize_all(
    texts: Iterable[str], targets: Sequence[str] = DEFAULT_TARGETS
) -> Iterator[list[str]]:
    """:func:`tokenize` for many texts in order, with one set of tables.

    >>> list(tokenize_all(["She ran.", "He ran home."]))
    [['she', 'ran'], ['he', 'ran', 'home']]
    """
    return _kept(texts, list(targets), keep_stops=False)


def _run(text: str, targets: list[str], keep_stops: bool) -> list[str]:
    return next(_kept([text], targets, keep_stops))


def _kept(texts: Iterable[str], targets: list[str], keep_stops: bool) -> Iterator[list[str]]:
    memory, t = new_memory(targets, 2, 0, keep_stops=keep_stops), tables()
    for text in texts:
        data = text.encode()
        buf = np.frombuffer(data + bytes(SLACK), np.uint8)
        kept: list[str] = []
        code = scan_text(t, memory, buf, 0, len(data), False)
        while code != DONE:
            if code == FULL:
                kept += _take(memory)
            else:
                memory = grow(memory, code, int(memory.regs[NEED]) + 2, _LIMITS)
            code = scan_text(t, memory, buf, 0, len(data), True)
        yield kept + _take(memory)


def _take(memory: Memory) -> list[str]:
    """Words of the ids found so far, which are taken out."""
    ids = memory.ids[: memory.regs[N_IDS]].tolist()
    memory.regs[N_IDS] = 0
    return [_word(memory, k) for k in ids]


def _word(memory: Memory, k: int) -> str:
    return memory.arena[memory.offsets[k] : memory.offsets[k + 1]].tobytes().decode()
