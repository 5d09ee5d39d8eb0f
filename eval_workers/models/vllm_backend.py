"""Score texts and continue prompts with vLLM, which runs as a process in its own environment.

Texts are encoded here, as in every backend. The process (``vllm_engine``) gets token ids and
returns log-probabilities or new token ids.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import tokenizers
import torch
from transformers import AutoModelForCausalLM

from plumbline.eval_workers.models import devices
from plumbline.eval_workers.models.local.causal_model import CausalModel
from plumbline.eval_workers.models.local.model_files import check_complete, n_embedded
from plumbline.eval_workers.models.local.source import first_line, load_part
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.remote.vllm_client import EngineFailed, RemoteEngine, killed
from plumbline.eval_workers.models.sampling_contract import SamplingOptions
from plumbline.eval_workers.models.scoring_contract import Tokens
from plumbline.warehouse.errors import BadInput, Interrupted, UsageProblem

#: Memory for keys and values on a CPU. By default, vLLM would take nine tenths of all memory.
_CPU_CACHE_BYTES = 1 << 30


class VllmBackend(CausalModel):
    """A causal language model that vLLM runs.

    ``options.batch_tokens`` limits the tokens per pass. A longer text takes several passes.
    ``options.device`` has to match the installed build of vLLM.

    Raises ``MissingComponent`` if vLLM is missing, ``BadInput`` for a model that vLLM can't run,
    ``Interrupted`` if the engine's process is killed. Also raises the errors of ``TextReader``.
    """

    supports = frozenset({"tensor_parallel"})

    def __init__(self, model: str, options: ModelOptions) -> None:
        self._engine = RemoteEngine(
            f"model {model}", {"OMP_NUM_THREADS": str(torch.get_num_threads())}
        )
        super().__init__(model, replace(options, backend="vllm"))

    def versions(self) -> dict[str, str]:
        """Return the versions of vLLM's packages and of tokenizers, as {name: version}."""
        return {**self._engine.versions, "tokenizers": tokenizers.__version__}

    @property
    def weights(self) -> VllmBackend:
        """This object, because it passes requests to the process that has the weights."""
        return self

    @cached_property
    def _n_positions(self) -> int:
        """Length in tokens of the longest text that fits in memory. Loads the weights."""
        devices.release()
        _ = self._skeleton  # refuses missing weights, which vLLM would leave uninitialised
        device = self._ask("device")
        if self.options.device not in ("auto", device):
            problem, fix = f"the installed vLLM computes on {device} only", f"use --device {device}"
            raise UsageProblem(f"--device {self.options.device}", problem, fix)
        n_positions: int = self._ask(
            "load",
            n_tokens=devices.batch_tokens(self.options, device),
            model=self.source.location,
            revision=None if self.source.is_local else self.source.revision,
            dtype=self.options.dtype,
            tensor_parallel_size=self.options.tensor_parallel,
            **({"kv_cache_memory_bytes": _CPU_CACHE_BYTES} if device == "cpu" else {}),
        )
        return n_positions

    def _ask(self, name: str, **arguments: Any) -> Any:
        """Call a method of the engine and return its result."""
        try:
            return self._engine.ask(name, **arguments)
        except EngineFailed as e:
            raise self._refusal(e) from e

    def _refusal(self, error: EngineFailed) -> BadInput | Interrupted:
        """Make a one-line error of vLLM's message and the workers' output."""
        name, printed = f"model {self.source.name}", self._engine.printed()
        reasons = re.findall(r"Value error, (.*)", str(error)) or [first_line(error)]
        if "root cause" in str(error):
            reasons = re.findall(r"\b\w+(?:Error|Exception): (.*)", printed)
        if "died unexpectedly" in printed or not reasons:
            return killed(name, "lost a worker without an error, as if the worker was killed")
        reason = re.split(r" \[type=|\. ", reasons[0])[0]  # a list of all architectures may follow
        return BadInput(name, f"vLLM can't run it: {reason}", "try --backend transformers")

    @cached_property
    def _skeleton(self) -> Any:
        """The model without the values of its weights.

        It has the original shapes, whereas vLLM pads and merges weights. Raises ``BadInput`` if
        weights are missing in the files.
        """
        if self.identity.quantisation:  # vLLM checks quantised weights itself
            with torch.device("meta"):
                return AutoModelForCausalLM.from_config(self.config)
        load: Callable[..., Any] = AutoModelForCausalLM.from_pretrained
        model, info = load_part(self.source, load, device_map="meta", output_loading_info=True)
        check_complete(self.source, info)
        return model

    @property
    def n_parameters(self) -> int:
        """Number of parameters. Tied weights count once."""
        _ = self._n_positions  # loads the weights, as in every backend
        return sum(p.numel() for p in self._skeleton.parameters())

    @cached_property
    def n_embedded(self) -> int:
        """Number of token ids with an input and an output embedding."""
        return n_embedded(self._skeleton)

    @property
    def n_context(self) -> int:
        """Length of the longest text in tokens, without BOS and the token that vLLM generates."""
        limit, configured = self._n_positions - 2, super().n_context
        return limit if configured is None else min(limit, configured)

    def logprobs(self, sequences: Sequence[Tokens]) -> list[list[float]]:
        """Return log p(token | BOS, earlier tokens) in nats for every token of each sequence."""
        _ = self._n_positions
        logprobs: list[list[float]] = self._ask("score", sequences=self._after_bos(sequences))
        return logprobs

    def new_tokens(
        self,
        prompts: Sequence[Tokens],
        seeds: Sequence[int],
        options: SamplingOptions,
        ends: Collection[int],
    ) -> list[Tokens]:
        """Return the new tokens after each prompt. A sample stops after a token in ``ends``."""
        _ = self._n_positions
        settings = {
            "temperature": 0.0 if options.greedy else options.temperature,
            "max_tokens": options.max_new_tokens,
            "stop_token_ids": sorted(ends),
        }
        if not options.greedy:
            settings |= {"top_p": options.top_p or 1.0, "top_k": options.top_k or 0}
        sequences = self._after_bos(prompts)
        new = self._ask("draw", sequences=sequences, seeds=seeds, how=settings)
        return [tuple(ids) for ids in new]

    def _after_bos(self, sequences: Sequence[Tokens]) -> list[list[int]]:
        return [[self.identity.bos_token_id, *ids] for ids in sequences]


open_model = VllmBackend
