"""Find a model, read its configuration and determine its kind, without its weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import transformers
from transformers import AutoConfig
from transformers.models.auto import modeling_auto as auto

from plumbline.eval_workers.models.local import loading
from plumbline.eval_workers.models.local.adapter import Adapter, find_adapter
from plumbline.eval_workers.models.local.source import Source, find_source
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.warehouse.errors import BadInput

#: Models predict a token from earlier tokens (``causal``), from the tokens on both sides
#: (``masked``), or from an input and the output's earlier tokens (``encoder-decoder``).
Kind = Literal["causal", "masked", "encoder-decoder"]

#: Each kind's class of transformers, the part of its mappings' names, and endings of the names of
#: architectures that it makes besides those in the mapping.
_CLASSES: dict[Kind, tuple[str, str, tuple[str, ...]]] = {
    "causal": ("AutoModelForCausalLM", "CAUSAL_LM", ("ForCausalLM", "LMHeadModel")),
    "masked": ("AutoModelForMaskedLM", "MASKED_LM", ("ForMaskedLM", "ForPreTraining")),
    "encoder-decoder": (
        "AutoModelForSeq2SeqLM",
        "SEQ_TO_SEQ_CAUSAL_LM",
        ("ForConditionalGeneration", "LMHeadModel", "MTModel"),
    ),
}


@dataclass(frozen=True)
class Files:
    """Description of a model: source, configuration, adapter and kind."""

    source: Source
    config: Any
    adapter: Adapter | None
    kind: Kind


def read_files(model: str, options: ModelOptions) -> Files:
    """Find a model and read its configuration; no weights are loaded.

    Raises ``BadInput`` for a model that isn't a language model or can't be loaded, for an adapter
    of another base, and for a configuration that asks for a third party's code, or claims an
    impossible size.
    """
    adapter = find_adapter(options.adapter) if options.adapter is not None else None
    loading.silence()
    source = loading.at_commit(find_source(model, options.revision))
    loading.check_configuration(source)
    config = loading.load(source, AutoConfig.from_pretrained)
    _refuse_kernels(source.name, config)
    kind = kind_of(source, config)
    if adapter is not None:
        adapter.check_base(source)
    return Files(source, config, adapter, kind)


def auto_class(kind: Kind) -> Any:
    """Return the class of transformers that makes models of a kind.

    >>> auto_class("masked").__name__
    'AutoModelForMaskedLM'
    """
    return getattr(transformers, _CLASSES[kind][0])


def kind_of(source: Source, config: Any) -> Kind:
    """Return a model's kind, by its configuration and architecture.

    Raises ``BadInput`` for a model that can't score a sentence, or was saved without its head.
    """
    architectures = getattr(config, "architectures", None) or []
    what = ", ".join(architectures) or f"model type {config.model_type}"
    possible = [kind for kind in _CLASSES if _can_be(kind, config)]
    if not possible:
        problem = f"{what} is neither a causal, a masked nor an encoder-decoder language model"
        raise BadInput(f"model {source.name}", problem, "give a language model")
    for kind in possible:
        _, mapping, endings = _CLASSES[kind]
        listed = getattr(auto, f"MODEL_FOR_{mapping}_MAPPING_NAMES").get(config.model_type)
        if not architectures or any(a == listed or a.endswith(endings) for a in architectures):
            return kind
    problem = f"{what}, of the kind {possible[0]}, was saved without the head of a language model"
    raise BadInput(f"model {source.name}", problem, "give a language model")


def _can_be(kind: Kind, config: Any) -> bool:
    """True if a model with this configuration can be of a kind.

    BERT and similar models see later tokens unless configured as decoders. So they are masked
    models, even with a head for next tokens.
    """
    if type(config) not in getattr(auto, f"MODEL_FOR_{_CLASSES[kind][1]}_MAPPING"):
        return False
    if getattr(config, "is_encoder_decoder", False) or kind == "encoder-decoder":
        return kind == "encoder-decoder" and bool(config.is_encoder_decoder)
    if type(config) not in auto.MODEL_FOR_MASKED_LM_MAPPING:
        return True
    is_left_to_right = any(getattr(config, name, False) for name in ("is_decoder", "causal"))
    return is_left_to_right == (kind == "causal")


def _refuse_kernels(name: str, config: Any) -> None:
    """Raise ``BadInput`` for a kernel `OWNER/REPOSITORY`: a third party's compiled code."""
    for part in (config, config.get_text_config()):
        for kind in ("_attn_implementation", "_experts_implementation"):
            chosen = getattr(part, kind, None)
            if isinstance(chosen, str) and "/" in chosen:
                problem = f"its configuration asks for foreign code: {kind[1:]} {chosen}"
                raise BadInput(f"model {name}", problem, "take the line out of its config.json")
