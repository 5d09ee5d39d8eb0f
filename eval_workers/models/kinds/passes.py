"""Models whose weights are loaded here, and their forward passes: how many items each one holds."""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, TypeVar

# Before MKL starts: the same bits whatever the number of threads, at no cost in speed.
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")

import tokenizers
import torch
import transformers

from plumbline.eval_workers.models import devices
from plumbline.eval_workers.models.kinds.files import Files
from plumbline.eval_workers.models.kinds.lanes import in_lanes
from plumbline.eval_workers.models.local.scorer import Reader
from plumbline.eval_workers.models.local.source import Source
from plumbline.eval_workers.models.local.weights import load_model
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.warehouse.errors import BadInput

Item = TypeVar("Item", bound=Hashable)
Found = TypeVar("Found")


class Passes(ABC):
    """A model whose weights are loaded here, and how its forward passes share the memory."""

    options: ModelOptions
    source: Source

    @cached_property
    @abstractmethod
    def _model(self) -> Any:
        """The ``transformers`` model with its weights, in evaluation mode."""

    @cached_property
    def _batch_tokens(self) -> int:
        """Tokens of a forward pass; fewer from when memory has run out."""
        return devices.batch_tokens(self.options, self._model.device.type)

    @cached_property
    def takes_lanes(self) -> bool:
        """Whether passes may run side by side; no longer from when memory has run out."""
        return False

    def _in_passes(
        self,
        items: Sequence[Item],
        end_of: Callable[[Sequence[Item], int, int], int],
        run: Callable[[list[Item]], Sequence[Found]],
        length: Callable[[Item], int],
    ) -> dict[Item, Found]:
        """Run each pass on consecutive items, as many as fit; fewer when memory runs out.

        ``length`` of an item is in tokens.
        """
        found: dict[Item, Found] = {}
        failed: list[list[Item]] = []

        def one(batch: list[Item]) -> None:
            values = None if failed else _unless_out_of_memory(partial(run, batch))
            if values is None:
                failed.append(batch)
            else:
                found.update(zip(batch, values, strict=True))

        left = list(items)
        while left:
            n_threads = devices.n_threads() if self.takes_lanes else 1
            in_lanes(one, list(_cut(left, end_of, self._batch_tokens)), n_threads)
            if failed:
                self._shrink(list(map(length, failed[0])))
                failed.clear()
            left = [item for item in left if item not in found]
        return found

    def _shrink(self, lengths: list[int]) -> None:
        """Take less memory for a pass than one of texts of so many tokens took."""
        if self.takes_lanes and devices.n_threads() > 1:
            self.takes_lanes, problem = False, "going on with one pass at a time"
        elif len(lengths) == 1:
            problem = f"memory runs out on a single text of {lengths[0]} tokens"
            fix = "use --dtype bfloat16, or a device with more memory"
            raise BadInput(f"model {self.source.name}", problem, fix)
        else:
            self._batch_tokens = max(1, min(self._batch_tokens, sum(lengths)) // 2)
            problem = f"going on with {self._batch_tokens} tokens a forward pass"
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        warnings.warn(f"out of memory: {problem}", stacklevel=2)


class LocalModel(Passes, Reader):
    """A model loaded with transformers; see ``Reader`` for what it raises."""

    def __init__(self, model: str, options: ModelOptions, files: Files | None = None) -> None:
        """``files`` of the model where they were read already."""
        versions = {
            "transformers": transformers.__version__,
            "torch": torch.__version__,
            "tokenizers": tokenizers.__version__,
        }
        super().__init__(model, options, versions, files)

    @cached_property
    def _model(self) -> Any:
        return load_model(self.files, self.options)

    @property
    def loaded(self) -> Any:
        """The ``transformers`` model with its weights, in evaluation mode."""
        return self._model

    @property
    def n_parameters(self) -> int:
        """Parameters, tied ones counted once, an adapter's too; packed ones as what they hold."""
        return int(self._model.num_parameters())

    @cached_property
    def _n_embedded(self) -> int:
        rows = self._model.get_input_embeddings().weight.shape[0]
        output = self._model.get_output_embeddings()
        return int(min(rows, output.weight.shape[0]) if output is not None else rows)


def logprobs_of(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """log p of one token a row, by the softmax in float32."""
    logits = logits.float()
    return logits.gather(1, tokens[:, None])[:, 0] - torch.logsumexp(logits, dim=1)


def _cut(
    items: Sequence[Item], end_of: Callable[[Sequence[Item], int, int], int], n_tokens: int
) -> Iterator[list[Item]]:
    """The items of each pass."""
    start = 0
    while start < len(items):
        end = end_of(items, start, n_tokens)
        yield list(items[start:end])
        start = end


def equal_lengths(
    length: Callable[[Item], int],
) -> Callable[[Sequence[Item], int, int], int]:
    """Where the pass that starts at some item ends: equal lengths, a limit on the tokens.

    >>> equal_lengths(len)(["ab", "cd", "ef", "ghi"], 0, 4)
    2
    """

    def end_of(items: Sequence[Item], start: int, n_tokens: int) -> int:
        n_each, end = length(items[start]), start + 1
        while end < len(items) and length(items[end]) == n_each:
            if (end + 1 - start) * n_each > n_tokens:
                break
            end += 1
        return end

    return end_of


def _unless_out_of_memory(run: Callable[[], Found]) -> Found | None:
    try:
        return run()
    except (MemoryError, RuntimeError) as e:
        if not devices.is_about_memory(e):
            raise
        return None
