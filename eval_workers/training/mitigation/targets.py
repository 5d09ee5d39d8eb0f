"""Token ids of a neutral prompt and of the words whose probability after it is tuned. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from plumbline.eval_workers.disclosure.attributes import (
    WordProbability,
    added_tokens,
    prompt_problem,
    texts_to_score,
    usable_pairs,
    words_of,
)
from plumbline.warehouse.wordlists import WordPair

if TYPE_CHECKING:
    from plumbline.eval_workers.models.base import Tokens

    Encode: TypeAlias = Callable[[Sequence[str]], list[Tokens | str]]


@dataclass(frozen=True)
class TuningTarget:
    """``prompt`` and the tokens that each form of each word adds to it, all without BOS.

    ``female`` and ``male`` are places in ``words``, each word once; ``pairs`` are places of the two
    words of each pair, so that a word may be in several.
    """

    prompt: Tokens
    words: tuple[tuple[Tokens, ...], ...]
    female: tuple[int, ...]
    male: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...]

    @property
    def sequences(self) -> list[Tokens]:
        """The prompt with each form of each word behind it."""
        return [self.prompt + added for forms in self.words for added in forms]


def target(
    prompt: str, pairs: Sequence[WordPair], encode: Encode, max_tokens: int
) -> TuningTarget | str:
    """The target of a prompt, or the reason why there is none.

    ``encode`` gives the tokens of each text, or why it has none. As when probing, pairs with a word
    that can't be spelled are left out.

    >>> ids = {" ": 1, "h": 2, "H": 3, "e": 4, "s": 5, "S": 6}
    >>> def encode(texts):
    ...     return [tuple(ids.get(c, 9) for c in text) for text in texts]
    >>> so = target("So", [WordPair("she", "he")], encode, 9)
    >>> so.words
    (((1, 5, 2, 4), (1, 6, 2, 4)), ((1, 2, 4), (1, 3, 4)))
    >>> so.female, so.male, so.pairs
    ((0,), (1,), ((0, 1),))
    >>> target("So", [WordPair("she", "he")], encode, 5)
    '6 tokens with a word behind it, more than 5'
    """
    if problem := prompt_problem(prompt):
        return problem
    words = tuple(words_of(pairs, "word list"))
    texts = texts_to_score(prompt, words)
    encoded = dict(zip(texts, encode(texts), strict=True))
    begins = encoded[prompt]
    if isinstance(begins, str):
        return begins
    added = {word: added_tokens(prompt, word, encoded) for word in words}
    spelled = {
        word: WordProbability(0.0, 0, forms if isinstance(forms, str) else None)
        for word, forms in added.items()
    }
    usable = usable_pairs(pairs, spelled)
    if not usable:
        first = next(f"{word!r}: {p.problem}" for word, p in spelled.items() if p.problem)
        return f"no pair of words can be spelled after it; {first}"
    genders = words_of(usable, "word list")
    forms = {word: tuple(forms) for word, forms in added.items() if not isinstance(forms, str)}
    places = {word: i for i, word in enumerate(genders)}
    made = TuningTarget(
        begins,
        tuple(forms[word] for word in genders),
        tuple(i for word, i in places.items() if genders[word] == "f"),
        tuple(i for word, i in places.items() if genders[word] == "m"),
        tuple((places[pair.female], places[pair.male]) for pair in usable),
    )
    longest = max(map(len, made.sequences))
    if longest > max_tokens:
        return f"{longest} tokens with a word behind it, more than {max_tokens}"
    return made
