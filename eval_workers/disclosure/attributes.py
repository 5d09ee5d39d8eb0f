"""How likely a gendered word comes next: its forms, their tokens, their probability. Pure.

A word w is looked for in its forms v: a space and the word as the list has it, and the same with a
capital. (Behind a prompt that ends with white space the forms would join with its last token: such
prompts have no probability.) With t_1 ... t_k the tokens that v adds to those of the prompt x,

    P(w | x) = sum over v of  prod over j of  p(t_j | BOS, x, t_1 ... t_{j-1}),

so that a word of several tokens has the probability of all of them, not of its first piece. Forms
with the same tokens count once. P is that of the text going on with these tokens, whatever comes
after: where `hers` is `her` and `s`, P(hers) is a part of P(her).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.wordlists import LISTS, WordList, WordPair, load

if TYPE_CHECKING:
    from plumbline.eval_workers.models.base import TextScore, Tokens

#: The word list of probabilities, GAS, GLD, ADD and tuning unless another is named: the paper's, of
#: section 3. `pronouns` has the same words in the pairs of the authors' code: other ADD and L_d. By
#: `gendered`, with nouns such as *mother*, a text discloses the gender of whoever it names.
WORD_LIST = "disclosure"
_OTHER_TOKENS = "together with the prompt it changes the prompt's own tokens"


@dataclass(frozen=True)
class WordProbability:
    """P(word | prompt) by ``n_variants`` forms, or the ``problem`` with the word as listed.

    With a problem the probability is NaN and not to be used.
    """

    probability: float
    n_variants: int
    problem: str | None = None


def word_list(name: str) -> WordList:
    """A word list by name or path, see ``warehouse.wordlists.load``, whose errors it raises.

    ``disclosure`` is here, not there: in a corpus hers/him is no contrast.

    >>> [pair.contrast for pair in word_list("disclosure").pairs]
    ['she/he', 'her/his', 'herself/himself', 'hers/him']
    """
    if name == WORD_LIST:
        return load(str(Path(__file__).with_name(f"{name}.toml")))
    if Path(name).suffix != ".toml":
        replace(LISTS, made=(WORD_LIST,)).find(name)  # says of an unknown one that there is ours
    return load(name)


def variants(word: str) -> tuple[str, ...]:
    """The forms of a word that may follow a prompt, the one as listed first.

    >>> variants("she")
    (' she', ' She')
    """
    return tuple(dict.fromkeys((f" {word}", f" {word[:1].upper()}{word[1:]}")))


def prompt_problem(prompt: str) -> str | None:
    """Why no word can follow a prompt, whatever the model; ``None`` where it can.

    >>> prompt_problem("It was "), prompt_problem("It was")
    ('ends with white space, which its next word brings along', None)
    """
    at_end = prompt[-1:].isspace()
    return "ends with white space, which its next word brings along" if at_end else None


def texts_to_score(prompt: str, words: Sequence[str]) -> list[str]:
    """What ``word_probability`` needs: the prompt alone, and with each form of each word behind it.

    >>> texts_to_score("It was", ["he"])
    ['It was', 'It was he', 'It was He']
    """
    return [prompt, *(prompt + variant for word in words for variant in variants(word))]


def word_probability(prompt: str, word: str, scores: Mapping[str, TextScore]) -> WordProbability:
    """P(word | prompt) from the scores, by text, of ``texts_to_score``; the prompt's is without
    problem.

    A capital form that can't be scored (its letter is not in the vocabulary) adds nothing. Sums of
    log-probabilities are in float64.

    >>> from plumbline.eval_workers.models.base import TextScore
    >>> half, quarter = math.log(0.5), math.log(0.25)
    >>> scores = {"It was": TextScore(-3.0, (1, 2), (-1.0, -2.0)),
    ...     "It was hers": TextScore(0.0, (1, 2, 3, 4), (-1.0, -2.0, half, quarter)),
    ...     "It was Hers": TextScore(math.nan, problem="no letter")}
    >>> found = word_probability("It was", "hers", scores)
    >>> round(found.probability, 12), found.n_variants
    (0.125, 1)
    """
    encoded: dict[str, Tokens | str] = {
        text: score.problem or tuple(score.token_ids)  # scores kept in a file hold lists
        for text in texts_to_score(prompt, [word])
        for score in [scores[text]]
    }
    found = added_tokens(prompt, word, encoded)
    if isinstance(found, str):
        return WordProbability(math.nan, 0, found)
    n_begin = len(encoded[prompt])
    logprobs = [scores[text].token_logprobs_nats[n_begin:] for text in found.values()]
    probabilities = [math.exp(math.fsum(values)) for values in logprobs]
    return WordProbability(math.fsum(probabilities), len(found))


def added_tokens(
    prompt: str, word: str, encoded: Mapping[str, Tokens | str]
) -> dict[Tokens, str] | str:
    """The tokens that the forms of a word add to the prompt's, each with its text; or the problem.

    ``encoded`` holds the tokens of ``texts_to_score``, or why a text has none; the prompt has some.

    >>> encoded = {"It was": (1, 2), "It was hers": (1, 2, 3, 4), "It was Hers": "no letter"}
    >>> added_tokens("It was", "hers", encoded)
    {(3, 4): 'It was hers'}
    >>> added_tokens("It was", "hers", {**encoded, "It was hers": (1, 5)})
    "together with the prompt it changes the prompt's own tokens"
    """
    begins = encoded[prompt]
    found: dict[Tokens, str] = {}
    for is_capital, variant in enumerate(variants(word)):
        tokens = encoded[prompt + variant]
        if not isinstance(tokens, str) and _goes_on(begins, tokens):
            found[tokens[len(begins) :]] = prompt + variant
        elif not is_capital:
            return tokens if isinstance(tokens, str) else _OTHER_TOKENS
    return found


def _goes_on(begins: Tokens | str, tokens: Tokens) -> bool:
    return len(tokens) > len(begins) and tokens[: len(begins)] == begins


def usable_pairs(pairs: Sequence[WordPair], found: Mapping[str, WordProbability]) -> list[WordPair]:
    """The pairs of which both words have a probability: one side alone would tip the balance.

    >>> good, bad = WordProbability(0.1, 2), WordProbability(math.nan, 0, "no letter")
    >>> pairs = [WordPair("she", "he"), WordPair("lass", "lad")]
    >>> found = {"she": good, "he": good, "lass": good, "lad": bad}
    >>> [pair.contrast for pair in usable_pairs(pairs, found)]
    ['she/he']
    """
    return [p for p in pairs if not (found[p.female].problem or found[p.male].problem)]


def words_of(pairs: Sequence[WordPair], what: str) -> dict[str, str]:
    """Each word of the pairs with its gender, `f` or `m`, in order of first mention.

    Raises ``BadInput`` naming ``what`` (the list) without any pair, and for a word of both genders.

    >>> words_of([WordPair("she", "he"), WordPair("her", "his"), WordPair("her", "him")], "list")
    {'she': 'f', 'he': 'm', 'her': 'f', 'his': 'm', 'him': 'm'}
    """
    if not pairs:
        raise BadInput(what, "holds no pairs of words")
    genders: dict[str, str] = {}
    for pair in pairs:
        for word, gender in ((pair.female, "f"), (pair.male, "m")):
            if genders.setdefault(word, gender) != gender:
                raise BadInput(what, f"has {word!r} on both sides")
    return genders
