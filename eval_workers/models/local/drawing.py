"""Draw tokens with a transformers model. Each sample has its own stream of random numbers.

A forward pass reads equal prompts once, and copies their keys and values for each sample. Shorter
prompts are padded on the left, and no token attends to padding. The distribution of the next token
is filtered as in transformers. The next token is the one at a random quantile of this distribution.
A sample draws its quantiles from its own stream. So a sample doesn't depend on other samples in the
same pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from inspect import signature
from typing import Any

import numpy as np
import torch
from transformers import (
    LogitsProcessorList,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from plumbline.eval_workers.models.local.devices import raise_if_stopped
from plumbline.eval_workers.models.sampling_contract import SamplingOptions
from plumbline.eval_workers.models.scoring_contract import Tokens

_NOT_FINITE = "the log-probabilities of its next token are not finite"


@torch.inference_mode()
def draw(
    read: Callable[[Sequence[Tokens]], Read],
    prompts: Sequence[Tokens],
    seeds: Sequence[int],
    options: SamplingOptions,
    ends: Collection[int],
) -> list[Tokens | str]:
    """Return the new tokens after each prompt. If logits aren't finite, return a problem instead.

    A sample stops after a token in ``ends``. ``seeds`` has one seed per prompt. ``read`` runs the
    model on the distinct prompts.
    """
    distinct = list(dict.fromkeys(prompts))
    index_of = {prompt: i for i, prompt in enumerate(distinct)}
    state = read(distinct)
    device = state.logits.device
    state.select(torch.tensor([index_of[prompt] for prompt in prompts], device=device))
    end_ids = torch.tensor(sorted(ends), device=device)
    chance = None if options.greedy else uniforms(seeds, options.max_new_tokens).to(device)
    alive = torch.arange(len(prompts), device=device)
    drawn: list[list[int]] = [[] for _ in prompts]
    faulty: set[int] = set()
    for step in range(options.max_new_tokens):
        raise_if_stopped()
        tokens = chosen(state.logits, None if chance is None else chance[alive, step], options)
        for row, token in zip(alive.tolist(), tokens.tolist(), strict=True):
            drawn[row].append(token)
        sound = state.logits.amax(dim=-1).isfinite()  # the maximum is NaN if any logit is NaN
        faulty.update(alive[~sound].tolist())
        is_open = torch.isin(tokens, end_ids, invert=True) & sound
        if step + 1 == options.max_new_tokens or not is_open.any():
            break
        if not is_open.all():
            alive, tokens = alive[is_open], tokens[is_open]
            state.select(is_open.nonzero()[:, 0])
        state.append(tokens)
    return [_NOT_FINITE if i in faulty else tuple(tokens) for i, tokens in enumerate(drawn)]


def uniforms(seeds: Sequence[int], n: int) -> torch.Tensor:
    """Return ``n`` random numbers in [0, 1) per seed. A larger ``n`` adds numbers to a row's end.

    >>> torch.equal(uniforms([3, 4], 2), uniforms([4, 3], 5).flip(0)[:, :2])
    True
    """
    rows = [np.random.Generator(np.random.Philox(key=seed)).random(n) for seed in seeds]
    return torch.from_numpy(np.stack(rows))


def chosen(
    logits: torch.Tensor, chance: torch.Tensor | None, options: SamplingOptions
) -> torch.Tensor:
    """Choose one token per row of ``logits``.

    ``chance`` has one number in [0, 1) per row. The chosen token is at this quantile of the row's
    filtered distribution. If ``chance`` is ``None``, choose the most likely tokens.
    """
    if chance is None:
        return logits.argmax(dim=-1)
    scores = _filters(options)(None, logits)
    sums = scores.softmax(dim=-1).double().cumsum(dim=-1)
    totals = sums[:, -1]
    # If rounding made a target equal to its total, a token of probability 0 could be chosen.
    target = torch.minimum(chance * totals, torch.nextafter(totals, torch.zeros_like(totals)))
    return torch.searchsorted(sums, target[:, None], right=True)[:, 0]


def _filters(options: SamplingOptions) -> LogitsProcessorList:
    """Return the filters for the options, in the order that transformers' ``generate`` uses."""
    filters = LogitsProcessorList()
    if options.temperature != 1:
        filters.append(TemperatureLogitsWarper(float(options.temperature)))
    if options.top_k is not None:
        filters.append(TopKLogitsWarper(options.top_k))
    if options.top_p is not None and options.top_p < 1:
        filters.append(TopPLogitsWarper(options.top_p))
    return filters


class Read:
    """Sequences that a model has read, and the model's float32 logits after each sequence.

    If the sequences have different lengths, the shorter ones are padded on the left, and the model
    must accept position ids.
    """

    def __init__(self, model: Any, sequences: Sequence[Tokens]) -> None:
        self._model = model
        width = max(map(len, sequences))
        padded = [(*sequence[:1] * (width - len(sequence)), *sequence) for sequence in sequences]
        self._ids = torch.tensor(padded, device=model.device)
        lengths = torch.tensor([len(sequence) for sequence in sequences], device=model.device)
        self._mask = (torch.arange(width, device=model.device) >= width - lengths[:, None]).long()
        self._is_padded = len({*map(len, sequences)}) > 1
        self._keeps_last = "logits_to_keep" in signature(model.forward).parameters
        rotary = getattr(model.config, "rope_parameters", None) or {}
        is_longrope = rotary.get("rope_type") == "longrope"
        #: Maximum number of tokens in a text that LongRoPE (Phi-3) reads with its short factors.
        self._n_short = rotary["original_max_position_embeddings"] if is_longrope else math.inf
        self._cache: Any = None
        self.logits = torch.empty(0)
        self._advance(self._ids)

    def select(self, rows: torch.Tensor) -> None:
        """Keep only the given rows. A row that is given several times is copied."""
        self._ids, self._mask = self._ids[rows], self._mask[rows]
        self.logits = self.logits[rows]
        if self._cache is not None:
            self._cache.batch_select_indices(rows)

    def append(self, tokens: torch.Tensor) -> None:
        """Add one token to each sequence, and run the model on the new tokens."""
        self._ids = torch.cat([self._ids, tokens[:, None]], dim=1)
        self._mask = torch.cat([self._mask, torch.ones_like(tokens)[:, None]], dim=1)
        if self._ids.shape[1] == self._n_short + 1:
            self._cache = None  # at this length, LongRoPE changes its factors: reread all tokens
        self._advance(self._ids if self._cache is None else tokens[:, None])

    def _advance(self, ids: torch.Tensor) -> None:
        output = self._output(ids)
        self.logits = output.logits[:, -1].float()
        cache = getattr(output, "past_key_values", None)
        self._cache = cache if _has_rows(cache) else None

    def _output(self, ids: torch.Tensor) -> Any:
        """Return the model's output for ``ids``, which follow the tokens in the cache."""
        options: dict[str, Any] = {"logits_to_keep": 1} if self._keeps_last else {}
        if self._is_padded:
            positions = (self._mask.cumsum(dim=1) - 1).clamp(min=0)
            options["position_ids"] = positions[:, -ids.shape[1] :]
        return self._model(
            input_ids=ids,
            attention_mask=self._mask,
            past_key_values=self._cache,
            use_cache=True,
            **options,
        )


def _has_rows(cache: Any) -> bool:
    """Return True if the cache can select rows. Otherwise, each step must reread all tokens."""
    parts = [cache, *getattr(cache, "layers", ())]
    return all(hasattr(part, "batch_select_indices") for part in parts)
