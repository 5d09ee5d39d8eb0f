"""Load a model's weights, quantised while loading, with an adapter on them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from importlib import metadata
from typing import Any

import torch
from transformers import BitsAndBytesConfig

from plumbline.eval_workers.models import devices
from plumbline.eval_workers.models.kinds.model_kind import Files, auto_class
from plumbline.eval_workers.models.local import loading
from plumbline.eval_workers.models.local.adapter import put_on
from plumbline.eval_workers.models.local.source import Source
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.warehouse.errors import BadInput, MissingComponent, UsageProblem


def load_model(files: Files, options: ModelOptions) -> Any:
    """Load the language model onto its device, after freeing the memory of unused models.

    Raises ``BadInput`` for weights that are missing or can't be read and for an adapter that does
    not fit, ``MissingComponent`` for a missing GPU.
    """
    devices.release()
    device = _device(options.device)
    devices.limit_threads(devices.n_threads())  # torch ignores a container's quota of cores
    dtype = getattr(torch, options.dtype)
    settings: dict[str, Any] = {
        "dtype": dtype,
        "output_loading_info": True,
        "weights_only": True,  # from a pickle, only tensors are read
    }
    if attention := _attention(files.config, device):
        settings["attn_implementation"] = attention
    if options.quantisation is not None:
        logging.getLogger("bitsandbytes").setLevel(logging.ERROR)  # else a line per layer and pass
        settings["quantization_config"] = _bits_and_bytes(options.quantisation, dtype)
    is_quantised = options.quantisation or loading.saved_quantisation(files.config)
    if is_quantised:
        settings["device_map"] = {"": device}  # such weights can't be moved afterwards
    model, info = loading.load(files.source, auto_class(files.kind).from_pretrained, **settings)
    check_complete(files.source, info)
    model = model if is_quantised else model.to(device)
    return (model if files.adapter is None else put_on(model, files.adapter)).eval()


def check_complete(source: Source, info: Mapping[str, Any]) -> None:
    """Raise ``BadInput`` if transformers' loading info lists missing weights."""
    if missing := sorted(info["missing_keys"]):
        problem = f"{len(missing)} weights are missing, {missing[0]} among them"
        raise BadInput(f"model {source.name}", problem, "download or save it again")


def n_embedded(model: Any) -> int:
    """Number of token ids with a row in both the embedding and the output layer (if it has one)."""
    tables = (model.get_input_embeddings(), model.get_output_embeddings())
    return min(int(table.weight.shape[0]) for table in tables if table is not None)


def _attention(config: Any, device: str) -> str | None:
    """Return `eager` if PyTorch's own choice of attention is wrong, else ``None``.

    If all heads share one key, PyTorch's fused kernel with a mask leaves out a last position (issue
    191937 of PyTorch, fixed in August 2026). Scores by torch 2.11 on an H100 were off by 5 nats.
    """
    text = config.get_text_config()
    shares = getattr(text, "num_key_value_heads", None) == 1 or getattr(text, "multi_query", False)
    return "eager" if device == "cuda" and shares else None


def is_int8(config: Any, options: ModelOptions) -> bool:
    """True if the checkpoint or the options make the weights bitsandbytes' int8."""
    saved = getattr(config, "quantization_config", None)
    by_file = isinstance(saved, dict) and saved.get("load_in_8bit") is True
    return by_file or options.quantisation == "int8"


def quantisation(name: str, config: Any, options: ModelOptions) -> str | None:
    """The quantisation in a score's identity: the checkpoint's or the options'.

    Raises ``UsageProblem`` if the options quantise a quantised checkpoint, ``MissingComponent`` if
    bitsandbytes isn't installed.
    """
    saved, method = loading.saved_quantisation(config), options.quantisation
    if method is None:
        return saved
    if saved is not None:
        problem = f"model {name} was saved quantised ({saved})"
        raise UsageProblem(f"--quantisation {method}", problem, "leave the option out")
    try:
        return f"bitsandbytes {method} {metadata.version('bitsandbytes')}"
    except metadata.PackageNotFoundError as e:
        fix = "pip install bitsandbytes"
        raise MissingComponent(f"--quantisation {method}", "needs bitsandbytes", fix) from e


def _bits_and_bytes(quantisation: str, dtype: torch.dtype) -> BitsAndBytesConfig:
    if quantisation == "int8":
        return BitsAndBytesConfig(load_in_8bit=True)
    return BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=dtype
    )


def _device(option: str) -> str:
    if option == "cuda" and not torch.cuda.is_available():
        raise MissingComponent("--device cuda", "no CUDA device is visible", "use --device cpu")
    return "cuda" if option != "cpu" and torch.cuda.is_available() else "cpu"
