"""Train a learner on shards: a new model from random weights, or an existing one.

Documents are joined, each after the BOS token that scoring uses (``<|endoftext|>`` in a new model),
and cut into rows of the model's context. Each row is read once per epoch, in an order drawn with
the seed.

AdamW, linear warm-up, cosine decay to a tenth of the peak. Trained weights, loss and softmax are
float32; matrix products are bfloat16 where the processor computes them in hardware. Parts of a
batch run in parallel threads and their gradients are added in a fixed order, so equal options and
shards give equal weights on one machine. An interrupted training starts again.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from plumbline.eval_workers.models.devices import memory_problems
from plumbline.eval_workers.training.learner import Learner, continued, new, rows_of_step
from plumbline.eval_workers.training.training_options import Progress, TrainOptions
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.input.shards import documents
from plumbline.warehouse.storage.run_records import package_versions

if TYPE_CHECKING:
    from plumbline.eval_workers.models.transformers_backend import TransformersBackend

#: Characters read per token of the budget: more than the 4 to 5 that a token of English has.
_CHARACTERS_PER_TOKEN = 6
_DOCUMENTS_AT_ONCE = 10_000
#: CPU capabilities with bfloat16 products in hardware.
_BFLOAT16 = ("amx_bf16", "avx512_bf16")
#: Marks a position whose next token isn't in its row.
_NO_TARGET = -100
#: Number of steps whose mean loss is reported as the first and the last loss.
_LOSS_STEPS = 20


def train(
    shards: Sequence[Path],
    name: str,
    corpus: str,
    options: TrainOptions,
    work: Path,
    progress: Progress | None = None,
    text_field: str = "text",
    backend: TransformersBackend | None = None,
    lora: int | None = None,
) -> dict[str, Any]:
    """Train into the directory ``work`` and return the columns of ``trained_model``.

    ``backend``: the model to continue, with a new adapter of rank ``lora`` if given. The caller
    adds the columns that are missing here.
    """
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    texts = list(_texts(shards, options.max_tokens * _CHARACTERS_PER_TOKEN, text_field))
    with _restored_threads(), memory_problems(name, "try a smaller --batch-tokens, or --lora RANK"):
        if backend is None:
            learner = new(texts, options, work)
        else:
            learner = continued(backend, lora, options)
        options = replace(options, context=learner.context)
        rows = _rows(_tokens(texts, learner), learner.context)
        del texts
        if not len(rows):
            problem = f"less text than one row of {options.context} tokens"
            raise BadInput(f"corpus {corpus}", problem, "give more shards")
        figures = _run(rows, learner, options, name, progress)
        figures |= {"model": name, "corpus": corpus, "seed": options.seed}
        if backend is not None:
            identity = backend.identity
            figures |= {"base": identity.model, "base_revision": identity.revision}
            figures["lora_rank"] = lora
        learner.save(work)
        facts = {**figures, "products": _products(learner.model.device.type)}
        card = model_card(options, facts, [s.name for s in shards])
        (work / "README.md").write_text(card, encoding="utf-8")
        return figures


@contextmanager
def _restored_threads() -> Iterator[None]:
    """Restore torch's number of threads and choice of algorithms after the block."""
    threads = torch.get_num_threads()
    is_deterministic = torch.are_deterministic_algorithms_enabled()
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(is_deterministic)


def learning_rate(step: int, n_steps: int, options: TrainOptions) -> float:
    """Rate of optimiser step ``step`` (from 0): linear warm-up, then a cosine to a tenth.

    >>> from plumbline.eval_workers.training.training_options import PRESETS
    >>> o = PRESETS["small"]
    >>> round(learning_rate(99, 1100, o) / o.learning_rate, 3)
    1.0
    >>> round(learning_rate(1099, 1100, o) / o.learning_rate, 3)
    0.1
    """
    warmup = min(options.warmup_steps, n_steps // 2)
    if step < warmup:
        return options.learning_rate * (step + 1) / warmup
    done = (step + 1 - warmup) / max(1, n_steps - warmup)
    return options.learning_rate * (0.55 + 0.45 * math.cos(math.pi * done))


def _texts(shards: Sequence[Path], n_characters: int, text_field: str) -> Iterator[str]:
    """Yield the documents, which have at most ``n_characters`` together.

    Each shard gets an equal share; later shards also get what earlier ones leave. A shard's last
    text is cut.
    """
    left = n_characters
    for number, shard in enumerate(shards):
        share = -(-left // (len(shards) - number))
        for text in documents(shard, text_field):
            cut = text[:share]
            share, left = share - len(cut), left - len(cut)
            if cut:
                yield cut
            if not share:
                break


def _tokens(texts: Sequence[str], learner: Learner) -> list[np.ndarray]:
    """Token ids (uint16 or uint32) of each text after BOS."""
    kind = np.uint16 if learner.n_vocabulary <= 1 << 16 else np.uint32
    parts = []
    for start in range(0, len(texts), _DOCUMENTS_AT_ONCE):
        encoded = learner.encode(list(texts[start : start + _DOCUMENTS_AT_ONCE]))
        parts += [np.array([learner.bos, *ids], dtype=kind) for ids in encoded]
    return parts


def _rows(parts: Sequence[np.ndarray], context: int) -> np.ndarray:
    """Parts joined, in rows of the context; an incomplete last row is dropped."""
    joined = np.concatenate([np.empty(0, np.uint16), *parts])
    return joined[: len(joined) // context * context].reshape(-1, context)


def _run(
    rows: np.ndarray,
    learner: Learner,
    options: TrainOptions,
    name: str,
    progress: Progress | None,
) -> dict[str, Any]:
    """Train on ``rows`` of token ids and return figures of ``trained_model``."""
    model = learner.model
    if learner.n_lanes > 1:
        torch.set_num_threads(1)  # each part of a batch has a thread of its own
    if model.device.type == "cuda":
        torch.use_deterministic_algorithms(True, warn_only=True)
    optimizer = torch.optim.AdamW(
        _weights(model).values(),
        lr=options.learning_rate,
        betas=(0.9, 0.95),
        weight_decay=options.weight_decay,
        fused=True,
    )
    n_tokens = min(options.max_tokens, options.max_epochs * rows.size)
    n_steps = max(1, n_tokens // (options.batch_rows * options.context))
    n_parts = min(learner.n_parts, options.batch_rows)
    losses: list[float] = []
    start = time.monotonic()
    with ThreadPoolExecutor(learner.n_lanes) as pool:
        for step in range(n_steps):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(step, n_steps, options)
            numbers = rows_of_step(step, len(rows), options.batch_rows, options.seed)
            batch = torch.from_numpy(rows[numbers].astype(np.int64))
            parts = batch.to(model.device).tensor_split(n_parts)
            loss = _step(model, optimizer, parts, options.clip_norm, pool)
            if not math.isfinite(loss):
                problem = f"the loss or its gradient is not finite at step {step + 1}"
                raise BadInput(f"training {name}", problem, "try a lower learning rate")
            losses.append(loss)
            if progress:
                progress(step + 1, n_steps, loss)
    return {
        "n_parameters": sum(p.numel() for p in model.parameters()),
        "n_steps": n_steps,
        "n_tokens": n_steps * options.batch_rows * options.context,
        "loss_start_nats": float(np.mean(losses[:_LOSS_STEPS])),
        "loss_end_nats": float(np.mean(losses[-_LOSS_STEPS:])),
        "seconds": time.monotonic() - start,
    }


def _weights(model: Any) -> dict[str, torch.nn.Parameter]:
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


def _step(
    model: Any,
    optimizer: torch.optim.Optimizer,
    parts: Sequence[torch.Tensor],
    clip_norm: float,
    pool: Executor,
) -> float:
    """Take an optimizer step on a batch in ``parts``; returns the mean loss in nats per token.

    If the loss or the gradient is not finite, no weight changes and NaN is returned.
    """
    weights = list(_weights(model).values())
    n_rows = sum(map(len, parts))
    losses: list[float] = []
    total: Sequence[torch.Tensor] = ()
    for loss, part in pool.map(lambda rows: _gradients(model, weights, rows, n_rows), parts):
        total = [a + b for a, b in zip(total, part, strict=True)] if losses else part
        losses.append(loss)
    for weight, gradient in zip(weights, total, strict=True):
        weight.grad = gradient
    mean = math.fsum(losses)
    norm = torch.nn.utils.clip_grad_norm_(weights, clip_norm)
    if not (math.isfinite(mean) and torch.isfinite(norm)):
        return math.nan
    optimizer.step()
    return mean


def _gradients(
    model: Any, weights: Sequence[torch.Tensor], rows: torch.Tensor, n_rows: int
) -> tuple[float, tuple[torch.Tensor, ...]]:
    """What ``rows`` add to the mean loss of a batch with ``n_rows`` rows, and to its gradients."""
    targets = torch.full_like(rows, _NO_TARGET)
    targets[:, :-1] = rows[:, 1:]
    device = rows.device.type
    with torch.autocast(device, torch.bfloat16, enabled=_products(device) == "bfloat16"):
        logits = model(input_ids=rows, use_cache=False).logits
    loss = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1).float(), targets.flatten(), ignore_index=_NO_TARGET
    )
    share = loss * (len(rows) / n_rows)
    # An unused weight, such as an expert that no token was sent to, has a gradient of 0.
    return share.item(), torch.autograd.grad(share, weights, materialize_grads=True)


def _products(device: str) -> str:
    """Type of matrix products on ``cpu`` or ``cuda``."""
    has_bfloat16 = _has_bfloat16() if device == "cpu" else torch.cuda.is_bf16_supported()
    return "bfloat16" if has_bfloat16 else "float32"


def _has_bfloat16() -> bool:
    """True if this CPU multiplies bfloat16 in hardware; otherwise float32 is faster."""
    capabilities: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return any(capabilities.get(name) for name in _BFLOAT16)


def model_card(options: TrainOptions, figures: Mapping[str, Any], shards: Sequence[str]) -> str:
    """README of a trained model; ``figures``: columns of ``trained_model``, and ``products``."""
    few = ", ".join(shards[:4]) + (", ..." if len(shards) > 4 else "")
    versions = package_versions()
    base, rank = figures.get("base"), figures.get("lora_rank")
    if base is None:
        start = "random weights"
        made = f"GPT-NeoX, {options.layers} layers of {options.hidden}, {options.heads} heads"
        tokenizer = f"byte-level BPE, at most {options.vocabulary:,} tokens"
    else:
        start = f"{base}, revision {figures['base_revision']}"
        made = f"LoRA adapter of rank {rank} for {base}" if rank else f"that of {base}"
        tokenizer = f"that of {base}"
    facts = {
        "corpus": figures["corpus"],
        "shards": f"{len(shards)}: {few}",
        "started from": start,
        "architecture": f"{made}, context {options.context}",
        "parameters": f"{figures['n_parameters']:,}",
        "tokenizer": tokenizer,
        "seed": options.seed,
        "steps": f"{figures['n_steps']:,} of {options.batch_rows} rows",
        "tokens seen": f"{figures['n_tokens']:,}",
        "peak learning rate": options.learning_rate,
        "matrix products": figures["products"],
        "loss, first steps": f"{figures['loss_start_nats']:.3f} nats per token",
        "loss, last steps": f"{figures['loss_end_nats']:.3f} nats per token",
        "made with": ", ".join(f"{n} {versions[n]}" for n in ("torch", "transformers")),
    }
    table = "\n".join(f"| {name} | {value} |" for name, value in facts.items())
    return f"""# {figures["model"]}

A language model that Plumbline trained on one corpus, so that its preferences can be compared with
the text it learned from. It is an instrument, not a model to write with.

| | |
|---|---|
{table}
"""
