"""Read a model's configuration, decide from it which kind of model it is, and load its weights."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Literal

import torch
import transformers
from transformers import AutoConfig, BitsAndBytesConfig, PretrainedConfig
from transformers.models.auto import modeling_auto as auto
from transformers.utils import find_adapter_config_file

from plumbline.eval_workers.models.local import devices
from plumbline.eval_workers.models.local.adapter import Adapter, find_adapter, put_on
from plumbline.eval_workers.models.local.source import (
    Source,
    check_reachable,
    find_source,
    load_part,
    pinned,
    silence,
)
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.warehouse.errors import BadInput, MissingComponent, UsageProblem

#: A model predicts a token from earlier tokens (``causal``), from the tokens on both sides
#: (``masked``), or from an input and the earlier tokens of the output (``encoder-decoder``).
Kind = Literal["causal", "masked", "encoder-decoder"]

#: For each kind: the class in transformers, NAME in its mapping ``MODEL_FOR_NAME_MAPPING``, and
#: endings. An architecture is accepted if it is in the mapping or has one of the endings.
_CLASSES: dict[Kind, tuple[str, str, tuple[str, ...]]] = {
    "causal": ("AutoModelForCausalLM", "CAUSAL_LM", ("ForCausalLM", "LMHeadModel")),
    "masked": ("AutoModelForMaskedLM", "MASKED_LM", ("ForMaskedLM", "ForPreTraining")),
    "encoder-decoder": (
        "AutoModelForSeq2SeqLM",
        "SEQ_TO_SEQ_CAUSAL_LM",
        ("ForConditionalGeneration", "LMHeadModel", "MTModel"),
    ),
}
#: Pattern of configuration keys for a number of layers or experts, and the largest number allowed.
_LAYERS = re.compile(r"(num|n)_(\w+_)?(layers?|experts|blocks)|(\w+_)?(layers|depth)")
_MOST_LAYERS = 4096


@dataclass(frozen=True)
class Files:
    """What is known about a model before its weights are loaded."""

    source: Source
    config: Any
    adapter: Adapter | None
    kind: Kind


def read_files(model: str, options: ModelOptions) -> Files:
    """Find a model and read its configuration, without loading weights.

    A hub revision is pinned to its commit, because a branch can move, even during a run.

    Raises ``BadInput`` if the model can't be loaded, isn't a language model or is itself an
    adapter. Also raises ``BadInput`` if ``options.adapter`` was trained on another revision of the
    model, or if the configuration claims an impossible number of layers.
    """
    adapter = find_adapter(options.adapter) if options.adapter is not None else None
    silence()
    source = find_source(model, options.revision)
    name = f"model {source.name}"
    if not source.is_local:
        check_reachable(source)
        # Given the id of an adapter, transformers would also load the adapter's base model.
        if load_part(source, find_adapter_config_file) is not None:
            raise BadInput(name, "is an adapter", f"give --model BASE --adapter {source.name}")
        source = pinned(source, "config.json", name)
    _check_configuration(source)
    config = load_part(source, AutoConfig.from_pretrained)
    if adapter is not None:
        adapter.check_base(source)
    return Files(source, config, adapter, _kind_of(name, config))


def _check_configuration(source: Source) -> None:
    """Raise ``BadInput`` if a configuration claims an impossible number of layers.

    Without this check, transformers would build all layers before it notices missing weights.
    transformers itself refuses layers of impossible size.
    """
    content, _ = load_part(source, PretrainedConfig.get_config_dict)
    parts = [content]
    for part in parts:  # the loop appends nested configurations to the list
        for key, value in part.items():
            if isinstance(value, dict):
                parts.append(value)
            if _LAYERS.fullmatch(key) and isinstance(value, int) and value > _MOST_LAYERS:
                shown = f"{value:,}"[:40]
                problem = f"its config.json claims {key} {shown}, more than {_MOST_LAYERS:,}"
                raise BadInput(f"model {source.name}", problem, "check where the model comes from")


def auto_class(kind: Kind) -> Any:
    """Return the transformers class that loads models of a kind.

    >>> auto_class("masked").__name__
    'AutoModelForMaskedLM'
    """
    return getattr(transformers, _CLASSES[kind][0])


def _kind_of(name: str, config: Any) -> Kind:
    """Decide a model's kind from its configuration and architecture.

    BERT and similar models see later tokens unless they are configured as decoders. Models that see
    later tokens count as masked, even if they have a head that predicts next tokens. Raises
    ``BadInput`` for a model that can't score a sentence, or that was saved without its head.
    """
    is_left_to_right = any(getattr(config, flag, False) for flag in ("is_decoder", "causal"))
    kind: Kind = "causal"
    if getattr(config, "is_encoder_decoder", False):
        kind = "encoder-decoder"
    elif type(config) in auto.MODEL_FOR_MASKED_LM_MAPPING and not is_left_to_right:
        kind = "masked"
    architectures = getattr(config, "architectures", None) or []
    what = ", ".join(architectures) or f"model type {config.model_type}"
    fix = "give a language model"
    _, mapping, endings = _CLASSES[kind]
    if type(config) not in getattr(auto, f"MODEL_FOR_{mapping}_MAPPING"):
        problem = f"{what} is neither a causal, a masked nor an encoder-decoder language model"
        raise BadInput(name, problem, fix)
    listed = getattr(auto, f"MODEL_FOR_{mapping}_MAPPING_NAMES").get(config.model_type)
    if architectures and not any(a == listed or a.endswith(endings) for a in architectures):
        problem = f"{what} ({kind}) was saved without the head of a language model"
        raise BadInput(name, problem, fix)
    return kind


def load_model(files: Files, options: ModelOptions) -> Any:
    """Free the memory of unused models, then load the language model onto its device.

    Raises ``BadInput`` for weights that are missing or can't be read, and for an adapter that does
    not fit. Raises ``MissingComponent`` if the options ask for a GPU and there is none.
    """
    devices.release()
    has_gpu = torch.cuda.is_available()
    if options.device == "cuda" and not has_gpu:
        raise MissingComponent("--device cuda", "no CUDA device is visible", "use --device cpu")
    device = "cuda" if has_gpu and options.device != "cpu" else "cpu"
    torch.set_num_threads(devices.n_threads())  # torch ignores a container's limit on cores
    dtype = getattr(torch, options.dtype)
    settings: dict[str, Any] = {
        "dtype": dtype,
        "output_loading_info": True,
        "weights_only": True,  # if the file is a pickle, read only its tensors
    }
    if attention := _attention(files.config, device):
        settings["attn_implementation"] = attention
    if options.quantisation is not None:
        logging.getLogger("bitsandbytes").setLevel(logging.ERROR)  # don't log every forward pass
        settings["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=dtype
        )
    is_quantised = options.quantisation or saved_quantisation(files.config)
    if is_quantised:
        settings["device_map"] = {"": device}  # quantised weights can't be moved after loading
    model, info = load_part(files.source, auto_class(files.kind).from_pretrained, **settings)
    check_complete(files.source, info)
    model = model if is_quantised else model.to(device)
    return (model if files.adapter is None else put_on(model, files.adapter)).eval()


def check_complete(source: Source, info: Mapping[str, Any]) -> None:
    """Raise ``BadInput`` if the loading info from transformers lists missing weights."""
    if missing := sorted(info["missing_keys"]):
        problem = f"{len(missing)} weights are missing, {missing[0]} among them"
        raise BadInput(f"model {source.name}", problem, "download or save it again")


def n_embedded(model: Any) -> int:
    """Return the number of token ids that have both an input embedding and an output embedding.

    Some models have no output layer. Then only input embeddings count.
    """
    tables = (model.get_input_embeddings(), model.get_output_embeddings())
    return min(int(table.weight.shape[0]) for table in tables if table is not None)


def _attention(config: Any, device: str) -> str | None:
    """Return `eager` if PyTorch's default attention may give wrong results, otherwise ``None``.

    If all heads share one key and there is a mask, PyTorch's fused kernel can leave out the last
    position (PyTorch issue 191937, fixed in August 2026). With torch 2.11 on an H100, scores were
    wrong by 5 nats.
    """
    text = config.get_text_config()
    shares = getattr(text, "num_key_value_heads", None) == 1 or getattr(text, "multi_query", False)
    return "eager" if device == "cuda" and shares else None


def saved_quantisation(config: Any) -> str | None:
    """Return the quantisation method of a checkpoint; ``None`` if it isn't quantised."""
    saved = getattr(config, "quantization_config", None)
    if saved is None:
        return None
    return str(saved.get("quant_method") if isinstance(saved, dict) else saved.quant_method)


def quantisation(name: str, config: Any, options: ModelOptions) -> str | None:
    """Return the value of ``Identity.quantisation``, taken from the checkpoint or the options.

    Raises ``BadInput`` for a checkpoint in int8, and ``UsageProblem`` if the options quantise a
    quantised checkpoint again. Raises ``MissingComponent`` if bitsandbytes isn't installed.
    """
    saved, method = saved_quantisation(config), options.quantisation
    if saved and "'load_in_8bit': True" in str(config.quantization_config):
        problem = "was saved in int8, where a score depends on the other texts of the forward pass"
        raise BadInput(f"model {name}", problem, "give the model that isn't quantised")
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
