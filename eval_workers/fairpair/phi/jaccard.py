"""Jaccard dissimilarity of sets of words: Phi(a, b) = 1 - |a & b| / |a | b|.

Phi is 0 for two empty sets, and 1 if only one is empty.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import numpy as np
from scipy import sparse

from plumbline.eval_workers.fairpair.phi import Floats

DESCRIPTION = "Jaccard dissimilarity of the sets of lowercased words"
LANGUAGES = None

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")

Tokens = frozenset[str]


def tokens(text: str) -> Tokens:
    """Return the set of a text's words: lowercase runs of letters, digits and inner apostrophes.

    Hyphens and underscores separate words. The text is normalised to NFC first, and typographic
    apostrophes become straight ones.

    >>> sorted(tokens("Jane’s well-known; JANE isn't 30."))
    ['30', "isn't", 'jane', "jane's", 'known', 'well']
    """
    if not text.isascii():
        text = unicodedata.normalize("NFC", text).replace("’", "'")
    return frozenset(_WORD.findall(text.lower()))


def items(texts: Sequence[str]) -> list[Tokens]:
    """Return the set of words of each text.

    >>> items(["A nurse, a nurse", ""]) == [{"a", "nurse"}, set()]
    True
    """
    return [tokens(text) for text in texts]


def combine(items: Sequence[Tokens]) -> Tokens:
    """Return all words of a fold: the union of the sets.

    >>> combine([frozenset("ab"), frozenset("bc")]) == set("abc")
    True
    """
    return frozenset().union(*items)


def distances(items: Sequence[Tokens]) -> Floats:
    """Return a square array with the dissimilarity of every two sets.

    >>> distances([frozenset("ab"), frozenset("bcd"), frozenset()])[:, 0].tolist()
    [0.0, 0.75, 1.0]
    """
    ids = dict[str, int]()
    columns = [ids.setdefault(word, len(ids)) for item in items for word in item]
    rows = np.repeat(np.arange(len(items)), [len(item) for item in items])
    shape = len(items), max(len(ids), 1)
    held = sparse.csr_array((np.ones(len(columns)), (rows, columns)), shape=shape)
    shared: Floats = (held @ held.T).toarray()  # numbers of words that two sets share
    sizes = shared.diagonal()
    union = sizes[:, None] + sizes[None, :] - shared
    return np.divide(union - shared, union, out=np.zeros_like(union), where=union > 0)
