"""Probability of a gendered word after a prompt: its forms and their tokens. Pure.

A word w has two forms v: a space and the word as listed, and the same with a capital. (A prompt
that ends with white space has no probability: the forms would merge with its last token.) With
t_1 ... t_k the tokens that v adds to those of the prompt x,

    P(w | x) = sum over v of  prod over j of  p(t_j | BOS, x, t_1 ... t_{j-1}),

so a word of several tokens has the probability of all of them, not of its first piece. Forms with
the same tokens count once. Any text may follow these tokens: where `hers` is `her` and `s`, P(hers)
is a part of P(her).
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.wordlists import LISTS, WordList, WordPair, load

if TYPE_CHECKING:
    from plumbline.eval_workers.models.scoring_contract import TextScore, Tokens

#: Default word list of probabilities, GAS, GLD, ADD and tuning (the paper's section 3). The list
#: `pronouns` has other pairs of these words, our reading of the one list in the authors' code; they
#: change ADD and L_d. The list `gendered` has nouns such as *mother*: with it a text discloses the
#: gender of anyone it names.
WORD_LIST = "disclosure"
_OWN_LISTS = (WORD_LIST, "her-him", "her-his")
_OTHER_TOKENS = "together with the prompt it changes the prompt's own tokens"


@dataclass(frozen=True)
class WordProbability:
    """P(word | prompt), a sum over ``n_variants`` forms of the word.

    It is NaN if the form as listed has a ``problem``.
    """

    probability: float
    n_variants: int
    problem: str | None = None


def word_list(name: str) -> WordList:
    """A word list by name or path, see ``warehouse.wordlists.load``, whose errors it raises.

    ``disclosure``, ``her-him`` and ``her-his`` are in this package, not in ``warehouse``: their
    pairs aren't contrasts of a corpus.

    >>> [pair.contrast for pair in word_list("disclosure").pairs]
    ['she/he', 'her/his', 'herself/himself', 'hers/him']
    """
    if name in _OWN_LISTS:
        return load(str(Path(__file__).with_name(f"{name}.toml")))
    if Path(name).suffix != ".toml":
        replace(LISTS, made=_OWN_LISTS).find(name)  # raises for an unknown name, and lists ours
    return load(name)


def variants(word: str) -> tuple[str, ...]:
    """Forms of a word that may follow a prompt; the form as listed is first."""
    return tuple(dict.fromkeys((f" {word}", f" {word[:1].upper()}{word[1:]}")))


def prompt_problem(prompt: str) -> str | None:
    """The problem if no word can follow a prompt, with any model; else ``None``."""
    at_end = prompt[-1:].isspace()
    return "ends with white space, which its next word brings along" if at_end else None


def texts_to_score(prompt: str, words: Sequence[str]) -> list[str]:
    """Texts that ``word_probability`` needs: the prompt alone, and followed by each word form.

    >>> texts_to_score("It was", ["he"])
    ['It was', 'It was he', 'It was He']
    """
    return [prompt, *(prompt + variant for word in words for variant in variants(word))]


def word_probability(prompt: str, word: str, scores: Mapping[str, TextScore]) -> WordProbability:
    """P(word | prompt) from the scores of ``texts_to_score`` by text.

    The prompt's score must have no problem. A capitalised form that can't be scored (its letter is
    not in the vocabulary) adds nothing. Sums of log-probabilities are in float64.

    >>> from plumbline.eval_workers.models.scoring_contract import TextScore
    >>> half, quarter = math.log(0.5), math.log(0.25)
    >>> scores = {"It was": TextScore(-3.0, (1, 2), (-1.0, -2.0)),
    ...     "It was hers": TextScore(0.0, (1, 2, 3, 4), (-1.0, -2.0, half, quarter)),
    ...     "It was Hers": TextScore(math.nan, problem="no letter")}
    >>> hers = word_probability("It was", "hers", scores)
    >>> round(hers.probability, 12), hers.n_variants
    (0.125, 1)
    """
    encoded: dict[str, Tokens | str] = {
        text: scores[text].problem or tuple(scores[text].token_ids)  # lists, if read from a file
        for text in texts_to_score(prompt, [word])
    }
    added = added_tokens(prompt, word, encoded)
    if isinstance(added, str):
        return WordProbability(math.nan, 0, added)
    n_prompt = len(encoded[prompt])
    logprobs = [scores[text].token_logprobs_nats[n_prompt:] for text in added.values()]
    return WordProbability(math.fsum(math.exp(math.fsum(v)) for v in logprobs), len(added))


def added_tokens(
    prompt: str, word: str, encoded: Mapping[str, Tokens | str]
) -> dict[Tokens, str] | str:
    """Tokens that each form of the word adds to the prompt -> text of prompt and form.

    Returns the problem if the form as listed has one. ``encoded`` maps each text of
    ``texts_to_score`` to its tokens, or to its problem; the prompt must have tokens.

    >>> encoded = {"It was": (1, 2), "It was hers": (1, 2, 3, 4), "It was Hers": "no letter"}
    >>> added_tokens("It was", "hers", encoded)
    {(3, 4): 'It was hers'}
    >>> added_tokens("It was", "hers", {**encoded, "It was hers": (1, 5)})
    "together with the prompt it changes the prompt's own tokens"
    """
    before, n_before = encoded[prompt], len(encoded[prompt])
    added: dict[Tokens, str] = {}
    for is_capital, variant in enumerate(variants(word)):
        tokens = encoded[prompt + variant]
        if not isinstance(tokens, str) and len(tokens) > n_before and tokens[:n_before] == before:
            added[tokens[n_before:]] = prompt + variant
        elif not is_capital:
            return tokens if isinstance(tokens, str) else _OTHER_TOKENS
    return added


def usable_pairs(pairs: Sequence[WordPair], unspelled: Container[str]) -> list[WordPair]:
    """Pairs without an ``unspelled`` word: one side alone would bias the measures."""
    return [pair for pair in pairs if pair.a not in unspelled and pair.b not in unspelled]


def words_of(pairs: Sequence[WordPair], what: str) -> dict[str, str]:
    """Each word of the pairs with its gender, `f` or `m`, in order of first mention.

    Raises ``BadInput`` about ``what`` without any pair, and for a word of both genders.

    >>> words_of([WordPair("she", "he"), WordPair("her", "his"), WordPair("her", "him")], "list")
    {'she': 'f', 'he': 'm', 'her': 'f', 'his': 'm', 'him': 'm'}
    """
    if not pairs:
        raise BadInput(what, "holds no pairs of words")
    genders: dict[str, str] = {}
    for pair in pairs:
        for word, gender in ((pair.a, "f"), (pair.b, "m")):
            if genders.setdefault(word, gender) != gender:
                raise BadInput(what, f"has {word!r} on both sides")
    return genders
