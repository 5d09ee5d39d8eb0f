"""Cache compiled functions on disk, and let only one process at a time compile a function.

Numba's own cache has two problems. First, it checks only the source file of a cached function. But
the function also calls functions in other files. Second, the cache directory depends on the path of
the source file. On a cluster, this path differs for every application. Here the directory's name is
a hash of all kernel sources.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar, cast

import numba
import platformdirs
from filelock import FileLock
from numba import types

_Params = ParamSpec("_Params")
_Result = TypeVar("_Result")
_Function = TypeVar("_Function", bound=Callable[..., object])


def user_cache(*parts: str) -> Path:
    """Return a directory in the user's cache directory, creating it if missing.

    If that directory isn't writable, return one in this process's temporary directory.
    """
    path = platformdirs.user_cache_path("plumbline").joinpath(*parts)
    with suppress(OSError):
        path.mkdir(parents=True, exist_ok=True)
    if not os.access(path, os.W_OK):
        path = _temporary_cache().joinpath(*parts)
        path.mkdir(parents=True, exist_ok=True)
    return path


@cache
def _temporary_cache() -> Path:
    return Path(tempfile.mkdtemp(prefix="plumbline-"))


@cache
def sources_hash() -> str:
    """Return a hash of the kernel's sources and numba's version, as 16 hex digits."""
    digest = hashlib.sha256(numba.__version__.encode())
    kernel = resources.files("plumbline.jobs.kernel")
    files = [*kernel.iterdir(), *kernel.joinpath("tokens").iterdir()]
    for file in sorted(files, key=lambda file: file.name):
        if file.name.endswith(".py"):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


@cache
def kernel_directory() -> Path:
    """Create and return the cache directory. It is in NUMBA_CACHE_DIR if that variable is set."""
    root = os.environ.get("NUMBA_CACHE_DIR")
    path = Path(root) / sources_hash() if root else user_cache("kernels", sources_hash())
    path.mkdir(parents=True, exist_ok=True)
    return path


def compiled(function: _Function) -> _Function:
    """Compile a function that only other compiled functions call."""
    # Skip the wrappers for callers in Python and C. They would take a sixth of the compile time.
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    dispatcher = numba.njit(**options)(function)
    template = dispatcher.get_call_template
    # Numba gives a literal argument, such as 0, its own type. Compile only for the general type.
    dispatcher.get_call_template = lambda args, kws: template(
        [types.unliteral(arg) for arg in args], kws
    )
    return cast(_Function, dispatcher)


class EntryPoint(Generic[_Params, _Result]):
    """A compiled function that Python calls. It is cached with all functions that it calls.

    The first call loads the function from the cache or compiles it. A lock ensures that only one
    process at a time compiles it.
    """

    def __init__(self, function: Callable[_Params, _Result]) -> None:
        self.dispatcher = numba.njit(cache=True)(function)
        self._name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
        self._is_loaded = False

    def __call__(self, *args: _Params.args, **kwargs: _Params.kwargs) -> _Result:
        if self._is_loaded:
            return self.dispatcher(*args, **kwargs)
        with FileLock(kernel_directory() / f"{self._name}.lock"):
            result: _Result = self.dispatcher(*args, **kwargs)
        self._is_loaded = True
        return result


class KernelLocator:
    """Tell Numba where to cache functions of the kernel, whether in a checkout or a zip file."""

    def __init__(self, line: int, py_file: str) -> None:
        self._line = line
        self._py_file = py_file  # numba names this file in its warnings

    @classmethod
    def from_function(cls, function: Callable[..., object], py_file: str) -> KernelLocator | None:
        """Return a locator for a kernel function. Return None for functions outside the kernel."""
        if not function.__module__.startswith("plumbline.jobs.kernel."):
            return None
        return cls(function.__code__.co_firstlineno, py_file)

    def get_cache_path(self) -> str:
        return str(kernel_directory())

    def ensure_cache_path(self) -> None:
        kernel_directory()

    def get_source_stamp(self) -> str:
        return sources_hash()

    def get_disambiguator(self) -> str:
        """Return a suffix that distinguishes functions of the same name in one module."""
        return str(self._line)


# Make Numba try this locator before Numba's locators, unless the user chose locators.
if "NUMBA_CACHE_LOCATOR_CLASSES" not in os.environ:
    _defaults = ("UserProvided", "InTree", "UserWide", "IPython", "Zip")
    _names = [f"{__name__}.KernelLocator", *(f"{name}CacheLocator" for name in _defaults)]
    setattr(numba.config, "CACHE_LOCATOR_CLASSES", ",".join(_names))  # noqa: B010  (run time)
