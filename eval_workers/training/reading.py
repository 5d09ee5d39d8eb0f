"""The text that a model trained here has read, made anew from its shards."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.training.trained_models import MARKER
from plumbline.eval_workers.training.training_options import TrainOptions
from plumbline.warehouse.input.shards import RecordForm, fingerprint
from plumbline.warehouse.regular_files import json_object

if TYPE_CHECKING:
    from plumbline.eval_workers.training.trainer import Reading


def trained_on(model: Path) -> dict[str, Any] | None:
    """The identity of the training of a directory's model; ``None`` if it is from elsewhere."""
    try:
        identity: dict[str, Any] = json_object(model / MARKER)["identity"]
        return identity
    except (OSError, ValueError, KeyError):
        return None


def is_known(model: Path, shards: Sequence[Path]) -> bool:
    """True if :func:`reading` says what the model read of these shards.

    Not for an n-gram model, which reads everything, an adapter, and text changed part of the way.
    """
    identity = trained_on(model)
    if identity is None or "context" not in identity["options"] or "window" in identity:
        return False
    if (identity.get("base") or {}).get("lora_rank"):
        return False
    return bool(identity["shards"] == [fingerprint(shard) for shard in shards])


def reading(model: Path, shards: Sequence[Path], form: RecordForm) -> Reading:
    """The text that a model read; :func:`is_known` has to hold for its shards."""
    from plumbline.eval_workers.models.transformers_backend import TransformersBackend
    from plumbline.eval_workers.training import trainer
    from plumbline.eval_workers.training.learner import continued

    identity = trained_on(model)
    assert identity is not None
    options = TrainOptions(**identity["options"])
    learner = continued(TransformersBackend(str(model), ModelOptions()), None, options)
    return trainer.reading(shards, form, options, learner)
