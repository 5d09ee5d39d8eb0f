"""Estimate of the work and memory of scoring, before it starts. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plumbline.eval_workers.models.model_options import ModelOptions

if TYPE_CHECKING:
    from plumbline.eval_workers.models.kinds.text_reader import TextReader
    from plumbline.warehouse.storage.store import Store

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Task:
    """One model with its options, its ``name`` if it has one, and the benchmarks to score.

    ``limit``: pairs of each benchmark to score; ``None``: all.
    """

    model: str
    options: ModelOptions
    benchmarks: tuple[str, ...]
    n_workers: int = 1
    name: str | None = None
    limit: int | None = None


@dataclass(frozen=True)
class Todo:
    """Work left on a benchmark: ``n_missing`` of ``n_pairs`` pairs have no score.

    Their sentences give ``n_sequences`` distinct token sequences with ``n_tokens`` tokens. The
    model computes ``n_computed`` tokens: beginnings that sentences share count once, each masked
    copy of a text counts. ``n_refused`` sentences can't be scored; ``problem`` is the first one's.
    """

    benchmark: str
    n_pairs: int
    n_missing: int
    n_sequences: int
    n_tokens: int
    n_computed: int
    n_refused: int
    problem: str


def todo(store: Store, prospect: TextReader, benchmark: str, task: Task) -> Todo:
    """Count the pairs and tokens of a benchmark that have no score by this model."""
    from plumbline.eval_workers.scoring.pair_scores import PairScores, sides

    state = PairScores.of(benchmark, task.options, task.limit).state(store, prospect)
    texts = sorted({pair[side] for pair in state.missing for side in sides(pair)})
    encoded = prospect.encoded(texts)
    sequences = {e for e in encoded if not isinstance(e, str)}
    problems = [f"{t!r}: {e}" for t, e in zip(texts, encoded, strict=True) if isinstance(e, str)]
    return Todo(
        benchmark=benchmark,
        n_pairs=len(state.wanted),
        n_missing=len(state.missing),
        n_sequences=len(sequences),
        n_tokens=sum(map(len, sequences)),
        n_computed=prospect.n_computed(sequences),
        n_refused=len(problems),
        problem=problems[0] if problems else "",
    )


def forecast(store: Store, task: Task) -> Iterator[Row]:
    """Forecast a task's missing pairs, the power of its benchmarks, and the memory.

    Yields rows with the keys ``subject``, ``what``, ``amount``, ``unit`` and ``note``.
    """
    from plumbline.eval_workers.models.size_forecast import prospect
    from plumbline.eval_workers.scoring.statistics.power import power_of, said

    model = prospect(task.model, task.options)
    counts = [todo(store, model, benchmark, task) for benchmark in task.benchmarks]
    size, name = model.size, model.identity.model
    types = [task.options.dtype, *filter(None, [task.options.quantisation])]
    note = f"{size.n_embedding:,} of them embeddings, {' and '.join(types)}"
    yield _row(name, "parameters", size.n_parameters, "", f"{note}, key {model.identity.key}")
    for count in counts:
        subject = f"{name} on {count.benchmark}"
        yield _row(subject, "to score", count.n_missing, "pairs", f"of {count.n_pairs:,}")
        yield _row(subject, "distinct sequences", count.n_sequences)
        note = f"{count.n_computed:,} go through the model"
        yield _row(subject, "tokens", count.n_tokens, "", note)
        if count.n_refused:
            problem = f"the first: {count.problem}"
            yield _row(subject, "can't be scored", count.n_refused, "sentences", problem)
        for line in said(power_of(store.root, count.benchmark)):
            yield _row(count.benchmark, "power", None, "", line)
    yield from _memory(model, task)


def _row(subject: str, what: str, amount: object, unit: str = "", note: str = "") -> Row:
    return {"subject": subject, "what": what, "amount": amount, "unit": unit, "note": note}


def _memory(model: TextReader, task: Task) -> Iterator[Row]:
    from plumbline.eval_workers.models.devices import batch_tokens, n_threads
    from plumbline.eval_workers.models.size_forecast import chosen_device, free_bytes

    options, name = task.options, model.identity.model
    device, free = chosen_device(options), free_bytes(options)
    n_gpus = 1 if device == "cpu" else options.tensor_parallel
    whole = model.size.weight_bytes(options.dtype, options.quantisation)
    weights = -(-whole // n_gpus)
    n_tokens = batch_tokens(options, device)
    n_lanes = max(1, n_threads() // task.n_workers) if device == "cpu" else 1
    forward = n_lanes * model.size.forward_bytes(options.dtype, n_tokens)
    n_sharing = task.n_workers if device == "cpu" else 1
    fits = "it fits" if n_sharing * (weights + forward) <= free else "it does NOT fit"
    each = f"for each of {task.n_workers} workers; " if task.n_workers > 1 else ""
    if n_gpus > 1:
        each = f"on each of {n_gpus} GPUs; {each}"
    passes = f"{n_lanes} forward passes" if n_lanes > 1 else "a forward pass"
    yield _row(name, "memory for weights", _gb(weights), "GB", each.removesuffix("; "))
    note = f"{each}{passes} of {n_tokens:,} tokens; {device} has {_gb(free):,.2f} GB free: {fits}"
    yield _row(name, "memory for computing", _gb(forward), "GB", note)


def _gb(n_bytes: int) -> float:
    return round(n_bytes / 1e9, 2)
