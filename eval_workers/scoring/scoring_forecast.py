"""Estimate how much work and memory scoring will take, before it starts. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plumbline.eval_workers.models import open_backend
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.warehouse.errors import BadInput, UsageProblem

if TYPE_CHECKING:
    from plumbline.warehouse.storage.store import Store

Row = Mapping[str, Any]

#: Bytes per weight. In nf4, 64 weights share one float32 scale.
_BYTES = {"float32": 4.0, "bfloat16": 2.0, "float16": 2.0, "int8": 1.0, "nf4": 0.5 + 4 / 64}


@dataclass(frozen=True)
class Task:
    """One model with its options, its ``name`` if it has one, and the benchmarks to score.

    ``limit`` is how many pairs of each benchmark to score; ``None`` means all.
    """

    model: str
    options: ModelOptions
    benchmarks: tuple[str, ...]
    name: str | None = None
    limit: int | None = None


@dataclass(frozen=True)
class Size:
    """A model's size. ``n_exact`` of its parameters are never quantised."""

    n_parameters: int
    n_exact: int

    def weight_bytes(self, options: ModelOptions) -> int:
        """Return the memory of the weights in bytes.

        >>> size, half = Size(12, 4), ModelOptions(dtype="bfloat16", quantisation="int8")
        >>> size.weight_bytes(ModelOptions()), size.weight_bytes(half)
        (48, 16)
        """
        exact, each = _BYTES[options.dtype], _BYTES[options.quantisation or options.dtype]
        return round(self.n_exact * exact + (self.n_parameters - self.n_exact) * each)


def prospect(model: str, options: ModelOptions) -> Any:
    """Open a model with only its tokenizer and configuration.

    Raises the errors of ``open_backend``. Raises ``UsageProblem`` if the configuration doesn't give
    the model's size, as with n-gram models, servers and other packages' backends.
    """
    opened: Any = open_backend(model, options)
    if opened.identity.backend not in ("transformers", "vllm"):
        problem = f"the size of a model of the backend {opened.identity.backend} is unknown"
        raise UsageProblem("--dry-run", problem, "leave it out")
    return opened


def model_size(config: Any, kind: Any = "causal") -> Size:
    """Return the size of a model from its configuration, without allocating weights."""
    import torch

    from plumbline.eval_workers.models.local.model_files import auto_class

    with torch.device("meta"):
        try:
            model = auto_class(kind).from_config(config, trust_remote_code=False)
        except (ValueError, KeyError, AttributeError) as e:
            problem = f"its size can't be determined: {str(e).partition(chr(10))[0]}"
            raise BadInput("model configuration", problem) from e
    exact = [m for m in model.modules() if isinstance(m, torch.nn.Embedding)]
    exact += filter(None, [model.get_output_embeddings()])
    sizes = {id(module.weight): module.weight.numel() for module in exact}
    return Size(sum(p.numel() for p in model.parameters()), sum(sizes.values()))


def forecast(store: Store, task: Task) -> Iterator[Row]:
    """Yield rows on a task's missing pairs, their tokens, and the memory for the weights.

    Rows have the keys ``subject``, ``what``, ``amount``, ``unit`` and ``note``.
    """
    model = prospect(task.model, task.options)
    size, name = model_size(model.config, model.kind), model.identity.model
    types = [task.options.dtype, *filter(None, [task.options.quantisation])]
    note = f"{' and '.join(types)}, key {model.identity.key}"
    yield _row(name, "parameters", size.n_parameters, "", note)
    for benchmark in task.benchmarks:
        yield from _todo(store, model, benchmark, task)
    yield _memory(name, size, task)


def _row(subject: str, what: str, amount: object, unit: str = "", note: str = "") -> Row:
    return {"subject": subject, "what": what, "amount": amount, "unit": unit, "note": note}


def _todo(store: Store, model: Any, benchmark: str, task: Task) -> Iterator[Row]:
    """Yield rows on the pairs of a benchmark that this model hasn't scored yet."""
    from plumbline.eval_workers.scoring.pair_scores import SIDES, PairScores

    state = PairScores.of(benchmark, task.options, task.limit).state(store, model)
    texts = sorted({pair[side] for pair in state.missing for side in SIDES})
    encoded = model.encoded(texts)
    sequences = {e for e in encoded if not isinstance(e, str)}
    subject = f"{model.identity.model} on {benchmark}"
    yield _row(subject, "to score", len(state.missing), "pairs", f"of {len(state.wanted):,}")
    yield _row(subject, "distinct sequences", len(sequences))
    yield _row(subject, "tokens", sum(map(len, sequences)))
    refused = [f"{t!r}: {e}" for t, e in zip(texts, encoded, strict=True) if isinstance(e, str)]
    if refused:
        yield _row(subject, "can't be scored", len(refused), "sentences", f"first: {refused[0]}")


def _memory(name: str, size: Size, task: Task) -> Row:
    import torch

    from plumbline.eval_workers.models import devices

    device = "cuda" if task.options.device != "cpu" and torch.cuda.is_available() else "cpu"
    n_gpus = 1 if device == "cpu" else task.options.tensor_parallel
    n_bytes, free = size.weight_bytes(task.options) / n_gpus, devices.free_bytes(device)
    each = f"on each of {n_gpus} GPUs; " if n_gpus > 1 else ""
    fits = "they fit" if n_bytes < free else "they do NOT fit"
    note = f"{each}{device} has {free / 1e9:,.2f} GB free: {fits}"
    return _row(name, "memory for weights", round(n_bytes / 1e9, 2), "GB", note)
