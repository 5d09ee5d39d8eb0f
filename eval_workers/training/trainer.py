"""Train a learner on shards: a new model from random weights, or an existing one.

Documents are joined, each after the BOS token that scoring uses (``<|endoftext|>`` in a new model),
and cut into rows of the model's context. Each row is read once per epoch, in an order drawn with
the seed.

AdamW, linear warm-up, cosine decay to a tenth of the peak. Trained weights, loss and softmax are
float32; matrix products are bfloat16 where the processor computes them in hardware. Parts of a
batch run in parallel threads and their gradients are added in a fixed order, so equal options and
shards give equal weights on one machine, also after an interruption.
"""

from __future__ import annotations

import math
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from plumbline.eval_workers.models.devices import memory_problems
from plumbline.eval_workers.models.local.source import CHECKPOINTS
from plumbline.eval_workers.models.local.weights import save_state
from plumbline.eval_workers.training.learner import TOKENIZER, Learner, continued, new, rows_of_step
from plumbline.eval_workers.training.training_options import Progress, TrainOptions, Window
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.input.shards import DEFAULT, RecordForm, documents
from plumbline.warehouse.input.token_files import write_sequences
from plumbline.warehouse.paths import replace_directory
from plumbline.warehouse.storage.run_records import package_versions

if TYPE_CHECKING:
    from plumbline.eval_workers.models.transformers_backend import TransformersBackend

#: Token ids in the order of training.
_TEXT = "text.bin"
#: State of an interrupted run.
_CHECKPOINT = "checkpoint.pt"
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
    key: str,
    work: Path,
    progress: Progress | None = None,
    form: RecordForm = DEFAULT,
    n_checkpoints: int = 0,
    tokenizer: Path | None = None,
    window: Window | None = None,
    backend: TransformersBackend | None = None,
    lora: int | None = None,
) -> dict[str, Any]:
    """Train into the directory ``work`` and return the columns of ``trained_model``.

    ``key`` identifies options and shards: the state of a run with another key is discarded.
    ``n_checkpoints``: divide the training into that many equal parts, and save loadable models in
    ``checkpoints/stepN`` before the first and after each. Then ``text.bin`` and ``text.idx`` have
    the token ids in reading order, one row per sequence. ``tokenizer``: a ``tokenizer.json`` to use
    instead of one trained on the text. ``window``: the steps that read other shards. ``backend``:
    the model to continue, with a new adapter of rank ``lora`` if given. The caller adds the columns
    that are missing here.
    """
    state = _restore(work, key)
    if tokenizer is not None:
        shutil.copyfile(tokenizer, work / TOKENIZER)
    n_characters = options.max_tokens * _CHARACTERS_PER_TOKEN
    texts = list(_texts(shards, n_characters, form))
    with _restored_threads(), memory_problems(name, "try a smaller --batch-tokens, or --lora RANK"):
        if backend is None:
            learner = new(texts, options, work)
        else:
            learner = continued(backend, lora, options)
        options = replace(options, context=learner.context)
        rows = _rows(_tokens(texts, learner), learner.context)
        del texts
        window_rows = rows
        if window is not None:
            texts = list(_texts(window.shards, n_characters, form))
            window_rows = _rows(_tokens(texts, learner), learner.context)
        n_rows = min(len(rows), len(window_rows))
        if not n_rows:
            problem = f"less text than one row of {options.context} tokens"
            raise BadInput(f"corpus {corpus}", problem, "give more shards")
        batches = _Batches(rows[:n_rows], window_rows[:n_rows], window, options)
        figures = _run(batches, learner, options, state, key, work, n_checkpoints, progress)
        figures |= {"model": name, "corpus": corpus, "seed": options.seed}
        if n_checkpoints:
            steps = range(batches.n_steps)
            write_sequences(work / _TEXT, (row for step in steps for row in batches.batch(step)))
        if backend is not None:
            identity = backend.identity
            figures |= {"base": identity.model, "base_revision": identity.revision}
            figures["lora_rank"] = lora
        learner.save(work)
        facts = {**figures, "products": _products(learner.model.device.type)}
        card = model_card(options, facts, [s.name for s in shards])
        (work / "README.md").write_text(card, encoding="utf-8")
        (work / _CHECKPOINT).unlink(missing_ok=True)
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


def _texts(shards: Sequence[Path], n_characters: int, form: RecordForm = DEFAULT) -> Iterator[str]:
    return (cut for _, _, cut in _places(shards, n_characters, form))


def _places(
    shards: Sequence[Path], n_characters: int, form: RecordForm
) -> Iterator[tuple[int, int, str]]:
    """Yield each document's shard number, its number in the shard, and its text.

    The texts have at most ``n_characters`` together. Each shard gets an equal share; later shards
    also get what earlier ones leave. A shard's last text is cut.
    """
    left = n_characters
    for number, shard in enumerate(shards):
        share = -(-left // (len(shards) - number))
        for k, text in enumerate(documents(shard, form)):
            cut = text[:share]
            share, left = share - len(cut), left - len(cut)
            if cut:
                yield number, k, cut
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


@dataclass(frozen=True)
class Reading:
    """The text that a training read, by token.

    Attributes:
        rows: token ids, [row, context].
        place: int64[row, context, 2], number of each token's shard, and of its document there.
        n_times: int64[row], how often each row was read.
    """

    rows: np.ndarray
    place: np.ndarray
    n_times: np.ndarray


def reading(
    shards: Sequence[Path], form: RecordForm, options: TrainOptions, learner: Learner
) -> Reading:
    """The text that :func:`train` read with these shards, options and learner's tokens."""
    documents_read = list(_places(shards, options.max_tokens * _CHARACTERS_PER_TOKEN, form))
    parts = _tokens([text for _, _, text in documents_read], learner)
    options = replace(options, context=learner.context)
    rows = _rows(parts, learner.context)
    lengths = [len(part) for part in parts]
    numbers = np.array([(shard, document) for shard, document, _ in documents_read])
    place = np.repeat(numbers, lengths, axis=0)[: rows.size]
    batches = _Batches(rows, rows, None, options)
    n_times = np.zeros(len(rows), np.int64)
    for step in range(batches.n_steps):
        np.add.at(n_times, batches.numbers(step), 1)
    return Reading(rows, place.reshape(*rows.shape, 2), n_times)


def _save_loadable(learner: Learner, directory: Path) -> None:
    """Save the model; the directory gets its name once it is complete."""
    temporary = directory.with_name(f".{directory.name}.partial")
    shutil.rmtree(temporary, ignore_errors=True)
    learner.save(temporary)
    replace_directory(temporary, directory)


def checkpoint_steps(n_steps: int, n: int) -> list[int]:
    """Steps after which the model is saved: 0 and the ends of ``n`` equal parts; none if n is 0.

    >>> checkpoint_steps(1000, 4), checkpoint_steps(2, 4), checkpoint_steps(1000, 0)
    ([0, 250, 500, 750, 1000], [0, 1, 2], [])
    """
    return sorted({round(k * n_steps / n) for k in range(n + 1)}) if n else []


@dataclass(frozen=True)
class _Batches:
    """Batches of ``rows`` of token ids; in the window, ``window_rows`` replace them."""

    rows: np.ndarray
    window_rows: np.ndarray
    window: Window | None
    options: TrainOptions

    @property
    def n_steps(self) -> int:
        options = self.options
        n_tokens = min(options.max_tokens, options.max_epochs * self.rows.size)
        return max(1, n_tokens // (options.batch_rows * options.context))

    def numbers(self, step: int) -> np.ndarray:
        return rows_of_step(step, len(self.rows), self.options.batch_rows, self.options.seed)

    def batch(self, step: int) -> np.ndarray:
        """Token ids of a step's rows."""
        in_window = self.window is not None and self.window.holds(step, self.n_steps)
        batch: np.ndarray = (self.window_rows if in_window else self.rows)[self.numbers(step)]
        return batch


def _run(
    batches: _Batches,
    learner: Learner,
    options: TrainOptions,
    state: dict[str, Any] | None,
    key: str,
    work: Path,
    n_checkpoints: int,
    progress: Progress | None,
) -> dict[str, Any]:
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
    n_steps = batches.n_steps
    saved_steps = checkpoint_steps(n_steps, n_checkpoints)
    n_parts = min(learner.n_parts, options.batch_rows)
    losses: list[float] = []
    seconds = 0.0
    if state:
        model.load_state_dict(state["model"], strict=False)  # an adapter's state lacks its base
        optimizer.load_state_dict(state["optimizer"])
        losses, seconds = state["losses"], state["seconds"]
    start = time.monotonic() - seconds
    if not losses and saved_steps:
        _save_loadable(learner, work / CHECKPOINTS / "step0")
    with ThreadPoolExecutor(learner.n_lanes) as pool:
        for step in range(len(losses), n_steps):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(step, n_steps, options)
            batch = torch.from_numpy(batches.batch(step).astype(np.int64))
            parts = batch.to(model.device).tensor_split(n_parts)
            loss = _step(model, optimizer, parts, options.clip_norm, pool)
            if not math.isfinite(loss):
                has_state = (work / _CHECKPOINT).exists()
                where = f"; the last good checkpoint is kept in {work}" if has_state else ""
                raise BadInput(
                    f"training {work.name.strip('.').removesuffix('.partial')}",
                    f"the loss or its gradient is not finite at step {step + 1}",
                    f"try a lower learning rate{where}",
                )
            losses.append(loss)
            if len(losses) in saved_steps:  # before the state: a resumed run saves it again
                _save_loadable(learner, work / CHECKPOINTS / f"step{len(losses)}")
            if len(losses) % options.checkpoint_steps == 0 and len(losses) < n_steps:
                _checkpoint(model, optimizer, losses, time.monotonic() - start, key, work)
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


def _restore(work: Path, key: str) -> dict[str, Any] | None:
    """The checkpoint of a run with this key; without one, ``work`` is emptied."""
    path = work / _CHECKPOINT
    if path.exists():
        try:
            state: dict[str, Any] = torch.load(path, weights_only=True)
            if state["key"] == key:
                return state
        except Exception:  # the file is damaged: start again
            pass
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    return None


def _checkpoint(
    model: Any,
    optimizer: torch.optim.Optimizer,
    losses: list[float],
    seconds: float,
    key: str,
    work: Path,
) -> None:
    temporary = work / f"{_CHECKPOINT}.tmp"
    weights = {name: weight.detach() for name, weight in _weights(model).items()}
    state = {"key": key, "losses": losses, "seconds": seconds}
    state |= {"model": weights, "optimizer": optimizer.state_dict()}
    save_state(state, temporary)
    os.replace(temporary, work / _CHECKPOINT)


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
