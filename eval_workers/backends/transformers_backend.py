"""Scores with Hugging Face transformers, on CPU or GPU.

Texts of equal token length share a forward pass, so that no pass holds padding: nothing can leak
from it, whatever the architecture does about positions. The input is BOS and all tokens but the
last; its logits predict all tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import tokenizers
import torch
import transformers

from eval_workers.backends._scorer import Scorer
from eval_workers.backends._weights import is_int8, load_model
from eval_workers.backends.base import ModelOptions, Tokens

#: Rows of logits whose float32 log-softmax is computed at once.
_SOFTMAX_ROWS = 256


class TransformersBackend(Scorer):
    """A causal language model loaded with transformers; see ``Scorer`` for what it raises."""

    supports = frozenset({"adapter", "quantisation", "trust_remote_code"})

    def __init__(self, model: str, options: ModelOptions) -> None:
        versions = {
            "transformers": transformers.__version__,
            "torch": torch.__version__,
            "tokenizers": tokenizers.__version__,
        }
        super().__init__(model, options, versions)
        # int8 may keep columns with outliers exact, and looks for these in all of a forward pass: a
        # text that is alone in its pass has a score of its own.
        if is_int8(self.config, options):
            self.options = replace(options, batch_tokens=1)

    @cached_property
    def _model(self) -> Any:
        return load_model(self.source, self.config, self.options, self.adapter)

    @property
    def n_parameters(self) -> int:
        """Parameters, tied ones counted once, an adapter's too; packed ones as what they hold."""
        return int(self._model.num_parameters())

    @cached_property
    def _n_embedded(self) -> int:
        rows = self._model.get_input_embeddings().weight.shape[0]
        output = self._model.get_output_embeddings()
        return int(min(rows, output.weight.shape[0]) if output is not None else rows)

    def _token_logprobs(self, sequences: Sequence[Tokens]) -> list[list[float]]:
        found: dict[Tokens, list[float]] = {}
        for batch in _batches(sequences, self.options.batch_tokens):
            found.update(zip(batch, self._forward(batch), strict=True))
        return [found[sequence] for sequence in sequences]

    @torch.inference_mode()
    def _forward(self, sequences: list[Tokens]) -> list[list[float]]:
        """Log-probabilities in nats of the tokens of sequences of one length."""
        device = self._model.device
        targets = torch.tensor(sequences, device=device)
        bos = torch.full_like(targets[:, :1], self.identity.bos_token_id)
        inputs = torch.cat([bos, targets[:, :-1]], dim=1)
        mask = torch.ones_like(inputs)
        output = self._model(input_ids=inputs, attention_mask=mask, use_cache=False)
        logits = output.logits.flatten(0, 1)
        wanted = targets.flatten()
        logprobs = torch.empty(wanted.shape, dtype=torch.float32, device=device)
        for start in range(0, len(wanted), _SOFTMAX_ROWS):
            rows = slice(start, start + _SOFTMAX_ROWS)
            part = logits[rows].float()
            chosen = part.gather(1, wanted[rows, None])[:, 0]
            logprobs[rows] = chosen - torch.logsumexp(part, dim=1)
        values: list[list[float]] = logprobs.view_as(targets).tolist()
        return values


open_model = TransformersBackend


def _batches(sequences: Sequence[Tokens], budget: int) -> Iterator[list[Tokens]]:
    """Sequences of equal length, at most ``budget`` tokens together (or a single sequence)."""
    by_length: dict[int, list[Tokens]] = {}
    for sequence in sequences:
        by_length.setdefault(len(sequence), []).append(sequence)
    for length in sorted(by_length, reverse=True):  # the largest first: memory runs out at once
        alike = by_length[length]
        size = max(1, budget // length)
        for start in range(0, len(alike), size):
            yield alike[start : start + size]
