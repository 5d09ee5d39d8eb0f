"""Standard streams that are closed or have lost their reader: output to them is discarded."""

from __future__ import annotations

import io
import os
import sys
from typing import Any, TextIO


def open_all() -> None:
    """Open the standard streams that are closed, and let output survive its reader.

    A command has to finish even if its output isn't read. If a standard stream were closed, the
    next opened file would get its number, and a library's prints would be written to that file.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number: this one
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = _surviving(sys.stdout, 1)
    sys.stderr = _surviving(sys.stderr, 2)


def _surviving(stream: TextIO | None, number: int) -> TextIO:
    is_lines = number == 2 or os.isatty(number)
    return io.TextIOWrapper(
        io.BufferedWriter(_Surviving(number, "w", closefd=False)),
        encoding=stream.encoding if stream else "utf-8",
        errors="backslashreplace",  # for letters that the encoding lacks
        line_buffering=is_lines,
        write_through=number == 2,
    )


class _Surviving(io.FileIO):
    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            return memoryview(data).nbytes
