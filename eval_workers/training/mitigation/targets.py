"""Token ids of a neutral prompt and of the words whose probability after it is tuned; no I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from plumbline.eval_workers.disclosure.attributes import (
    added_tokens,
    prompt_problem,
    texts_to_score,
    usable_pairs,
    words_of,
)
from plumbline.warehouse.wordlists import WordPair

if TYPE_CHECKING:
    from plumbline.eval_workers.models.scoring_contract import Tokens

    Encode: TypeAlias = Callable[[Sequence[str]], list[Tokens | str]]


@dataclass(frozen=True)
class TuningTarget:
    """``prompt`` and the tokens that each form of each word adds to it, all without BOS.

    A form is a word in lower case or with a capital. ``female`` and ``male`` are indices into
    ``words``, which has each word once; ``pairs`` has the indices of both words of each pair.
    """

    prompt: Tokens
    words: tuple[tuple[Tokens, ...], ...]
    female: tuple[int, ...]
    male: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...]

    @property
    def texts(self) -> set[Tokens]:
        """The texts that a model reads: the prompt with each form, without the form's last token.

        That token is only predicted.
        """
        return {self.prompt + added[:-1] for forms in self.words for added in forms}


def target(
    prompt: str, pairs: Sequence[WordPair], encode: Encode, max_tokens: int
) -> TuningTarget | str:
    """The target of a prompt, or the problem with the prompt.

    ``encode`` gives each text's tokens, or its problem. Pairs with a word that can't be spelled are
    left out, as in ``disclosure probe``.

    >>> ids = {" ": 1, "h": 2, "H": 3, "e": 4, "s": 5, "S": 6}
    >>> def encode(texts):
    ...     return [tuple(ids.get(c, 9) for c in text) for text in texts]
    >>> so = target("So", [WordPair("she", "he")], encode, 9)
    >>> so.words
    (((1, 5, 2, 4), (1, 6, 2, 4)), ((1, 2, 4), (1, 3, 4)))
    >>> so.female, so.male, so.pairs
    ((0,), (1,), ((0, 1),))
    >>> target("So", [WordPair("she", "he")], encode, 5)
    '6 tokens with a word after it, more than 5'
    """
    if problem := prompt_problem(prompt):
        return problem
    words = tuple(words_of(pairs, "word list"))
    texts = texts_to_score(prompt, words)
    encoded = dict(zip(texts, encode(texts), strict=True))
    prompt_tokens = encoded[prompt]
    if isinstance(prompt_tokens, str):
        return prompt_tokens
    forms: dict[str, tuple[Tokens, ...]] = {}
    problems: dict[str, str] = {}
    for word in words:
        added = added_tokens(prompt, word, encoded)
        if isinstance(added, str):
            problems[word] = added
        else:
            forms[word] = tuple(added)
    usable = usable_pairs(pairs, problems)
    if not usable:
        first = next(f"{word!r}: {problem}" for word, problem in problems.items())
        return f"no pair of words can be spelled after it; {first}"
    genders = words_of(usable, "word list")
    index_of = {word: i for i, word in enumerate(genders)}
    result = TuningTarget(
        prompt_tokens,
        tuple(forms[word] for word in genders),
        tuple(i for word, i in index_of.items() if genders[word] == "f"),
        tuple(i for word, i in index_of.items() if genders[word] == "m"),
        tuple((index_of[pair.a], index_of[pair.b]) for pair in usable),
    )
    longest = 1 + max(map(len, result.texts))
    if longest > max_tokens:
        return f"{longest} tokens with a word after it, more than {max_tokens}"
    return result
