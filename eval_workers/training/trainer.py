"""Train a model on shards: a new one from random weights, or an existing one.

Documents are joined, each after the BOS token that scoring uses (``<|endoftext|>`` in a new model),
and cut into rows as long as the model's context. Each row is read once per epoch, in an order drawn
with the seed.

Training uses AdamW, a linear warm-up, and a cosine decay to a tenth of the peak rate. Trained
weights, loss and softmax are float32; matrix products are bfloat16 if the processor has hardware
for it. On one CPU, equal options and shards give equal weights. The presets take minutes on two
cores, so an interrupted training starts again. `disclosure tune` uses the loop ``fit``, too.
"""

from __future__ import annotations

import itertools
import math
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from transformers import get_cosine_with_min_lr_schedule_with_warmup_lr_rate

from plumbline.eval_workers.models import memory_problems
from plumbline.eval_workers.training.learner import Learner, continued, new
from plumbline.eval_workers.training.training_options import StepProgress, TrainOptions
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.input.shards import documents

if TYPE_CHECKING:
    from plumbline.eval_workers.models.local.causal_model import CausalModel

#: Figures, such as losses, of a step or of a part of its batch, by name.
Figures: TypeAlias = dict[str, float]
#: Computes what a part of a batch contributes to the batch's loss and to the step's figures.
Part: TypeAlias = Callable[[], tuple[torch.Tensor, Figures]]

#: Characters to read per token of the budget. An English token has fewer: 4 to 5.
_CHARACTERS_PER_TOKEN = 6
_TEXTS_AT_ONCE = 10_000
#: CPU capabilities that mean bfloat16 products are computed in hardware.
_BFLOAT16 = ("amx_bf16", "avx512_bf16")
#: Marks a position whose next token isn't in its row.
_NO_TARGET = -100
#: The reported start and end losses are means over this many steps.
_LOSS_STEPS = 20


def train(
    shards: Sequence[Path],
    name: str,
    corpus: str,
    options: TrainOptions,
    work: Path,
    progress: StepProgress | None = None,
    text_field: str = "text",
    backend: CausalModel | None = None,
    lora: int | None = None,
) -> dict[str, Any]:
    """Train a model, save it in the directory ``work``, and return columns of ``trained_model``.

    ``backend`` is the model to continue; with ``lora``, a new adapter of this rank is trained on
    it. The caller adds the missing columns.
    """
    shutil.rmtree(work, ignore_errors=True)
    texts = list(_texts(shards, options.max_tokens * _CHARACTERS_PER_TOKEN, text_field))
    with memory_problems(name, "try a smaller batch_tokens (option or setting), or --lora RANK"):
        learner = continued(backend, lora, options) if backend else new(texts, options)
        rows = _rows(texts, learner)
        del texts
        if not len(rows):
            problem = f"less text than one row of {learner.context} tokens"
            raise BadInput(f"corpus {corpus}", problem, "give more shards")
        figures = {"model": name, "corpus": corpus, "seed": options.seed}
        if backend is not None:
            figures |= {"base": backend.identity.model, "lora_rank": lora}
            figures["base_revision"] = backend.identity.revision
        figures |= _run(rows, learner, options, name, progress)
        learner.save(work)
        return figures


def _texts(shards: Sequence[Path], n_characters: int, text_field: str) -> Iterator[str]:
    """Yield documents that have at most ``n_characters`` in all.

    Each shard gets an equal share; later shards also get what earlier shards leave. The last text
    of a shard may be cut.
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


def _rows(texts: Sequence[str], learner: Learner) -> np.ndarray:
    """Return the token ids (uint32) of the texts, joined and cut into rows of the context's length.

    BOS precedes each text. An incomplete last row is dropped.
    """
    parts = [np.empty(0, np.uint32)]
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        encoded = learner.encode(texts[start : start + _TEXTS_AT_ONCE])
        parts += [np.array([learner.bos, *ids], np.uint32) for ids in encoded]
    joined = np.concatenate(parts)
    return joined[: len(joined) // learner.context * learner.context].reshape(-1, learner.context)


def _run(
    rows: np.ndarray,
    learner: Learner,
    options: TrainOptions,
    name: str,
    progress: StepProgress | None,
) -> dict[str, Any]:
    """Train on ``rows`` of token ids, and return figures for ``trained_model``."""
    model, tokens_of_step = learner.model, options.batch_rows * learner.context
    weights = trainable(model)
    optimizer = torch.optim.AdamW(
        weights,
        lr=options.learning_rate,
        betas=(0.9, 0.95),
        weight_decay=options.weight_decay,
        fused=True,
    )
    n_steps = max(1, min(options.max_tokens, options.max_epochs * rows.size) // tokens_of_step)
    warmup = min(options.warmup_steps, n_steps // 2)
    schedule = get_cosine_with_min_lr_schedule_with_warmup_lr_rate(
        optimizer, warmup, n_steps, min_lr_rate=0.1
    )
    losses: list[float] = []

    def after(step: int, figures: Figures) -> None:
        schedule.step()
        losses.append(figures["loss"])
        if progress:
            progress(step, n_steps, note=f"loss {losses[-1]:.3f}")

    numbers = itertools.islice(shuffled(len(rows), options.batch_rows, options.seed), n_steps)
    batches = (_parts(model, rows[batch], learner.n_parts) for batch in numbers)
    start = time.monotonic()
    how = (optimizer, options.clip_norm, f"training {name}")
    fit(weights, batches, *how, after, learner.n_lanes)
    return {
        "n_parameters": sum(p.numel() for p in model.parameters()),
        "n_steps": n_steps,
        "n_tokens": n_steps * tokens_of_step,
        "loss_start_nats": float(np.mean(losses[:_LOSS_STEPS])),
        "loss_end_nats": float(np.mean(losses[-_LOSS_STEPS:])),
        "seconds": time.monotonic() - start,
    }


def _parts(model: Any, batch: np.ndarray, n_parts: int) -> list[Part]:
    """Split a batch of rows into parts, whose ``loss`` adds up to the mean per token, in nats."""
    rows = torch.from_numpy(batch.astype(np.int64)).to(model.device)
    parts = rows.tensor_split(min(n_parts, len(rows)))
    return [partial(_loss, model, part, len(part) / len(rows)) for part in parts]


def _loss(model: Any, rows: torch.Tensor, share: float) -> tuple[torch.Tensor, Figures]:
    """Return the mean loss of ``rows``, multiplied by their ``share`` of the batch."""
    targets = torch.full_like(rows, _NO_TARGET)
    targets[:, :-1] = rows[:, 1:]
    with torch.autocast(rows.device.type, torch.bfloat16, enabled=_products(model) == "bfloat16"):
        logits = model(input_ids=rows, use_cache=False).logits
    loss = share * torch.nn.functional.cross_entropy(
        logits.flatten(0, 1).float(), targets.flatten(), ignore_index=_NO_TARGET
    )
    return loss, {"loss": loss.item()}


def _products(model: Any) -> str:
    """Return the type for matrix products: bfloat16 if the model's device has hardware for it."""
    if model.device.type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float32"
    capabilities: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return "bfloat16" if any(capabilities.get(name) for name in _BFLOAT16) else "float32"


def trainable(model: Any) -> list[torch.nn.Parameter]:
    """Return the model's parameters that have gradients."""
    return [weight for weight in model.parameters() if weight.requires_grad]


def shuffled(n_items: int, batch: int, seed: int) -> Iterator[list[int]]:
    """Yield batches of item numbers, endlessly.

    Each epoch has every number once, in a new order. A batch may reach into the next epoch.
    ``n_items`` has to be 1 or more.

    >>> first, second = itertools.islice(shuffled(4, 2, seed=0), 2)
    >>> sorted(first + second)
    [0, 1, 2, 3]
    """
    orders = (
        np.random.default_rng([seed, epoch]).permutation(n_items) for epoch in itertools.count()
    )
    numbers = itertools.chain.from_iterable(orders)
    while True:
        yield [int(number) for number in itertools.islice(numbers, batch)]


def fit(
    weights: Sequence[torch.nn.Parameter],
    batches: Iterable[Sequence[Part]],
    optimizer: torch.optim.Optimizer,
    clip_norm: float,
    what: str,
    after: Callable[[int, Figures], None],
    n_lanes: int = 1,
) -> None:
    """Take one step per batch, and call ``after`` with the step's number (from 1) and figures.

    Figures include the ``gradient_norm`` before clipping. ``clip_norm`` may be infinite.
    ``n_lanes`` parts of a batch are computed at the same time, each on one core. For small models
    this is twice as fast as using all cores for each matrix product. Gradients are added in the
    order of the parts, so the number of lanes doesn't change the weights.

    Raises ``BadInput`` about ``what`` for a loss or gradient that is not finite; the weights then
    stay as they were before the step.
    """

    def gradients_of(part: Part) -> tuple[list[torch.Tensor], Figures]:
        loss, figures = part()
        # Unused weights, such as those of an expert that no token was sent to, get gradient 0.
        return list(torch.autograd.grad(loss, weights, materialize_grads=True)), figures

    n_threads = torch.get_num_threads()
    if n_lanes > 1:
        torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(n_lanes) as pool:
            for step, parts in enumerate(batches, 1):
                sums, figures = list[torch.Tensor](), Counter[str]()
                for found, of_part in pool.map(gradients_of, parts):  # holds few parts in memory
                    figures.update(of_part)
                    sums = list(map(torch.add, sums, found)) if sums else found
                for weight, gradient in zip(weights, sums, strict=True):
                    weight.grad = gradient
                norm = float(torch.nn.utils.clip_grad_norm_(weights, clip_norm))
                taken = {**figures, "gradient_norm": norm}
                check_finite(taken, what, step)
                optimizer.step()
                after(step, taken)
    finally:
        torch.set_num_threads(n_threads)


def check_finite(figures: Figures, what: str, step: int) -> None:
    """Raise ``BadInput`` about ``what`` if a figure of ``step`` (from 1) is not finite."""
    if not all(map(math.isfinite, figures.values())):
        problem = f"a loss or its gradient is not finite at step {step}"
        raise BadInput(what, problem, "try a lower learning rate")
