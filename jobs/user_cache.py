"""Directories for files made once per machine: compiled code, a wrapped Java."""

from __future__ import annotations

import os
import stat
import tempfile
from functools import cache
from pathlib import Path

import platformdirs


def user_cache(*parts: str) -> Path:
    """A directory below this user's cache directory, created if missing.

    If the cache directory can't be written, ``plumbline-UID`` in the temporary directory is used
    instead, if this user owns it and nobody else may enter it, since code stored here is run later.
    Otherwise a new private directory is used, which only this process knows.
    """
    for root in (platformdirs.user_cache_path("plumbline"), user_temporary()):
        path = root.joinpath(*parts)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(path, os.W_OK):
            return path
    path = _private_fallback().joinpath(*parts)
    path.mkdir(parents=True, exist_ok=True)
    return path


def user_temporary() -> Path:
    """This user's directory in the temporary directory, or a private one if that is unsafe."""
    path = Path(tempfile.gettempdir()) / f"plumbline-{os.getuid()}"
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        status = path.lstat()
    except OSError:
        return _private_fallback()
    is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
    return path if is_own and stat.S_IMODE(status.st_mode) == 0o700 else _private_fallback()


@cache
def _private_fallback() -> Path:
    return Path(tempfile.mkdtemp(prefix="plumbline-"))
