"""Checkpoints of a model by name or pattern: revisions on a hub, or directories beside its weights.

While one checkpoint is in use, the next one is downloaded from the hub. Downloaded checkpoints are
removed after their use; those that were in the cache before stay.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

from plumbline.eval_workers.models.local.source import CHECKPOINTS, step_of
from plumbline.warehouse.errors import UsageProblem, failure

#: Pattern for every checkpoint that has a step.
ALL = "all"
#: Files of a checkpoint on a hub, without pickles and weights of other libraries.
_FILES = ("*.safetensors", "*.json", "*.model", "*.txt", "tokenizer*", "vocab*", "*.jinja")
_WEIGHTS = ("*.safetensors", "*.bin")


@dataclass(frozen=True)
class Checkpoint:
    """A state of a model: name or path to load, and its revision on a hub."""

    model: str
    revision: str | None
    step: int | None


def checkpoints(model: str, patterns: str) -> list[Checkpoint]:
    """Checkpoints of a model, sorted by step.

    ``model`` is a hub id, or a directory with checkpoints in it or in its ``checkpoints``.
    ``patterns`` are names or glob patterns with commas between, or ``all``. Raises ``UsageProblem``
    for a pattern without a match, and what ``failure`` makes of the hub's errors.
    """
    path = Path(model).expanduser()
    names = _directories(path) if path.is_dir() else _branches(model)
    chosen: dict[str, None] = {}
    for pattern in filter(None, (part.strip() for part in patterns.split(","))):
        if pattern == ALL:
            matches = [name for name in names if step_of(name) is not None]
        else:
            matches = [name for name in names if fnmatchcase(name, pattern)]
        if not matches:
            some = ", ".join(sorted(names, key=_place)[:6]) or "none"
            raise UsageProblem(f"revision {pattern!r}", f"model {model} has none", f"it has {some}")
        chosen |= dict.fromkeys(matches)
    if not chosen:
        raise UsageProblem("--revisions", "is empty", "give names, a pattern such as step*, or all")
    is_local = path.is_dir()
    return [
        Checkpoint(names[n] if is_local else model, None if is_local else n, step_of(n))
        for n in sorted(chosen, key=_place)
    ]


def _place(name: str) -> tuple[bool, int, str]:
    """Sort key: by step, names without a step last."""
    step = step_of(name)
    return step is None, step or 0, name


def _directories(model: Path) -> dict[str, str]:
    """Name -> path of the directories with a model, in ``model`` or in its ``checkpoints``."""
    return {
        directory.name: str(directory)
        for place in (model, model / CHECKPOINTS)
        if place.is_dir()
        for directory in place.iterdir()
        if (directory / "config.json").is_file()
    }


def _branches(model: str) -> dict[str, str]:
    from huggingface_hub import HfApi

    try:
        refs = HfApi().list_repo_refs(model)
    except Exception as e:  # the library raises many kinds
        from plumbline.eval_workers.models.local.loading import first_line

        problem = f"its revisions can't be had from the hub: {first_line(e)}"
        raise failure(e, f"model {model}", problem, "check the name and the network") from e
    return {ref.name: ref.name for ref in [*refs.branches, *refs.tags]}


def one_ahead(models: Sequence[tuple[str, str | None]]) -> Generator[None]:
    """Yield once per model (name, revision), when its checkpoint is downloaded.

    While the caller uses a model, the next checkpoint is downloaded. A checkpoint downloaded here
    is removed after its use; what the user's cache had before stays. A failed download raises
    nothing: loading the model then fails. A model without a revision isn't downloaded.
    """
    cached = {folder for model, revision in models if revision for folder in _with_weights(model)}
    with ThreadPoolExecutor(1) as pool:
        downloads: list[Future[Path | None]] = []
        for k in range(len(models)):
            for name, revision in models[len(downloads) : k + 2]:
                downloads.append(pool.submit(_download, name, revision, cached))
            fetched = downloads[k].result()
            try:
                yield
            finally:
                if fetched is not None:
                    _drop(fetched)


def _with_weights(model: str) -> list[Path]:
    """Directories of a model's cached snapshots, of any revision, that hold weights."""
    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    folder = repo_folder_name(repo_id=model, repo_type="model")
    snapshots = Path(constants.HF_HUB_CACHE, folder, "snapshots")
    return [path for path in snapshots.glob("*") if any(f for w in _WEIGHTS for f in path.glob(w))]


def _download(model: str, revision: str | None, cached: Collection[Path]) -> Path | None:
    """Download a checkpoint; its directory, or ``None`` if ``cached`` has it or on failure."""
    if revision is None:
        return None
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()  # the command has its own
    download = partial(snapshot_download, model, revision=revision, allow_patterns=list(_FILES))
    with suppress(Exception):
        if Path(download(local_files_only=True)) in cached:
            return None
    with suppress(Exception):
        fetched = Path(download())
        return None if fetched in cached else fetched
    return None


def _drop(snapshot: Path) -> None:
    """Remove a snapshot from the cache, and the files that only it refers to."""
    from huggingface_hub import scan_cache_dir

    with suppress(OSError):
        scan_cache_dir(snapshot.parents[2]).delete_revisions(snapshot.name).execute()
