"""Text to numbered words: lower-case words and punctuation, and sentence ends.

Words are those of the library ``tokenizers`` (``Lowercase``, ``BertPreTokenizer``), which also
splits scored texts. Each character's kind is found by passing it to the library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from plumbline.eval_workers.models.ngram import SENTENCE_END

#: Numbers for the boundary between sentences, and for words outside the vocabulary.
BOS, UNKNOWN = 0, 1
_CHARACTERS_AT_ONCE = 1 << 20
#: Kinds of characters.
_PART, _MARK, _BLANK = range(3)
#: Code points from here on are parts of words and have no case.
_KNOWN = 0x20000

Ints = np.ndarray[Any, np.dtype[np.integer[Any]]]


@cache
def _characters() -> tuple[Ints, Ints]:
    """The kind and the lower case of every code point up to ``_KNOWN``."""
    from tokenizers import normalizers, pre_tokenizers

    points = np.array([k for k in range(_KNOWN) if not 0xD800 <= k < 0xE000])
    kinds, lower = np.zeros(_KNOWN + 1, np.uint8), np.arange(_KNOWN + 1, dtype=np.uint32)
    mixed = "a" + "a".join(map(chr, points))  # each character follows part of a word
    is_found = np.zeros(len(mixed), bool)
    for _, (start, end) in pre_tokenizers.BertPreTokenizer().pre_tokenize_str(mixed):
        is_found[start:end] = True
        if start % 2 and end == start + 1:
            kinds[points[start // 2]] = _MARK
    kinds[points[~is_found[1::2]]] = _BLANK
    after = points[points > ord("\n")]
    lowered = normalizers.Lowercase().normalize_str("\n".join(map(chr, after))).split("\n")
    lower[after] = [ord(character[0]) for character in lowered]
    return kinds, lower


def numbered_words(texts: Iterable[str]) -> tuple[Ints, pa.LargeBinaryArray]:
    """The words of texts as numbers from 2, ``BOS`` after every sentence; and the distinct words.

    >>> numbers, words = numbered_words(["She ran! He, too.", "She"])
    >>> numbers.tolist(), b" ".join(words.to_pylist())
    ([2, 3, 4, 0, 5, 6, 7, 8, 0, 2, 0], b'she ran ! he , too .')
    """
    parts, sentences = zip(*(_words(*piece) for piece in _pieces(texts)), strict=True)
    words = pa.chunked_array(parts).unify_dictionaries().combine_chunks()
    is_last = np.concatenate(sentences)
    numbers = np.full(len(words) + np.count_nonzero(is_last), BOS, np.uint32)
    numbers[np.arange(len(words)) + np.cumsum(is_last) - is_last] = words.indices.to_numpy() + 2
    return numbers, words.dictionary


def _pieces(texts: Iterable[str]) -> Iterator[tuple[str, list[int]]]:
    """Pieces of the concatenated texts, each with the end indices of its sentences."""
    parts: list[str] = []
    ends = [0]
    for text in texts:
        start = 0
        for end in chain((match.end() for match in SENTENCE_END.finditer(text)), [len(text)]):
            parts.append(text[start:end].replace("İ", "i̇"))  # the only two-letter lower case
            ends.append(ends[-1] + len(parts[-1]))
            start = end
            if ends[-1] >= _CHARACTERS_AT_ONCE:
                yield "".join(parts), ends[1:]
                parts, ends = [], [0]
    yield "".join(parts), ends[1:]


def _words(text: str, ends: list[int]) -> tuple[pa.DictionaryArray, Any]:
    """The words of some sentences, and a mask of the last word of each sentence."""
    kinds, lower = _characters()
    points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    known = np.minimum(points, _KNOWN)
    kind = kinds[known]
    begins = np.ones(len(points) + 1, bool)
    begins[1:-1] = (kind[1:] == _MARK) | (kind[:-1] != _PART)
    begins[ends] = True
    in_word = kind != _BLANK
    begins = begins[:-1] & in_word
    characters = np.where(points < _KNOWN, lower[known], points)[in_word]
    n_bytes = 1 + (characters >= 0x80) + (characters >= 0x800) + (characters >= 0x10000)
    offsets = np.append(0, np.cumsum(n_bytes))[np.append(begins[in_word], True)]
    buffers = [
        None,
        pa.py_buffer(offsets),
        pa.py_buffer(characters.tobytes().decode("utf-32-le").encode()),
    ]
    words = pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)
    sentence = np.searchsorted(ends, np.flatnonzero(begins), side="right")
    return words.dictionary_encode(), np.diff(sentence, append=len(ends)) > 0
