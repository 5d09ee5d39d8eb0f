"""Trained models and adapters: made once, found again, recorded. No torch here.

A model directory is whole once it has its name: it is made beside it and renamed at the end. Its
``plumbline.json`` says what it was trained from, so that asking for the same model again costs
nothing and asking for another one trains again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.ngram import NgramOptions
from plumbline.eval_workers.training.options import (
    Base,
    Progress,
    TrainOptions,
    Window,
)
from plumbline.warehouse.errors import UsageProblem, disk_problems
from plumbline.warehouse.files import json_object
from plumbline.warehouse.input.shards import DEFAULT, RecordForm, fingerprint
from plumbline.warehouse.input.token_files import digest
from plumbline.warehouse.paths import replace_directory
from plumbline.warehouse.storage.locks import sole
from plumbline.warehouse.storage.runs import config_hash
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.progress import progress

if TYPE_CHECKING:
    from plumbline.eval_workers.models.transformers_backend import TransformersBackend

MARKER = "plumbline.json"
#: Raised when the same options would give other weights.
TRAINER_VERSION = 2


@dataclass(frozen=True)
class TrainedModel:
    """A trained model on disk; ``reused`` when it was there already. Fields as in its table."""

    model: str
    path: Path
    corpus: str
    seed: int
    n_parameters: int
    n_steps: int
    n_tokens: int
    loss_start_nats: float
    loss_end_nats: float
    seconds: float
    base: str | None = None
    base_revision: str | None = None
    lora_rank: int | None = None
    reused: bool = False

    def row(self, run_id: str) -> dict[str, object]:
        """Row of table ``trained_model``."""
        from plumbline.eval_workers.models.local.source import content_hash

        row = asdict(self) | {"path": str(self.path), "run_id": run_id}
        row["revision"] = content_hash(self.path)
        row["adapter"] = None
        if self.lora_rank is not None:
            from plumbline.eval_workers.models.local.adapter import find_adapter

            row["adapter"] = find_adapter(str(self.path)).name
        del row["reused"]
        return row

    def scored(self, base: Base | None) -> tuple[str, ModelOptions]:
        """What is scored, and how it is loaded: the model, or its base with it as an adapter."""
        if base is None:
            return str(self.path), ModelOptions()
        if self.lora_rank is not None:
            return base.model, replace(base.how, adapter=str(self.path))
        return str(self.path), replace(base.how, revision=None)


def train_model(
    shards: Sequence[Path],
    name: str,
    corpus: str,
    options: TrainOptions | NgramOptions,
    out: str | Path,
    progress: Progress | None = None,
    form: RecordForm = DEFAULT,
    n_checkpoints: int = 0,
    tokenizer: Path | None = None,
    window: Window | None = None,
    base: Base | None = None,
) -> TrainedModel:
    """Train a model on shards into ``<out>/<name>``, or return it when it is there already.

    ``form``: how the shards' records become texts. ``n_checkpoints``, ``tokenizer`` and
    ``window``: see ``trainer.train``; a count-based model has none of them. ``base``: the model to
    continue, which has a tokenizer of its own.

    An interrupted run resumes from its last checkpoint and ends with the weights it would have
    had. A model of this name that was trained otherwise is replaced, once the new one is whole.
    Raises ``UsageProblem`` for a directory that Plumbline did not make, and for one that another
    command is training; ``BadInput`` for shards that can't be read or hold no text, for a loss that
    is not finite, and for a disk that can't be written.
    """
    path = Path(out) / plain_name(name)
    if isinstance(options, NgramOptions) and (n_checkpoints or tokenizer or window):
        problem = "has no steps and words of its own"
        raise UsageProblem(f"n-gram model {name}", problem, "leave out --checkpoints or --windows")
    identity = {
        "options": asdict(options),
        "corpus": corpus,
        "shards": [fingerprint(shard) for shard in shards],
        "trainer_version": TRAINER_VERSION,
    }
    if form != DEFAULT:
        identity["form"] = [form.text_field, digest(form.decoder)]
    if n_checkpoints:  # the weights are the same, but one made without them has to be made again
        identity["n_checkpoints"] = n_checkpoints
    if tokenizer is not None:
        identity["tokenizer"] = fingerprint(tokenizer)
    if window is not None:
        read = [fingerprint(shard) for shard in window.shards]
        identity["window"] = {"shards": read, "start": window.start, "end": window.end}
    if isinstance(options, TrainOptions) and (base is None) != bool(options.hidden):
        problem = "are of a new model" if base else "are of a model that is continued"
        raise UsageProblem("training options", problem, "use the preset continue with --base alone")
    backend = None
    if base is not None:
        backend = _backend(base)
        how = {"lora_rank": base.lora, "batch_tokens": base.how.batch_tokens}
        identity["base"] = asdict(backend.identity) | how
    key = config_hash(identity)
    if (found := _trained(path, key)) is not None:
        return found
    work = path.with_name(f".{name}.partial")
    with sole(path.with_name(f".{name}.claim"), f"model {path}"), disk_problems(path):
        if (found := _trained(path, key)) is not None:  # by the command that was here before
            return found
        if isinstance(options, NgramOptions):
            from plumbline.eval_workers.models.ngram import ngram_model as ngrams

            figures = ngrams.train(shards, name, corpus, options, work, form)
        else:
            from plumbline.eval_workers.training.trainer import train

            figures = train(
                *(list(shards), name, corpus, options, key, work, progress, form),
                *(n_checkpoints, tokenizer, window, backend, base.lora if base else None),
            )
        marker = {"key": key, "identity": identity, "figures": figures}
        (work / MARKER).write_text(json.dumps(marker, indent=1), encoding="utf-8")
        put_in_place(work, path)
    return TrainedModel(**figures, path=path)


def _backend(base: Base) -> TransformersBackend:
    """The base, without its weights. Raises ``BadInput`` for what isn't a causal language model."""
    from plumbline.eval_workers.models.transformers_backend import TransformersBackend

    return TransformersBackend(base.model, base.how)


def _trained(path: Path, key: str) -> TrainedModel | None:
    """The model that is in ``path`` if it is the one of ``key``."""
    known = read_marker(path)
    if known is None or known["key"] != key:
        return None
    return TrainedModel(**known["figures"], path=path, reused=True)


def plain_name(name: str) -> str:
    """The name of a model that is to be made; raises ``UsageProblem`` for one that is a path."""
    if Path(name).name != name or name.startswith(".") or not (name and name.isprintable()):
        raise UsageProblem(f"model name {name!r}", "has to be a plain directory name")
    return name


def record_model(store: Store, trained: TrainedModel, run_id: str) -> None:
    """Write the model's row of ``trained_model``, replacing an earlier one of this name."""
    store.replace("trained_model", [trained.row(run_id)], {"model": trained.model}, run_id)


def read_marker(path: Path) -> dict[str, Any] | None:
    """Key and figures of what Plumbline trained into ``path``; ``None`` where nothing is.

    Raises ``UsageProblem`` for a directory that it did not make.
    """
    if not path.exists():
        return None
    try:
        marker = json_object(path / MARKER)
        return {"key": marker["key"], "figures": marker["figures"]}
    except (OSError, ValueError, KeyError, TypeError):
        fix = "choose another --name or --out"
        raise UsageProblem(f"model {path}", "exists and was not trained here", fix) from None


def put_in_place(work: Path, path: Path) -> None:
    """Give a whole directory its name, instead of an earlier one of that name.

    A kill leaves a whole directory at ``path``, or (where a disk can't exchange two) none. What it
    leaves of the earlier one is in the way of nothing.
    """
    replace_directory(work, path)


@contextmanager
def progress_bar(name: str) -> Iterator[Progress]:
    """Show the steps of a training and its loss, for the length of the block."""
    with progress(f"train {name}", "steps") as update:
        yield lambda step, n_steps, loss: update(step, n_steps, note=f"loss {loss:.3f}")
