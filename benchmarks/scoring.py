"""Time scoring sentences: Plumbline, a naive layout, and lm-evaluation-harness.

All three use the same float32 weights and threads, in turn on the same slices of sentences, so that
a busy machine slows all alike. A slice is a chunk of a scoring worker. In the naive layout every
sentence costs the same, so it scores only the first sentences of a slice.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.scoring_model import sentences, write_model
from plumbline.eval_workers.models.local.causal_model import CausalModel
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.scoring.pair_scores import CHUNK_TEXTS

BENCHMARKS = ("use-5", "use-10", "use-20", "winobias", "winogender")
#: Number of slices of a benchmark that are timed; they are evenly spread.
_SLICES = 3
_NAIVE_BATCH = 16
_NAIVE_TEXTS = 4 * _NAIVE_BATCH
_HARNESS_BATCHES = (1, 8, 16, 32, 64)

Scores = list[float]


@dataclass(frozen=True)
class Timed:
    """Seconds per pair of sentences on a benchmark: ours, of the naive layout and of the harness.

    ``differs_nats`` is the largest difference between a score of theirs and ours.
    """

    benchmark: str
    n_pairs: int
    n_texts: int
    ours: float
    naive: float
    harness: float
    differs_nats: float


@dataclass(frozen=True)
class Bench:
    """The models of the three ways to score."""

    ours: CausalModel
    harness: Any

    def score_ours(self, texts: Sequence[str]) -> Scores:
        """Score with the transformers backend."""
        return [score.logprob_nats for score in self.ours.score(texts)]

    def score_harness(self, texts: Sequence[str]) -> Scores:
        """Score with the harness: log-likelihood after an empty context, which becomes BOS."""
        from lm_eval.api.instance import Instance

        requests = [Instance("loglikelihood", {}, ("", text), i) for i, text in enumerate(texts)]
        return [total for total, _ in self.harness.loglikelihood(requests, disable_tqdm=True)]

    @torch.inference_mode()
    def score_naive(self, texts: Sequence[str], n_longest: int) -> Scores:
        """Pad every sentence to the longest of its benchmark, and keep the whole softmax."""
        tokenizer, model = self.ours.tokenizer, self.harness.model
        found: Scores = []
        for start in range(0, len(texts), _NAIVE_BATCH):
            ids = tokenizer(list(texts[start : start + _NAIVE_BATCH]), add_special_tokens=False)
            rows = [[0, *row] for row in ids["input_ids"]]
            lengths = torch.tensor([len(row) for row in rows])
            width = n_longest + 1
            inputs = torch.tensor([row + [0] * (width - len(row)) for row in rows])
            mask = (torch.arange(width) < lengths[:, None]).long()
            logprobs = torch.log_softmax(model(inputs, attention_mask=mask).logits, dim=-1)
            chosen = logprobs[:, :-1].gather(2, inputs[:, 1:, None])[..., 0] * mask[:, 1:]
            found += chosen.double().sum(dim=1).tolist()
        return found


def run(shards: Sequence[Path], directory: Path) -> tuple[list[Timed], Timed, int]:
    """Time every benchmark, then USE-20 while another program keeps a core busy.

    Also return the harness's best batch size, found on a slice of USE-10.
    """
    path = str(write_model(shards, directory / "pythia-shape-70m"))
    ours = CausalModel(path, ModelOptions(device="cpu"))
    batch = _best_batch(ours, path, _slices(sentences("use-10", directory / "warehouse")[0])[0])
    bench = Bench(ours, _harness(path, batch))
    timed = [_timed(bench, name, directory / "warehouse") for name in BENCHMARKS]
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as neighbour:
        try:
            busy = _timed(bench, "use-20", directory / "warehouse")
        finally:
            neighbour.kill()
    return timed, replace(busy, benchmark="use-20, one core busy"), batch


def _harness(path: str, batch: int) -> Any:
    import logging

    from lm_eval.models.huggingface import HFLM

    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    return HFLM(pretrained=path, dtype="float32", device="cpu", batch_size=batch)


def _best_batch(ours: CausalModel, path: str, texts: Sequence[str]) -> int:
    seconds = {}
    for batch in _HARNESS_BATCHES:
        bench = Bench(ours, _harness(path, batch))
        bench.score_harness(texts[:batch])
        seconds[batch] = _seconds(lambda bench=bench: bench.score_harness(texts))[0]
    return min(seconds, key=lambda batch: seconds[batch])


def _slices(texts: list[str]) -> list[list[str]]:
    starts = range(0, len(texts), CHUNK_TEXTS)
    step = max(1, len(starts) // _SLICES)
    return [texts[start : start + CHUNK_TEXTS] for start in starts[::step][:_SLICES]]


def _timed(bench: Bench, name: str, warehouse: Path) -> Timed:
    texts, n_pairs = sentences(name, warehouse)
    n_longest = max(map(len, bench.ours.tokenizer(texts, add_special_tokens=False)["input_ids"]))
    ways: list[Callable[[Sequence[str]], Scores]] = [
        bench.score_ours,
        lambda some: bench.score_naive(some[:_NAIVE_TEXTS], n_longest),
        bench.score_harness,
    ]
    seconds, n_scored, differs = [0.0] * 3, [0] * 3, 0.0
    for turn, some in enumerate(_slices(texts)):
        scores: list[Scores] = [[], [], []]
        for way in ((turn + k) % 3 for k in range(3)):
            elapsed, scores[way] = _seconds(lambda way=way, some=some: ways[way](some))
            seconds[way] += elapsed
            n_scored[way] += len(scores[way])
        for theirs in scores[1:]:
            gaps = (abs(a - b) for a, b in zip(scores[0], theirs, strict=False))
            differs = max(differs, *gaps)
    a_pair = [2 * s / n for s, n in zip(seconds, n_scored, strict=True)]
    return Timed(name, n_pairs, n_scored[0], *a_pair, differs)


def _seconds(work: Callable[[], Scores]) -> tuple[float, Scores]:
    start = time.perf_counter()
    done = work()
    return time.perf_counter() - start, done
