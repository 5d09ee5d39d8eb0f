"""Reading a model's parts with transformers: what goes wrong is bad input, told in one line."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

import huggingface_hub
import transformers
from transformers.utils.hub import cached_file, extract_commit_hash

from eval_workers.backends._source import Source
from eval_workers.backends.base import ModelOptions
from warehouse.errors import BadInput, UsageProblem

#: BOS by convention, for tokenizers of these model types that name none.
_BOS_CONVENTIONS = {"gpt_neox": "<|endoftext|>"}


def silence() -> None:
    """The libraries' own progress bars and warnings off: commands have theirs."""
    huggingface_hub.utils.logging.set_verbosity_error()
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()


def at_commit(source: Source) -> Source:
    """The source with a hub revision made a commit: a branch can move, also during a run."""
    if source.is_local:
        return source
    path = load(source, cached_file, filename="config.json")
    commit = extract_commit_hash(str(path), None)
    if commit is None:
        raise BadInput(f"model {source.name}", f"no commit is known of {path}")
    return replace(source, revision=commit)


def load(source: Source, loader: Callable[..., Any], **options: Any) -> Any:
    """Load a part of a model; whatever goes wrong is bad input, told in one line."""
    if not source.is_local:
        options["revision"] = source.revision or "main"
    options["local_files_only"] = source.is_local
    if loader is not cached_file:
        options["trust_remote_code"] = False  # code that comes with a model is never run
    try:
        return loader(source.location, **options)
    except (KeyboardInterrupt, MemoryError):
        raise
    except Exception as e:  # the libraries raise many kinds
        if source.is_local:
            raise BadInput(f"model {source.location}", f"can't be loaded: {first_line(e)}") from e
        problem = f"not a local directory, and can't be had from the hub: {first_line(e)}"
        fix = "check the name and the network, or give a local directory"
        raise BadInput(f"model {source.name}", problem, fix) from e


def first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def quantisation(config: Any) -> str | None:
    """Method of the quantisation a checkpoint was saved with."""
    saved = getattr(config, "quantization_config", None)
    if saved is None:
        return None
    return str(saved.get("quant_method") if isinstance(saved, dict) else saved.quant_method)


def check_causal(name: str, config: Any) -> None:
    architectures = getattr(config, "architectures", None) or []
    causal = [a for a in architectures if a.endswith(("ForCausalLM", "LMHeadModel"))]
    if getattr(config, "is_encoder_decoder", False) or (architectures and not causal):
        kind = ", ".join(architectures) or config.model_type
        problem = f"{kind} is not a causal language model, it has no log p(sentence)"
        raise BadInput(f"model {name}", problem, "give a left-to-right language model")


def choose_bos(name: str, tokenizer: Any, config: Any, options: ModelOptions) -> tuple[str, int]:
    """The context token: the one asked for, the tokenizer's, the configuration's, the convention's.

    The configuration's counts only if the tokenizer holds it for a special token: several model
    types fill it with a default that means another token in the vocabulary at hand.
    """
    vocabulary = tokenizer.get_vocab()
    if options.bos is not None:
        if options.bos not in vocabulary:
            raise UsageProblem(f"--bos {options.bos}", f"is no single token of model {name}")
        return f"option: {options.bos}", vocabulary[options.bos]
    if tokenizer.bos_token_id is not None:
        return "tokenizer.bos_token", int(tokenizer.bos_token_id)
    special = {i for i, token in tokenizer.added_tokens_decoder.items() if token.special}
    special.update(tokenizer.all_special_ids)
    configured = getattr(config, "bos_token_id", None)
    if isinstance(configured, int) and configured in special:
        return "config.bos_token_id", configured
    convention = _BOS_CONVENTIONS.get(config.model_type)
    if convention in vocabulary:
        return f"convention: {convention}", vocabulary[convention]
    problem = "neither its tokenizer nor its configuration names a BOS token to start from"
    raise UsageProblem(f"model {name}", problem, "choose one of its tokens with --bos TOKEN")
