"""Find a model in a local directory or on the hub. A directory is identified by its content.

``load_part`` loads a configuration, tokenizer or weights, and turns exceptions into short errors.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import huggingface_hub
import transformers
from huggingface_hub import constants, get_session, try_to_load_from_cache
from transformers.utils import (
    find_adapter_config_file,
    is_protobuf_available,
    is_sentencepiece_available,
)
from transformers.utils.hub import cached_file, extract_commit_hash

from plumbline.warehouse.errors import BadInput, MissingComponent, UsageProblem, failure
from plumbline.warehouse.paths import opened

_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
#: A file that adapters have and models don't.
ADAPTER_CONFIG = "adapter_config.json"
_DEFINING = (
    *_WEIGHTS,
    "config.json",
    "*.index.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.*",
    "merges.txt",
    "*.model",
)


@dataclass(frozen=True)
class Source:
    """Where a model comes from. transformers loads ``location``. Tables show ``name``.

    ``revision`` is the content hash of a local model, or a revision on the hub. ``step`` is the
    training step that the revision's name contains, or ``None``.
    """

    name: str
    location: str
    revision: str | None
    is_local: bool
    step: int | None = None


#: A training step in the name of a revision, such as step1000 or checkpoint-500.
_STEP = re.compile(r"(?:step|checkpoint)[-_]?(\d{1,18})(?!\d)")


def looks_like_path(name: str) -> bool:
    """Return True if a name can't be a hub id, so it has to be a path.

    >>> looks_like_path("./tiny"), looks_like_path("a/b/c"), looks_like_path("gpt2")
    (True, True, False)
    """
    return name.startswith(("/", "./", "../", "~")) or name.count("/") > 1


def find_source(model: str, revision: str | None) -> Source:
    """Find a model's source from its directory or hub id, without contacting the hub.

    Raises ``BadInput`` for a path that is missing or holds no saved model. Raises ``UsageProblem``
    if a revision is given for a local directory.

    >>> find_source("EleutherAI/pythia-70m", None).is_local
    False
    >>> find_source("m", "stage1-step1000-tokens5B").step, find_source("m", "main").step
    (1000, None)
    """
    path = Path(model).expanduser()
    if not path.exists() and not looks_like_path(model):
        step = _STEP.search(revision or "")
        return Source(model, model, revision, False, int(step[1]) if step else None)
    _check_saved_model(path)
    if revision is not None:
        problem = "a local directory has no revisions: a hash of its content is used instead"
        raise UsageProblem(f"model {model}", problem, "leave out --revision")
    return Source(path.resolve().name, str(path), content_hash(path), True)


def _check_saved_model(path: Path) -> None:
    what, fix = f"model {path}", "give a hub id or a directory saved with save_pretrained"
    if not path.is_dir():
        raise BadInput(what, "is a file" if path.exists() else "does not exist", fix)
    if (path / ADAPTER_CONFIG).is_file():
        raise BadInput(what, "is an adapter", f"give --model BASE --adapter {path}")
    if not (path / "config.json").is_file():
        raise BadInput(what, "is not a saved model: it holds no config.json", fix)
    for file in path.iterdir():  # reading a named pipe blocks until another process writes
        if not (file.is_file() or file.is_dir()):
            raise BadInput(what, f"{file.name} is not a regular file", fix)
    if not any(file for pattern in _WEIGHTS for file in path.glob(pattern)):
        raise BadInput(what, f"is not a whole model: it holds no {' or '.join(_WEIGHTS)}", fix)


def content_hash(directory: Path) -> str:
    """Return a hash of a saved model's weights, configuration and tokenizer files (16 hex digits).

    Other files, such as a README or a training log, are not part of the hash.
    """
    return files_hash(directory, sorted({f for p in _DEFINING for f in directory.glob(p)}))


def files_hash(directory: Path, paths: Iterable[Path]) -> str:
    """Return a hash of the names and content of ``paths``, in the given order (16 hex digits)."""
    digest = hashlib.sha256()
    for path in paths:
        try:
            with opened(path) as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as e:
            raise BadInput(f"model file {path}", f"can't be read: {e.strerror}") from e
        digest.update(f"{path.relative_to(directory).as_posix()}\0{content}\n".encode())
    return digest.hexdigest()[:16]


def silence() -> None:
    """Turn off the progress bars and warnings of transformers and of the hub's client."""
    huggingface_hub.utils.logging.set_verbosity_error()
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()


def check_reachable(source: Source) -> None:
    """Raise ``Interrupted`` if the model isn't in the local cache and the hub can't be reached.

    Without this check, the hub's client would try for half a minute to download each file. Raises
    ``BadInput`` for a name that can't be a hub id.
    """

    def ask(name: str, revision: str, **_: object) -> None:
        files = ("config.json", ADAPTER_CONFIG)
        cached = (try_to_load_from_cache(name, file, revision=revision) for file in files)
        if not any(isinstance(path, str) for path in cached):
            get_session().head(constants.ENDPOINT, timeout=5)

    load_part(source, ask)


def pinned(source: Source, filename: str, what: str) -> Source:
    """Return the source at the commit of ``filename``. ``what`` names the source in errors."""
    path = load_part(source, cached_file, filename=filename)
    commit = extract_commit_hash(str(path), None)
    if commit is None:
        raise BadInput(what, f"{path} has no known commit")
    return replace(source, revision=commit)


def load_part(source: Source, loader: Callable[..., Any], **options: Any) -> Any:
    """Load a part of the model, such as its tokenizer. Turn exceptions into one-line errors."""
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
    except Exception as e:  # libraries raise many types of exceptions
        if "trust_remote_code" in str(e):
            problem, fix = "needs code of its own, which is never run", "give another model"
            raise UsageProblem(what, problem, fix) from e
        # Without sentencepiece, transformers tries tiktoken last, so its error names tiktoken.
        can_convert = is_sentencepiece_available() and is_protobuf_available()
        if "tiktoken" in str(e) and not can_convert:
            problem, fix = "its tokenizer has to be converted", "pip install sentencepiece protobuf"
            raise MissingComponent(what, problem, fix) from e
        if "ignore_mismatched_sizes" in str(e):
            problem = "its weights have other sizes than its config.json says"
            raise BadInput(what, problem, "download or save it again") from e
        if source.is_local:
            raise BadInput(what, f"can't be loaded: {first_line(e)}") from e
        problem = f"isn't a local directory, and can't be loaded from the hub: {first_line(e)}"
        fix = "check name and network; a gated model needs HF_TOKEN (docs/models.md)"
        raise failure(e, what, problem, fix) from e


def first_line(error: Exception) -> str:
    """Return the first line of an error's text, or its type if it has no text."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
