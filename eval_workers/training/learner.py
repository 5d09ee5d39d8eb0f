"""Learners: a new GPT-NeoX, an existing model, or an adapter on one.

A new model has the architecture of Pythia (Biderman et al., 2023, arXiv:2304.01373) at a small
fraction of its size: rotary positions, parallel residuals.

A model that is continued stays in evaluation mode. Without dropout, order and seed alone determine
its weights.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM, PreTrainedTokenizerFast

from plumbline.eval_workers.models import devices
from plumbline.eval_workers.training.training_options import Lora, TrainOptions
from plumbline.warehouse.errors import BadInput, UsageProblem

if TYPE_CHECKING:
    from plumbline.eval_workers.models.transformers_backend import TransformersBackend

END_OF_TEXT = "<|endoftext|>"
TOKENIZER = "tokenizer.json"
#: Number of parts of a new model's batch, computed in parallel.
_N_PARTS = 2


@dataclass(frozen=True)
class Learner:
    """A model to train and its tokenizer.

    Attributes:
        model: of transformers or PEFT; parameters with gradients are trained.
        bos: token before each document.
        n_vocabulary: token ids are below this.
        context: number of tokens per row.
        encode: token ids of texts, without special tokens.
        save: writes a loadable model into a directory.
        n_parts: number of parts of a batch, whose gradients are added in order.
        n_lanes: number of parts computed in parallel.
    """

    model: Any
    bos: int
    n_vocabulary: int
    context: int
    encode: Callable[[list[str]], Iterable[Sequence[int]]]
    save: Callable[[Path], None]
    n_parts: int
    n_lanes: int


def new(texts: Sequence[str], options: TrainOptions, work: Path) -> Learner:
    """A model of random weights, with a tokenizer trained on the texts and saved in ``work``."""
    tokenizer = _tokenizer(texts, options, work / TOKENIZER)
    model = new_model(tokenizer, options)
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=END_OF_TEXT,
        eos_token=END_OF_TEXT,
        model_max_length=options.context,
    )

    def encode(texts: list[str]) -> Iterable[Sequence[int]]:
        return (e.ids for e in tokenizer.encode_batch_fast(texts, add_special_tokens=False))

    n_vocabulary, save = tokenizer.get_vocab_size(), partial(_save, model, wrapped)
    return Learner(model, 0, n_vocabulary, options.context, encode, save, _N_PARTS, _N_PARTS)


def _tokenizer(texts: Sequence[str], options: TrainOptions, path: Path) -> Tokenizer:
    """Byte-level BPE trained on the texts, saved in ``path``."""
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
    tokenizer.save(str(path))
    return tokenizer


def new_model(tokenizer: Tokenizer, options: TrainOptions) -> GPTNeoXForCausalLM:
    """A GPT-NeoX of random weights."""
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
    return GPTNeoXForCausalLM(config).train()


def continued(backend: TransformersBackend, rank: int | None, options: TrainOptions) -> Learner:
    """A learner of the backend's model, or of a new adapter of a rank on it.

    The backend must not be used again. ``--batch-tokens`` decides how a batch is divided into
    parts, so the number of cores doesn't change the weights. Raises ``BadInput`` for weights that
    can't be read, ``UsageProblem`` for a quantised model without an adapter, and what
    ``lora.adapted`` raises.
    """
    from plumbline.eval_workers.training.lora import adapted, save_adapter

    name = backend.identity.model
    if rank is not None:
        model = adapted(backend, Lora(rank, 2 * rank, 0.0, "all-linear", options.seed))
        save = partial(save_adapter, model)
    elif backend.identity.quantisation is not None:
        problem = f"its weights are quantised ({backend.identity.quantisation})"
        raise UsageProblem(f"model {name}", problem, "train an adapter with --lora RANK")
    else:
        model = backend.loaded.requires_grad_()
        save = partial(_save, model, backend.tokenizer)
    config = backend.config.get_text_config()
    context = min(options.context, getattr(config, "max_position_embeddings", options.context))
    device = model.device.type
    if device == "cuda":  # cuBLAS reads it at its start, and then sums in a fixed order
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    rows_of_part = max(1, devices.batch_tokens(backend.options, device) // context)
    n_parts = math.ceil(options.batch_rows / rows_of_part)
    n_vocabulary = model.get_input_embeddings().weight.shape[0]

    def encode(texts: list[str]) -> Iterable[Sequence[int]]:
        encoded = backend.tokenizer(texts, add_special_tokens=False, verbose=False)
        sequences: list[list[int]] = encoded["input_ids"]
        largest = max((max(ids, default=0) for ids in sequences), default=0)
        if largest >= n_vocabulary:
            problem = f"its tokenizer gives token {largest}, it has only {n_vocabulary}"
            raise BadInput(f"model {name}", problem)
        return sequences

    n_lanes = devices.n_threads() if backend.takes_lanes else 1
    bos = backend.identity.bos_token_id
    return Learner(model, bos, n_vocabulary, context, encode, save, n_parts, n_lanes)


def _save(model: Any, tokenizer: Any, directory: Path) -> None:
    transformers.utils.logging.disable_progress_bar()
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)


def rows_of_step(step: int, n_rows: int, batch_rows: int, seed: int) -> np.ndarray:
    """Row numbers (int64) in the batch of ``step``, from 0.

    Each epoch has every row once, in a new order. The numbers depend on the arguments alone.
    A batch may reach into the next epoch; ``n_rows`` is 1 or more.

    >>> both = [rows_of_step(step, 4, 2, seed=0).tolist() for step in (0, 1)]
    >>> sorted(both[0] + both[1])
    [0, 1, 2, 3]
    """
    places = range(step * batch_rows, (step + 1) * batch_rows)
    return np.array([_row_order(place // n_rows, n_rows, seed)[place % n_rows] for place in places])


@lru_cache(maxsize=2)
def _row_order(epoch: int, n_rows: int, seed: int) -> np.ndarray:
    return np.random.default_rng([seed, epoch]).permutation(n_rows)
