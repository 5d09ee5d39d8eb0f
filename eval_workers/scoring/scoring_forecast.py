"""Estimate of the work and memory of scoring, before it starts. Writes nothing."""

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

#: Upper estimates of a token's vectors in memory at once, besides the logits. Hidden states: the
#: residual stream, its norm, queries, keys and values. Wide vectors: inside the feed-forward layer.
_HIDDEN_VECTORS, _WIDE_VECTORS = 4, 3
#: Bytes per logit besides those of its own dtype: a copy in float32, and its exponential.
_SOFTMAX_BYTES = 4 + 4
#: Bytes per weight; in nf4, 64 weights share a scale in float32.
_BYTES = {"float32": 4.0, "bfloat16": 2.0, "float16": 2.0, "int8": 1.0, "nf4": 0.5 + 4 / 64}


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
class Size:
    """A model's size: ``n_exact`` of its parameters are never quantised.

    ``token_bytes``: an upper estimate of a token's activations and logits in a forward pass. A CPU
    computes the logits in small parts, and takes less.
    """

    n_parameters: int
    n_exact: int
    token_bytes: int

    def weight_bytes(self, options: ModelOptions) -> int:
        """Memory of the weights in bytes.

        >>> size, half = Size(12, 4, 0), ModelOptions(dtype="bfloat16", quantisation="int8")
        >>> size.weight_bytes(ModelOptions()), size.weight_bytes(half)
        (48, 16)
        """
        exact, each = _BYTES[options.dtype], _BYTES[options.quantisation or options.dtype]
        return round(self.n_exact * exact + (self.n_parameters - self.n_exact) * each)


def prospect(model: str, options: ModelOptions) -> Any:
    """Open a model with its tokenizer and configuration alone.

    Raises the errors of ``open_backend``, and ``UsageProblem`` for models whose size isn't known
    from a configuration: n-gram models, and those of other backends.
    """
    opened: Any = open_backend(model, options)
    if opened.identity.backend not in ("transformers", "vllm"):
        problem = f"the size of a model of the backend {opened.identity.backend} is unknown"
        raise UsageProblem("--dry-run", problem, "leave it out")
    return opened


def model_size(config: Any, kind: Any = "causal", dtype: str = "float32") -> Size:
    """The size of a model by its configuration; no weights are allocated."""
    import torch

    from plumbline.eval_workers.models.local.model_files import auto_class

    with torch.device("meta"):
        try:
            model = auto_class(kind).from_config(config, trust_remote_code=False)
        except (ValueError, KeyError, AttributeError) as e:
            problem = f"its size can't be determined: {str(e).partition(chr(10))[0]}"
            raise BadInput("model configuration", problem) from e
    tables = {id(m.weight): m.weight for m in model.modules() if isinstance(m, torch.nn.Embedding)}
    text, head = config.get_text_config(), getattr(model.get_output_embeddings(), "weight", None)
    matrices = (p for p in model.parameters() if p.dim() > 1 and id(p) not in tables)
    widths = (max(p.shape[-2:]) for p in matrices)
    widest = max((n for n in widths if n < text.vocab_size), default=1)
    exact = tables if head is None else {**tables, id(head): head}
    n_exact = sum(weight.numel() for weight in exact.values())
    n_numbers = _HIDDEN_VECTORS * text.hidden_size + _WIDE_VECTORS * widest + text.vocab_size
    token_bytes = int(n_numbers * _BYTES[dtype]) + text.vocab_size * _SOFTMAX_BYTES
    return Size(sum(p.numel() for p in model.parameters()), n_exact, token_bytes)


def forecast(store: Store, task: Task) -> Iterator[Row]:
    """Forecast a task's missing pairs, their tokens, and the memory.

    Yields rows with the keys ``subject``, ``what``, ``amount``, ``unit`` and ``note``.
    """
    model = prospect(task.model, task.options)
    size, name = model_size(model.config, model.kind, task.options.dtype), model.identity.model
    types = [task.options.dtype, *filter(None, [task.options.quantisation])]
    note = f"{' and '.join(types)}, key {model.identity.key}"
    yield _row(name, "parameters", size.n_parameters, "", note)
    for benchmark in task.benchmarks:
        yield from _todo(store, model, benchmark, task)
    yield from _memory(name, size, task)


def _row(subject: str, what: str, amount: object, unit: str = "", note: str = "") -> Row:
    return {"subject": subject, "what": what, "amount": amount, "unit": unit, "note": note}


def _todo(store: Store, model: Any, benchmark: str, task: Task) -> Iterator[Row]:
    """Rows on the pairs and tokens of a benchmark that have no score by this model."""
    from plumbline.eval_workers.scoring.pair_scores import PairScores, sides

    state = PairScores.of(benchmark, task.options, task.limit).state(store, model)
    texts = sorted({pair[side] for pair in state.missing for side in sides(pair)})
    encoded = model.encoded(texts)
    sequences = {e for e in encoded if not isinstance(e, str)}
    subject = f"{model.identity.model} on {benchmark}"
    yield _row(subject, "to score", len(state.missing), "pairs", f"of {len(state.wanted):,}")
    yield _row(subject, "distinct sequences", len(sequences))
    yield _row(subject, "tokens", sum(map(len, sequences)))
    refused = [f"{t!r}: {e}" for t, e in zip(texts, encoded, strict=True) if isinstance(e, str)]
    if refused:
        yield _row(subject, "can't be scored", len(refused), "sentences", f"first: {refused[0]}")


def _memory(name: str, size: Size, task: Task) -> Iterator[Row]:
    from plumbline.eval_workers.models import devices

    options, n_workers = task.options, task.n_workers
    device = "cuda" if options.device != "cpu" and devices.visible() else "cpu"
    n_gpus = 1 if device == "cpu" else options.tensor_parallel
    weights = -(-size.weight_bytes(options) // n_gpus)
    n_tokens = devices.batch_tokens(options, device)
    n_passes = max(1, devices.n_threads() // n_workers) if device == "cpu" else 1
    forward, free = n_passes * n_tokens * size.token_bytes, devices.free_bytes(device)
    n_sharing = n_workers if device == "cpu" else 1
    fits = "it fits" if n_sharing * (weights + forward) <= free else "it does NOT fit"
    each = f"on each of {n_gpus} GPUs; " if n_gpus > 1 else ""
    each += f"for each of {n_workers} workers; " if n_workers > 1 else ""
    yield _row(name, "memory for weights", _gb(weights), "GB", each.removesuffix("; "))
    note = f"{each}{n_passes} forward passes of {n_tokens:,} tokens; "
    note += f"{device} has {_gb(free):,.2f} GB free: {fits}"
    yield _row(name, "memory for computing", _gb(forward), "GB", note)


def _gb(n_bytes: int) -> float:
    return round(n_bytes / 1e9, 2)
