"""The three losses of debias tuning, as differentiable functions of log-probabilities. Pure.

They are the formulas of the measures (``disclosure_prompt`` in SQL), one value per prompt:

- L_d, ``distance``: half the sum over pairs of both words' terms, as ADD, in nats;
- L_g, ``total``: the sum of the probabilities of all words, p_f + p_m;
- L_l, ``difference``: |p_f - p_m| / (p_f + p_m), as GLD.

Probabilities come as natural logarithms, finite and of any float type: ratios keep their precision
where a probability is too small for the type. The last dimension is that of pairs or words, and is
summed over.
"""

from __future__ import annotations

import math

import torch


def distance(female: torch.Tensor, male: torch.Tensor, smoothing: float = 0.0) -> torch.Tensor:
    """L_d of log-probabilities of the two words of each pair, ``smoothing`` being e.

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
    """L_g of log-probabilities of all words, each once.

    >>> round(total(torch.tensor([0.3, 0.1], dtype=torch.float64).log()).item(), 12)
    0.4
    """
    return words.exp().sum(dim=-1)


def difference(female: torch.Tensor, male: torch.Tensor) -> torch.Tensor:
    """L_l of log-probabilities of all female and all male words, each once; from 0 to 1.

    Its gradient is 0 where both sides are equal.

    >>> p = torch.tensor([0.3, 0.1], dtype=torch.float64).log()
    >>> round(difference(p[:1], p[1:]).item(), 12)
    0.5
    """
    ratio = torch.logsumexp(female, dim=-1) - torch.logsumexp(male, dim=-1)
    return torch.tanh(ratio / 2).abs()
