"""What libraries print past Python's own streams, kept from the terminal."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def quiet() -> Iterator[Callable[[], str]]:
    """Nothing is printed in the block, nor by processes started in it; gives what would have been.

    >>> with quiet() as output:
    ...     _ = os.system("echo a warning")
    ...     output().strip()
    'a warning'
    """
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [(number, os.dup(number)) for number in (1, 2)]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as file:

        def output() -> str:
            file.seek(0)
            return file.read()

        try:
            for number, _ in kept:
                os.dup2(file.fileno(), number)
            yield output
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for number, copy in kept:
                os.dup2(copy, number)
                os.close(copy)
