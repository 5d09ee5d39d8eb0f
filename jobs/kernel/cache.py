"""Where compiled kernels are kept: a directory named by the sources they were compiled from.

Numba's own caches look only at the file of the function they load, so a change in a file it calls
into would go unnoticed; and they name their directory by that file's path, which on a cluster is
another one for every application. Import this before any compiled function is made.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numba

#: Modules that hold compiled functions or constants compiled into them.
_COMPILED = (
    "bits",
    "block",
    "chunks",
    "growth",
    "memory",
    "plain",
    "records",
    "rules",
    "pair_runs",
    "scan",
    "tables",
    "urls",
    "windows",
)


@cache
def sources_hash() -> str:
    """Hash over the sources of the compiled code and numba's version (16 hex digits)."""
    digest = hashlib.sha256(numba.__version__.encode())
    for name in _COMPILED:
        digest.update(resources.files("plumbline.jobs.kernel").joinpath(f"{name}.py").read_bytes())
    return digest.hexdigest()[:16]


def user_directory(*parts: str) -> Path:
    """A directory of this user's own for things made once a machine: in the cache, else in tmp."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    fallback = Path(tempfile.gettempdir()) / f"plumbline-{os.getuid()}"
    for root in (Path(base) / "plumbline", fallback):
        path = root.joinpath(*parts)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(path, os.W_OK):
            return path
    return path


def kernel_directory() -> Path:
    """Directory of the kernels of the present sources, below NUMBA_CACHE_DIR when that is set."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    return Path(given) / sources_hash() if given else user_directory("kernels", sources_hash())


class KernelLocator:
    """Tells numba where a function of this room is cached: the same in a checkout and a zip."""

    def __init__(self, line: int, py_file: str) -> None:
        self._line = line
        self._py_file = py_file  # numba names it in warnings

    @classmethod
    def from_function(cls, function: Callable[..., Any], py_file: str) -> KernelLocator | None:
        """A locator, or None (numba asks its own) for a function of another package."""
        if not function.__module__.startswith("plumbline.jobs."):
            return None
        return cls(function.__code__.co_firstlineno, py_file)

    def get_cache_path(self) -> str:
        """Directory of the cached function."""
        return str(kernel_directory())

    def ensure_cache_path(self) -> None:
        """Create that directory."""
        kernel_directory().mkdir(parents=True, exist_ok=True)

    def get_source_stamp(self) -> str:
        """What a cached function is out of date by: nothing, the directory's name says it all."""
        return sources_hash()

    def get_disambiguator(self) -> str:
        """What tells apart functions of one name in one module."""
        return str(self._line)


def use_cache() -> None:
    """Put this locator before numba's own, unless the user has named others."""
    if "NUMBA_CACHE_LOCATOR_CLASSES" not in os.environ:
        own = ("UserProvided", "InTree", "UserWide", "IPython", "Zip")
        names = [
            "plumbline.jobs.kernel.cache.KernelLocator",
            *(f"{name}CacheLocator" for name in own),
        ]
        setattr(numba.config, "CACHE_LOCATOR_CLASSES", ",".join(names))  # noqa: B010  (run time)


use_cache()
