"""Find a PEFT adapter before weights are loaded, then put it on its base model.

The adapter isn't merged into the base model's weights, because merging would round the result.
Adapter weights are read from safetensors files only.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from transformers.utils.hub import cached_file

from plumbline.eval_workers.models.local.source import (
    ADAPTER_CONFIG,
    Source,
    check_reachable,
    files_hash,
    first_line,
    load_part,
    looks_like_path,
    pinned,
)
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.paths import json_object

_WEIGHTS = "adapter_model.safetensors"
#: A commit, or the hash of a directory's content.
_HASH = re.compile(r"[0-9a-f]{16}|[0-9a-f]{40}")


@dataclass(frozen=True)
class Adapter:
    """A PEFT adapter, whose files are in ``directory``.

    ``name`` is `HUB_ID@COMMIT`, or `DIRECTORY@HASH` with a hash of the content. According to its
    configuration, the adapter was trained on the model ``base`` at revision ``base_revision``.
    """

    name: str
    directory: Path
    base: str
    base_revision: str

    def check_base(self, source: Source) -> None:
        """Raise ``BadInput`` if the adapter was trained on another revision of the base.

        Two revisions are compared only if both are commits or both are content hashes. A branch
        name isn't checked.
        """
        trained, actual = self.base_revision, str(source.revision)
        comparable = len(trained) == len(actual) and _HASH.fullmatch(trained)
        if comparable and trained != actual:
            problem = f"was trained on revision {trained} of {self.base}, {source.name} is {actual}"
            raise BadInput(f"adapter {self.name}", problem, "give --model in that revision")


def find_adapter(adapter: str) -> Adapter:
    """Find an adapter by directory or hub id.

    Raises ``BadInput`` for an adapter that can't be read or isn't for a causal model.
    """
    what, path = f"adapter {adapter}", Path(adapter).expanduser()
    if path.exists() or looks_like_path(adapter):
        for file in (ADAPTER_CONFIG, _WEIGHTS):
            if not (path / file).is_file():
                fix = "give a directory that PEFT's save_pretrained wrote"
                raise BadInput(what, f"holds no {file}", fix)
        content = files_hash(path, [path / ADAPTER_CONFIG, path / _WEIGHTS])
        name = f"{path.resolve().name}@{content}"
    else:
        source = Source(adapter, adapter, None, False)
        check_reachable(source)
        source = pinned(source, ADAPTER_CONFIG, what)
        path = Path(load_part(source, cached_file, filename=_WEIGHTS)).parent
        name = f"{adapter}@{source.revision}"
    config = _checked(what, path / ADAPTER_CONFIG)
    base, revision = (config.get(key) for key in ("base_model_name_or_path", "revision"))
    return Adapter(name, path, str(base or "a model"), str(revision or ""))


def _checked(what: str, path: Path) -> dict[str, Any]:
    """Read an adapter's configuration, and refuse adapters that aren't LoRA for causal models."""
    from peft.mapping import PEFT_TYPE_TO_TUNER_MAPPING

    try:
        config = json_object(path)
    except (OSError, ValueError) as e:
        raise BadInput(what, f"its {ADAPTER_CONFIG} can't be read: {first_line(e)}") from e
    tuners = {kind.value: tuner for kind, tuner in PEFT_TYPE_TO_TUNER_MAPPING.items()}
    is_lora_like = hasattr(tuners.get(str(config.get("peft_type"))), "merge_and_unload")
    is_causal = config.get("task_type") in (None, "CAUSAL_LM")
    if not is_lora_like or not is_causal or config.get("megatron_config"):
        named = {k: config.get(k) for k in ("peft_type", "task_type", "megatron_config")}
        problem = f"doesn't change a causal model's weights as LoRA does: {named}"
        raise BadInput(what, problem, "give a LoRA adapter for CAUSAL_LM")
    return config


def put_on(model: Any, adapter: Adapter) -> Any:
    """Insert the adapter's layers into the base model, without merging, and return the model.

    Raises ``BadInput`` if the adapter's weights can't be read or don't fit the model.
    """
    import peft

    what, fix = f"adapter {adapter.name}", "give the model it was trained on as --model"
    config = peft.PeftConfig.from_pretrained(str(adapter.directory))
    config.inference_mode = True
    try:
        with warnings.catch_warnings(action="ignore"):  # hide PEFT's warnings about changed layers
            adapted = peft.PeftModelForCausalLM(model, config)
            loaded = adapted.load_adapter(str(adapter.directory), "default")
    except SafetensorError as e:
        problem = f"its {_WEIGHTS} can't be read: {first_line(e)}"
        raise BadInput(what, problem, "download or save it again") from e
    except (RuntimeError, ValueError, KeyError) as e:
        raise BadInput(what, f"does not fit the model: {first_line(e)}", fix) from e
    if others := [*loaded.missing_keys, *loaded.unexpected_keys]:
        problem = f"does not fit the model: {len(others)} weights differ, such as {min(others)}"
        raise BadInput(what, problem, fix)
    return adapted.get_base_model()
