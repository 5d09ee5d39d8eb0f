"""What each command does, as plain functions: a checked request, its run, the lines it prints."""

import os
from pathlib import Path

from plumbline.pipelines.command.base import DEFAULT_WAREHOUSE as DEFAULT_WAREHOUSE


def command_path(path: Path, default: Path, option: str) -> str:
    """The option that a further command needs, empty where ``path`` is the default.

    >>> command_path(Path("w"), Path("out/warehouse"), "--warehouse")
    ' --warehouse w'
    """
    return "" if os.fspath(path) == os.fspath(default) else f" {option} {path}"
