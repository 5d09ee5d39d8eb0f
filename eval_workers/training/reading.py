"""The text that a model trained by Plumbline has read, rebuilt from its shards."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.training.trained_models import MARKER, form_mark
from plumbline.eval_workers.training.training_options import TrainOptions
from plumbline.warehouse.input.shards import RecordForm, fingerprint
from plumbline.warehouse.regular_files import json_object

if TYPE_CHECKING:
    from plumbline.eval_workers.training.trainer import Reading


def training_of(model: Path) -> dict[str, Any]:
    """``key``, ``identity`` and ``figures`` of a training; empty if it wasn't Plumbline's."""
    try:
        return json_object(model / MARKER)
    except (OSError, ValueError):
        return {}


def trained_on(model: Path, shards: Sequence[Path], form: RecordForm) -> dict[str, Any] | None:
    """The identity of a model's training if it read exactly these texts, else ``None``.

    ``None`` also for an adapter, and for a training that read other shards in a window.
    """
    identity: dict[str, Any] = training_of(model).get("identity", {})
    if "window" in identity or (identity.get("base") or {}).get("lora_rank"):
        return None
    read = identity.get("shards"), identity.get("form")
    is_same = read == ([fingerprint(shard) for shard in shards], form_mark(form))
    return identity if is_same else None


def reading(model: Path, shards: Sequence[Path], form: RecordForm) -> Reading:
    """The text that a neural model read from shards for which :func:`trained_on` isn't ``None``."""
    from plumbline.eval_workers.models.transformers_backend import TransformersBackend
    from plumbline.eval_workers.training import trainer
    from plumbline.eval_workers.training.learner import continued

    options = TrainOptions(**training_of(model)["identity"]["options"])
    learner = continued(TransformersBackend(str(model), ModelOptions()), None, options)
    return trainer.reading(shards, form, options, learner)
