"""Log-probabilities of words after prompts, with gradients: the input of the losses."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from plumbline.eval_workers.training.mitigation.targets import TuningTarget


@dataclass(frozen=True)
class WordReader:
    """A causal ``transformers`` model that reads texts after the token ``bos``.

    A pass reads one prompt, or several whose texts have up to ``n_tokens`` tokens with padding.
    """

    model: Any
    bos: int
    n_tokens: int

    def passes(self, targets: Sequence[TuningTarget]) -> Iterator[list[TuningTarget]]:
        """Targets in parts that fit one pass."""
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
        """log P(word | prompt) in nats for each target's words, in float32 or better.

        P(word | prompt) is the sum over the word's forms; a form's probability is the product over
        the tokens that it adds. Padding follows each text, so it changes nothing before it.
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
        forms = [
            (target.prompt, added) for target in targets for word in target.words for added in word
        ]
        # Each added token, predicted by the one before it in the text that ends before its last.
        places = [
            (form, row_of[prompt + added[:-1]], len(prompt) + i, token)
            for form, (prompt, added) in enumerate(forms)
            for i, token in enumerate(added)
        ]
        form, row, position, token = torch.tensor(places, device=device).unbind(dim=1)
        values = logits[row, position, token] - torch.logsumexp(logits, dim=2)[row, position]
        of_forms = torch.zeros(len(forms), dtype=values.dtype, device=device)
        of_forms = of_forms.index_add(0, form, values)
        n_forms = [len(word) for target in targets for word in target.words]
        words = torch.stack([torch.logsumexp(of_word, 0) for of_word in of_forms.split(n_forms)])
        return list(words.split([len(target.words) for target in targets]))

    def losses(self, targets: Sequence[TuningTarget], smoothing: float) -> torch.Tensor:
        """L_d, L_g and L_l of each target, one row per target."""
        rows = []
        for target, words in zip(targets, self.words(targets), strict=True):
            pairs = torch.tensor(target.pairs, device=words.device)
            female, male = (words[list(side)] for side in (target.female, target.male))
            of_pairs = distance(words[pairs[:, 0]], words[pairs[:, 1]], smoothing)
            rows.append(torch.stack([of_pairs, total(words), difference(female, male)]))
        return torch.stack(rows)


def distance(female: torch.Tensor, male: torch.Tensor, smoothing: float = 0.0) -> torch.Tensor:
    """L_d from the log-probabilities of the two words of each pair; ``smoothing`` is its e.

    >>> p = torch.tensor([0.3, 0.1], dtype=torch.float64).log()
    >>> round(distance(p[:1], p[1:]).item(), 6)  # (0.3 ln 1.5 + 0.1 ln 0.5) / 2
    0.026162
    """
    if smoothing:
        extra = torch.tensor(math.log(smoothing), dtype=female.dtype, device=female.device)
        female, male = torch.logaddexp(female, extra), torch.logaddexp(male, extra)
    middle = torch.logaddexp(female, male) - math.log(2)
    terms = female.exp() * (female - middle) + male.exp() * (male - middle)
    return terms.sum(dim=-1) / 2


def total(words: torch.Tensor) -> torch.Tensor:
    """L_g, the sum of all words' probabilities, from the log-probability of each word.

    >>> round(total(torch.tensor([0.3, 0.1], dtype=torch.float64).log()).item(), 12)
    0.4
    """
    return words.exp().sum(dim=-1)


def difference(female: torch.Tensor, male: torch.Tensor) -> torch.Tensor:
    """L_l from the log-probabilities of all female and all male words, each once; from 0 to 1.

    Its gradient is 0 if both sides are equal.

    >>> p = torch.tensor([0.3, 0.1], dtype=torch.float64).log()
    >>> round(difference(p[:1], p[1:]).item(), 12)
    0.5
    """
    ratio = torch.logsumexp(female, dim=-1) - torch.logsumexp(male, dim=-1)
    return torch.tanh(ratio / 2).abs()
