"""A directory put in the place of another: who reads meanwhile finds the old one or the new one."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import uuid
from pathlib import Path

#: Of renameat2 (Linux): paths are relative to the working directory; both names change at once.
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
#: What says that the system or the file system can't, as network disks may.
_UNABLE = frozenset((errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM))


def exchange(one: Path, other: Path) -> bool:
    """Give two paths each other's name in one step; false where that can't be done.

    Raises ``OSError`` when one of them is not there.
    """
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):  # not Linux
        return False
    names = os.fsencode(one), os.fsencode(other)
    if renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNABLE:
        return False
    raise OSError(number, os.strerror(number), str(one), None, str(other))


def put(directory: Path, destination: Path) -> None:
    """Put ``directory`` in the place of ``destination``, whose files go; an empty one leaves none.

    Of several at once the last one stays, whole. Where ``exchange`` can't be done there is an
    instant without either; a kill in it leaves the old one beside ``directory``, under a name that
    ends with ``-retired``.
    """
    destination.parent.mkdir(parents=True, exist_ok=True)
    old = [directory]  # after an exchange
    if any(directory.iterdir()):
        while not _takes_place(directory, destination):
            old += _moved_away(destination, directory.parent)
    else:
        old += _moved_away(destination, directory.parent)
    for path in old:
        shutil.rmtree(path, ignore_errors=True)


def _takes_place(directory: Path, destination: Path) -> bool:
    try:
        os.rename(directory, destination)
        return True
    except OSError as e:
        if e.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
    try:
        return exchange(directory, destination)
    except FileNotFoundError:  # another command has just moved it away
        return False


def _moved_away(path: Path, where: Path) -> list[Path]:
    aside = where / f"{uuid.uuid4().hex}-retired"
    try:
        os.rename(path, aside)
    except FileNotFoundError:
        return []
    return [aside]
