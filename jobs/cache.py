"""Where compiled kernels are kept: a directory named by the sources they were compiled from.

Numba's own cache looks only at the file of the function it loads, so a change in a file it calls
into would go unnoticed. Import this before any compiled function is made.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numba


def sources_hash() -> str:
    """Hash over the source files of this package and numba's version (16 hex digits)."""
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def use_cache() -> None:
    """Point numba at the directory for the present sources, unless NUMBA_CACHE_DIR is set."""
    if "NUMBA_CACHE_DIR" not in os.environ:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        where = Path(base) / "plumbline" / "kernels" / sources_hash()
        setattr(numba.config, "CACHE_DIR", str(where))  # noqa: B010  (made at run time)


use_cache()
