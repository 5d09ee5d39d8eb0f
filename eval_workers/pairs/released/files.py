"""Which released files a directory holds, and what each is about, told from its path."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from plumbline.eval_workers.pairs.released.models import model_id
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.storage.store import Store

_SCORES = re.compile(r"(?P<stem>.+?)__scores__(?P<model>.+)\.csv(\.gz)?")
_MAX_PMI = re.compile(r"(?P<stem>.+)-no-maxpmi-constraint\.csv(\.gz)?")
_SETS = re.compile(r"(use-(?:5|10|20)|winogender)", re.IGNORECASE)
_WINOBIAS = re.compile(r"(?:.*__)?winobias(?:__templates)?[.-](dev|test)", re.IGNORECASE)
_WINOGENDER = re.compile(r"(?:.*__)?winogender__templates", re.IGNORECASE)
_FOLDERS = {"5words": "use-5", "10words": "use-10", "20words": "use-20"}


@dataclass(frozen=True)
class ReleasedFile:
    """A released table: where it lies, and the part of a benchmark (and model) it is about.

    ``name`` is the path as seen from the directory that was given; ``model`` is empty for a table
    that is about no model.
    """

    path: Path
    name: str
    benchmark: str
    split: str | None
    model: str = ""


def score_files(directory: Path) -> list[ReleasedFile]:
    """The ``*__scores__*.csv`` and ``.csv.gz`` at any depth, by benchmark, model and part.

    Raises ``BadInput`` when there are none, when a file's benchmark can't be told from its path,
    and when two files hold the same model's scores of the same part.
    """
    return _find(directory, "*__scores__*.csv", _score_file, "score files *__scores__*.csv[.gz]")


def max_pmi_files(directory: Path) -> list[ReleasedFile]:
    """The ``*-no-maxpmi-constraint.csv`` and ``.csv.gz`` at any depth; as ``score_files``."""
    pattern = "*-no-maxpmi-constraint.csv"
    return _find(directory, pattern, _max_pmi_file, f"files {pattern}[.gz]")


def require_benchmarks(store: Store, names: Iterable[str]) -> None:
    """Raise ``BadInput`` with the command to run unless the benchmarks are imported."""
    absent = [n for n in sorted(set(names)) if not store.units("benchmark_pair", benchmark=n)]
    if absent:
        fix = f"run `plumbline benchmark import {' '.join(absent)}` first"
        what, verb = ("benchmark", "is") if len(absent) == 1 else ("benchmarks", "are")
        raise BadInput(f"{what} {', '.join(absent)}", f"{verb} not in the warehouse", fix)


def _find(
    directory: Path, pattern: str, about: Callable[[Path, str], ReleasedFile], wanted: str
) -> list[ReleasedFile]:
    if not directory.is_dir():
        raise UsageProblem(f"{directory}", "is not a directory", f"give one that holds {wanted}")
    paths = sorted({*directory.rglob(pattern), *directory.rglob(f"{pattern}.gz")})
    if not paths:
        raise BadInput(f"{directory}", f"holds no {wanted}")
    files = [about(path, path.relative_to(directory).as_posix()) for path in paths]
    files.sort(key=lambda f: (f.benchmark, f.model.lower(), f.split or ""))
    _refuse_twice(files)
    return files


def _score_file(path: Path, name: str) -> ReleasedFile:
    found = _SCORES.fullmatch(path.name)
    if found is None:
        raise BadInput(f"{path}", "its name holds no model, expected STEM__scores__MODEL.csv")
    benchmark, split = _benchmark(path, found["stem"])
    return ReleasedFile(path, name, benchmark, split, model_id(found["model"]))


def _max_pmi_file(path: Path, name: str) -> ReleasedFile:
    found = _MAX_PMI.fullmatch(path.name)
    return ReleasedFile(path, name, *_benchmark(path, found["stem"] if found else ""))


def _benchmark(path: Path, stem: str) -> tuple[str, str | None]:
    """Benchmark and part: by the file's own stem, or by the nearest folder that names one."""
    if part := _WINOBIAS.fullmatch(stem):
        return "winobias", part[1].lower()
    if _WINOGENDER.fullmatch(stem):
        return "winogender", None
    if known := _SETS.fullmatch(stem):
        return known[1].lower(), None
    for folder in reversed(path.resolve().parent.parts):
        if folder.lower() in _FOLDERS:
            return _FOLDERS[folder.lower()], None
    problem = f"neither its name nor a folder tells its benchmark ({', '.join(_FOLDERS)}"
    raise BadInput(f"{path}", f"{problem}, Winobias.dev, Winobias.test or Winogender)")


def _refuse_twice(files: Iterable[ReleasedFile]) -> None:
    seen: dict[tuple[str, str | None, str], ReleasedFile] = {}
    for file in files:
        key = (file.benchmark, file.split, file.model.lower())
        if other := seen.get(key):
            what = " ".join(part for part in (file.model, file.benchmark, file.split) if part)
            raise BadInput(f"{other.path} and {file.path}", f"both hold {what}", "keep one")
        seen[key] = file


_K = TypeVar("_K", bound=Hashable)


def grouped(
    files: Iterable[ReleasedFile], key: Callable[[ReleasedFile], _K]
) -> dict[_K, list[ReleasedFile]]:
    """Files by a key, in the order they come."""
    groups: dict[_K, list[ReleasedFile]] = {}
    for file in files:
        groups.setdefault(key(file), []).append(file)
    return groups
