"""Compute the losses of debias tuning from log-probabilities of words, with gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from plumbline.eval_workers.disclosure.word_probabilities import (
    spelled,
    texts_to_score,
    words_of,
)
from plumbline.warehouse.wordlists import WordPair

if TYPE_CHECKING:
    from plumbline.eval_workers.models.scoring_contract import Tokens

    Encode: TypeAlias = Callable[[Sequence[str]], list[Tokens | str]]


@dataclass(frozen=True)
class TuningTarget:
    """A prompt, and the gendered words whose probabilities after the prompt are tuned.

    Attributes:
        prompt: the prompt's tokens, without BOS.
        words: for each word, the tokens that each of its forms adds to the prompt. The forms are
            the word as listed and the word with a capital letter.
        pairs: the pairs of words.
    """

    prompt: Tokens
    words: Mapping[str, Sequence[Tokens]]
    pairs: Sequence[WordPair]

    @property
    def texts(self) -> set[Tokens]:
        """The texts that a model reads: the prompt followed by each form of each word.

        The last token of a form is left out. It is only predicted, so the model doesn't read it.
        """
        return {self.prompt + added[:-1] for forms in self.words.values() for added in forms}


def target(
    prompt: str, pairs: Sequence[WordPair], encode: Encode, max_tokens: int
) -> TuningTarget | str:
    """Return the tuning target of a prompt, or the reason why the prompt can't be used.

    ``encode`` returns a text's tokens, or a problem. As in ``disclosure probe``, a pair is
    left out if the tokenizer can't spell one of its words after the prompt.

    >>> ids = {" ": 1, "h": 2, "H": 3, "e": 4, "s": 5, "S": 6}
    >>> def encode(texts):
    ...     return [tuple(ids.get(c, 9) for c in text) for text in texts]
    >>> target("So", [WordPair("she", "he")], encode, 9).words
    {'she': ((1, 5, 2, 4), (1, 6, 2, 4)), 'he': ((1, 2, 4), (1, 3, 4))}
    >>> target("So", [WordPair("she", "he")], encode, 5)
    '6 tokens with a word after it, more than 5'
    """
    texts = texts_to_score(prompt, tuple(words_of(pairs)))
    encoded = dict(zip(texts, encode(texts), strict=True))
    words, tokens = spelled(prompt, pairs, encoded), encoded[prompt]
    if isinstance(words, str) or isinstance(tokens, str):
        return str(words)
    forms = {word: tuple(added) for word, added in words.items()}
    usable = [pair for pair in pairs if pair.a in forms and pair.b in forms]
    result = TuningTarget(tokens, forms, usable)
    longest = 1 + max(map(len, result.texts))
    if longest > max_tokens:
        return f"{longest} tokens with a word after it, more than {max_tokens}"
    return result


@dataclass(frozen=True)
class WordReader:
    """A causal ``transformers`` model that reads texts. The token ``bos`` precedes each text.

    One pass reads the texts of several prompts if these texts have at most ``n_tokens`` tokens in
    all, including padding. Otherwise, a pass reads the texts of one prompt.
    """

    model: Any
    bos: int
    n_tokens: int

    def passes(self, targets: Sequence[TuningTarget]) -> Iterator[list[TuningTarget]]:
        """Split the targets into parts, each of which fits into one pass."""
        part: list[TuningTarget] = []
        for target in targets:
            texts = {text for one in (*part, target) for text in one.texts}
            if part and len(texts) * max(map(len, texts)) > self.n_tokens:
                yield part
                part = []
            part.append(target)
        if part:
            yield part

    def words(self, targets: Sequence[TuningTarget]) -> list[torch.Tensor]:
        """Return log P(word | prompt) in nats for each target's words, in float32 or better.

        P(word | prompt) is the sum of the probabilities of the word's forms. A form's probability
        is the product of its tokens' probabilities. Padding comes after a text, so it doesn't
        change the text's probabilities.
        """
        device = self.model.device
        texts = sorted({text for target in targets for text in target.texts})
        row_of = {text: row for row, text in enumerate(texts)}
        n_tokens = torch.tensor([1 + len(text) for text in texts])
        ids = torch.full((len(texts), int(n_tokens.max())), self.bos)
        for row, text in zip(ids, texts, strict=True):
            row[1 : 1 + len(text)] = torch.tensor(text)
        mask = (torch.arange(ids.shape[1]) < n_tokens[:, None]).long()
        output = self.model(
            input_ids=ids.to(device), attention_mask=mask.to(device), use_cache=False
        )
        logits = output.logits.to(torch.promote_types(output.logits.dtype, torch.float32))
        of_words = [(target.prompt, word) for target in targets for word in target.words.values()]
        forms = [(prompt, added) for prompt, word in of_words for added in word]
        # For each token: index of its form, row of its text, position that predicts it, token id.
        places = [
            (form, row_of[prompt + added[:-1]], len(prompt) + i, token)
            for form, (prompt, added) in enumerate(forms)
            for i, token in enumerate(added)
        ]
        form, row, position, token = torch.tensor(places, device=device).unbind(dim=1)
        values = logits[row, position, token] - torch.logsumexp(logits, dim=2)[row, position]
        of_forms = torch.zeros(len(forms), dtype=values.dtype, device=device)
        of_forms = of_forms.index_add(0, form, values)
        n_forms = [len(word) for _, word in of_words]
        words = torch.stack([torch.logsumexp(of_word, 0) for of_word in of_forms.split(n_forms)])
        return list(words.split([len(target.words) for target in targets]))

    def losses(self, targets: Sequence[TuningTarget]) -> torch.Tensor:
        """Return the losses L_d, L_g and L_l as columns, with one row per target."""
        rows = []
        for target, words in zip(targets, self.words(targets), strict=True):
            place = {word: i for i, word in enumerate(target.words)}
            female = [place[pair.a] for pair in target.pairs]
            male = [place[pair.b] for pair in target.pairs]
            of_pairs = distance(words[female], words[male])
            apart = difference(words[[*dict.fromkeys(female)]], words[[*dict.fromkeys(male)]])
            rows.append(torch.stack([of_pairs, total(words), apart]))
        return torch.stack(rows)


def distance(female: torch.Tensor, male: torch.Tensor) -> torch.Tensor:
    """Return loss L_d, the measure ADD without smoothing, from the words' log-probabilities.

    >>> p = torch.tensor([0.3, 0.1], dtype=torch.float64).log()
    >>> round(distance(p[:1], p[1:]).item(), 6)  # (0.3 ln 1.5 + 0.1 ln 0.5) / 2
    0.026162
    """
    middle = torch.logaddexp(female, male) - math.log(2)
    terms = female.exp() * (female - middle) + male.exp() * (male - middle)
    return terms.sum(dim=-1) / 2


def total(words: torch.Tensor) -> torch.Tensor:
    """Return loss L_g: the sum of the words' probabilities. ``words`` has log-probabilities.

    >>> round(total(torch.tensor([0.3, 0.1], dtype=torch.float64).log()).item(), 12)
    0.4
    """
    return words.exp().sum(dim=-1)


def difference(female: torch.Tensor, male: torch.Tensor) -> torch.Tensor:
    """Return loss L_l (0 to 1) from the log-probabilities of all female and all male words.

    Each word counts once. If female and male words are equally likely, the gradient is 0.

    >>> p = torch.tensor([0.3, 0.1], dtype=torch.float64).log()
    >>> round(difference(p[:1], p[1:]).item(), 12)
    0.5
    """
    ratio = torch.logsumexp(female, dim=-1) - torch.logsumexp(male, dim=-1)
    return torch.tanh(ratio / 2).abs()
