"""Models whose weights this process loads: the size of their forward passes, and lanes of passes.

On a CPU, threads of one matrix product wait for each other at every small kernel; if another
program uses a core, all of them are delayed. So passes run side by side, in lanes that share the
weights: each lane is a thread that computes one whole pass after another. Lanes don't wait for each
other; one lane per core of this process suits a busy machine too.
"""

from __future__ import annotations

import ctypes
import os
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeVar

import tokenizers
import torch
import transformers

from plumbline.eval_workers.models import devices
from plumbline.eval_workers.models.continuer import Continuer
from plumbline.eval_workers.models.kinds.model_kind import Files
from plumbline.eval_workers.models.local import loading
from plumbline.eval_workers.models.local.drawing import Read, draw
from plumbline.eval_workers.models.local.scorer import TextReader
from plumbline.eval_workers.models.local.source import Source
from plumbline.eval_workers.models.local.weights import load_model, n_embedded
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.sampling_contract import SamplingOptions
from plumbline.eval_workers.models.scoring_contract import Tokens
from plumbline.warehouse.errors import BadInput

# Set before MKL starts: results don't depend on the number of threads, at no cost in speed.
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")


Item = TypeVar("Item", bound=Hashable)
Result = TypeVar("Result")
Part = TypeVar("Part")
#: Maps items, a pass's start index and its token limit to the pass's end index (exclusive).
EndOfPass = Callable[[Sequence[Item], int, int], int]

#: Model types, such as RoBERTa, whose first position is the padding token's id + 1.
_COUNTED_FROM_PADDING = (
    *("roberta", "camembert", "xlm-roberta", "xlm-roberta-xl", "roberta-prelayernorm"),
    *("data2vec-text", "ibert", "xmod", "mpnet", "longformer", "luke", "esm"),
)


class Passes(ABC):
    """A model whose weights this process loads, and the memory of its forward passes."""

    options: ModelOptions
    source: Source

    @cached_property
    @abstractmethod
    def _model(self) -> Any:
        """The ``transformers`` model with its weights, in evaluation mode."""

    @cached_property
    def _batch_tokens(self) -> int:
        """Tokens per forward pass; fewer after memory has run out."""
        return devices.batch_tokens(self.options, self._model.device.type)

    @cached_property
    def takes_lanes(self) -> bool:
        """True if passes may run side by side; false once memory has run out."""
        return False

    def _in_passes(
        self,
        items: Sequence[Item],
        run: Callable[[list[Item]], Sequence[Result]],
        length: Callable[[Any], int] = len,
        end_of: EndOfPass[Item] | None = None,
    ) -> dict[Item, Result]:
        """Results of ``run`` by item; each pass takes as many consecutive items as fit.

        Passes get smaller when memory runs out. ``length``: an item's number of tokens. ``end_of``:
        see ``EndOfPass``; by default a pass holds items of one length.
        """
        end_of = end_of or equal_lengths(length)
        results: dict[Item, Result] = {}
        failed: list[list[Item]] = []

        def run_batch(batch: list[Item]) -> None:
            if failed:
                return
            try:
                results.update(zip(batch, run(batch), strict=True))
            except (MemoryError, RuntimeError) as e:
                if not devices.is_about_memory(e):
                    raise
                failed.append(batch)

        left = list(items)
        while left:
            n_threads = devices.n_threads() if self.takes_lanes else 1
            in_lanes(run_batch, list(_cut(left, end_of, self._batch_tokens)), n_threads)
            if failed:
                self._shrink(list(map(length, failed[0])))
                failed.clear()
            left = [item for item in left if item not in results]
        return results

    def _shrink(self, lengths: list[int]) -> None:
        """Make later passes smaller after a pass with items of these lengths ran out of memory.

        Raises ``BadInput`` if this pass ran alone and had a single item.
        """
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


class LocalModel(Passes, TextReader):
    """A model loaded with transformers; see ``TextReader`` for its errors."""

    def __init__(self, model: str, options: ModelOptions, files: Files | None = None) -> None:
        """``files``: the result of ``read_files``, which is called if they are ``None``."""
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
        """Number of parameters, an adapter's too. Tied ones count once, quantised ones unpacked."""
        return int(self._model.num_parameters())

    @cached_property
    def _n_embedded(self) -> int:
        return n_embedded(self._model)

    @cached_property
    def _around(self) -> tuple[Tokens, Tokens]:
        """Special tokens that the tokenizer puts before and after an input."""
        return loading.special_around(self.tokenizer, "text")


def n_before_text(config: Any) -> int:
    """Number of unused first positions; 0 except for models like RoBERTa."""
    is_counted = config.model_type in _COUNTED_FROM_PADDING
    return int(config.pad_token_id or 0) + 1 if is_counted else 0


def logprobs_of(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """log p (nats) of one token per row of ``logits``, by a softmax in float32."""
    logits = logits.float()
    return logits.gather(1, tokens[:, None])[:, 0] - torch.logsumexp(logits, dim=1)


def _cut(items: Sequence[Item], end_of: EndOfPass[Item], n_tokens: int) -> Iterator[list[Item]]:
    start = 0
    while start < len(items):
        end = end_of(items, start, n_tokens)
        yield list(items[start:end])
        start = end


def equal_lengths(length: Callable[[Item], int]) -> EndOfPass[Item]:
    """An ``EndOfPass``: at a change of length, or before a pass exceeds its token limit.

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


#: Limits while drawing, as multiples of a forward pass's tokens: tokens with keys and values in
#: memory, and tokens of padded prompts read at once (only the last token gets logits).
_HELD, _READ = 16, 4

#: A prompt with its special tokens, and its index among the prompts.
_Draw = tuple[Tokens, int]


class LocalContinuer(LocalModel, Continuer):
    """A local model that continues prompts; see ``TextReader`` for its errors."""

    @cached_property
    def longest_padded(self) -> int:
        """Most tokens of a sequence in a pass of several lengths; 0 if passes aren't padded."""
        return 0

    def _with_special(self, prompt: Tokens) -> Tokens:
        """The prompt with the special tokens around it."""
        return (self.identity.bos_token_id, *prompt)

    def _read(self, prompts: Sequence[Tokens]) -> Read:
        """The model's state after prompts with their special tokens."""
        return Read(self._model, prompts)

    def _new_tokens(
        self, prompts: Sequence[Tokens], seeds: Sequence[int], options: SamplingOptions
    ) -> list[Tokens | str]:
        draws = [(self._with_special(prompt), i) for i, prompt in enumerate(prompts)]

        # Each lane gets an equal share of the draws: a few more rows hardly slow a step.
        most = -(-len(draws) // devices.n_threads()) if self.takes_lanes else len(draws)
        n_times = _READ if self.longest_padded else 1

        def end_of(draws: Sequence[_Draw], start: int, n_tokens: int) -> int:
            first, n_distinct, end = len(draws[start][0]), 1, start + 1
            while end < len(draws):
                length = len(draws[end][0])
                longest, n_rows = length + options.max_new_tokens, end + 1 - start
                n_distinct += draws[end][0] != draws[end - 1][0]
                if n_rows > min(most, n_tokens) or n_rows * longest > _HELD * n_tokens:
                    break
                if n_distinct * length > n_times * n_tokens or (
                    length != first and longest > self.longest_padded
                ):
                    break
                end += 1
            return end

        def run(batch: list[_Draw]) -> list[Tokens | str]:
            read = [prompt for prompt, _ in batch]
            return draw(self._read, read, [seeds[i] for _, i in batch], options, self._ends)

        ordered = sorted(draws, key=lambda item: (len(item[0]), item))
        new = self._in_passes(ordered, run, lambda item: len(item[0]), end_of)
        return [new[item] for item in draws]


def shares(n_threads: int, n_items: int) -> tuple[int, int]:
    """Number of lanes for ``n_items`` passes, and number of threads per lane.

    >>> shares(2, 20), shares(16, 6), shares(16, 1), shares(1, 20)
    ((2, 1), (6, 2), (1, 16), (1, 1))
    """
    n_lanes = max(1, min(n_threads, n_items))
    return n_lanes, n_threads // n_lanes


def in_lanes(work: Callable[[Part], None], items: Sequence[Part], n_threads: int) -> None:
    """Call ``work`` on each item in lanes that share ``n_threads``; items are started in order.

    A single lane runs in the calling thread. The first error, or an interruption of the calling
    thread, stops all lanes and is raised.
    """
    n_lanes, n_each = shares(n_threads, len(items))
    if n_lanes == 1:
        for item in items:
            work(item)
        return
    remaining, errors = iter(items), list[BaseException]()
    lock = threading.Lock()

    def lane() -> None:
        try:
            devices.limit_threads(n_each)
            while not errors:
                with lock:
                    item = next(remaining, None)
                if item is None:
                    return
                work(item)
        except BaseException as e:  # raised in the calling thread
            errors.append(e)

    lanes = [threading.Thread(target=lane, daemon=True) for _ in range(n_lanes)]
    try:
        for thread in lanes:
            thread.start()
        for thread in lanes:
            thread.join()
    except BaseException as e:  # Ctrl-C, which only the calling thread gets
        errors.append(e)
        _interrupt(lanes)
        raise
    finally:
        for thread in lanes:
            if thread.ident is not None:
                thread.join()
        devices.limit_threads(n_threads)  # later threads would inherit a lane's number
    if errors:
        raise errors[0]


def _interrupt(threads: Sequence[threading.Thread]) -> None:
    """Raise ``KeyboardInterrupt`` in each live thread, once its current kernel is done."""
    for thread in threads:
        if thread.is_alive():
            id_, error = ctypes.c_ulong(thread.ident or 0), ctypes.py_object(KeyboardInterrupt)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(id_, error)
