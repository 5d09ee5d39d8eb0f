"""`plumbline doctor`: check what this machine has, and say how to get what is missing.

Each check in ``PROBES`` calls the code that other commands use. No check installs anything.
"""

from __future__ import annotations

import os
import platform
import shutil
import socket
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from plumbline.pipelines.command.base import Command, Context, Done, Row
from plumbline.pipelines.command.fields import DataOption
from plumbline.pipelines.environment_errors import EXTRA_OF, one_line
from plumbline.warehouse.errors import MissingComponent
from plumbline.warehouse.paths import address
from plumbline.warehouse.plugins import install_line
from plumbline.warehouse.storage.opening import place_of
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.escape import terminal

_GIB = 2**30
#: Memory and disk space that `plumbline pipeline` needs, with a margin.
_MEMORY_GIB, _DISK_GIB = 4, 2
_RELEASED = ("unstereo-eval", "crows-pairs", "debias-llms")


class Doctor(DataOption, Command):
    """Check Java, memory, disk, GPU, models, data and keys; say how to get what is missing.

    Installs, downloads and writes nothing, and never prints an API key. If the status of a check is
    `absent`, the pipeline can still run. If it is `missing`, the pipeline can't run, and the exit
    status is 4.

    Example: plumbline doctor
    """

    opens_warehouse = False
    records = False

    def run(self, context: Context) -> Done:
        rows = [probed(self, what) for what in PROBES]
        lacking = ", ".join(str(row["what"]) for row in rows if row["status"] == "missing")
        if not lacking:
            return Done(rows=rows, next="plumbline pipeline")
        fix = "fix that, then run plumbline doctor again"
        return Done(rows=rows, failed=MissingComponent("the pipeline", f"lacks {lacking}", fix))


def probed(options: Doctor, what: str) -> Row:
    """Run one check of ``PROBES`` and return its row. If the check raises, the row says why."""
    look, is_needed, fix = PROBES[what]
    lacking = "missing" if is_needed else "absent"
    try:
        is_there, seen = look(options)
    except Exception as e:
        line = one_line(e)
        if line is None:
            seen = terminal(f"{type(e).__name__}: {e}")
            return {"what": what, "status": "missing", "seen": seen, "fix": fix}
        seen = terminal(f"{line.args[0]}: {line.args[1]}")
        return {"what": what, "status": lacking, "seen": seen, "fix": line.args[2] or fix}
    status, fix = ("ok", "") if is_there else (lacking, fix)
    return {"what": what, "status": status, "seen": seen, "fix": fix}


def _packages(_: Doctor) -> tuple[bool, str]:
    extras = sorted({extra for name, extra in EXTRA_OF.items() if find_spec(name) is None})
    without = f"without the extras {', '.join(extras)}: {install_line(','.join(extras))}"
    seen = f"Python {platform.python_version()}, {without if extras else 'all extras'}"
    return "models" not in extras, seen


def _java(_: Doctor) -> tuple[bool, str]:
    from plumbline.jobs.spark.java import find_java_home

    home = find_java_home()
    return (home / "bin" / "java").exists(), f"in {home}; Spark needs 17 or newer"


def _memory(_: Doctor) -> tuple[bool, str]:
    from plumbline.eval_workers.models.local.devices import free_bytes

    free = free_bytes("cpu") / _GIB
    return free >= _MEMORY_GIB, f"{free:.1f} GiB free, the pipeline needs {_MEMORY_GIB}"


def _disk(options: Doctor) -> tuple[bool, str]:
    place = options.warehouse
    place = (place_of(place).scratch() if address(place) else place).absolute()
    there = next(p for p in (place, *place.parents) if p.exists())
    free = shutil.disk_usage(there).free / _GIB
    seen = f"{free:.1f} GiB free to write in {there}, the pipeline needs {_DISK_GIB}"
    return free >= _DISK_GIB and os.access(there, os.W_OK), seen


def _prefect(_: Doctor) -> tuple[bool, str]:
    """Check that the server at PREFECT_API_URL answers. Only Prefect deployments need a server."""
    url = os.environ.get("PREFECT_API_URL")
    if not url:
        return True, "no PREFECT_API_URL: commands run without a server"
    try:
        parts = urlsplit(url)
        where = (parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))
        socket.create_connection(where, timeout=3).close()
    except (OSError, ValueError) as e:
        return False, f"no server at PREFECT_API_URL: {e}"
    return True, f"a server answers at {where[0]}:{where[1]}"


def _warehouse(options: Doctor) -> tuple[bool, str]:
    store = Store.existing(options.warehouse)
    if store is None:
        return True, f"none at {options.warehouse} yet: plumbline pipeline writes the first"
    n_runs = store.read("run").num_rows
    return True, f"{options.warehouse} opens, {n_runs:,} run{'s' * (n_runs != 1)}"


def _gpu(_: Doctor) -> tuple[bool, str]:
    import torch

    if not torch.cuda.is_available():
        return False, "none that torch can use: models run on the CPU"
    free = torch.cuda.mem_get_info()[0] / _GIB
    return True, f"{torch.cuda.device_count()} {torch.cuda.get_device_name(0)}; {free:.1f} GiB free"


def _vllm(_: Doctor) -> tuple[bool, str]:
    from plumbline.eval_workers.models.vllm_backend import RemoteEngine

    return True, ", ".join(f"{n} {version}" for n, version in RemoteEngine().versions.items())


def _models(_: Doctor) -> tuple[bool, str]:
    from huggingface_hub import constants

    cache = Path(constants.HF_HUB_CACHE)
    names = sorted(p.name[8:].replace("--", "/") for p in cache.glob("models--*"))
    return bool(names), f"{len(names)} in {cache}{': ' * bool(names)}{', '.join(names[:5])}"


def _data(options: Doctor) -> tuple[bool, str]:
    there = [name for name in _RELEASED if options.data and (options.data / name).is_dir()]
    without = ", ".join(name for name in _RELEASED if name not in there)
    where = options.data or "PLUMBLINE_DATA, which isn't set"
    without = f"; without {without}" if without else ""
    return bool(there), f"{', '.join(there) or 'none'} in {where}{without}"


def _keys(_: Doctor) -> tuple[bool, str]:
    from plumbline.eval_workers.chat.client import KEYS

    held = [name for name in KEYS if os.environ.get(name)]
    return bool(held), f"set: {', '.join(held) or 'none'}"


def _english(_: Doctor) -> tuple[bool, str]:
    from plumbline.jobs.seed_words.vocabulary import load_wordnet

    lid = os.environ.get("PLUMBLINE_LID", "")
    return True, f"WordNet {load_wordnet().version}{f', and {lid}' if Path(lid).is_file() else ''}"


#: For each check: a function, whether `plumbline pipeline` needs the thing, and how to get it.
#: The function returns whether it found the thing, and a description; or it raises an error.
PROBES: dict[str, tuple[Callable[[Doctor], tuple[bool, str]], bool, str]] = {
    "Packages": (_packages, True, "make setup"),
    "Java": (_java, False, "only for counting on Spark"),
    "Memory": (_memory, True, "close other programs"),
    "Disk": (_disk, True, "make room, give another --warehouse, or set PLUMBLINE_WORK"),
    "Prefect": (_prefect, True, "prefect server start, or unset PREFECT_API_URL"),
    "Warehouse": (_warehouse, True, "plumbline warehouse check"),
    "GPU": (_gpu, False, "with an NVIDIA GPU: install a CUDA build of torch"),
    "vLLM": (_vllm, False, ""),
    "Models": (_models, False, "downloaded when first used, or give a directory as --model"),
    "Data": (_data, False, "set PLUMBLINE_DATA, or `data` in plumbline.toml, to their directory"),
    "Keys": (_keys, False, "export PLUMBLINE_API_KEY=..."),
    "English": (_english, False, "docs/generation.md"),
}
