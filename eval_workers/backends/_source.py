"""Where a model comes from: a local directory, known by its content, or a hub id."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from warehouse.errors import BadInput, UsageProblem

_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
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
_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?", re.ASCII)


@dataclass(frozen=True)
class Source:
    """A model's place: ``location`` is what the library loads, ``name`` what tables call it.

    ``revision`` is the content hash of a local model, or the revision asked of the hub.
    """

    name: str
    location: str
    revision: str | None
    is_local: bool


def find_source(model: str, revision: str | None) -> Source:
    """Decide whether ``model`` is a directory or a hub id; the hub is not asked.

    Raises ``BadInput`` for a path that is missing or holds no saved model, and for a name that
    can't be a hub id; ``UsageProblem`` for a revision of a local directory.

    >>> find_source("EleutherAI/pythia-70m", None).is_local
    False
    """
    path = Path(model).expanduser()
    looks_like_path = model.startswith(("/", "./", "../", "~")) or model.count("/") > 1
    if not path.exists() and not looks_like_path:
        if not _HUB_ID.fullmatch(model):
            raise BadInput(f"model {model!r}", "is neither a directory nor a hub id")
        return Source(model, model, revision, is_local=False)
    _check_saved_model(path)
    if revision is not None:
        problem = "a local directory has no revisions, its content is its revision"
        raise UsageProblem(f"model {model}", problem, "leave out --revision")
    return Source(path.resolve().name, str(path), content_hash(path), is_local=True)


def _check_saved_model(path: Path) -> None:
    fix = "give a hub id or a directory saved with save_pretrained"
    if not path.is_dir():
        problem = "is a file, not a directory" if path.exists() else "does not exist"
        raise BadInput(f"model {path}", problem, fix)
    if not (path / "config.json").is_file():
        raise BadInput(f"model {path}", "is not a saved model: it holds no config.json", fix)
    if not any(f for pattern in _WEIGHTS for f in path.glob(pattern)):
        wanted = " or ".join(_WEIGHTS)
        raise BadInput(f"model {path}", f"is not a whole model: it holds no {wanted}", fix)


def content_hash(directory: Path) -> str:
    """Hash of the weights, configuration and tokenizer files of a saved model (16 hex digits).

    Other files, such as a README or a training log, do not count.
    """
    digest = hashlib.sha256()
    for path in sorted({f for pattern in _DEFINING for f in directory.glob(pattern)}):
        digest.update(f"{path.name}\0{_file_hash(path)}\n".encode())
    return digest.hexdigest()[:16]


def _file_hash(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
