"""Where a model comes from: a local directory, known by its content, or a hub id."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.files import json_object, opened
from plumbline.warehouse.input.sources import fetched, located

_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
#: What tells an adapter from a model.
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
#: Files of a directory at an address that a model may consist of.
_FETCHED = (*_DEFINING, "generation_config.json", "chat_template.jinja", "*.py")
#: Directory in that of a model that holds those of its checkpoints.
CHECKPOINTS = "checkpoints"
#: What config.json calls a model that counts n-grams.
NGRAM = "plumbline_ngram"
#: A hub id: NAME or OWNER/NAME, of 96 characters at most.
HUB_ID = re.compile(r"(?=.{1,96}$)[\w.-]+(/[\w.-]+)?", re.ASCII)


@dataclass(frozen=True)
class Source:
    """A model's place: ``location`` is what the library loads, ``name`` what tables call it.

    ``revision`` is the content hash of a local model, or the revision asked of the hub.
    ``trusts_code``: code that comes with the model may run.
    """

    name: str
    location: str
    revision: str | None
    is_local: bool
    trusts_code: bool = False
    step: int | None = None


#: What a revision or directory of a checkpoint says of its step: step1000, checkpoint-500.
_STEP = re.compile(r"(?:step|checkpoint)[-_]?(\d{1,18})(?!\d)")


def step_of(name: str) -> int | None:
    """The step of training that the name of a revision or directory tells, if any.

    >>> step_of("step1000"), step_of("stage1-step1000-tokens5B"), step_of("main")
    (1000, 1000, None)
    """
    found = _STEP.search(name)
    return int(found[1]) if found else None


def looks_like_path(name: str) -> bool:
    """Whether a name can only be meant as a path.

    >>> looks_like_path("./tiny"), looks_like_path("a/b/c"), looks_like_path("gpt2")
    (True, True, False)
    """
    return name.startswith(("/", "./", "../", "~")) or name.count("/") > 1


def is_ngram(model: str) -> bool:
    """Whether this is the directory of a model that counts n-grams.

    >>> is_ngram("EleutherAI/pythia-70m")
    False
    """
    try:
        return json_object(Path(model) / "config.json").get("model_type") == NGRAM
    except (OSError, ValueError):
        return False


def find_source(model: str, revision: str | None, trusts_code: bool = False) -> Source:
    """Decide whether ``model`` is a directory, the address of one, or a hub id, which isn't asked.

    A directory at an address (``s3://bucket/m``) is copied to the user's cache first.

    Raises ``BadInput`` for a path that is missing or holds no saved model, and for a name that
    can't be a hub id; ``UsageProblem`` for a revision of a local directory.

    >>> find_source("EleutherAI/pythia-70m", None).is_local
    False
    """
    is_remote = "://" in model
    path = fetched(located(model), _FETCHED) if is_remote else Path(model).expanduser()
    if not is_remote and not path.exists() and not looks_like_path(model):
        if not HUB_ID.fullmatch(model):
            raise BadInput(f"model {model!r}", "is neither a directory nor a hub id")
        _check_spelling(path)
        step = step_of(revision or "")
        return Source(model, model, revision, False, trusts_code, step)
    _check_saved_model(path)
    if revision is not None:
        problem = "a local directory has no revisions, its content is its revision"
        raise UsageProblem(f"model {model}", problem, "leave out --revision")
    content = content_hash(path, with_code=trusts_code)
    name, step = _name_and_step(path.resolve())
    return Source(name, str(path), content, True, trusts_code, step)


def _check_spelling(path: Path) -> None:
    """A slip in the name of a model beside others of ``models`` isn't a hub id to ask for."""
    if path.parent.name != "models" or not path.parent.is_dir():
        return
    if like := get_close_matches(path.name, [p.name for p in path.parent.iterdir()], 1):
        raise BadInput(
            f"model {path}", "no such directory", f"did you mean {path.parent / like[0]}?"
        )


def _name_and_step(path: Path) -> tuple[str, int | None]:
    """A directory's name; of one that is called like a checkpoint, its model's, and the step.

    >>> _name_and_step(Path("/m/novels/checkpoints/step20"))
    ('novels', 20)
    >>> _name_and_step(Path("/m/novels"))
    ('novels', None)
    """
    step = step_of(path.name) if _STEP.match(path.name) else None
    if step is None:
        return path.name, None
    above = path.parent.parent if path.parent.name == CHECKPOINTS else path.parent
    return above.name or path.name, step


def check_directory(model: str) -> None:
    """Raise ``BadInput`` where a model is the directory of none.

    Finding that out needs none of the packages that load models.
    """
    if "://" not in model and (path := Path(model).expanduser()).exists():
        _check_saved_model(path)


def _check_saved_model(path: Path) -> None:
    fix = "give a hub id or a directory saved with save_pretrained"
    if not path.is_dir():
        problem = "is a file, not a directory" if path.exists() else "does not exist"
        raise BadInput(f"model {path}", problem, fix)
    if (path / ADAPTER_CONFIG).is_file():
        raise BadInput(f"model {path}", "is an adapter", f"give --model BASE --adapter {path}")
    if not (path / "config.json").is_file():
        raise BadInput(f"model {path}", "is not a saved model: it holds no config.json", fix)
    for file in path.iterdir():  # the libraries would wait for the writer of a pipe
        if not (file.is_file() or file.is_dir()):
            raise BadInput(f"model {path}", f"{file.name} is not a regular file", fix)
    if not any(f for pattern in _WEIGHTS for f in path.glob(pattern)):
        wanted = " or ".join(_WEIGHTS)
        raise BadInput(f"model {path}", f"is not a whole model: it holds no {wanted}", fix)


def content_hash(directory: Path, *, with_code: bool = False) -> str:
    """Hash of the weights, configuration and tokenizer files of a saved model (16 hex digits).

    Other files, such as a README or a training log, do not count; Python files do ``with_code``.
    """
    digest = hashlib.sha256()
    patterns = (*_DEFINING, "**/*.py") if with_code else _DEFINING
    for path in sorted({f for pattern in patterns for f in directory.glob(pattern)}):
        name = path.relative_to(directory).as_posix()
        digest.update(f"{name}\0{file_hash(path)}\n".encode())
    return digest.hexdigest()[:16]


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes, as hex digits."""
    digest = hashlib.sha256()
    try:
        with opened(path) as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except OSError as e:
        raise BadInput(f"model file {path}", f"can't be read: {e.strerror}") from e
    return digest.hexdigest()
