"""Reading a model's parts with transformers; errors have one line."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import huggingface_hub
import transformers
from transformers.utils import (
    find_adapter_config_file,
    is_protobuf_available,
    is_sentencepiece_available,
)
from transformers.utils.hub import cached_file, extract_commit_hash

from plumbline.eval_workers.models.local.source import Source
from plumbline.eval_workers.models.model_lists import load as load_list
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.warehouse.errors import (
    BadInput,
    MissingComponent,
    UsageProblem,
    did_you_mean,
    failure,
)
from plumbline.warehouse.paths import json_object

#: Configuration keys that count layers or experts, and the largest count that is accepted.
_COUNTED = re.compile(r"(num|n)_(\w+_)?(layers?|experts|blocks)|(\w+_)?(layers|depth)")
_MOST = 4096
#: Configuration keys of sizes, and the largest size that a model can have.
_SIZES = re.compile(
    r"(\w+_)?heads?|n_(embd|inner|positions|ctx)|d_(model|ff|kv)"
    r"|(hidden|intermediate|vocab)_size|ffn_dim|head_dim|dim|max_position_embeddings"
)
_LARGEST = 1 << 27
#: BOS by convention, by model type, for tokenizers that name none.
_BOS_CONVENTIONS = {"gpt_neox": "<|endoftext|>"}


def silence() -> None:
    """Turn off the libraries' progress bars and warnings: commands show their own."""
    huggingface_hub.utils.logging.set_verbosity_error()
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()


def at_commit(source: Source) -> Source:
    """The source at the commit of its hub revision: a branch can move, even during a run.

    Raises ``BadInput`` for an adapter: transformers would load the adapter's base too.
    """
    if source.is_local:
        return source
    if load(source, find_adapter_config_file) is not None:
        fix = f"give --model BASE --adapter {source.name}"
        raise BadInput(f"model {source.name}", "is an adapter", fix)
    return pinned(source, "config.json", f"model {source.name}")


def pinned(source: Source, filename: str, what: str) -> Source:
    """A hub source at the commit of one of its files; ``what`` names it in an error."""
    path = load(source, cached_file, filename=filename)
    commit = extract_commit_hash(str(path), None)
    if commit is None:
        raise BadInput(what, f"{path} has no known commit")
    return replace(source, revision=commit)


def check_configuration(source: Source) -> None:
    """Raise ``BadInput`` for a configuration that claims more layers or larger sizes than exist.

    Without this check, transformers would build all of them before it notices missing weights.
    """
    path = Path(load(source, cached_file, filename="config.json"))
    try:
        parts = [json_object(path)]
    except (OSError, ValueError) as e:
        problem = f"can't be loaded: config.json: {first_line(e)}"
        raise BadInput(f"model {source.name}", problem) from e
    for part in parts:  # the loop appends the configurations inside each part
        for key, value in part.items():
            if isinstance(value, dict):
                parts.append(value)
            most = _MOST if _COUNTED.fullmatch(key) else _LARGEST if _SIZES.fullmatch(key) else None
            if most is not None and isinstance(value, int) and value > most:
                problem = f"its config.json claims {key} {f'{value:,}'[:40]}, more than {most:,}"
                raise BadInput(f"model {source.name}", problem, "check where it comes from")


def load(source: Source, loader: Callable[..., Any], **options: Any) -> Any:
    """Load a part with ``loader``. Errors have one line: ``Interrupted`` for an unreachable hub."""
    if not source.is_local:
        options["revision"] = source.revision or "main"
    options["local_files_only"] = source.is_local
    if loader not in (cached_file, find_adapter_config_file):
        options["trust_remote_code"] = False  # a model's own code never runs
    try:
        return loader(source.location, **options)
    except (KeyboardInterrupt, MemoryError):
        raise
    except Exception as e:  # the libraries raise many types
        if "trust_remote_code" in str(e):
            problem, fix = "needs code of its own, which is never run", "give another model"
            raise UsageProblem(f"model {source.location}", problem, fix) from e
        # The library tries tiktoken last, so its error names tiktoken.
        can_convert = is_sentencepiece_available() and is_protobuf_available()
        if "tiktoken" in str(e) and not can_convert:
            problem, fix = "its tokenizer has to be converted", "pip install sentencepiece protobuf"
            raise MissingComponent(f"model {source.location}", problem, fix) from e
        if "ignore_mismatched_sizes" in str(e):
            problem = "its weights are of other sizes than its config.json says"
            raise BadInput(f"model {source.location}", problem, "download or save it again") from e
        if source.is_local:
            raise BadInput(f"model {source.location}", f"can't be loaded: {first_line(e)}") from e
        problem = f"not a local directory, and can't be had from the hub: {first_line(e)}"
        fix = "check name and network; a gated model needs HF_TOKEN; or a directory: docs/models.md"
        if "not a valid model identifier" in str(e):
            fix = did_you_mean(source.name, [m.id for m in load_list("unstereoeval")], fix)
        raise failure(e, f"model {source.name}", problem, fix) from e


def first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def saved_quantisation(config: Any) -> str | None:
    """Quantisation method of a checkpoint; ``None`` for one that isn't quantised."""
    saved = getattr(config, "quantization_config", None)
    if saved is None:
        return None
    return str(saved.get("quant_method") if isinstance(saved, dict) else saved.quant_method)


def choose_bos(name: str, tokenizer: Any, config: Any, options: ModelOptions) -> tuple[str, int]:
    """Source and id of the BOS: ``--bos``, the tokenizer, the configuration, or a convention.

    The configuration's BOS counts only if it is a special token of the tokenizer: the default of
    several model types is an ordinary token in other vocabularies. Raises ``UsageProblem`` without
    a BOS, and if ``--bos`` isn't a token.
    """
    vocabulary = tokenizer.get_vocab()
    if options.bos is not None:
        if options.bos not in vocabulary:
            raise UsageProblem(f"--bos {options.bos}", f"is not a single token of model {name}")
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
    raise UsageProblem(
        f"model {name}", problem, "choose one of its tokens with bos (option or setting)"
    )


def special_around(tokenizer: Any, mode: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Special tokens that a tokenizer puts before and after a text; empty if they aren't found.

    ``mode`` is `text` for an input, `text_target` for an output.
    """
    for text in ("a", "the", "1", "."):
        bare = tokenizer(**{mode: text}, add_special_tokens=False)["input_ids"]
        whole = tokenizer(**{mode: text})["input_ids"]
        for start in range(len(whole) - len(bare) + 1):
            end = start + len(bare)
            if bare and whole[start:end] == bare:
                return tuple(whole[:start]), tuple(whole[end:])
    return (), ()
