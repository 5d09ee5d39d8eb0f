"""Load a model's parts with transformers, and turn errors into one-line errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
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
from plumbline.warehouse.errors import BadInput, MissingComponent, UsageProblem, failure


def silence() -> None:
    """Turn off the libraries' progress bars and warnings: commands show their own."""
    huggingface_hub.utils.logging.set_verbosity_error()
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()


def pinned(source: Source, filename: str, what: str) -> Source:
    """Pin a hub source to the commit of one of its files; ``what`` names the source in errors."""
    path = load(source, cached_file, filename=filename)
    commit = extract_commit_hash(str(path), None)
    if commit is None:
        raise BadInput(what, f"{path} has no known commit")
    return replace(source, revision=commit)


def load(source: Source, loader: Callable[..., Any], **options: Any) -> Any:
    """Load a part with ``loader``. Errors have one line; an unreachable hub is ``Interrupted``."""
    if not source.is_local:
        options["revision"] = source.revision or "main"
    options["local_files_only"] = source.is_local
    if loader not in (cached_file, find_adapter_config_file):
        options["trust_remote_code"] = False  # a model's own code never runs
    what = f"model {source.location}"
    try:
        return loader(source.location, **options)
    except (KeyboardInterrupt, MemoryError):
        raise
    except Exception as e:  # the libraries raise many types
        if "trust_remote_code" in str(e):
            problem, fix = "needs code of its own, which is never run", "give another model"
            raise UsageProblem(what, problem, fix) from e
        # The library tries tiktoken last, so the error names tiktoken.
        can_convert = is_sentencepiece_available() and is_protobuf_available()
        if "tiktoken" in str(e) and not can_convert:
            problem, fix = "its tokenizer has to be converted", "pip install sentencepiece protobuf"
            raise MissingComponent(what, problem, fix) from e
        if "ignore_mismatched_sizes" in str(e):
            problem = "its weights are of other sizes than its config.json says"
            raise BadInput(what, problem, "download or save it again") from e
        if source.is_local:
            raise BadInput(what, f"can't be loaded: {first_line(e)}") from e
        problem = f"not a local directory, and can't be had from the hub: {first_line(e)}"
        fix = "check name and network; a gated model needs HF_TOKEN; or a directory: docs/models.md"
        raise failure(e, what, problem, fix) from e


def first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
