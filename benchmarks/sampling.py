"""Samples and greedy continuations beside `transformers.generate` in batches, and ours by vLLM.

All load the same random weights of the Pythia shape. Prompts are as FairPair and disclosure
have them: some lengths, so that batches of `generate` are padded on the left.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from benchmarks.scoring_model import write_model
from plumbline.eval_workers.models import devices, open_backend
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.sampling_contract import Draw, SamplingModel, SamplingOptions
from plumbline.eval_workers.scoring.continuations import Continuations
from plumbline.warehouse.errors import MissingComponent

_NAMES = ("Jane", "John", "Mary", "Robert")
_ACTIVITIES = (
    *("is working as a nurse", "is working as an engineer at a small company in the city"),
    *("was known as a", "likes to spend the weekends with", "became famous for the way in which"),
)
PROMPTS = tuple(f"{name} {activity}" for name in _NAMES for activity in _ACTIVITIES)
#: Samples of a prompt, and new tokens of a sample or a greedy continuation.
N_SAMPLES, N_TOKENS = 10, 40
#: Sequences of a batch of `generate`; the fastest is taken.
_BATCHES = (32, 128)
_ROUNDS = 3


@dataclass(frozen=True)
class Rate:
    """Continuations per second of each way; ``None`` where vLLM is not installed."""

    what: str
    n: int
    ours: float
    generate: float
    batch: int
    vllm: float | None


def run(shards: Sequence[Path], directory: Path) -> Iterator[Rate]:
    """Samples of `fairpair run`, then the greedy continuations of `disclosure probe`."""
    path = str(write_model(shards, directory / "pythia-shape-70m"))
    ours = open_backend(path, ModelOptions(device="cpu"))
    peer = _Generate(path)
    try:
        by_vllm = open_backend(path, ModelOptions(backend="vllm"))
    except MissingComponent as e:
        print(e)
        by_vllm = None
    nucleus = SamplingOptions(max_new_tokens=N_TOKENS)
    greedy = SamplingOptions(max_new_tokens=N_TOKENS, greedy=True)
    for what, options, n in (("samples", nucleus, N_SAMPLES), ("greedy", greedy, 1)):
        texts = PROMPTS if n > 1 else tuple(f"{p} {k}." for p in PROMPTS for k in range(10))
        draws = [options.draw(text, k) for text in texts for k in range(n)]
        ways: dict[str, Callable[[], object]] = {
            "ours": lambda d=draws, o=options: _ours(ours, d, o)
        }
        for batch in _BATCHES:
            ways[str(batch)] = lambda d=draws, o=options, b=batch: peer.continue_(d, o, b)
        if by_vllm is not None:
            ways["vllm"] = lambda d=draws, o=options: _ours(by_vllm, d, o)
        seconds = _interleaved(ways)
        batch = min(_BATCHES, key=lambda b: seconds[str(b)])
        rates = {name: len(draws) / s for name, s in seconds.items()}
        yield Rate(what, len(draws), rates["ours"], rates[str(batch)], batch, rates.get("vllm"))
    devices.release()


def _ours(model: SamplingModel, draws: list[Draw], options: SamplingOptions) -> object:
    step = Continuations("bench", options, N_SAMPLES)
    return [model.continue_(chunk.items, options) for chunk in step.chunks(draws)]


class _Generate:
    """`generate` on batches padded to their longest prompt."""

    def __init__(self, path: str) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(path, padding_side="left")
        self.tokenizer.pad_token = self.tokenizer.eos_token
        self.model = AutoModelForCausalLM.from_pretrained(path).eval()

    @torch.inference_mode()
    def continue_(self, draws: list[Draw], options: SamplingOptions, batch: int) -> list[str]:
        texts, done = [draw.text for draw in draws], []
        how = {"do_sample": False} if options.greedy else {"top_p": options.top_p, "top_k": 0}
        for start in range(0, len(texts), batch):
            given = self.tokenizer(texts[start : start + batch], return_tensors="pt", padding=True)
            given.pop("token_type_ids", None)
            rows = self.model.generate(
                **given,
                **({"do_sample": True} | how),
                max_new_tokens=options.max_new_tokens,
                pad_token_id=self.tokenizer.eos_token_id,
            )
            new = rows[:, given["input_ids"].shape[1] :]
            done += self.tokenizer.batch_decode(new, skip_special_tokens=True)
        return done


def _interleaved(ways: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Median seconds of each way over rounds, in another order each time."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(_ROUNDS + 1):
        names = list(ways)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            start = time.perf_counter()
            ways[name]()
            if turn:  # the first round loads weights
                seconds[name].append(time.perf_counter() - start)
    return {name: sorted(times)[len(times) // 2] for name, times in seconds.items()}
