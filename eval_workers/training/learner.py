"""Make a model to train: a new GPT-NeoX, an existing model, or a LoRA adapter (Hu et al., 2021).

A new model has the architecture of Pythia (Biderman et al., 2023, arXiv:2304.01373) with rotary
positions and parallel residuals, but is much smaller. A model that is continued stays in evaluation
mode. It then has no dropout, so the order and the seed alone determine its weights.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import peft
import torch
import transformers
from peft.tuners.lora import LoraLayer
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM, PreTrainedModel, PreTrainedTokenizerFast

from plumbline.eval_workers.models import devices
from plumbline.eval_workers.models.local import loading
from plumbline.eval_workers.training.training_options import TrainOptions
from plumbline.warehouse.errors import BadInput, UsageProblem

if TYPE_CHECKING:
    from plumbline.eval_workers.models.local.causal_model import CausalModel

END_OF_TEXT = "<|endoftext|>"
#: Number of parts of a new model's batch, and of lanes that compute them.
_N_PARTS = 2


@dataclass(frozen=True)
class Learner:
    """A model to train, from transformers or PEFT, and its tokenizer.

    All parameters that have gradients are trained, on rows of ``context`` tokens. ``bos`` is put
    before each document. A batch has ``n_parts`` parts, of which ``n_lanes`` are computed at the
    same time.
    """

    name: str
    model: Any
    tokenizer: Any
    bos: int
    context: int
    n_parts: int = _N_PARTS
    n_lanes: int = _N_PARTS

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the token ids of texts, without special tokens.

        Raises ``BadInput`` if a token is outside the model's vocabulary.
        """
        encoded = self.tokenizer(list(texts), add_special_tokens=False, verbose=False)
        sequences: list[list[int]] = encoded["input_ids"]
        largest = max((max(ids, default=0) for ids in sequences), default=0)
        if largest >= (n_vocabulary := self.model.get_input_embeddings().weight.shape[0]):
            problem = f"its tokenizer gives token {largest}, but it has only {n_vocabulary} tokens"
            raise BadInput(f"model {self.name}", problem)
        return sequences

    def save(self, directory: Path) -> None:
        """Save the model with its tokenizer, or only the adapter."""
        if not isinstance(self.model, PreTrainedModel):
            save_adapter(self.model, directory)
            return
        transformers.utils.logging.disable_progress_bar()
        self.model.save_pretrained(directory)
        self.tokenizer.save_pretrained(directory)


def new(texts: Sequence[str], options: TrainOptions) -> Learner:
    """Make a GPT-NeoX with random weights, and a byte-level BPE tokenizer trained on the texts."""
    if not texts:
        raise BadInput("training", "the shards hold no text", "check the shards")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=options.vocabulary,
        special_tokens=[END_OF_TEXT],  # token 0
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
    return Learner("new", GPTNeoXForCausalLM(config).train(), wrapped, 0, options.context)


def continued(backend: CausalModel, rank: int | None, options: TrainOptions) -> Learner:
    """Make a learner from a loaded model or, if ``rank`` is given, from a new adapter on the model.

    The loaded model must not be used for anything else. The option `batch_tokens` decides how a
    batch is divided into parts, so the number of cores doesn't change the weights. Raises
    ``UsageProblem`` for a quantised model without an adapter, and what loading the model and
    ``adapted`` raise.
    """
    identity, weights = backend.identity, backend.weights
    if rank is not None:
        model = adapted(backend, options.seed, rank, 2 * rank, layers="all-linear")
    elif identity.quantisation is not None:
        problem = f"its weights are quantised ({identity.quantisation})"
        raise UsageProblem(f"model {identity.model}", problem, "train an adapter with --lora RANK")
    else:
        model = weights.model.requires_grad_()
    config = backend.config.get_text_config()
    context = min(options.context, getattr(config, "max_position_embeddings", options.context))
    n_rows = max(1, weights.batch_tokens // context)
    return Learner(
        *(identity.model, model, backend.tokenizer, identity.bos_token_id),
        context=context,
        n_parts=math.ceil(options.batch_rows / n_rows),
        n_lanes=devices.n_threads() if weights.takes_lanes else 1,
    )


def adapted(
    backend: CausalModel,
    seed: int,
    rank: int,
    alpha: int,
    dropout: float = 0.0,
    layers: str | None = None,
) -> Any:
    """Put a new adapter on the model. Until it is trained, it doesn't change the model's output.

    The adapter's output is scaled by ``alpha`` / ``rank``. ``layers`` is `all-linear`, or ``None``
    for PEFT's own choice. Only the adapter has gradients and dropout; the model stays in evaluation
    mode. Seeds torch's random numbers. Raises ``UsageProblem`` for a model without such layers.
    """
    torch.manual_seed(seed)
    config = peft.LoraConfig(
        task_type="CAUSAL_LM",
        r=rank,
        lora_alpha=alpha,
        lora_dropout=dropout,
        target_modules=layers,
        revision=backend.source.revision,
    )
    try:
        with warnings.catch_warnings(action="ignore"):  # about adjusted layers, deprecated names
            model = peft.get_peft_model(backend.weights.model, config)
    except ValueError as e:
        problem = f"PEFT can't put an adapter on it: {loading.first_line(e)}"
        raise UsageProblem(f"model {backend.identity.model}", problem) from e
    model.eval()
    switch_dropout(model, on=True)
    for module in model.modules():
        if type(module).__module__.startswith("bitsandbytes"):
            module.train()  # on a CPU, evaluation mode would pack weights and stop gradients
    return model


def switch_dropout(model: Any, *, on: bool) -> None:
    """Switch the dropout of a model's adapter on or off."""
    for module in model.modules():
        if isinstance(module, LoraLayer):
            module.lora_dropout.train(on)


def save_adapter(model: Any, directory: Path) -> None:
    """Save an adapter in PEFT's format."""
    with warnings.catch_warnings(action="ignore"):  # PEFT would ask the hub about embeddings
        model.save_pretrained(str(directory), save_embedding_layers=False)
