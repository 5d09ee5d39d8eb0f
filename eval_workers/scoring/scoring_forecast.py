"""Estimate how much work and memory scoring will take, before it starts. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from plumbline.eval_workers.models import open_backend
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.scoring.pair_scores import PairScores
from plumbline.warehouse.errors import BadInput

if TYPE_CHECKING:
    from plumbline.warehouse.storage.store import Store

#: A subject, what is estimated, the amount, its unit and a note.
Estimate: TypeAlias = tuple[str, str, object, str, str]

#: Bytes per weight. In nf4, 64 weights share one float32 scale.
_BYTES = {"float32": 4.0, "bfloat16": 2.0, "float16": 2.0, "nf4": 0.5 + 4 / 64}


def weight_bytes(config: Any, options: ModelOptions, kind: Any = "causal") -> float:
    """Return how many bytes a model's weights need. Read only the model's configuration.

    Embeddings and the output layer are never quantised. Raises ``BadInput`` if the configuration
    doesn't give the model's size.
    """
    import torch

    from plumbline.eval_workers.models.local.model_files import auto_class

    with torch.device("meta"):  # builds the model without allocating memory
        try:
            model = auto_class(kind).from_config(config, trust_remote_code=False)
        except (ValueError, KeyError, AttributeError) as e:
            problem = f"its size can't be determined: {str(e).partition(chr(10))[0]}"
            raise BadInput("model configuration", problem) from e
    exact = [m for m in model.modules() if isinstance(m, torch.nn.Embedding)]
    exact += filter(None, [model.get_output_embeddings()])
    n_exact = sum({id(module.weight): module.weight.numel() for module in exact}.values())
    n_other = sum(p.numel() for p in model.parameters()) - n_exact
    each = _BYTES[options.quantisation or options.dtype]
    return float(n_exact * _BYTES[options.dtype] + n_other * each)


def forecast(
    store: Store, name: str, options: ModelOptions, steps: Sequence[PairScores]
) -> Iterator[Estimate]:
    """Yield the number of pairs and tokens left, and the memory that the weights need.

    Only the tokenizer and the configuration are read. For backends other than transformers and
    vllm, only the number of pairs is given.
    """
    model: Any = open_backend(name, options)
    is_local = model.identity.backend in ("transformers", "vllm")
    for step in steps:
        subject = f"{model.identity.model} on {step.benchmark}"
        state = step.state(store, model)
        yield subject, "to score", len(state.missing), "pairs", f"of {len(state.wanted):,}"
        if is_local:
            texts = [text for chunk in step.chunks(state.missing) for text in chunk.items]
            yield from _tokens(subject, texts, model.encoded(texts))
    if is_local:
        yield _memory(model, options)


def _tokens(subject: str, texts: Sequence[str], encoded: Sequence[Any]) -> Iterator[Estimate]:
    sequences = {e for e in encoded if not isinstance(e, str)}
    yield subject, "distinct sequences", len(sequences), "", ""
    yield subject, "tokens", sum(map(len, sequences)), "", ""
    refused = [f"{t!r}: {e}" for t, e in zip(texts, encoded, strict=True) if isinstance(e, str)]
    if refused:
        yield subject, "can't be scored", len(refused), "sentences", f"first: {refused[0]}"


def _memory(model: Any, options: ModelOptions) -> Estimate:
    import torch

    from plumbline.eval_workers.models.local import devices

    device = "cuda" if options.device != "cpu" and torch.cuda.is_available() else "cpu"
    n_gpus = 1 if device == "cpu" else options.tensor_parallel
    n_bytes = weight_bytes(model.config, options, model.kind) / n_gpus
    free = devices.free_bytes(device)
    each = f"on each of {n_gpus} GPUs; " if n_gpus > 1 else ""
    fits = "they fit" if n_bytes < free else "they do NOT fit"
    note = f"{each}{device} has {free / 1e9:,.2f} GB free: {fits}"
    return model.identity.model, "memory for weights", round(n_bytes / 1e9, 2), "GB", note
