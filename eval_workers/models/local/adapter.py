"""PEFT adapters: found and named before any weights are loaded, then put on a base model.

An adapter stays unmerged: merging rounds it to the base's dtype, and a quantised base can't hold
it. Its weights are read from safetensors only.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from transformers.utils.hub import cached_file, extract_commit_hash

from plumbline.eval_workers.models.local import loading as loading
from plumbline.eval_workers.models.local.patterns import why_refused
from plumbline.eval_workers.models.local.source import (
    ADAPTER_CONFIG,
    HUB_ID,
    Source,
    file_hash,
    looks_like_path,
)
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.files import json_object

_WEIGHTS = "adapter_model.safetensors"
#: A commit, or the hash of a directory's content.
_HASH = re.compile(r"[0-9a-f]{16}|[0-9a-f]{40}")

#: Keys of a configuration whose strings, or keys, PEFT matches with names of layers.
_PATTERNS = (
    *("target_modules", "exclude_modules", "modules_to_save", "layers_pattern"),
    *("rank_pattern", "alpha_pattern"),
)


@dataclass(frozen=True)
class Adapter:
    """``name`` is `NAME@HASH of the content` or `ID@COMMIT`; the files lie in ``directory``.

    ``base`` and ``base_revision`` are what its configuration says that it was trained on.
    """

    name: str
    directory: Path
    peft_version: str
    base: str = ""
    base_revision: str = ""

    def check_base(self, source: Source) -> None:
        """Raise ``BadInput`` for a base of another revision, also one of the same shape.

        Commits are compared with commits, and contents of directories with contents; a branch
        proves nothing.
        """
        wanted, given = self.base_revision, str(source.revision)
        comparable = len(wanted) == len(given) and _HASH.fullmatch(wanted)
        if comparable and wanted != given:
            problem = f"was trained on {self.base} of revision {wanted}, {source.name} is {given}"
            raise BadInput(f"adapter {self.name}", problem, "give that base as --model")


def find_adapter(adapter: str) -> Adapter:
    """Find an adapter by directory or hub id and check that it fits a left-to-right model.

    Raises ``BadInput`` for what isn't such an adapter.
    """
    version = metadata.version("peft")
    path = Path(adapter).expanduser()
    if path.exists() or looks_like_path(adapter):
        found = _local(path, version)
    else:
        found = _on_hub(adapter, version)
    config = _checked(adapter, found.directory / ADAPTER_CONFIG)
    base, revision = (config.get(key) for key in ("base_model_name_or_path", "revision"))
    return replace(found, base=str(base or "a model"), base_revision=str(revision or ""))


def put_on(model: Any, adapter: Adapter) -> Any:
    """The base model with the adapter's layers in it, not merged.

    Raises ``BadInput`` when the adapter was not made for a model of this shape.
    """
    import peft

    what, fix = f"adapter {adapter.name}", "give the base it was trained on as --model"
    config = peft.PeftConfig.from_pretrained(str(adapter.directory))
    config.inference_mode = True
    try:
        with warnings.catch_warnings():  # PEFT's, of layers it adjusts to and names that will go
            warnings.simplefilter("ignore")
            held = peft.PeftModelForCausalLM(model, config)
            loaded = held.load_adapter(str(adapter.directory), "default")
    except SafetensorError as e:
        problem = f"its {_WEIGHTS} can't be read: {loading.first_line(e)}"
        raise BadInput(what, problem, "download or save it again") from e
    except (RuntimeError, ValueError, KeyError) as e:
        problem = f"does not fit the model: {loading.first_line(e)}"
        raise BadInput(what, problem, fix) from e
    for keys, how in ((loaded.missing_keys, "lacks"), (loaded.unexpected_keys, "also has")):
        if keys:
            problem = f"does not fit the model: it {how} {len(keys)} weights, {min(keys)} first"
            raise BadInput(what, problem, fix)
    return held.get_base_model()


def _local(path: Path, version: str) -> Adapter:
    fix = "give a directory that PEFT's save_pretrained wrote"
    for name in (ADAPTER_CONFIG, _WEIGHTS):
        if not (path / name).is_file():
            raise BadInput(f"adapter {path}", f"holds no {name}", fix)
    digest = hashlib.sha256()
    for name in (ADAPTER_CONFIG, _WEIGHTS):
        digest.update(f"{name}\0{file_hash(path / name)}\n".encode())
    return Adapter(f"{path.resolve().name}@{digest.hexdigest()[:16]}", path, version)


def _on_hub(adapter: str, version: str) -> Adapter:
    if not HUB_ID.fullmatch(adapter):
        raise BadInput(f"adapter {adapter!r}", "is neither a directory nor a hub id")
    source = Source(adapter, adapter, None, is_local=False)
    config = Path(loading.load(source, cached_file, filename=ADAPTER_CONFIG))
    commit = extract_commit_hash(str(config), None)
    if commit is None:
        raise BadInput(f"adapter {adapter}", f"no commit is known of {config}")
    pinned = Source(adapter, adapter, commit, is_local=False)
    weights = Path(loading.load(pinned, cached_file, filename=_WEIGHTS))
    return Adapter(f"{adapter}@{commit}", weights.parent, version)


def _checked(adapter: str, path: Path) -> dict[str, Any]:
    """The configuration.

    Refused is what would change the input, or was made for something else than next tokens.
    """
    what = f"adapter {adapter}"
    try:
        config = json_object(path)
        kind, task = str(config["peft_type"]), config.get("task_type")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
        raise BadInput(what, f"its {ADAPTER_CONFIG} can't be read: {loading.first_line(e)}") from e
    from peft.mapping import PEFT_TYPE_TO_TUNER_MAPPING

    tuners = {kind.value: tuner for kind, tuner in PEFT_TYPE_TO_TUNER_MAPPING.items()}
    tuner = tuners.get(kind)
    if tuner is None or not hasattr(tuner, "merge_and_unload"):
        problem = f"is of type {kind}, which does not change the model's weights as LoRA does"
        raise BadInput(what, problem, "give a LoRA adapter")
    if config.get("megatron_config"):
        problem = "asks for layers of another package, which it names itself"
        raise BadInput(what, problem, "give an adapter without `megatron_config`")
    if task not in (None, "CAUSAL_LM"):
        problem = f"was made for the task {task}, it has no log p(sentence)"
        raise BadInput(what, problem, "give an adapter for CAUSAL_LM")
    _check_patterns(what, config)
    return dict(config)


def _check_patterns(what: str, config: dict[str, Any]) -> None:
    """Raise ``BadInput`` for a regular expression that PEFT may match for ever."""
    for key in _PATTERNS:
        held = config.get(key) or ()
        for pattern in map(str, [held] if isinstance(held, str) else held):
            if problem := why_refused(pattern):
                refusal = f"its {key} holds a pattern that {problem}: {pattern[:80]}"
                raise BadInput(what, refusal, "name the layers one by one in it")
