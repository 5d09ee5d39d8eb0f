"""Whether a data file still holds what was published: its hash, and when that is compared.

DuckDB and Arrow don't notice a flipped bit, and bits decay in place, so a file is hashed whenever
it is opened. Only who looks (``Look.SEEN``) takes a hash of the last day, noted in the user's cache
directory with the file's size and time of change.
"""

from __future__ import annotations

import errno
import hashlib
import math
import stat
import time
from contextlib import suppress
from enum import Enum
from functools import cache
from pathlib import Path

import platformdirs

#: Most bytes of the list of hashed files.
_LONGEST_LIST = 8 << 20
#: How long a hash in it counts, and how long it isn't noted again.
_COUNTS_S, _NOTED_S = 86_400, 3_600
#: Names the time since the machine was started; only Linux has it.
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Damaged(ValueError):
    """Bytes that were read, and aren't those that were published."""


class Look(Enum):
    """What of a data file is hashed before it is used."""

    #: Nothing, if it was hashed in the last day since the machine was started: for who only looks.
    SEEN = "seen"
    #: The file, or the copy of a file that isn't on a disk.
    HASHED = "hashed"
    #: What is stored now: a copy is fetched again.
    STORED = "stored"


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, as hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def verify(path: Path, n_bytes: int, sha256: str, look: Look) -> None:
    """Raise ``Damaged`` unless a path holds what a manifest says, ``OSError`` if unreadable."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    if found.st_size != n_bytes:
        raise Damaged(f"holds {found.st_size:,} bytes instead of {n_bytes:,}")
    note = f"{_boot()} {sha256} {found.st_size} {found.st_mtime_ns}"
    age_s = time.time() - _hashed().get(note, -math.inf)
    if look is Look.SEEN and 0 <= age_s < _COUNTS_S:
        return
    if sha256_of(path) != sha256:
        raise Damaged("its hash is not that of what was published")
    if not 0 <= age_s < _NOTED_S:
        _take_note(note)


def _take_note(note: str) -> None:
    """Remember a hash; a cache that can't be written is left out."""
    now = time.time()
    _hashed()[note] = now
    with suppress(OSError):
        _list().parent.mkdir(parents=True, exist_ok=True)
        with _list().open("a", encoding="ascii") as file:
            file.write(f"{now:.0f} {note}\n")
        if _list().stat().st_size > _LONGEST_LIST:
            _list().unlink()  # most of it is about files that are gone


def _list() -> Path:
    return platformdirs.user_cache_path("plumbline") / "hashed.txt"


@cache
def _hashed() -> dict[str, float]:
    """When files had their hash, by note."""
    found = {}
    with suppress(OSError):
        for line in _list().read_text(encoding="ascii", errors="replace").splitlines():
            seconds, _, note = line.partition(" ")
            if seconds.isdecimal():
                found[note] = float(seconds)
    return found


@cache
def _boot() -> str:
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return "unknown"
