"""What scoring would take, estimated before it starts. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plumbline.eval_workers.options import ModelOptions

if TYPE_CHECKING:
    from plumbline.eval_workers.backends.prospect import Prospect
    from plumbline.warehouse.storage.store import Store


@dataclass(frozen=True)
class Task:
    """One model with its options, and the benchmarks to score with it."""

    model: str
    options: ModelOptions
    benchmarks: tuple[str, ...]
    n_workers: int = 1


@dataclass(frozen=True)
class Todo:
    """What is to be scored of a benchmark: pairs of ``n_pairs``, distinct sequences, their tokens.

    ``n_computed`` tokens go through the model: what sentences begin with alike counts once.
    ``n_refused`` sentences can't be scored, the first for the reason ``problem``.
    """

    benchmark: str
    n_pairs: int
    n_missing: int
    n_sequences: int
    n_tokens: int
    n_computed: int
    n_refused: int
    problem: str


def todo(store: Store, prospect: Prospect, benchmark: str, options: ModelOptions) -> Todo:
    """Count what of a benchmark has no score by this model."""
    from plumbline.eval_workers.scoring.pair_scores import PairScores

    state = PairScores.of(benchmark, options).state(store, prospect)
    n_pairs, missing = len(state.wanted), state.missing
    texts = sorted({pair[f"sentence_{side}"] for pair in missing for side in "ab"})
    encoded = prospect.encoded(texts)
    sequences = {e for e in encoded if not isinstance(e, str)}
    problems = [f"{t!r}: {e}" for t, e in zip(texts, encoded, strict=True) if isinstance(e, str)]
    counts = (len(missing), len(sequences), sum(map(len, sequences)))
    n_computed = prospect.n_computed(sequences)
    first = problems[0] if problems else ""
    return Todo(benchmark, n_pairs, *counts, n_computed, len(problems), first)


def forecast_lines(store: Store, task: Task) -> Iterator[str]:
    """Lines on what a task would take, and what it can find: pairs, power, memory, time."""
    from plumbline.eval_workers.backends.prospect import prospect
    from plumbline.eval_workers.statistics.power import power_of, said

    model = prospect(task.model, task.options)
    counts = [todo(store, model, name, task.options) for name in task.benchmarks]
    size = model.size
    yield (
        f"Model {model.identity.model}, key {model.identity.key}: {size.n_parameters:,} parameters,"
        f" {size.n_embedding:,} of them embeddings, {task.options.dtype}"
    )
    for count in counts:
        yield from _count_lines(count)
        yield from (f"  {line}" for line in said(power_of(store.root, count.benchmark)))
    yield _memory_line(model, task)
    yield from _time_lines(model, task, sum(count.n_computed for count in counts))


def _count_lines(count: Todo) -> Iterator[str]:
    yield (
        f"{count.benchmark}: {count.n_missing:,} of {count.n_pairs:,} pairs to score, "
        f"{count.n_sequences:,} distinct sequences, {count.n_tokens:,} tokens, "
        f"{count.n_computed:,} of them computed"
    )
    if count.n_refused:
        yield f"  {count.n_refused:,} sentences can't be scored, the first: {count.problem}"


def _memory_line(model: Prospect, task: Task) -> str:
    from plumbline.eval_workers.backends.devices import batch_tokens, n_threads
    from plumbline.eval_workers.backends.prospect import chosen_device, free_bytes

    options = task.options
    weights = model.size.weight_bytes(options.dtype)
    device, free = chosen_device(options), free_bytes(options)
    n_tokens = batch_tokens(options, device)
    n_lanes = max(1, n_threads() // task.n_workers) if device == "cpu" else 1
    forward = n_lanes * model.size.forward_bytes(options.dtype, n_tokens)
    n_sharing = task.n_workers if device == "cpu" else 1
    fits = "it fits" if n_sharing * (weights + forward) <= free else "it does NOT fit"
    each = f", for each of {task.n_workers} workers" if task.n_workers > 1 else ""
    passes = f"{n_lanes} forward passes" if n_lanes > 1 else "a forward pass"
    return (
        f"Memory: {_gb(weights)} for the weights and {_gb(forward)} for {passes} of "
        f"{n_tokens:,} tokens{each}; {device} has {_gb(free)} free: {fits}"
    )


def _time_lines(model: Prospect, task: Task, n_tokens: int) -> Iterator[str]:
    from plumbline.eval_workers.backends.prospect import chosen_device, seconds_per_token

    if not n_tokens:
        yield "Time: there is nothing to score"
        return
    each, device = seconds_per_token(model.size, task.options), chosen_device(task.options)
    operations = model.size.operations_per_token
    n_sharing = task.n_workers if device == "cuda" else 1
    yield (
        f"Time: about {duration(n_tokens * each / n_sharing)}, an estimate: "
        f"{n_tokens * operations / 1e12:,.2f} TFLOP at {operations / each / 1e12:,.3f} TFLOP/s, "
        f"measured on {device} in {task.options.dtype} with matrices of this model"
    )
    yield (
        "  It takes the machine to stay as busy as now, and leaves out the start, reading the "
        "weights, attention, softmax and the tokenizer."
    )


def duration(seconds: float) -> str:
    """A time in the unit that suits it.

    >>> duration(0.21), duration(75), duration(600), duration(90_000)
    ('0.2 s', '75 s', '10 min', '25.0 h')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _gb(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:,.2f} GB"
