"""Get spaCy's tokenizer and stop words for a language. spaCy is imported on first use.

A chunk is a run of text without whitespace. Chunks are split one by one, so spaCy's few exceptions
that contain a space have no effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from plumbline.warehouse.errors import MissingComponent, UsageProblem
from plumbline.warehouse.languages import TokenRules
from plumbline.warehouse.plugins import install_line

if TYPE_CHECKING:
    from spacy.language import Language

#: Separates the chunks in the text that spaCy splits.
_SEPARATOR = "\n"


@lru_cache(maxsize=8)
def _blank_language(code: str) -> Language:
    try:
        import spacy
        from spacy.tokenizer import Tokenizer
    except ImportError as e:
        fix = install_line("languages")
        raise MissingComponent("spaCy", "is not installed; non-English text needs it", fix) from e
    if find_spec(f"spacy.lang.{code}") is None:
        fix = "its codes are at https://spacy.io/usage/models#languages"
        problem = f"spaCy {version('spacy')} does not support it"
        raise UsageProblem(f"language {code!r}", problem, fix)
    try:
        language = spacy.blank(code)
    except ImportError:  # this language needs another package for word segmentation
        language = None
    if language is None or type(language.tokenizer) is not Tokenizer:
        problem = "spaCy does not split it into words at whitespace and by rules"
        raise UsageProblem(f"language {code!r}", problem, "choose another language")
    return language


def spacy_version(code: str) -> str:
    """Check that the installed spaCy can split the language into words. Return spaCy's version.

    Raises ``MissingComponent`` if spaCy isn't installed, ``UsageProblem`` if spaCy can't do this.
    """
    _blank_language(code)
    return version("spacy")


def stop_words(rules: TokenRules) -> frozenset[str]:
    """Return spaCy's stop words for a language, without ``rules.kept`` and with ``rules.added``.

    >>> "elle" in stop_words(TokenRules("fr", added=("dit",)))
    True
    >>> sorted(stop_words(TokenRules("xx", added=("och",))))
    ['och']
    """
    of_spacy = frozenset(_blank_language(rules.spacy).Defaults.stop_words)
    return of_spacy.difference(rules.kept).union(rules.added)


@lru_cache(maxsize=8)
def tokenizer_of(code: str) -> Any:
    """Return spaCy's tokenizer for a language.

    >>> [t.text for t in tokenizer_of("fr")("l'homme")]
    ["l'", 'homme']
    """
    _blank_language(code)  # raises an error if the code is unknown
    import spacy

    tokenizer: Any = spacy.blank(code).tokenizer
    # Turn off spaCy's cache, because each chunk is split only once. Don't let spaCy compute
    # attributes of words, because only the ends of pieces are used.
    tokenizer.max_cache_size = 0
    tokenizer.vocab.lex_attr_getters = {}
    return tokenizer


def pieces(tokenizer: Any, chunks: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split chunks with spaCy. Return each chunk's number of pieces, and the ends of all pieces.

    An end is a number of characters from the start of the piece's chunk.

    >>> pieces(tokenizer_of("fr"), ["l'homme", "dit."])
    (array([2, 2]), array([2, 7, 3, 4]))
    """
    from spacy.attrs import ORTH

    # Put each chunk on its own line of one text. spaCy makes each newline a token of its own.
    with tokenizer.vocab.memory_zone():
        tokens = tokenizer(_SEPARATOR.join(chunks))
        starts = np.array([token.idx for token in tokens], np.int64)
        ends = starts + np.array([len(token) for token in tokens], np.int64)
        is_word = tokens.to_array(ORTH) != tokenizer.vocab.strings[_SEPARATOR]
    lengths = np.array([len(chunk) for chunk in chunks], np.int64)
    chunk_starts = np.cumsum(lengths + 1) - lengths - 1
    starts, ends = starts[is_word], ends[is_word]
    chunk_of_piece = np.searchsorted(chunk_starts, starts, side="right") - 1
    n_pieces = np.bincount(chunk_of_piece, minlength=len(chunks)).astype(np.int64)
    return n_pieces, ends - chunk_starts[chunk_of_piece]
