"""New LoRA adapters: put on a model that stays as it is, and saved. See Hu et al. (2021)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import peft
import torch
from peft.tuners.lora import LoraLayer

from plumbline.eval_workers.models.local import loading as loading
from plumbline.eval_workers.training.options import Lora
from plumbline.warehouse.errors import UsageProblem

if TYPE_CHECKING:
    from plumbline.eval_workers.models.transformers_backend import TransformersBackend


def adapted(backend: TransformersBackend, options: Lora) -> Any:
    """The backend's model with a new adapter that changes nothing yet, and alone has gradients.

    The model stays in evaluation mode, as it is scored: of dropout there is only the adapter's.
    Raises ``UsageProblem`` for layers that the model lacks.
    """
    torch.manual_seed(options.seed)
    config = peft.LoraConfig(
        task_type="CAUSAL_LM",
        r=options.rank,
        lora_alpha=options.alpha,
        lora_dropout=options.dropout,
        target_modules=options.target_modules,
        revision=backend.source.revision,
    )
    try:
        with _peft_quiet():
            held = peft.get_peft_model(backend.loaded, config)
    except ValueError as e:
        fix = "give `all-linear` or names of its layers"
        problem = f"does not fit the model: {loading.first_line(e)}"
        raise UsageProblem(f"targets {options.targets}", problem, fix) from e
    held.eval()
    for module in held.modules():
        if isinstance(module, LoraLayer):
            module.lora_dropout.train()
        elif type(module).__module__.startswith("bitsandbytes"):
            module.train()  # on a CPU it would else pack its weights, which no gradient can pass
    return held


@contextmanager
def without_dropout(held: Any) -> Iterator[None]:
    """The adapter's dropout switched off, as where the model is scored."""
    dropouts = [m.lora_dropout for m in held.modules() if isinstance(m, LoraLayer)]
    for dropout in dropouts:
        dropout.eval()
    yield
    for dropout in dropouts:
        dropout.train()


def save_adapter(held: Any, directory: Path) -> None:
    """Write an adapter that PEFT, and ``--adapter``, can load."""
    with _peft_quiet():  # embeddings are not trained, and to look for new ones asks the hub
        held.save_pretrained(str(directory), save_embedding_layers=False)


@contextmanager
def _peft_quiet() -> Iterator[None]:
    """Without PEFT's warnings of layers it adjusts to and names that will go."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
