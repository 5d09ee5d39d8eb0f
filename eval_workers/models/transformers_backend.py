"""Scores and continues with Hugging Face transformers, on CPU or GPU.

A forward pass holds trees of texts (see ``local.tree``) where the architecture takes a mask and
positions of its own, else texts of equal token length. On a CPU neither has padding. The output
layer, most of a small model's work, computes each node once, and logits are freed right after their
softmax.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from plumbline.eval_workers.models.kinds.forward_passes import LocalModel, logprobs_of

import torch  # isort: skip (passes sets how MKL computes, before it starts)

from plumbline.eval_workers.models.kinds.encoder_decoder import EncoderDecoderBackend
from plumbline.eval_workers.models.kinds.forward_passes import LocalContinuer
from plumbline.eval_workers.models.kinds.masked import MaskedBackend
from plumbline.eval_workers.models.kinds.model_files import Files, Kind, read_files
from plumbline.eval_workers.models.local.hidden import hidden_of_trees, on_device
from plumbline.eval_workers.models.local.tree import end_of_tree, forest, n_nodes
from plumbline.eval_workers.models.local.weights import is_int8
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.scoring_contract import Tokens

#: Architectures that take any mask and any positions, and whose logits are the output layer's on
#: the last hidden state. Tests compare each with a float64 computation of one text at a time.
TREE_TYPES = (
    *("gpt2", "gpt_neox", "gptj", "llama", "mistral", "mixtral", "olmo", "olmo2", "opt"),
    *("phi", "phi3", "qwen2", "qwen3"),
)
#: Logits (rows times vocabulary) at once: 1 MiB of float32 on a CPU, which a core's cache holds,
#: and 1 GiB on a GPU.
_LOGITS = {"cpu": 1 << 18, "cuda": 1 << 28}

#: Nodes of a tree: a pass on a CPU is one tree. On a GPU its mask would be too large: an H100 took
#: 2.6 times as long as for rows of 256; 128 were 4% slower, 512 as fast.
_TREE_NODES = {"cpu": sys.maxsize, "cuda": 256}

#: Rotary positions whose frequencies a pass may change for later passes.
_ROTARY_STATE = ("dynamic", "longrope")

_LogProbs = list[list[float]]


class TransformersBackend(LocalContinuer):
    """A causal language model loaded with transformers; see ``TextReader`` for what it raises."""

    supports = frozenset({"adapter", "chat", "quantisation", "trust_remote_code"})

    def __init__(self, model: str, options: ModelOptions, files: Files | None = None) -> None:
        """``files`` of the model, if they have been read already."""
        super().__init__(model, options, files)
        # int8 keeps columns with outliers exact, and looks for them in a whole forward pass: each
        # text has its own pass, so that its score does not depend on the others.
        if is_int8(self.config, options):
            self.options = replace(options, batch_tokens=1)

    @cached_property
    def longest_in_tree(self) -> int:
        """Longest text in tokens that may be part of a tree; 0 if the model takes no trees."""
        own_code = self.options.trust_remote_code is not None
        if own_code or self.config.model_type not in TREE_TYPES:
            return 0
        # A mask of our own replaces the model's sliding window.
        return int(getattr(self.config, "sliding_window", None) or sys.maxsize)

    @cached_property
    def takes_lanes(self) -> bool:
        """True if passes may run side by side; false once memory has run out.

        Not on a GPU, which one pass fills, and not where a pass changes the model's state: int8 its
        outliers, rotary positions that depend on the length their frequencies, a model's own code
        anything.
        """
        rotary = getattr(self.config, "rope_parameters", None) or {}
        is_stateless = rotary.get("rope_type", "default") not in _ROTARY_STATE
        is_plain = self.identity.quantisation is None and self.longest_in_tree > 0
        return self._model.device.type == "cpu" and is_plain and is_stateless

    def n_computed(self, sequences: Collection[Tokens]) -> int:
        """Tokens that go through the model for distinct sequences; shared beginnings count once."""
        in_trees = sorted(s for s in sequences if len(s) <= self.longest_in_tree)
        return n_nodes(in_trees) + sum(len(s) for s in sequences if len(s) > self.longest_in_tree)

    def _token_logprobs(self, sequences: Sequence[Tokens]) -> _LogProbs:
        in_trees = [s for s in sequences if len(s) <= self.longest_in_tree]
        others = [s for s in sequences if len(s) > self.longest_in_tree]
        most = _TREE_NODES[self._model.device.type]
        logprobs = self._in_passes(sorted(others, key=len), self._equal_pass)
        for part in (
            [s for s in in_trees if len(s) < most],
            [s for s in in_trees if len(s) >= most],
        ):
            logprobs |= self._in_passes(sorted(part), self._tree_pass, end_of=end_of_tree)
        return [logprobs[sequence] for sequence in sequences]

    @torch.inference_mode()
    def _tree_pass(self, sequences: list[Tokens]) -> _LogProbs:
        """Log-probabilities (nats) of the tokens of sorted sequences."""
        model = self._model
        most = _TREE_NODES[model.device.type]
        if len(sequences[0]) >= most:  # long ones would pad each other: one tree
            most = sys.maxsize
        trees = forest(sequences, self.identity.bos_token_id, most)
        hidden = hidden_of_trees(model, trees)
        width = hidden.shape[1]
        nodes = [k * width + i for k, made in enumerate(trees) for path in made.paths for i in path]
        targets = [token for sequence in sequences for token in sequence]
        places = (on_device(which, model.device) for which in (nodes, targets))
        values = self._predicted(hidden.flatten(0, 1), *places).cpu()
        return [part.tolist() for part in values.split([len(s) for s in sequences])]

    def _predicted(
        self, hidden: torch.Tensor, nodes: torch.Tensor, tokens: torch.Tensor
    ) -> torch.Tensor:
        """log p (nats, float32) of ``tokens`` by the softmax over the output layer at ``nodes``.

        A plain output layer is multiplied by parts of the vocabulary, so that the logits stay in
        the processor's cache.
        """
        output, values = self._model.get_output_embeddings(), torch.empty_like(tokens).float()
        totals, start = [], 0
        for logits in _parts(output, hidden, _LOGITS[hidden.device.type]):
            here = (tokens >= start) & (tokens < start + logits.shape[1])
            values[here] = logits[nodes[here], tokens[here] - start]
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
    """A model by its hub id or path, as the kind of its configuration."""
    files = read_files(model, options)
    kinds = (TransformersBackend, MaskedBackend, EncoderDecoderBackend)
    by_kind: dict[Kind, type[LocalModel]] = {backend.kind: backend for backend in kinds}
    return by_kind[files.kind](model, options, files)


def _parts(output: Any, hidden: torch.Tensor, n_logits: int) -> Iterator[torch.Tensor]:
    """Float32 logits of consecutive parts of the vocabulary, about ``n_logits`` each.

    A layer that is more than a matrix (quantised, with an adapter) gives them all at once.
    """
    if type(output) is not torch.nn.Linear:
        yield output(hidden).float()
        return
    width = max(1, n_logits // len(hidden))
    biases = itertools.repeat(None) if output.bias is None else output.bias.split(width)
    for weight, bias in zip(output.weight.split(width), biases, strict=False):
        yield torch.nn.functional.linear(hidden, weight, bias).float()
