"""Where compiled kernels are kept: a directory named by the sources they were compiled from.

Numba's own cache looks only at the file of the function it loads, so a change in a file it calls
into would go unnoticed. Import this before any compiled function is made.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

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
    "scan",
    "tables",
    "urls",
    "windows",
)


def sources_hash() -> str:
    """Hash over the sources of the compiled code and numba's version (16 hex digits)."""
    digest = hashlib.sha256(numba.__version__.encode())
    for name in _COMPILED:
        digest.update(Path(__file__).with_name(f"{name}.py").read_bytes())
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


def use_cache() -> None:
    """Point numba at the directory for the present sources, unless NUMBA_CACHE_DIR is set."""
    if "NUMBA_CACHE_DIR" not in os.environ:
        where = user_directory("kernels", sources_hash())
        setattr(numba.config, "CACHE_DIR", str(where))  # noqa: B010  (made at run time)


use_cache()
