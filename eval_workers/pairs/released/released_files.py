"""Finds released files in a directory, by benchmark and model, and downloads the released sets."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import TypeVar
from urllib.request import urlopen

from plumbline.eval_workers.models.model_lists import load
from plumbline.eval_workers.pairs.benchmarks.released_sets import DEFAULT_LOCATION as RELEASED
from plumbline.warehouse.errors import BadInput, UsageProblem, failure
from plumbline.warehouse.paths import replacing
from plumbline.warehouse.text.escape import say
from plumbline.warehouse.text.progress import progress

#: Names of released files, each also with ``.gz``.
SCORES, MAX_PMI = "*__scores__*.csv", "*-no-maxpmi-constraint.csv"
_NAME = re.compile(r"(?P<stem>.*?)(?:__scores__(?P<model>.+)|-no-maxpmi-constraint)\.csv(\.gz)?")
_SETS = re.compile(r"(use-(?:5|10|20)|winogender)", re.IGNORECASE)
_WINOBIAS = re.compile(r"(?:.*__)?winobias(?:__templates)?[.-](dev|test)", re.IGNORECASE)
_WINOGENDER = re.compile(r"(?:.*__)?winogender__templates", re.IGNORECASE)
_FOLDERS = {"5words": "use-5", "10words": "use-10", "20words": "use-20"}


@dataclass(frozen=True)
class ReleasedFile:
    """A released table, for a benchmark or one part of it (``split``).

    If ``model`` is set, the table holds this model's scores. ``name`` is the path relative to the
    directory that was searched.
    """

    path: Path
    name: str
    benchmark: str
    split: str | None
    model: str = ""


def find_released(directory: Path, pattern: str) -> list[ReleasedFile]:
    """Find files by their name, ``SCORES`` or ``MAX_PMI``, sorted by benchmark, model and part.

    Files may be at any depth. Raises ``UsageProblem`` if there is no such directory. Raises
    ``BadInput`` if there are no files, if a path doesn't show the model or the benchmark, or if two
    files are for the same model and part.
    """
    kind = f"files {pattern}[.gz]"
    if not directory.is_dir():
        raise UsageProblem(f"{directory}", "is not a directory", f"give one that holds {kind}")
    files = []
    for path in sorted({*directory.rglob(pattern), *directory.rglob(f"{pattern}.gz")}):
        if (match := _NAME.fullmatch(path.name)) is None:
            raise BadInput(f"{path}", "its name is not STEM__scores__MODEL.csv")
        model = model_id(match["model"]) if match["model"] else ""
        name = path.relative_to(directory).as_posix()
        files.append(ReleasedFile(path, name, *_benchmark(path, match["stem"]), model))
    if not files:
        raise BadInput(f"{directory}", f"holds no {kind}")
    files.sort(key=lambda f: (f.benchmark, f.model.lower(), f.split or ""))
    for duplicates in grouped(files, lambda f: (f.benchmark, f.split, f.model.lower())).values():
        if len(duplicates) > 1:
            first, second = duplicates[:2]
            what = " ".join(filter(None, (second.model, second.benchmark, second.split)))
            raise BadInput(f"{first.path} and {second.path}", f"both hold {what}", "keep one")
    return files


def _benchmark(path: Path, stem: str) -> tuple[str, str | None]:
    """Return a file's benchmark and part, by its stem or else the nearest folder that names one."""
    if part := _WINOBIAS.fullmatch(stem):
        return "winobias", part[1].lower()
    if _WINOGENDER.fullmatch(stem):
        return "winogender", None
    if name := _SETS.fullmatch(stem):
        return name[1].lower(), None
    for folder in reversed(path.resolve().parent.parts):
        if folder.lower() in _FOLDERS:
            return _FOLDERS[folder.lower()], None
    problem = f"neither its name nor a folder tells its benchmark ({', '.join(_FOLDERS)}"
    raise BadInput(f"{path}", f"{problem}, Winobias.dev, Winobias.test or Winogender)")


_K = TypeVar("_K", bound=Hashable)
_T = TypeVar("_T")


def grouped(items: Iterable[_T], key: Callable[[_T], _K]) -> dict[_K, list[_T]]:
    """Map each key to the items that have it; keys and items keep the order of ``items``."""
    groups: dict[_K, list[_T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


#: The 28 models of UnStereoEval (Belem et al., ICLR 2024): hub id -> number of parameters.
N_PARAMETERS = {entry.name or entry.id: entry.n_parameters for entry in load("unstereoeval")}
HUB_IDS = tuple(N_PARAMETERS)

_BY_LOWER = {hub_id.lower(): hub_id for hub_id in HUB_IDS}
# The authors kept Llama 2 in local directories, some of them snapshots in a cache of the hub.
_SIZE = re.compile(r"(?:^|/)llama-2/hf_models/(7b|13b|70b)$")
_SNAPSHOT = re.compile(r"(?:^|/)models--([^/]+?)--([^/]+)/snapshots/[0-9a-f]+$")


def model_id(name: str) -> str:
    """Return the hub id of a model named in a released file or file name; ``__`` stands for ``/``.

    Finds the 28 ids in upper or lower case, also at the end of a local path. Any other name is
    returned as it is, with ``/`` for ``__``.

    >>> model_id("EleutherAI__pythia-70m"), model_id("allenai/olmo-1b")
    ('EleutherAI/pythia-70m', 'allenai/OLMo-1B')
    >>> model_id("__extra__ucinlp1__llama-2__hf_models__7B")
    'meta-llama/Llama-2-7b-hf'
    >>> model_id("/cache/models--meta-llama--Llama-2-70b-hf/snapshots/90052941a64de020")
    'meta-llama/Llama-2-70b-hf'
    >>> model_id("someone__pythia-70m")
    'someone/pythia-70m'
    """
    path = name.strip().replace("__", "/")
    lower = path.lower()
    if size := _SIZE.search(lower):
        return f"meta-llama/Llama-2-{size[1]}-hf"
    if snapshot := _SNAPSHOT.search(lower):
        lower = f"{snapshot[1]}/{snapshot[2]}"
    return _BY_LOWER.get("/".join(lower.split("/")[-2:]), path)


#: UnStereoEval's public repository, and the commit whose sets are downloaded.
_ADDRESS = "https://raw.githubusercontent.com/ucinlp/unstereo-eval"
_COMMIT = "2aaff91621516d3e03d65db0c0ccedf0b856f623"
#: The tables, each with the start of its SHA-256.
_FILES = {
    "USE-5.csv": "033337b7e37b",
    "USE-10.csv": "e24cfc729978",
    "USE-20.csv": "b640aea8b91a",
    "coref__Winobias__templates.dev.csv": "abb0b77d04fe",
    "coref__Winobias__templates.test.csv": "fd5d24c27297",
    "coref__Winogender__templates.csv": "f8777726c1dd",
}
_LICENCE = (
    "downloading five sets of sentence pairs, 4.6 MB, from github.com/ucinlp/unstereo-eval; they "
    "are published without a licence: cite Belem et al. (ICLR 2024), and don't pass them on"
)
_PATIENCE_S = 20


def downloaded() -> Path:
    """Return a folder in the user's cache that holds the released sets, as PLUMBLINE_DATA does.

    Each file is downloaded once. Raises ``Interrupted`` if the server can't be reached, and
    ``BadInput`` if a file isn't the expected one.
    """
    import platformdirs

    root = platformdirs.user_cache_path("plumbline") / "released" / _COMMIT
    missing = [name for name in _FILES if not (root / RELEASED / name).is_file()]
    if missing:
        say(_LICENCE, err=True)
    with progress("download", "files") as update:
        for number, name in enumerate(missing):
            update(number, len(missing))
            address = f"{_ADDRESS}/{_COMMIT}/data/datasets/raw/{name}"
            try:
                with urlopen(address, timeout=_PATIENCE_S) as answer:
                    content = answer.read()
            except (OSError, HTTPException) as e:
                fix = "give --data, the directory with a clone of it"
                raise failure(e, address, f"can't be downloaded: {e}", fix) from e
            if not hashlib.sha256(content).hexdigest().startswith(_FILES[name]):
                raise BadInput(address, "is not the expected file", "check the network's proxy")
            with replacing(root / RELEASED / name) as temporary:
                temporary.write_bytes(content)
    return root
