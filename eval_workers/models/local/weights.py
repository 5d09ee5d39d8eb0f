"""Compute the log-probabilities of given tokens with a causal model, and draw new tokens.

If the architecture accepts custom attention masks and positions, a forward pass reads trees of
texts (see ``local.tree``). Otherwise it reads texts with equal numbers of tokens. On a CPU, no text
is padded. In a small model, the output layer takes most of the time. So it runs once per tree node,
not once for each text that shares the node.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeVar

import torch

from plumbline.eval_workers.models.local import devices
from plumbline.eval_workers.models.local.drawing import Read, draw
from plumbline.eval_workers.models.local.model_files import (
    Files,
    load_model,
    n_embedded,
    saved_quantisation,
)
from plumbline.eval_workers.models.local.tree import hidden_of_trees, of_trees, on_device, tree
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.sampling_contract import SamplingOptions
from plumbline.eval_workers.models.scoring_contract import Tokens

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Architectures that accept any mask and positions, and whose logits are the output layer applied
#: to the last hidden state. For each, tests compare scores from trees with scores of single texts.
TREE_TYPES = (
    *("gpt2", "gpt_neox", "gptj", "llama", "mistral", "mixtral", "olmo", "olmo2", "opt"),
    *("phi", "phi3", "qwen2", "qwen3"),
)
#: Number of logits (rows times vocabulary) to compute at once. In float32 that is 1 MiB on a CPU,
#: which fits into a core's cache, and 1 GiB on a GPU.
_LOGITS = {"cpu": 1 << 18, "cuda": 1 << 28}

#: Size limit of a tree in nodes; longer texts aren't put in trees. On a CPU, a pass is a single
#: tree. On a GPU, the mask of one large tree is too big: on an H100, passes with one tree took 2.6
#: times as long as passes with trees of 256 nodes. 128 nodes took 4% longer, 512 the same time.
_TREE_NODES = {"cpu": sys.maxsize, "cuda": 256}

#: Types of rotary position embeddings whose frequencies change with the texts that are read.
_ROTARY_STATE = ("dynamic", "longrope")

#: While drawing, memory may hold the keys and values of this many times ``batch_tokens`` tokens.
#: (The factor can exceed 1, because only the last token of a sequence gets logits.)
_HELD = 16

#: A prompt, including its special tokens, and its index among the prompts.
_Draw = tuple[Tokens, int]
_LogProbs = list[list[float]]


class Weights:
    """The weights of a model and its forward passes. The weights are loaded when first needed.

    ``bos`` is put before each text.
    """

    def __init__(self, files: Files, options: ModelOptions, bos: int) -> None:
        self.files, self.config, self.options, self.bos = files, files.config, options, bos

    @cached_property
    def model(self) -> Any:
        """The ``transformers`` model on its device, in evaluation mode."""
        return load_model(self.files, self.options)

    @property
    def n_parameters(self) -> int:
        """Number of parameters, including an adapter's.

        Tied weights count once. Each 4-bit weight counts as one parameter.
        """
        return int(self.model.num_parameters())

    @cached_property
    def n_embedded(self) -> int:
        return n_embedded(self.model)

    @cached_property
    def batch_tokens(self) -> int:
        return devices.batch_tokens(self.options, self.model.device.type)

    @cached_property
    def longest_in_tree(self) -> int:
        """Largest number of tokens that a text in a tree may have; 0 if trees can't be read."""
        rotary = getattr(self.config, "rope_parameters", None) or {}
        if self.config.model_type not in TREE_TYPES or rotary.get("rope_type") in _ROTARY_STATE:
            return 0
        # A tree's mask has no sliding window, so a text in a tree has to fit into the window.
        return int(getattr(self.config, "sliding_window", None) or sys.maxsize)

    @cached_property
    def n_lanes(self) -> int:
        """Maximum number of forward passes that may run at the same time.

        This is 1 on a GPU, because a single pass keeps a GPU busy. It is also 1 for quantised
        models, and for models that can't read trees. Some models that can't read trees change
        their rotary frequencies during a pass, which would disturb other passes.
        """
        is_quantised = self.options.quantisation or saved_quantisation(self.config)
        is_plain = not is_quantised and self.longest_in_tree > 0
        return devices.n_threads() if self.model.device.type == "cpu" and is_plain else 1

    def logprobs(self, sequences: Sequence[Tokens]) -> _LogProbs:
        """Return log p(token | BOS, earlier tokens) in nats for every token of each sequence.

        Sequences must be distinct and sorted, fit into the context, and have one token or more.
        They don't include BOS.
        """
        longest = min(self.longest_in_tree, _TREE_NODES[self.model.device.type])
        in_trees = of_trees((s for s in sequences if len(s) <= longest), self.batch_tokens)
        others = of_equal_length((s for s in sequences if len(s) > longest), self.batch_tokens)
        found = self.in_passes(in_trees, self._tree_pass)
        found |= self.in_passes(others, self._equal_pass)
        return [found[sequence] for sequence in sequences]

    @torch.inference_mode()
    def _tree_pass(self, sequences: list[Tokens]) -> _LogProbs:
        """Read sorted sequences as trees. Return the log-probabilities (nats) of their tokens."""
        device = self.model.device
        trees = [tree(part, self.bos) for part in of_trees(sequences, _TREE_NODES[device.type])]
        hidden = hidden_of_trees(self.model, trees)
        width = hidden.shape[1]
        nodes = [k * width + i for k, one in enumerate(trees) for path in one.paths for i in path]
        targets = [token for sequence in sequences for token in sequence]
        indices = (on_device(numbers, device) for numbers in (nodes, targets))
        values = self._predicted(hidden.flatten(0, 1), *indices).cpu()
        return [of_text.tolist() for of_text in values.split([len(s) for s in sequences])]

    def _predicted(
        self, hidden: torch.Tensor, nodes: torch.Tensor, tokens: torch.Tensor
    ) -> torch.Tensor:
        """Return log p (nats, float32) of each token in ``tokens``.

        Row ``nodes[k]`` of ``hidden`` predicts ``tokens[k]``. Logits are computed for one part of
        the vocabulary at a time, if possible. On a CPU, the logits of a part fit into the cache.
        """
        output, values = self.model.get_output_embeddings(), torch.empty_like(tokens).float()
        totals, start = [], 0
        for logits in _logits_of(output, hidden, _LOGITS[hidden.device.type]):
            devices.raise_if_stopped()
            in_part = (tokens >= start) & (tokens < start + logits.shape[1])
            values[in_part] = logits[nodes[in_part], tokens[in_part] - start]
            totals.append(torch.logsumexp(logits, dim=1))
            start += logits.shape[1]
        return values - torch.logsumexp(torch.stack(totals), dim=0)[nodes]

    @torch.inference_mode()
    def _equal_pass(self, sequences: list[Tokens]) -> _LogProbs:
        """Read sequences of equal length. Return the log-probabilities (nats) of their tokens."""
        targets = torch.tensor(sequences, device=self.model.device)
        logits, tokens = self._logits(targets).flatten(0, 1), targets.flatten()
        n_rows = max(1, _LOGITS[logits.device.type] // logits.shape[1])
        chunks = map(logprobs_of, logits.split(n_rows), tokens.split(n_rows))
        values: _LogProbs = torch.cat(list(chunks)).view_as(targets).tolist()
        return values

    def _logits(self, targets: torch.Tensor) -> torch.Tensor:
        bos = torch.full_like(targets[:, :1], self.bos)
        inputs = torch.cat([bos, targets[:, :-1]], dim=1)
        mask = torch.ones_like(inputs)
        logits: torch.Tensor = self.model(
            input_ids=inputs, attention_mask=mask, use_cache=False
        ).logits
        return logits

    def new_tokens(
        self,
        prompts: Sequence[Tokens],
        seeds: Sequence[int],
        options: SamplingOptions,
        ends: Collection[int],
    ) -> list[Tokens | str]:
        """Return the new tokens after each prompt. If logits aren't finite, return a problem.

        A sample stops after a token in ``ends``. Prompts don't include BOS. A prompt and
        ``options.max_new_tokens`` new tokens must fit into the context.
        """
        draws = [(self.with_special(prompt), i) for i, prompt in enumerate(prompts)]

        def run(batch: list[_Draw]) -> list[Tokens | str]:
            prompts = [prompt for prompt, _ in batch]
            return draw(self.read, prompts, [seeds[i] for _, i in batch], options, ends)

        new = self.in_passes(self._drawn_together(draws, options.max_new_tokens), run)
        return [new[item] for item in draws]

    def _drawn_together(self, draws: Sequence[_Draw], n_new: int) -> Iterator[list[_Draw]]:
        """Yield the samples in groups. The samples of a group are drawn in the same passes.

        If the model can't read trees, all prompts of a group have the same length.
        """
        # Aim for one group per lane: a pass with a few more samples takes hardly any longer.
        most = min(-(-len(draws) // self.n_lanes), self.batch_tokens)
        part: list[_Draw] = []
        for item in sorted(draws, key=lambda item: (len(item[0]), item)):
            n_each, n_rows = len(item[0]) + n_new, len(part) + 1
            is_full = n_rows > most or n_rows * n_each > _HELD * self.batch_tokens
            is_padded = bool(part) and len(item[0]) != len(part[0][0])
            if part and (is_full or (is_padded and n_each > self.longest_in_tree)):
                yield part
                part = []
            part.append(item)
        if part:
            yield part

    def with_special(self, prompt: Tokens) -> Tokens:
        return (self.bos, *prompt)

    def read(self, prompts: Sequence[Tokens]) -> Read:
        """Run the model on the prompts, which include their special tokens."""
        return Read(self.model, prompts)

    def in_passes(
        self, batches: Iterable[list[Item]], run: Callable[[list[Item]], Sequence[Result]]
    ) -> dict[Item, Result]:
        """Call ``run`` on each batch. Return the results as {item: result}."""
        results: dict[Item, Result] = {}

        def run_pass(batch: list[Item]) -> None:
            results.update(zip(batch, run(batch), strict=True))

        devices.in_lanes(run_pass, list(batches), self.n_lanes)
        return results


def of_equal_length(
    items: Iterable[Item], n_tokens: int, length: Callable[[Any], int] = len
) -> Iterator[list[Item]]:
    """Sort items and split them into parts. All items of a part have the same length.

    ``length`` returns an item's number of tokens. A part has at most ``n_tokens`` tokens. An item
    with more tokens is a part of its own.

    >>> list(of_equal_length(["ef", "ab", "ghi", "cd"], 4))
    [['ab', 'cd'], ['ef'], ['ghi']]
    """
    ordered = sorted(items, key=lambda item: (length(item), item))
    for n_each, group in itertools.groupby(ordered, length):
        same, n_items = list(group), max(1, n_tokens // n_each)
        yield from (same[start : start + n_items] for start in range(0, len(same), n_items))


def logprobs_of(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Return log p (nats, float32) of one token per row of ``logits``."""
    logits = logits.float()
    return logits.gather(1, tokens[:, None])[:, 0] - torch.logsumexp(logits, dim=1)


def _logits_of(output: Any, hidden: torch.Tensor, n_logits: int) -> Iterator[torch.Tensor]:
    """Yield float32 logits for one part of the vocabulary at a time, about ``n_logits`` per part.

    A layer that is quantised or has an adapter can't be split, so all its logits come at once.
    """
    if type(output) is not torch.nn.Linear:
        yield output(hidden).float()
        return
    width = max(1, n_logits // len(hidden))
    biases = itertools.repeat(None) if output.bias is None else output.bias.split(width)
    for weight, bias in zip(output.weight.split(width), biases, strict=False):
        yield torch.nn.functional.linear(hidden, weight, bias).float()
