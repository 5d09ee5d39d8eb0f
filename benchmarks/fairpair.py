"""FairPair's B, V_pg and V_gp: beside plain loops over the definition, and of 60 prompts.

Texts are windows of the reference corpora, each after the prompt it might continue: as long as 128
new tokens, and with real words. Everything runs in a process of its own that may use one thread.
"""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import combinations, product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

#: Prompts and samples a group of the absolute figure, and samples a group that loops are given.
N_PROMPTS, N_SAMPLES, N_LOOP = 60, 500, 100
#: Words of a text; 128 tokens are about as many.
_WORDS = 95
_ROUNDS = 5

Figures = tuple[float, float, float]


@dataclass(frozen=True)
class Beside:
    """Seconds of ours and of the plain loop for the same work, and how far figures differ."""

    what: str
    ours: float
    loop: float
    differs: float


@dataclass(frozen=True)
class Whole:
    """Seconds for all prompts, from texts to figures: wall, and of the processor."""

    phi: str
    items: float
    means: float
    cpu: float


def run(shards: Sequence[Path]) -> tuple[list[Beside], list[Whole]]:
    """Both parts, on one thread."""
    os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_run, shards).result()


def _run(shards: Sequence[Path]) -> tuple[list[Beside], list[Whole]]:
    texts = _texts(shards, 2 * N_PROMPTS * N_SAMPLES)
    return [*_beside(texts[: 2 * N_LOOP])], [_whole(name, texts) for name in ("jaccard", "vader")]


def _texts(shards: Sequence[Path], n: int) -> list[str]:
    import zstandard

    found: list[str] = []
    for path in shards:
        with path.open("rb") as file:
            reader = zstandard.ZstdDecompressor().stream_reader(file)
            for line in io.TextIOWrapper(reader, encoding="utf-8"):
                words = json.loads(line)["text"].split()
                starts = range(0, len(words) - _WORDS + 1, _WORDS)
                found += (" ".join(words[start : start + _WORDS]) for start in starts)
    if len(found) < n:
        raise SystemExit(f"the reference text makes {len(found)} texts of {n}")
    # Consecutive windows are of one book: a prompt's continuations are about one thing as well.
    return [f"Jane is working as a nurse. {text}" for text in found[:n]]


def _beside(texts: list[str]) -> list[Beside]:
    from plumbline.eval_workers.fairpair.phi import jaccard, vader

    sets, scores = jaccard.items(texts), vader.items(texts)

    def distance(a: frozenset[str], b: frozenset[str]) -> float:
        return 1 - len(a & b) / len(a | b)

    half = len(texts) // 2
    return [
        _timed(
            "Jaccard: B, V_pg, V_gp of token sets",
            lambda: jaccard.means(sets[:half], sets[half:]),
            lambda: _loop(distance, sets[:half], sets[half:]),
        ),
        _timed(
            "VADER: B, V_pg, V_gp of sentiments",
            lambda: vader.means(scores[:half], scores[half:]),
            lambda: _loop(lambda a, b: abs(a - b), scores[:half], scores[half:]),
        ),
    ]


def _loop(phi: Callable[[Any, Any], float], left: list[Any], right: list[Any]) -> Figures:
    between = [phi(a, b) for a, b in product(left, right)]
    ours, theirs = ([phi(a, b) for a, b in combinations(side, 2)] for side in (left, right))
    return sum(between) / len(between), sum(ours) / len(ours), sum(theirs) / len(theirs)


def _timed(
    what: str, ours: Callable[[], Sequence[float]], loop: Callable[[], Sequence[float]]
) -> Beside:
    """Medians of interleaved rounds."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(_ROUNDS):
        found = []
        for way, times in zip((ours, loop), seconds, strict=True):
            start = time.perf_counter()
            found.append(way())
            times.append(time.perf_counter() - start)
    differs = max(abs(a - b) for a, b in zip(*found, strict=True))
    return Beside(what, *(sorted(times)[_ROUNDS // 2] for times in seconds), differs)


def _whole(name: str, texts: list[str]) -> Whole:
    from plumbline.eval_workers.fairpair.phi import find

    phi = find(name)
    phi.items(texts[:1])
    in_items = in_means = 0.0
    cpu = time.process_time()
    for k in range(N_PROMPTS):
        start = time.perf_counter()
        items = phi.items(texts[2 * k * N_SAMPLES : 2 * (k + 1) * N_SAMPLES])
        made = time.perf_counter()
        phi.means(items[:N_SAMPLES], items[N_SAMPLES:])
        in_items += made - start
        in_means += time.perf_counter() - made
    return Whole(name, in_items, in_means, time.process_time() - cpu)
