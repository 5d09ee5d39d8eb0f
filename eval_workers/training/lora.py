"""New LoRA adapters (Hu et al., 2021) on a frozen model."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import peft
import torch
from peft.tuners.lora import LoraLayer

from plumbline.eval_workers.models.local import loading
from plumbline.eval_workers.training.training_options import Lora
from plumbline.warehouse.errors import UsageProblem

if TYPE_CHECKING:
    from plumbline.eval_workers.models.kinds.causal_model import CausalModel


def adapted(backend: CausalModel, options: Lora) -> Any:
    """Put a new adapter on the model, which doesn't change the output yet.

    Only the adapter has gradients and dropout; the model stays in evaluation mode. Seeds torch's
    random numbers. Raises ``UsageProblem`` for layers that the model lacks.
    """
    torch.manual_seed(options.seed)
    layers = options.targets
    names = None if layers is None else [name.strip() for name in layers.split(",")]
    config = peft.LoraConfig(
        task_type="CAUSAL_LM",
        r=options.rank,
        lora_alpha=options.alpha,
        lora_dropout=options.dropout,
        target_modules=layers if layers == "all-linear" else names,
        revision=backend.source.revision,
    )
    try:
        with warnings.catch_warnings(action="ignore"):  # of adjusted layers and deprecated names
            model = peft.get_peft_model(backend.weights.model, config)
    except ValueError as e:
        fix = "give `all-linear` or names of its layers"
        problem = f"does not fit the model: {loading.first_line(e)}"
        raise UsageProblem(f"targets {layers}", problem, fix) from e
    model.eval()
    switch_dropout(model, on=True)
    for module in model.modules():
        if type(module).__module__.startswith("bitsandbytes"):
            module.train()  # on a CPU, evaluation mode packs weights and stops gradients
    return model


def switch_dropout(model: Any, *, on: bool) -> None:
    """Switch the dropout of a model's adapter on or off."""
    for module in model.modules():
        if isinstance(module, LoraLayer):
            module.lora_dropout.train(on)


def save_adapter(model: Any, directory: Path) -> None:
    """Save an adapter in PEFT's format."""
    with warnings.catch_warnings(action="ignore"):  # by default PEFT asks the hub about embeddings
        model.save_pretrained(str(directory), save_embedding_layers=False)
