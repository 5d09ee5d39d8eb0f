"""Cache of compiled functions on disk; one process at a time compiles a function.

Numba's own caches look only at the file of the function they load, so they miss changes of the
functions that it calls in other files. They also name their directory by that file's path, which on
a cluster differs for every application. Here a hash of all compiled code names the directory.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast

import numba
from filelock import FileLock
from numba import types

from plumbline.jobs.user_cache import user_cache

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_Params = ParamSpec("_Params")
_Result = TypeVar("_Result")
_Function = TypeVar("_Function", bound=Callable[..., object])

#: Modules that hold compiled functions, constants compiled into them, or how they are compiled.
_COMPILED = (
    "cache",
    "chunks",
    "cooccurrences",
    "language_tables",
    "memory",
    "pair_runs",
    "records",
    "splitting_rules",
    "chunk_words",
    "urls",
    "words",
)
#: Options of functions that Python never calls: no wrappers, which take a sixth of compile time.
_ONLY_COMPILED: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
#: Directory in the package where an archive for a cluster ships compiled code.
SHIPPED = "compiled"


@cache
def sources_hash() -> str:
    """Hash over the sources of the compiled code and numba's version (16 hex digits)."""
    digest = hashlib.sha256(numba.__version__.encode())
    for name in _COMPILED:
        digest.update(_package().joinpath(f"{name}.py").read_bytes())
    return digest.hexdigest()[:16]


def _package() -> Traversable:
    return resources.files("plumbline.jobs.kernel")


@cache
def kernel_directory() -> Path:
    """Directory of the compiled code of the current sources, below NUMBA_CACHE_DIR if set.

    A new directory gets a copy of the compiled code that the package ships; numba uses it only on a
    processor like the one it was compiled on.
    """
    root = os.environ.get("NUMBA_CACHE_DIR")
    path = Path(root) / sources_hash() if root else user_cache("kernels", sources_hash())
    path.mkdir(parents=True, exist_ok=True)
    shipped = _package().joinpath(SHIPPED, sources_hash())
    if shipped.is_dir():
        with FileLock(path / "shipped.lock"):
            if not any(path.glob("*.nbi")):
                for file in shipped.iterdir():
                    path.joinpath(file.name).write_bytes(file.read_bytes())
    return path


def compiled(function: _Function) -> _Function:
    """Compile a function that only compiled code calls."""
    dispatcher = numba.njit(**_ONLY_COMPILED)(function)
    template = dispatcher.get_call_template
    # A constant argument, such as the 0 that a variable starts with, would be a type of its own and
    # one more compilation of the function.
    dispatcher.get_call_template = lambda args, kws: template(
        [types.unliteral(arg) for arg in args], kws
    )
    return cast(_Function, dispatcher)


def compiled_files() -> dict[str, bytes]:
    """Code compiled on this machine, for an archive to ship: content by path.

    Paths are relative to the kernel's package. The same files of code give the same bytes.
    """
    files = sorted(f for f in kernel_directory().iterdir() if f.suffix in (".nbi", ".nbc"))
    return {f"{SHIPPED}/{sources_hash()}/{file.name}": file.read_bytes() for file in files}


class EntryPoint(Generic[_Params, _Result]):
    """A compiled function that Python calls; code that it calls is cached as part of it.

    The first call loads it from the cache or compiles it, under a lock: of many processes that
    start together, one compiles and the others load.
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


def is_cached(function: EntryPoint[..., object]) -> bool:
    """True if the function was compiled for the current sources, on any processor."""
    code = function.dispatcher.py_func.__code__
    return any(kernel_directory().glob(f"*.{code.co_name}-{code.co_firstlineno}.*.nbi"))


class KernelLocator:
    """Tells numba where a function of the kernel is cached: the same in a checkout and a zip."""

    def __init__(self, line: int, py_file: str) -> None:
        self._line = line
        self._py_file = py_file  # numba names it in warnings

    @classmethod
    def from_function(cls, function: Callable[..., object], py_file: str) -> KernelLocator | None:
        """A locator; None for a function of another package, so that numba tries its own."""
        if not function.__module__.startswith("plumbline.jobs.kernel."):
            return None
        return cls(function.__code__.co_firstlineno, py_file)

    def get_cache_path(self) -> str:
        """Directory of the cached function."""
        return str(kernel_directory())

    def ensure_cache_path(self) -> None:
        """Create that directory."""
        kernel_directory()

    def get_source_stamp(self) -> str:
        """Stamp that a cached function must match: the hash that names the directory too."""
        return sources_hash()

    def get_disambiguator(self) -> str:
        """Suffix that distinguishes functions of the same name in one module."""
        return str(self._line)


def use_cache() -> None:
    """Make numba try ``KernelLocator`` before its own, unless the user has chosen others."""
    if "NUMBA_CACHE_LOCATOR_CLASSES" not in os.environ:
        numbas = ("UserProvided", "InTree", "UserWide", "IPython", "Zip")
        names = [f"{__name__}.KernelLocator", *(f"{name}CacheLocator" for name in numbas)]
        setattr(numba.config, "CACHE_LOCATOR_CLASSES", ",".join(names))  # noqa: B010  (run time)


use_cache()
