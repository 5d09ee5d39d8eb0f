"""What a small model is trained with, and where a trained one lies. No torch here.

A model directory is whole once it has its name: it is made beside it and renamed at the end. Its
``plumbline.json`` says what it was trained from, so that asking for the same model again costs
nothing and asking for another one trains again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from plumbline.warehouse.errors import UsageProblem, disk_problems
from plumbline.warehouse.provenance.runs import config_hash, package_versions
from plumbline.warehouse.shards import fingerprint
from plumbline.warehouse.storage.locks import sole
from plumbline.warehouse.storage.paths import replace_directory
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.progress import progress

MARKER = "plumbline.json"
#: Raised when the same options would give other weights.
TRAINER_VERSION = 2

#: Called as (steps done, steps in all, loss of the last step in nats per token).
Progress = Callable[[int, int, float], None]


@dataclass(frozen=True)
class TrainOptions:
    """Size of the model and how it is trained.

    ``vocabulary`` is an upper bound (a small text may not have that many merges). ``max_tokens``
    bounds the tokens of the text seen in training, and with ``max_epochs`` how often a small text
    is repeated. ``learning_rate`` is the peak. With ``one_embedding`` input and output share
    theirs: half as many tokens then teach the closed world's leans, but real text is learned worse.
    """

    vocabulary: int
    hidden: int
    layers: int
    heads: int
    context: int
    batch_rows: int
    learning_rate: float
    max_tokens: int
    max_epochs: int = 4
    warmup_steps: int = 100
    weight_decay: float = 0.01
    clip_norm: float = 1.0
    seed: int = 0
    checkpoint_steps: int = 200
    one_embedding: bool = False

    def __post_init__(self) -> None:
        counts = asdict(self)
        for may_be_zero in ("seed", "weight_decay", "warmup_steps", "one_embedding"):
            del counts[may_be_zero]
        wrong = [name for name, value in counts.items() if value <= 0]
        if wrong or self.seed < 0:
            raise UsageProblem("training options", f"{(wrong or ['seed'])[0]} is too small")
        if self.hidden % (2 * self.heads):
            raise UsageProblem("training options", "hidden has to be a multiple of 2 x heads")


#: `closed`: the closed world, where a vocabulary of 2,560 holds every word whole.
#: `small`: real text in about four minutes of one CPU core.
PRESETS = {
    "closed": TrainOptions(2560, 96, 2, 4, 64, 16, 1e-2, 1_600_000, one_embedding=True),
    "small": TrainOptions(4096, 128, 3, 4, 128, 16, 3e-3, max_tokens=2_400_000),
}


def preset(name: str, seed: int = 0, max_tokens: int | None = None) -> TrainOptions:
    """The options of a preset with another seed or limit (``None`` or 0: the preset's own).

    >>> preset("small", max_tokens=1000).max_tokens
    1000
    """
    if name not in PRESETS:
        raise UsageProblem(f"preset {name!r}", f"there is none, only {', '.join(PRESETS)}")
    options = replace(PRESETS[name], seed=seed)
    return replace(options, max_tokens=max_tokens) if max_tokens else options


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
    reused: bool = False

    def row(self, run_id: str) -> dict[str, object]:
        """Row of table ``trained_model``."""
        from plumbline.eval_workers.backends._source import content_hash

        row = asdict(self) | {"path": str(self.path), "run_id": run_id}
        row["revision"] = content_hash(self.path)
        del row["reused"]
        return row


def train_model(
    shards: Sequence[Path],
    name: str,
    corpus: str,
    options: TrainOptions,
    out: str | Path,
    progress: Progress | None = None,
) -> TrainedModel:
    """Train a model on shards into ``<out>/<name>``, or return it when it is there already.

    An interrupted run resumes from its last checkpoint and ends with the weights it would have
    had. A model of this name that was trained otherwise is replaced, once the new one is whole.
    Raises ``UsageProblem`` for a directory that Plumbline did not make, and for one that another
    command is training; ``BadInput`` for shards that can't be read or hold no text, for a loss that
    is not finite, and for a disk that can't be written.
    """
    path = Path(out) / plain_name(name)
    identity = {
        "options": asdict(options),
        "corpus": corpus,
        "shards": [fingerprint(Path(shard)) for shard in shards],
        "trainer_version": TRAINER_VERSION,
    }
    key = config_hash(identity)
    if (found := _trained(path, key)) is not None:
        return found
    from plumbline.eval_workers.backends.train import train

    work = path.with_name(f".{name}.partial")
    with sole(path.with_name(f".{name}.claim"), f"model {path}"), disk_problems(path):
        if (found := _trained(path, key)) is not None:  # by the command that was here before
            return found
        figures = train([Path(s) for s in shards], name, corpus, options, key, work, progress)
        marker = {"key": key, "identity": identity, "figures": figures}
        (work / MARKER).write_text(json.dumps(marker, indent=1), encoding="utf-8")
        put_in_place(work, path)
    return TrainedModel(**figures, path=path)


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
    """Write the model's row of ``trained_model``, in place of an earlier one of this name."""
    store.replace("trained_model", [trained.row(run_id)], {"model": trained.model}, run_id)


def model_card(options: TrainOptions, figures: Mapping[str, Any], shards: Sequence[str]) -> str:
    """The README of a trained model; ``figures``: those of ``trained_model``, and ``products``."""
    few = ", ".join(shards[:4]) + (", ..." if len(shards) > 4 else "")
    versions = package_versions()
    facts = {
        "corpus": figures["corpus"],
        "shards": f"{len(shards)}: {few}",
        "architecture": f"GPT-NeoX, {options.layers} layers of {options.hidden}, "
        f"{options.heads} heads, context {options.context}",
        "parameters": f"{figures['n_parameters']:,}",
        "tokenizer": f"byte-level BPE of the same text, at most {options.vocabulary:,} tokens",
        "seed": options.seed,
        "steps": f"{figures['n_steps']:,} of {options.batch_rows} rows",
        "tokens seen": f"{figures['n_tokens']:,}",
        "peak learning rate": options.learning_rate,
        "matrix products": figures["products"],
        "loss, first steps": f"{figures['loss_start_nats']:.3f} nats per token",
        "loss, last steps": f"{figures['loss_end_nats']:.3f} nats per token",
        "made with": ", ".join(f"{n} {versions[n]}" for n in ("torch", "transformers")),
    }
    table = "\n".join(f"| {name} | {value} |" for name, value in facts.items())
    return f"""# {figures["model"]}

A small language model that Plumbline trained from random weights on one corpus, so that its
preferences can be compared with the text it learned from. It is an instrument, not a model to
write with.

| | |
|---|---|
{table}
"""


def read_marker(path: Path) -> dict[str, Any] | None:
    """Key and figures of what Plumbline trained into ``path``; ``None`` where nothing is.

    Raises ``UsageProblem`` for a directory that it did not make.
    """
    if not path.exists():
        return None
    try:
        marker = json.loads((path / MARKER).read_text(encoding="utf-8"))
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
