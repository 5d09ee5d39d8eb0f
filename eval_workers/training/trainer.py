"""Train a small GPT-NeoX on shards, from random weights.

The model has the architecture of Pythia (Biderman et al., 2023, arXiv:2304.01373) with rotary
positions and parallel residuals, but is much smaller. Documents are joined, with a BOS token before
each document, and cut into rows as long as the model's context. Each epoch reads every row once, in
a random order that the seed decides.

Training uses AdamW, a linear warm-up, and a cosine decay to a tenth of the peak learning rate.
Weights, loss and softmax are float32. Matrix products are bfloat16 if the processor supports it. On
the same CPU, equal options and shards give equal weights. The presets take only minutes on two
cores, so interrupted training starts again from the beginning. `disclosure tune` also uses ``fit``.
"""

from __future__ import annotations

import itertools
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM, PreTrainedTokenizerFast

from plumbline.eval_workers.training.training_options import TrainOptions
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.input.shards import documents
from plumbline.warehouse.text.progress import progress

#: Figures, such as losses, of a step or of a part of its batch, by name.
Figures: TypeAlias = dict[str, float]
#: A function that computes what a part of a batch adds to the batch's loss and the step's figures.
Part: TypeAlias = Callable[[], tuple[torch.Tensor, Figures]]

#: Token 0: BOS and EOS.
END_OF_TEXT = "<|endoftext|>"
#: Number of characters to read for each token of ``max_tokens``. English tokens have only 4 to 5.
_CHARACTERS_PER_TOKEN = 6
_TEXTS_AT_ONCE = 10_000
#: A CPU with one of these capabilities computes bfloat16 products in hardware.
_BFLOAT16 = ("amx_bf16", "avx512_bf16")
#: Number of parts of a batch, and of lanes that compute them.
_N_PARTS = 2
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
    text_field: str = "text",
) -> dict[str, Any]:
    """Train a model, save it in the directory ``work`` and return columns of ``trained_model``."""
    texts = list(_texts(shards, options.max_tokens * _CHARACTERS_PER_TOKEN, text_field))
    model, tokenizer = new_model(texts, options)
    rows = _rows(texts, tokenizer, options.context)
    del texts
    if not len(rows):
        problem = f"less text than one row of {options.context} tokens"
        raise BadInput(f"corpus {corpus}", problem, "give more shards")
    figures = _run(rows, model, options, name)
    transformers.utils.logging.disable_progress_bar()
    model.save_pretrained(work)
    tokenizer.save_pretrained(work)
    return {"model": name, "corpus": corpus, "seed": options.seed, **figures}


def new_model(texts: Sequence[str], options: TrainOptions) -> tuple[Any, Any]:
    """Return a GPT-NeoX with random weights, and a byte-level BPE tokenizer learned from texts."""
    if not texts:
        raise BadInput("training", "the shards hold no text", "check the shards")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=options.vocabulary,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer, length=len(texts))
    torch.manual_seed(options.seed)
    config = GPTNeoXConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=options.hidden,
        num_hidden_layers=options.layers,
        num_attention_heads=options.heads,
        intermediate_size=4 * options.hidden,
        max_position_embeddings=options.context,
        bos_token_id=0,
        eos_token_id=0,
        use_cache=False,
        tie_word_embeddings=options.one_embedding,
    )
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=END_OF_TEXT,
        eos_token=END_OF_TEXT,
        model_max_length=options.context,
    )
    return GPTNeoXForCausalLM(config).train(), wrapped


def _texts(shards: Sequence[Path], n_characters: int, text_field: str) -> Iterator[str]:
    """Yield the shards' documents, up to ``n_characters`` in all.

    Each shard gives an equal share of the characters. If a shard has less text than its share,
    later shards give more. The last text taken from a shard may be cut.
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


def _rows(texts: Sequence[str], tokenizer: Any, context: int) -> np.ndarray:
    """Return the token ids (uint32) of the texts, joined and cut into rows of ``context`` tokens.

    BOS precedes each text. An incomplete last row is dropped.
    """
    parts = [np.empty(0, np.uint32)]
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        some = texts[start : start + _TEXTS_AT_ONCE]
        encoded = tokenizer(some, add_special_tokens=False, verbose=False)["input_ids"]
        parts += [np.array([tokenizer.bos_token_id, *ids], np.uint32) for ids in encoded]
    joined = np.concatenate(parts)
    return joined[: len(joined) // context * context].reshape(-1, context)


def _run(rows: np.ndarray, model: Any, options: TrainOptions, name: str) -> dict[str, Any]:
    weights, tokens_of_step = trainable(model), options.batch_rows * options.context
    optimizer = torch.optim.AdamW(
        weights,
        lr=options.learning_rate,
        betas=(0.9, 0.95),
        weight_decay=options.weight_decay,
        fused=True,
    )
    n_steps = max(1, min(options.max_tokens, options.max_epochs * rows.size) // tokens_of_step)
    warmup = min(options.warmup_steps, n_steps // 2)
    schedule = transformers.get_cosine_with_min_lr_schedule_with_warmup_lr_rate(
        optimizer, warmup, n_steps, min_lr_rate=0.1
    )
    losses: list[float] = []

    def after(step: int, figures: Figures) -> None:
        schedule.step()
        losses.append(figures["loss"])
        update(step, n_steps, note=f"loss {losses[-1]:.3f}")

    numbers = itertools.islice(shuffled(len(rows), options.batch_rows, options.seed), n_steps)
    batches = (_parts(model, rows[batch]) for batch in numbers)
    start = time.monotonic()
    with progress(f"train {name}", "steps") as update:
        fit(weights, batches, optimizer, options.clip_norm, f"training {name}", after, _N_PARTS)
    return {
        "n_parameters": sum(p.numel() for p in model.parameters()),
        "n_steps": n_steps,
        "n_tokens": n_steps * tokens_of_step,
        "loss_start_nats": float(np.mean(losses[:_LOSS_STEPS])),
        "loss_end_nats": float(np.mean(losses[-_LOSS_STEPS:])),
        "seconds": time.monotonic() - start,
    }


def _parts(model: Any, batch: np.ndarray) -> list[Part]:
    """Split a batch of rows into parts. The losses of all parts add up to the batch's mean loss."""
    rows = torch.from_numpy(batch.astype(np.int64))
    parts = rows.tensor_split(min(_N_PARTS, len(rows)))
    return [partial(_loss, model, part, len(part) / len(rows)) for part in parts]


def _loss(model: Any, rows: torch.Tensor, share: float) -> tuple[torch.Tensor, Figures]:
    """Return ``share`` times the mean loss per token (nats) of ``rows``, a part of the batch."""
    targets = torch.full_like(rows, _NO_TARGET)
    targets[:, :-1] = rows[:, 1:]
    with torch.autocast("cpu", torch.bfloat16, enabled=_has_bfloat16()):
        logits = model(input_ids=rows, use_cache=False).logits
    loss = share * torch.nn.functional.cross_entropy(
        logits.flatten(0, 1).float(), targets.flatten(), ignore_index=_NO_TARGET
    )
    return loss, {"loss": loss.item()}


def _has_bfloat16() -> bool:
    capabilities: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return any(capabilities.get(name) for name in _BFLOAT16)


def trainable(model: Any) -> list[torch.nn.Parameter]:
    return [weight for weight in model.parameters() if weight.requires_grad]


def shuffled(n_items: int, batch: int, seed: int) -> Iterator[list[int]]:
    """Yield batches of item numbers (from 0), endlessly.

    Each epoch has every number once, in a new order. A batch may begin in one epoch and end in the
    next. ``n_items`` has to be 1 or more.

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
    """Take one step per batch. After each step, pass its number (from 1) and figures to ``after``.

    The figures are losses and `gradient_norm`, the norm before clipping. ``clip_norm`` may be inf.
    ``n_lanes`` threads compute parts of a batch at the same time, each on one core. With two lanes,
    small models train twice as fast. The gradients of the parts are always added in the same
    order, so the number of lanes doesn't change the weights. If a loss or gradient is not finite,
    raises ``BadInput`` about ``what`` and doesn't take the step.
    """

    def gradients_of(part: Part) -> tuple[list[torch.Tensor], Figures]:
        loss, figures = part()
        # Unused weights, such as the weights of an expert that no token reached, get gradient 0.
        return list(torch.autograd.grad(loss, weights, materialize_grads=True)), figures

    n_threads = torch.get_num_threads()
    if n_lanes > 1:
        torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(n_lanes) as pool:
            for step, parts in enumerate(batches, 1):
                sums, figures = list[torch.Tensor](), Counter[str]()
                for found, of_part in pool.map(gradients_of, parts):
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
    """Raise ``BadInput`` if a figure of the step is not finite. The error is about ``what``."""
    if not all(map(math.isfinite, figures.values())):
        problem = f"a loss or its gradient is not finite at step {step}"
        raise BadInput(what, problem, "try another seed, or a lower learning rate")
