"""Train each model once, keep it on disk and reuse it. This module needs no torch.

A model is first written to a temporary directory, which is renamed when the model is complete. The
model's ``plumbline.json`` records the text and the options. A repeated command reuses the model.
If the text or the options differ, the model is trained again. Adapters of `disclosure tune` are
made in the same way.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from plumbline.eval_workers.training.training_options import TrainOptions
from plumbline.warehouse.errors import UsageProblem, disk_problems
from plumbline.warehouse.input.remote_files import fingerprint
from plumbline.warehouse.paths import json_object, replace_directory
from plumbline.warehouse.run_records import config_hash
from plumbline.warehouse.storage.locks import sole
from plumbline.warehouse.text.escape import say

MARKER = "plumbline.json"
#: Increment this when the same options would give other weights.
TRAINER_VERSION = 2


def train_model(
    shards: Sequence[Path],
    name: str,
    corpus: str,
    options: TrainOptions | None,
    out: str | Path,
    text_field: str = "text",
) -> tuple[dict[str, Any], bool]:
    """Train a model on shards and save it in ``<out>/<name>``, unless it exists.

    Return its row of ``trained_model``, without ``run_id``, and whether it already existed. For an
    n-gram model, ``options`` is ``None``. If a model of this name was trained with other options,
    it is replaced when the new model is complete. Raises ``BadInput`` for unreadable or empty
    shards, and if a loss is not finite. Also raises the errors of ``made_once``.
    """
    from plumbline.eval_workers.models.local.source import content_hash

    path = Path(out) / plain_name(name)
    identity: dict[str, Any] = {
        "options": asdict(options) if options else {},
        "corpus": corpus,
        "shards": [fingerprint(shard) for shard in shards],
        "text_field": text_field,
        "trainer_version": TRAINER_VERSION,
    }
    if options is None:
        from plumbline.eval_workers.models import ngram_model

        identity |= {"options": {"order": ngram_model.ORDER}, "ngram_version": ngram_model.VERSION}

    def make(work: Path) -> dict[str, Any]:
        if options is None:
            return ngram_model.train(shards, name, corpus, work, text_field)
        from plumbline.eval_workers.training.trainer import train

        say("if you interrupt the training, it will start again from the beginning", err=True)
        return train(shards, name, corpus, options, work, text_field)

    figures, reused = made_once(path, identity, "model", make)
    return {**figures, "path": str(path), "revision": content_hash(path)}, reused


def made_once(
    path: Path,
    identity: Mapping[str, object],
    kind: str,
    make: Callable[[Path], dict[str, Any]],
) -> tuple[dict[str, Any], bool]:
    """Make the model in ``path`` unless it exists. Return its figures, and True if it existed.

    If ``path`` has no model with this ``identity``, ``make`` writes a model to a new directory,
    which then replaces ``path``. ``make`` returns figures about the model, such as its losses.
    Figures and identity must be JSON values. ``kind`` names the kind of model in errors. Raises
    ``UsageProblem`` if Plumbline did not make the directory or if another command uses it. Raises
    ``BadInput`` if the disk can't be written.
    """
    key = config_hash(identity)
    work = path.with_name(f".{path.name}.partial")
    with sole(path.with_name(f".{path.name}.claim"), f"{kind} {path}"), disk_problems(path):
        if path.exists():
            try:
                marker = json_object(path / MARKER)
                if marker["key"] == key:
                    return marker["figures"], True
            except (OSError, ValueError, KeyError):
                problem, fix = "exists and was not trained here", "choose another --name or --out"
                raise UsageProblem(f"model {path}", problem, fix) from None
        shutil.rmtree(work, ignore_errors=True)
        figures = make(work)
        marker = {"key": key, "identity": identity, "figures": figures}
        (work / MARKER).write_text(json.dumps(marker, indent=1), encoding="utf-8")
        replace_directory(work, path)
    return figures, False


def plain_name(name: str) -> str:
    """Return ``name`` if it is a plain directory name. Otherwise raise ``UsageProblem``."""
    if Path(name).name != name or name.startswith(".") or not (name and name.isprintable()):
        fix = "such as my-model: without / and no dot in front"
        raise UsageProblem(f"model name {name!r}", "has to be a plain directory name", fix)
    return name
