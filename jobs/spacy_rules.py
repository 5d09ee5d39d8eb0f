"""spaCy's tokenizer and stop words of a language; spaCy is imported when they are asked for.

spaCy splits each chunk of text, a run without whitespace, by itself; its few special cases that
contain a space are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from plumbline.jobs.spacy_shapes import Shapes, shapes_of
from plumbline.warehouse.distribution import install_line
from plumbline.warehouse.errors import MissingComponent, UsageProblem
from plumbline.warehouse.languages import TokenRules

if TYPE_CHECKING:
    from spacy.language import Language

#: Between chunks that are split as one text.
_SEPARATOR = "\n"


@lru_cache(maxsize=8)
def _spacy(code: str) -> Language:
    try:
        import spacy
        from spacy.tokenizer import Tokenizer
    except ImportError as e:
        fix = install_line("languages")
        raise MissingComponent("spaCy", "is not installed; languages need it", fix) from e
    if find_spec(f"spacy.lang.{code}") is None:
        fix = "its codes are at https://spacy.io/usage/models#languages"
        raise UsageProblem(f"language {code!r}", f"spaCy {version('spacy')} has none", fix)
    try:
        language = spacy.blank(code)
    except ImportError:  # it wants a package that cuts the language into words
        language = None
    if language is None or type(language.tokenizer) is not Tokenizer:
        problem = "spaCy does not cut it into words at whitespace and by rules"
        raise UsageProblem(f"language {code!r}", problem, "choose another language")
    return language


def spacy_version(code: str) -> str:
    """The installed spaCy's version, once it is known to split the language into words.

    Raises ``MissingComponent`` without spaCy, ``UsageProblem`` for a code that it can't cut.
    """
    _spacy(code)
    return version("spacy")


def stop_words(rules: TokenRules) -> frozenset[str]:
    """spaCy's stop words of a language, minus ``rules.kept``, plus ``rules.added``.

    >>> "elle" in stop_words(TokenRules("fr", added=("dit",)))
    True
    >>> sorted(stop_words(TokenRules("xx", added=("och",))))
    ['och']
    """
    listed = frozenset(_spacy(rules.spacy).Defaults.stop_words)
    return listed.difference(rules.kept).union(rules.added)


@lru_cache(maxsize=8)
def tokenizer_of(rules: TokenRules) -> Any:
    """spaCy's tokenizer of a language with the clitics and exceptions of its rules.

    >>> [t.text for t in tokenizer_of(TokenRules("fr", clitics=("-il",)))("dit-il")]
    ['dit', '-il']
    """
    _spacy(rules.spacy)  # says what is wrong with its code
    import spacy
    from spacy.attrs import ORTH
    from spacy.lang.char_classes import ALPHA
    from spacy.util import compile_suffix_regex

    language = spacy.blank(rules.spacy)
    tokenizer: Any = language.tokenizer
    if rules.clitics:
        clitics = [rf"(?<=[{ALPHA}]){re.escape(ending)}" for ending in rules.clitics]
        suffixes = [*(language.Defaults.suffixes or ()), *clitics]
        tokenizer.suffix_search = compile_suffix_regex(suffixes).search
    for parts in rules.exceptions:
        tokenizer.add_special_case("".join(parts), [{ORTH: part} for part in parts])
    # Every chunk is asked about once: spaCy need not remember it, nor describe its words.
    tokenizer.max_cache_size = 0
    tokenizer.vocab.lex_attr_getters = {}
    return tokenizer


@lru_cache(maxsize=8)
def language_shapes(rules: TokenRules) -> Shapes:
    """Shapes of chunks that the tokenizer of a language cuts alike."""
    tokenizer = tokenizer_of(rules)
    searches = ("prefix_search", "suffix_search", "infix_finditer", "token_match", "url_match")
    return shapes_of([getattr(tokenizer, name) for name in searches], tokenizer.rules)


def pieces(tokenizer: Any, chunks: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number of pieces a tokenizer of spaCy cuts each chunk into, and the end of each piece.

    The ends are in characters from the start of its chunk.

    >>> pieces(tokenizer_of(TokenRules("fr")), ["l'homme", "dit."])
    (array([2, 2]), array([2, 7, 3, 4]))
    """
    from spacy.attrs import ORTH

    # One text with the chunks on lines of their own: whitespace is a token, and no piece holds any.
    with tokenizer.vocab.memory_zone():
        tokens = tokenizer(_SEPARATOR.join(chunks))
        starts = np.array([token.idx for token in tokens], np.int64)
        ends = starts + np.array([len(token) for token in tokens], np.int64)
        is_word = tokens.to_array(ORTH) != tokenizer.vocab.strings[_SEPARATOR]
    lengths = np.array([len(chunk) for chunk in chunks], np.int64)
    first = np.cumsum(lengths + 1) - lengths - 1
    starts, ends = starts[is_word], ends[is_word]
    chunk = np.searchsorted(first, starts, side="right") - 1
    return np.bincount(chunk, minlength=len(chunks)).astype(np.int64), ends - first[chunk]
