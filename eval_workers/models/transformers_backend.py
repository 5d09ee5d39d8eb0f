"""Scores texts and continues prompts with Hugging Face transformers, on CPU or GPU.

If the architecture accepts any mask and positions, a forward pass holds trees of texts (see
``local.tree``); otherwise it holds texts of equal token length. Neither is padded on a CPU. The
output layer, most of a small model's work, computes each node once. Logits are freed right after
their softmax.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from plumbline.eval_workers.models.kinds.forward_passes import LocalModel, logprobs_of

import torch  # isort: skip (forward_passes first configures MKL)

from plumbline.eval_workers.models.kinds.encoder_decoder import EncoderDecoderBackend
from plumbline.eval_workers.models.kinds.forward_passes import LocalContinuer
from plumbline.eval_workers.models.kinds.masked import MaskedBackend
from plumbline.eval_workers.models.kinds.model_kind import Files, Kind, read_files
from plumbline.eval_workers.models.local.tree import (
    end_of_tree,
    forest,
    hidden_of_trees,
    longest_short,
    n_nodes,
    on_device,
)
from plumbline.eval_workers.models.local.weights import is_int8
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.scoring_contract import Tokens

#: Architectures that accept any mask and positions, and whose output layer alone makes logits of
#: the last hidden state. Tests compare each with a float64 computation of one text at a time.
TREE_TYPES = (
    *("gpt2", "gpt_neox", "gptj", "llama", "mistral", "mixtral", "olmo", "olmo2", "opt"),
    *("phi", "phi3", "qwen2", "qwen3"),
)
#: Logits (rows times vocabulary) computed at once: 1 MiB of float32 on a CPU, which fits into a
#: core's cache, and 1 GiB on a GPU.
_LOGITS = {"cpu": 1 << 18, "cuda": 1 << 28}

#: Most nodes of a tree. On a CPU a pass is a single tree. On a GPU a single tree's mask is too
#: large: on an H100 such passes took 2.6 times as long as trees of 256 nodes. Trees of 128 nodes
#: took 4% longer than those of 256, trees of 512 as long.
_TREE_NODES = {"cpu": sys.maxsize, "cuda": 256}

#: Rotary position embeddings whose frequencies change with a pass's texts, and stay changed.
_ROTARY_STATE = ("dynamic", "longrope")

_LogProbs = list[list[float]]


class TransformersBackend(LocalContinuer):
    """A causal language model loaded with transformers; raises the errors of ``TextReader``."""

    supports = frozenset({"adapter", "chat", "quantisation"})

    def __init__(self, model: str, options: ModelOptions, files: Files | None = None) -> None:
        """``files``: the result of ``read_files``, which is called if they are ``None``."""
        super().__init__(model, options, files)
        # int8 is exact in columns with an outlier anywhere in the pass. So each text gets its own
        # pass: its score does not depend on other texts.
        if is_int8(self.config, options):
            self.options = replace(options, batch_tokens=1)

    @cached_property
    def longest_in_tree(self) -> int:
        """Longest text in tokens that may be part of a tree; 0 if the model takes no trees."""
        if self.config.model_type not in TREE_TYPES:
            return 0
        # A tree's mask replaces the model's sliding window.
        window = int(getattr(self.config, "sliding_window", None) or sys.maxsize)
        return min(window, longest_short(self.config))

    @cached_property
    def takes_lanes(self) -> bool:
        """True if passes may run side by side; false once memory has run out.

        One pass fills a GPU. Passes also change the state of some models: int8 remembers outlier
        columns, and length-dependent rotary positions change their frequencies.
        """
        is_plain = self.identity.quantisation is None and self.longest_in_tree > 0
        return self._model.device.type == "cpu" and is_plain and self._is_stateless

    @cached_property
    def longest_padded(self) -> int:
        """``longest_in_tree``, as such models accept positions; 0 if passes change the model."""
        return self.longest_in_tree if self._is_stateless else 0

    @cached_property
    def _is_stateless(self) -> bool:
        rotary = getattr(self.config, "rope_parameters", None) or {}
        return rotary.get("rope_type", "default") not in _ROTARY_STATE

    def n_computed(self, sequences: Collection[Tokens]) -> int:
        """Tokens that go through the model for distinct sequences; shared beginnings count once."""
        in_trees = sorted(s for s in sequences if len(s) <= self.longest_in_tree)
        return n_nodes(in_trees) + sum(len(s) for s in sequences if len(s) > self.longest_in_tree)

    def _token_logprobs(self, sequences: Sequence[Tokens]) -> _LogProbs:
        in_trees = [s for s in sequences if len(s) <= self.longest_in_tree]
        others = [s for s in sequences if len(s) > self.longest_in_tree]
        most_nodes = _TREE_NODES[self._model.device.type]
        logprobs = self._in_passes(sorted(others, key=len), self._equal_pass)
        for of_similar_length in (
            [s for s in in_trees if len(s) < most_nodes],
            [s for s in in_trees if len(s) >= most_nodes],
        ):
            ordered = sorted(of_similar_length)
            logprobs |= self._in_passes(ordered, self._tree_pass, end_of=end_of_tree)
        return [logprobs[sequence] for sequence in sequences]

    @torch.inference_mode()
    def _tree_pass(self, sequences: list[Tokens]) -> _LogProbs:
        """Log-probabilities (nats) of the tokens of sorted sequences."""
        model = self._model
        most_nodes = _TREE_NODES[model.device.type]
        if len(sequences[0]) >= most_nodes:  # one tree: several trees of long texts would be padded
            most_nodes = sys.maxsize
        trees = forest(sequences, self.identity.bos_token_id, most_nodes)
        hidden = hidden_of_trees(model, trees)
        width = hidden.shape[1]
        nodes = [k * width + i for k, tree in enumerate(trees) for path in tree.paths for i in path]
        targets = [token for sequence in sequences for token in sequence]
        indices = (on_device(numbers, model.device) for numbers in (nodes, targets))
        values = self._predicted(hidden.flatten(0, 1), *indices).cpu()
        return [of_text.tolist() for of_text in values.split([len(s) for s in sequences])]

    def _predicted(
        self, hidden: torch.Tensor, nodes: torch.Tensor, tokens: torch.Tensor
    ) -> torch.Tensor:
        """log p (nats, float32) of each of ``tokens``, predicted at its entry of ``nodes``.

        A plain output layer is computed for one part of the vocabulary at a time: its logits fit
        into the processor's cache.
        """
        output, values = self._model.get_output_embeddings(), torch.empty_like(tokens).float()
        totals, start = [], 0
        for logits in _parts(output, hidden, _LOGITS[hidden.device.type]):
            in_part = (tokens >= start) & (tokens < start + logits.shape[1])
            values[in_part] = logits[nodes[in_part], tokens[in_part] - start]
            totals.append(torch.logsumexp(logits, dim=1))
            start += logits.shape[1]
        return values - torch.logsumexp(torch.stack(totals), dim=0)[nodes]

    @torch.inference_mode()
    def _equal_pass(self, sequences: list[Tokens]) -> _LogProbs:
        """Log-probabilities (nats) of the tokens of sequences of one length."""
        targets = torch.tensor(sequences, device=self._model.device)
        bos = torch.full_like(targets[:, :1], self.identity.bos_token_id)
        inputs = torch.cat([bos, targets[:, :-1]], dim=1)
        mask = torch.ones_like(inputs)
        output = self._model(input_ids=inputs, attention_mask=mask, use_cache=False)
        logits, tokens = output.logits.flatten(0, 1), targets.flatten()
        n_rows = max(1, _LOGITS[logits.device.type] // logits.shape[1])
        parts = map(logprobs_of, logits.split(n_rows), tokens.split(n_rows))
        values: _LogProbs = torch.cat(list(parts)).view_as(targets).tolist()
        return values


def open_model(model: str, options: ModelOptions) -> LocalModel:
    """Open the model with a hub id or path; its configuration decides the class."""
    files = read_files(model, options)
    kinds = (TransformersBackend, MaskedBackend, EncoderDecoderBackend)
    by_kind: dict[Kind, type[LocalModel]] = {backend.kind: backend for backend in kinds}
    return by_kind[files.kind](model, options, files)


def _parts(output: Any, hidden: torch.Tensor, n_logits: int) -> Iterator[torch.Tensor]:
    """Float32 logits of consecutive parts of the vocabulary, about ``n_logits`` each.

    A quantised layer, or one with an adapter, can't be split: it gives all logits at once.
    """
    if type(output) is not torch.nn.Linear:
        yield output(hidden).float()
        return
    width = max(1, n_logits // len(hidden))
    biases = itertools.repeat(None) if output.bias is None else output.bias.split(width)
    for weight, bias in zip(output.weight.split(width), biases, strict=False):
        yield torch.nn.functional.linear(hidden, weight, bias).float()
