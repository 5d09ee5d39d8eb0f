"""`plumbline doctor`: check what this machine has for Plumbline, and say how to get the rest.

``PROBES`` lists the checks. Each runs the code that other commands run. Nothing is installed,
fetched or written.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NamedTuple
from urllib.parse import urlsplit

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.pipelines.command.base import Command, Context, Done, On, Row
from plumbline.pipelines.command.fields import DataOption
from plumbline.pipelines.command.shown_settings import shown_settings
from plumbline.pipelines.extras import EXTRA_OF, missing
from plumbline.warehouse.errors import MissingComponent, PlumblineError
from plumbline.warehouse.options import STRICT
from plumbline.warehouse.paths import address
from plumbline.warehouse.plugins import distribution, install_line
from plumbline.warehouse.storage.opening import place_of
from plumbline.warehouse.text.escape import terminal

_GIB = 2**30
#: Most memory and disk that `plumbline pipeline` has needed so far, with a margin.
_NEEDED_MEMORY_GIB, _NEEDED_DISK_GIB = 4, 2
_PIPELINE_EXTRAS = {"models", "schedule"}
_RELEASED = ("unstereo-eval", "corefbias", "winogender", "debias-llms")


class Absent(Exception):
    """Something optional is absent. A second argument replaces the fix of its probe."""


class Missing(Absent):
    """Something is absent that the pipeline needs."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Doctor(DataOption, Command):
    """Look at Java, memory, disk, GPU, models, data and keys; say how to mend what is missing.

    Nothing is installed, fetched or written; a key's value is never shown. A thing that is `absent`
    limits only what its line names; if one is `missing`, the pipeline can't run: status 4.

    --settings 'corpus count' prints that command's options as TOML: meaning, value and origin.

    Example: plumbline doctor
    """

    opens_warehouse = False
    records = False

    settings: Annotated[
        str,
        Field(description="Instead print the options of a command, and where each came from."),
        On(metavar="COMMAND"),
    ] = ""
    conf: Annotated[str, Field(description="Settings file (TOML), or cluster.")] = ""

    def run(self, context: Context) -> Done:
        if self.settings:
            return Done(said=shown_settings(self.settings, self.conf or None))
        rows = [probe.row(self) for probe in PROBES]
        lacking = [str(row["what"]) for row in rows if row["status"] == "missing"]
        if not lacking:
            return Done(rows=rows, next="plumbline pipeline")
        problem, fix = f"lacks {', '.join(lacking)}", "mend that, then plumbline doctor again"
        return Done(rows=rows, failed=MissingComponent("the pipeline", problem, fix))


class MachineProbe(NamedTuple):
    """A check: ``look`` describes the thing or raises ``Absent``; ``fix`` says how to get it."""

    what: str
    look: Callable[[Doctor], str]
    fix: str = ""

    def row(self, options: Doctor) -> Row:
        """Run the probe and return its result; an error that it raises is a result too."""
        status = "absent"
        try:
            status, seen, fix = "ok", self.look(options), ""
        except Absent as e:
            status, (seen, fix) = type(e).__name__.lower(), (*e.args, self.fix)[:2]
        except Exception as e:  # the command has to report whatever is broken
            if isinstance(line := missing(e) or e, PlumblineError):
                seen, fix = f"{line.args[0]}: {line.args[1]}", line.args[2]
            else:
                seen = f"can't be checked: {terminal(f'{type(e).__name__}: {e}')}"
                status, fix = "missing", "make setup" * isinstance(e, ImportError | OSError)
        return {"what": self.what, "status": status, "seen": seen, "fix": fix}


def _python(_: Doctor) -> str:
    version = platform.python_version()
    if not (3, 11) <= tuple(map(int, platform.python_version_tuple()[:2])) <= (3, 13):
        raise Missing(version)
    return version


def _packages(_: Doctor) -> str:
    """The core and the extras of ``EXTRA_OF``, in versions that Plumbline can run with."""
    absent, problems = _requirements("")
    problems = [f"{name} is not installed" for name in absent] + problems
    lacking, extras = [], sorted(set(EXTRA_OF.values()))
    for extra in extras:
        absent, wrong = _requirements(extra)
        # Versions don't matter for an absent extra, such as that of pandas for Spark.
        problems += [] if absent else wrong
        lacking += [extra] if absent else []
    if problems:
        raise Missing("; ".join(problems))
    if lacking:
        kind = Absent if _PIPELINE_EXTRAS.isdisjoint(lacking) else Missing
        seen = f"extras that are not installed: {', '.join(lacking)}"
        raise kind(seen, install_line(",".join(lacking)))
    return f"the core and the extras {', '.join(extras)}"


def _requirements(extra: str) -> tuple[list[str], list[str]]:
    """Absent requirements of an extra (``""``: the core), and requirements of a wrong version."""
    from packaging.requirements import Requirement

    absent, wrong = [], []
    for requirement in map(Requirement, distribution().requires or ()):
        is_needed = {
            e: requirement.marker is None or requirement.marker.evaluate({"extra": e})
            for e in ("", extra)
        }
        if not is_needed[extra] or (extra and is_needed[""]):
            continue
        try:
            version = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            absent.append(requirement.name)
            continue
        if not requirement.specifier.contains(version, prereleases=True):
            wrong.append(f"{requirement.name} {version}, wanted {requirement.specifier}")
    return absent, wrong


def _java(_: Doctor) -> str:
    from plumbline.jobs.spark.java import find_java_home

    try:
        find_java_home()
    except MissingComponent as e:
        raise Absent(f"{e.args[1]}: no counting on Spark", e.args[2]) from e
    return "17 or newer starts"


def _memory(_: Doctor) -> str:
    from plumbline.eval_workers.models.devices import free_bytes

    free = free_bytes("cpu") / _GIB
    if free < _NEEDED_MEMORY_GIB:
        raise Missing(f"{free:.1f} GiB free, the pipeline wants {_NEEDED_MEMORY_GIB}")
    return f"{free:.1f} GiB free"


def _disk(options: Doctor) -> str:
    place = options.warehouse
    if address(place):
        place = place_of(place).scratch()
    place = place.absolute()
    there = next(p for p in (place, *place.parents) if p.exists())
    free = shutil.disk_usage(there).free / _GIB
    if not os.access(there, os.W_OK):
        fix = "give another --warehouse, or with an object store set PLUMBLINE_WORK"
        raise Missing(f"{there} can't be written", fix)
    if free < _NEEDED_DISK_GIB:
        raise Missing(f"{free:.1f} GiB free in {there}, the pipeline wants {_NEEDED_DISK_GIB}")
    return f"{free:.1f} GiB free for {options.warehouse}"


def _prefect(_: Doctor) -> str:
    """The server that PREFECT_API_URL names; only deployments need one."""
    url = os.environ.get("PREFECT_API_URL")
    if not url:
        return "no PREFECT_API_URL: commands run without a server"
    try:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("it should begin with http:// or https:// and a host")
        host, port = parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
        socket.create_connection((host, port), timeout=3).close()
    except ValueError as e:
        fix = "export PREFECT_API_URL=http://HOST:4200/api, or unset it"
        raise Missing(f"PREFECT_API_URL is not a URL: {e}", fix) from e
    except OSError as e:
        raise Missing(f"{host}:{port}: {e}") from e
    return f"a server answers at {host}:{port}"


def _warehouse(options: Doctor) -> str:
    from plumbline.warehouse.query.connection import rows_of

    try:
        (row,) = rows_of(options.warehouse, "SELECT count(*) AS n FROM run")
    except PlumblineError as e:
        if "does not exist" in str(e):
            raise Absent(f"{options.warehouse} is not there yet") from e
        raise Missing(str(e), "") from e
    return f"{options.warehouse} opens, {row['n']:,} runs"


def _gpu(_: Doctor) -> str:
    import torch

    if not torch.cuda.is_available():
        seen = "none that torch can use: models run on the CPU"
        raise Absent(seen, *([""] if torch.version.cuda else []))
    names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    free = torch.cuda.mem_get_info()[0] / _GIB
    return f"{', '.join(names)}; {free:.1f} GiB free on the first"


def _bitsandbytes(_: Doctor) -> str:
    if importlib.util.find_spec("bitsandbytes") is None:
        raise Absent("not installed: no --quantisation int8 and nf4")
    return importlib.metadata.version("bitsandbytes")


def _vllm(_: Doctor) -> str:
    from plumbline.eval_workers.vllm.vllm_client import RemoteEngine, interpreter

    versions = ", ".join(f"{name} {version}" for name, version in RemoteEngine().versions.items())
    return f"{versions}, in {interpreter().parent.parent}"


def _models(_: Doctor) -> str:
    from huggingface_hub import constants

    cache = Path(constants.HF_HUB_CACHE)
    names = sorted(p.name[8:].replace("--", "/") for p in cache.glob("models--*"))
    if not names:
        raise Absent(f"none in {cache}")
    offline = ", offline" if constants.HF_HUB_OFFLINE else ""
    return f"{len(names)} in {cache}{offline}: {', '.join(names[:5])}"


def _data(options: Doctor) -> str:
    if options.data is None:
        raise Absent("no directory is set: no released benchmarks, the closed world needs none")
    there = [name for name in _RELEASED if (options.data / name).is_dir()]
    if not there:
        raise Absent(f"{options.data} holds none of {', '.join(_RELEASED)}")
    without = ", ".join(name for name in _RELEASED if name not in there)
    return f"{', '.join(there)} in {options.data}{f'; without {without}' if without else ''}"


def _keys(_: Doctor) -> str:
    """Names of the keys that are set, never their values."""
    from plumbline.eval_workers.chat.client import KEYS

    held = [name for name in KEYS if os.environ.get(name)]
    if not held:
        seen = "none: servers that want one can't be asked (`benchmark build`, served models)"
        raise Absent(seen, f"export {KEYS[0]}=...")
    return f"{', '.join(held)} set"


def _wordnet(_: Doctor) -> str:
    from plumbline.jobs.seed_words.english import load_wordnet

    wordnet = load_wordnet()
    return f"{wordnet.version} ({wordnet.place})"


def _language_model(_: Doctor) -> str:
    from plumbline.jobs.seed_words.english import model_path

    path = Path(os.environ.get("PLUMBLINE_LID") or model_path())
    if not path.is_file():
        raise Absent(f"{path} is not there: `corpus words` uses WordNet alone")
    return str(path)


PROBES = (
    MachineProbe("Python", _python, "make setup PYTHON=/path/to/python3.11"),
    MachineProbe("Packages", _packages, "make setup"),
    MachineProbe("Java", _java),
    MachineProbe(
        "Memory", _memory, "close other programs; `plumbline score --dry-run` says what it takes"
    ),
    MachineProbe("Disk", _disk, "make room, or give another --warehouse"),
    MachineProbe("Prefect", _prefect, "prefect server start; only deployments need it"),
    MachineProbe("Warehouse", _warehouse, "plumbline pipeline writes the first"),
    MachineProbe("GPU", _gpu, "with an NVIDIA GPU: install a CUDA build of torch"),
    MachineProbe("bitsandbytes", _bitsandbytes, "pip install bitsandbytes"),
    MachineProbe("vLLM", _vllm),
    MachineProbe(
        "Models", _models, "they are fetched when first named, or give a directory as --model"
    ),
    MachineProbe(
        "Data", _data, "set PLUMBLINE_DATA, or `data` of plumbline.toml, to their directory"
    ),
    MachineProbe("Keys", _keys),
    MachineProbe("WordNet", _wordnet),
    MachineProbe(
        "Language model", _language_model, "plumbline corpus words --corpus NAME --download"
    ),
)
