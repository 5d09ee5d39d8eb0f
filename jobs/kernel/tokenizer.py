"""The tokenizer: text to kept words, for counting and as plain functions.

spaCy's rules of a language cut a text into pieces. A word is a piece in lowercase, from its first
letter or number to its last letter, mark or number. A piece without a letter or number isn't a
word. Kept tokens are the targets and all words that are not stop words. The rules of English are
compiled; for other languages spaCy splits new chunks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from plumbline.jobs.kernel.chunks import Tokenizer
from plumbline.warehouse.errors import UsageProblem

#: Targets that `tokenize` keeps by default: gendered pronouns, all of them stop words of spaCy.
DEFAULT_TARGETS = ("he", "she", "his", "her", "him", "hers", "himself", "herself")


def tokenize(text: str, targets: Sequence[str] = DEFAULT_TARGETS, language: str = "") -> list[str]:
    """Kept tokens of a text in order: words that are not stop words, and all targets.

    Args:
        text: any string. NUL separates words like a blank; runs without whitespace longer than
            65,536 bytes (English) or 1,024 bytes (other languages) are cut there.
        targets: lowercase words that are kept even if they are stop words.
        language: token rules, see ``warehouse.languages``; empty for English.

    Raises:
        UnicodeEncodeError: when the text holds a lone surrogate.
        MissingComponent: the language is not English, and spaCy is not installed.

    >>> tokenize("She couldn't see the U.S. Army's well-known captain, could she?")
    ['she', 'u.s', 'army', 'known', 'captain', 'she']
    >>> tokenize("")
    []
    """
    return Tokenizer(targets, language=language).tokens(text)


def tokenize_all(
    texts: Iterable[str], targets: Sequence[str] = DEFAULT_TARGETS, language: str = ""
) -> Iterator[list[str]]:
    """:func:`tokenize` for many texts in order, with one set of tables.

    >>> list(tokenize_all(["She ran.", "He ran home."]))
    [['she', 'ran'], ['he', 'ran', 'home']]
    """
    return map(Tokenizer(targets, language=language).tokens, texts)


@dataclass(frozen=True)
class Targets:
    """Words to count pairs of, and the token rules of their language.

    Raises:
        UsageProblem: there are no words, one is listed twice, or one is not a token.
        MissingComponent: the language is not English, and spaCy is not installed.
    """

    words: tuple[str, ...]
    language: str = ""

    def __post_init__(self) -> None:
        if not self.words or len(set(self.words)) != len(self.words):
            what = f"targets {', '.join(self.words)}".strip()
            raise UsageProblem(what, "are not one or more words", "give each word once")
        all_tokens = tokenize_all(self.words, self.words, self.language)
        for word, tokens in zip(self.words, all_tokens, strict=True):
            if tokens != [word]:
                problem = "is not one lowercase token, so never occurs"
                fix = "give one word in lowercase, as the tokenizer cuts it"
                raise UsageProblem(f"target {word!r}", problem, fix)
