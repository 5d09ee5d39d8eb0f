"""What this machine has of what Plumbline can use, and how to mend what is missing.

Each check looks at the thing itself, with the code that will use it, and gives a ``Finding``.
Nothing is installed, fetched or written.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from plumbline.pipelines.extras import EXTRA_OF, install_line, missing
from plumbline.warehouse.errors import MissingComponent, PlumblineError
from plumbline.warehouse.text.escape import terminal

if TYPE_CHECKING:
    from packaging.requirements import Requirement

#: `ok`; `missing`: the default pipeline can't run; `absent`: only what the finding names can't.
Status = Literal["ok", "missing", "absent"]
_GIB = 2**30
#: What `plumbline pipeline` alone was seen to take, with room to spare.
_NEEDED_MEMORY_GIB, _NEEDED_DISK_GIB = 4, 2
_PIPELINE_EXTRAS = frozenset({"models", "schedule"})


@dataclass(frozen=True)
class Finding:
    """What a check saw.

    Attributes:
        what: the thing, such as `Java`.
        status: see ``Status``.
        seen: what is there, or what can't be done without it.
        mend: a command or a step that brings it; empty where nothing is to be done.
    """

    what: str
    status: Status
    seen: str
    mend: str = ""


@dataclass(frozen=True)
class Place:
    """Where to look: the warehouse, where results go, and the environment's variables."""

    warehouse: Path
    out: Path
    environment: Mapping[str, str]


def examine(place: Place) -> list[Finding]:
    """The findings of all checks, in order; a check that fails in its own way is a finding too."""
    return [_guarded(check, place) for check in CHECKS]


def _guarded(check: Callable[[Place], Finding], place: Place) -> Finding:
    try:
        return check(place)
    except Exception as e:  # what is broken is what this command is asked about
        line = missing(e) or e
        if isinstance(line, PlumblineError):
            what, problem, fix = line.args
            return Finding(what, "absent", problem, fix)
        problem = f"{type(e).__name__}: {e}"
        mend = "make setup" if isinstance(e, (ImportError, OSError)) else ""
        return Finding(check.__name__, "missing", f"can't be checked: {terminal(problem)}", mend)


def python(_place: Place) -> Finding:
    """The interpreter's version: 3.10 to 3.13 will do."""
    version = platform.python_version()
    fits = (3, 10) <= tuple(map(int, platform.python_version_tuple()[:2])) <= (3, 13)
    mend = "" if fits else "make setup PYTHON=/path/to/python3.11"
    return Finding("Python", "ok" if fits else "missing", version, mend)


def packages(_place: Place) -> Finding:
    """Whether the core and the extras are installed, in versions that Plumbline can run with."""
    absent, problems = _requirements("")
    problems = [f"{name} is not installed" for name in absent] + problems
    lacking = []
    for extra in sorted(set(EXTRA_OF.values())):
        absent, wrong = _requirements(extra)
        # Without Spark, say, its limit on pandas doesn't matter.
        problems += [] if absent else wrong
        lacking += [extra] if absent else []
    if problems:
        return Finding("Packages", "missing", "; ".join(problems), "make setup")
    if not lacking:
        return Finding("Packages", "ok", "the core and all extras")
    status: Status = "missing" if _PIPELINE_EXTRAS & set(lacking) else "absent"
    seen = f"extras that are not installed: {', '.join(lacking)}"
    return Finding("Packages", status, seen, install_line(",".join(lacking)))


def _requirements(extra: str) -> tuple[list[str], list[str]]:
    """What an extra (``""``: the core) requires and is absent, and what has a wrong version."""
    absent, wrong = [], []
    for wanted in _required_by(extra):
        try:
            version = importlib.metadata.version(wanted.name)
        except importlib.metadata.PackageNotFoundError:
            absent.append(wanted.name)
            continue
        if not wanted.specifier.contains(version, prereleases=True):
            wrong.append(f"{wanted.name} {version}, wanted {wanted.specifier}")
    return absent, wrong


def _required_by(extra: str) -> Iterator[Requirement]:
    from packaging.requirements import Requirement

    for line in importlib.metadata.requires("plumbline") or ():
        one = Requirement(line)
        in_core = one.marker is None or one.marker.evaluate({"extra": ""})
        in_extra = one.marker is not None and one.marker.evaluate({"extra": extra})
        if in_extra and not in_core if extra else in_core:
            yield one


def java(_place: Place) -> Finding:
    """A Java that Spark can start, found as counting finds it."""
    from plumbline.jobs.spark.java import find_java_home

    try:
        find_java_home()
    except MissingComponent as e:
        return Finding("Java", "absent", f"{e.args[1]}: no counting on Spark", str(e.args[2]))
    return Finding("Java", "ok", "17 or newer starts")


def memory(_place: Place) -> Finding:
    """Memory that can still be had, container limits included."""
    from plumbline.eval_workers.backends.devices import free_bytes

    free = free_bytes("cpu") / _GIB
    if free < _NEEDED_MEMORY_GIB:
        mend = "close other programs; for a model `plumbline score --dry-run` says what it takes"
        seen = f"{free:.1f} GiB free, the pipeline wants {_NEEDED_MEMORY_GIB}"
        return Finding("Memory", "missing", seen, mend)
    return Finding("Memory", "ok", f"{free:.1f} GiB free")


def disk(place: Place) -> Finding:
    """Room and the right to write where results go."""
    there = next(p for p in (place.out.absolute(), *place.out.absolute().parents) if p.exists())
    free = shutil.disk_usage(there).free / _GIB
    if not os.access(there, os.W_OK):
        return Finding("Disk", "missing", f"{there} can't be written", "give another --out")
    if free < _NEEDED_DISK_GIB:
        seen = f"{free:.1f} GiB free in {there}, the pipeline wants {_NEEDED_DISK_GIB}"
        return Finding("Disk", "missing", seen, "make room, or give another --out")
    return Finding("Disk", "ok", f"{free:.1f} GiB free for {place.out}")


def gpu(_place: Place) -> Finding:
    """CUDA devices as torch sees them; none is needed."""
    import torch

    if not torch.cuda.is_available():
        seen = "none that torch can use: models run on the CPU"
        built = torch.version.cuda
        mend = "" if built else "with an NVIDIA GPU: install a CUDA build of torch"
        return Finding("GPU", "absent", seen, mend)
    names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    free = torch.cuda.mem_get_info()[0] / _GIB
    return Finding("GPU", "ok", f"{', '.join(names)}; {free:.1f} GiB free on the first")


def quantised(_place: Place) -> Finding:
    """The package that loads models in 4 and 8 bits."""
    what = "bitsandbytes"
    if importlib.util.find_spec(what) is None:
        seen, mend = "not installed: no --quantisation int8 and nf4", f"pip install {what}"
        return Finding(what, "absent", seen, mend)
    return Finding(what, "ok", importlib.metadata.version(what))


def vllm(_place: Place) -> Finding:
    """The engine behind ``--backend vllm``; it has an environment of its own, and starts."""
    from plumbline.eval_workers.backends.vllm_engine import RemoteEngine, interpreter

    versions = ", ".join(f"{name} {version}" for name, version in RemoteEngine().versions.items())
    return Finding("vLLM", "ok", f"{versions}, in {interpreter().parent.parent}")


def wordnet(_place: Place) -> Finding:
    """WordNet, by which `corpus vocabulary` tells English words."""
    from plumbline.jobs.seed_words.english import load_wordnet

    found = load_wordnet()
    return Finding("WordNet", "ok", f"{found.version} ({found.place})")


def languages(place: Place) -> Finding:
    """fastText's language identification, the other way to tell English words."""
    from plumbline.jobs.seed_words.english import model_path

    named = place.environment.get("PLUMBLINE_LID")
    path = Path(named) if named else model_path()
    if path.is_file():
        return Finding("Language model", "ok", str(path))
    seen = f"{path} is not there: `corpus vocabulary` goes by WordNet alone"
    return Finding(
        "Language model", "absent", seen, "plumbline corpus vocabulary --corpus NAME --download"
    )


def models(place: Place) -> Finding:
    """Models of the hub that lie in its cache on this machine."""
    from huggingface_hub import constants

    cache = Path(constants.HF_HUB_CACHE)
    names = sorted(p.name[8:].replace("--", "/") for p in cache.glob("models--*"))
    if not names:
        mend = "they are fetched when first named, or give a directory as --model"
        return Finding("Models", "absent", f"none in {cache}", mend)
    offline = ", offline" if constants.HF_HUB_OFFLINE else ""
    return Finding("Models", "ok", f"{len(names)} in {cache}{offline}: {', '.join(names[:5])}")


def data(place: Place) -> Finding:
    """The released files that benchmarks and prompts are read from."""
    root = place.environment.get("PLUMBLINE_DATA")
    mend = "set PLUMBLINE_DATA, or `data` of plumbline.toml, to what holds unstereo-eval, ..."
    if not root:
        seen = "no directory is set: no released benchmarks, the closed world needs none"
        return Finding("Data", "absent", seen, mend)
    known = ("unstereo-eval", "corefbias", "winogender", "debias-llms")
    there = [name for name in known if (Path(root) / name).is_dir()]
    if not there:
        return Finding("Data", "absent", f"{root} holds none of {', '.join(known)}", mend)
    lacking = [name for name in known if name not in there]
    without = f"; without {', '.join(lacking)}" if lacking else ""
    return Finding("Data", "ok", f"{', '.join(there)} in {root}{without}")


def keys(place: Place) -> Finding:
    """Whether a key for a chat model's server is set; it is never shown."""
    from plumbline.eval_workers.chat.client import KEYS

    held = [name for name in KEYS if place.environment.get(name)]
    if held:
        return Finding("Keys", "ok", f"{', '.join(held)} set")
    seen = "none: servers that want one can't be asked (`benchmark build`, served models)"
    return Finding("Keys", "absent", seen, f"export {KEYS[0]}=...")


def server(place: Place) -> Finding:
    """Prefect's server, where one is named; without one each run has its own."""
    url = place.environment.get("PREFECT_API_URL")
    if not url:
        return Finding("Prefect", "ok", "no PREFECT_API_URL: commands run without a server")
    try:
        address = _address(url)
        socket.create_connection(address, timeout=3).close()
    except ValueError as e:
        mend = "export PREFECT_API_URL=http://HOST:4200/api, or unset it"
        return Finding("Prefect", "missing", f"PREFECT_API_URL is not a URL: {e}", mend)
    except OSError as e:
        mend = "prefect server start; only deployments and --prefect need it"
        return Finding("Prefect", "missing", f"{address[0]}:{address[1]}: {e}", mend)
    return Finding("Prefect", "ok", f"a server answers at {address[0]}:{address[1]}")


def _address(url: str) -> tuple[str, int]:
    """Host and port of a URL; ``ValueError`` where it names none."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("it should begin with http:// or https:// and a host")
    return parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)


def warehouse(place: Place) -> Finding:
    """Whether the warehouse opens, and how much it holds."""
    from plumbline.warehouse.query.connection import rows_of

    try:
        n_runs = rows_of(place.warehouse, "SELECT count(*) AS n FROM run")[0]["n"]
    except PlumblineError as e:
        if "does not exist" in str(e):
            mend = "plumbline pipeline writes the first"
            return Finding("Warehouse", "absent", f"{place.warehouse} is not there yet", mend)
        return Finding("Warehouse", "missing", str(e))
    return Finding("Warehouse", "ok", f"{place.warehouse} opens, {n_runs:,} runs")


CHECKS: tuple[Callable[[Place], Finding], ...] = (
    *(python, packages, java, memory, disk, server, warehouse),
    *(gpu, quantised, vllm, models, data, keys, wordnet, languages),
)
