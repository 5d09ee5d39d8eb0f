"""Drawing tokens with a transformers model: a stream of chance a sample, no padding.

The sequences of a pass have one length, so that nothing is padded; equal prompts are read once, and
their keys and values copied to each of their samples. A sample's k-th token is where its k-th
uniform number falls in the distribution as transformers' own filters leave it, so its tokens do not
depend on which others are drawn with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import torch
from transformers import (
    LogitsProcessorList,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from plumbline.eval_workers.models.base import Tokens
from plumbline.eval_workers.models.sampling import SamplingOptions

#: So many of the most likely tokens are looked at before a vocabulary is sorted.
_LIKELY = 2048
#: Sums of probabilities in float32 are not this far off.
_ROUNDING = 1e-5


@torch.inference_mode()
def draw(
    read: Callable[[Sequence[Tokens]], Read],
    prompts: Sequence[Tokens],
    seeds: Sequence[int],
    options: SamplingOptions,
    ends: Collection[int],
) -> list[Tokens]:
    """New tokens after each prompt, with the end token where there is one.

    Prompts have one length; a seed each. ``read`` makes the model read different ones.
    """
    distinct = list(dict.fromkeys(prompts))
    place = {prompt: i for i, prompt in enumerate(distinct)}
    before = read(distinct)
    device = before.logits.device
    before.select(torch.tensor([place[prompt] for prompt in prompts], device=device))
    last = torch.tensor(sorted(ends), device=device)
    chance = None if options.greedy else uniforms(seeds, options.max_new_tokens).to(device)
    alive = torch.arange(len(prompts), device=device)
    steps: list[tuple[list[int], list[int]]] = []
    for step in range(options.max_new_tokens):
        tokens = chosen(before.logits, None if chance is None else chance[alive, step], options)
        steps.append((alive.tolist(), tokens.tolist()))
        goes_on = torch.isin(tokens, last, invert=True)
        if step + 1 == options.max_new_tokens or not goes_on.any():
            break
        if not goes_on.all():
            alive, tokens = alive[goes_on], tokens[goes_on]
            before.select(goes_on.nonzero()[:, 0])
        before.append(tokens)
    found: list[list[int]] = [[] for _ in prompts]
    for rows, new in steps:
        for row, token in zip(rows, new, strict=True):
            found[row].append(token)
    return [tuple(tokens) for tokens in found]


def uniforms(seeds: Sequence[int], n: int) -> torch.Tensor:
    """Numbers in [0, 1), a row a seed; a row begins alike for every ``n``.

    >>> torch.equal(uniforms([3, 4], 2), uniforms([4, 3], 5).flip(0)[:, :2])
    True
    """
    rows = [np.random.Generator(np.random.Philox(key=seed)).random(n) for seed in seeds]
    return torch.from_numpy(np.stack(rows))


def chosen(
    logits: torch.Tensor, chance: torch.Tensor | None, options: SamplingOptions
) -> torch.Tensor:
    """A token a row: the most likely, or where ``chance`` falls in the filtered distribution."""
    if chance is None:
        return logits.argmax(dim=-1)
    scores = _filters(options)(None, logits)
    sums = scores.softmax(dim=-1).double().cumsum(dim=-1)
    totals = sums[:, -1]
    # Below the total even where rounding would reach it: a token without mass is never drawn.
    wanted = torch.minimum(chance * totals, torch.nextafter(totals, torch.zeros_like(totals)))
    return torch.searchsorted(sums, wanted[:, None], right=True)[:, 0]


def _filters(options: SamplingOptions) -> LogitsProcessorList:
    """In the order in which ``generate`` has them."""
    filters = LogitsProcessorList()
    if options.temperature != 1:
        filters.append(TemperatureLogitsWarper(float(options.temperature)))
    if options.top_k is not None:
        filters.append(TopKLogitsWarper(options.top_k))
    if options.top_p is not None and options.top_p < 1:
        filters.append(_TopP(options.top_p))
    return filters


class _TopP(TopPLogitsWarper):
    """The same nucleus from the most likely tokens alone, where they hold it beyond doubt.

    Sorting a whole vocabulary takes a third of the time of drawing from a small model. Rows are
    sorted all the same where rounding or equal logits at the nucleus' edge might tell otherwise.
    """

    def __call__(self, input_ids: Any, scores: torch.Tensor) -> torch.Tensor:
        if scores.shape[-1] < 4 * _LIKELY:
            return super().__call__(input_ids, scores)
        values, places = scores.topk(_LIKELY, dim=-1)
        shares = scores.softmax(dim=-1).gather(1, places).double()
        before = shares.cumsum(dim=-1) - shares
        kept = before < self.top_p
        last = (kept.sum(dim=-1, keepdim=True) - 1).clamp(min=0)
        edge = values.gather(1, torch.cat([last, (last + 1).clamp(max=_LIKELY - 1)], dim=1))
        # A nucleus that reaches the last of them compares that one with itself.
        doubt = (edge[:, 0] == edge[:, 1]) | ((before - self.top_p).abs() < _ROUNDING).any(dim=-1)
        kept_values = values.masked_fill(~kept, self.filter_value)
        found = torch.full_like(scores, self.filter_value).scatter(1, places, kept_values)
        rows = doubt.nonzero()[:, 0]
        if len(rows):
            found[rows] = super().__call__(input_ids, scores[rows])
        return found


class Read:
    """Sequences of one length that a model has read, and its float32 logits after each."""

    def __init__(self, model: Any, sequences: Sequence[Tokens]) -> None:
        self._model = model
        self._ids = torch.tensor(sequences, device=model.device)
        self._cache: Any = None
        self.logits = torch.empty(0)
        self._go_on(self._ids)

    def select(self, rows: torch.Tensor) -> None:
        """These rows in the place of all; a row may be named many times."""
        self._ids, self.logits = self._ids[rows], self.logits[rows]
        if self._cache is not None:
            self._cache.batch_select_indices(rows)

    def append(self, tokens: torch.Tensor) -> None:
        """Read one more token of each."""
        self._ids = torch.cat([self._ids, tokens[:, None]], dim=1)
        self._go_on(self._ids if self._cache is None else tokens[:, None])

    def _go_on(self, ids: torch.Tensor) -> None:
        output = self._output(ids)
        self.logits = output.logits[:, -1].float()
        cache = getattr(output, "past_key_values", None)
        self._cache = cache if _has_rows(cache) else None

    def _output(self, ids: torch.Tensor) -> Any:
        """What the model makes of tokens behind those in the cache."""
        return self._model(
            input_ids=ids,
            attention_mask=torch.ones_like(self._ids),
            past_key_values=self._cache,
            use_cache=True,
        )


def _has_rows(cache: Any) -> bool:
    """Whether rows of it can be chosen; a model with a state of another kind reads all again."""
    parts = [cache, *getattr(cache, "layers", ())]
    return all(hasattr(part, "batch_select_indices") for part in parts)
