"""Printing: commands print every line through here, so that foreign text can't steer a terminal."""

from __future__ import annotations

import sys

from plumbline.warehouse.text.escape import terminal


def say(text: str = "", *, err: bool = False) -> None:
    """Print lines to standard output, or standard error; see ``escape.terminal``.

    Characters that the stream can't encode are escaped, too.

    >>> say("tea\\x1b[2J\\ndone")
    tea\\x1b[2J
    done
    """
    stream = sys.stderr if err else sys.stdout
    encoding = stream.encoding or "utf-8"
    line = terminal(text, lines=True).encode(encoding, "backslashreplace").decode(encoding)
    print(line, file=stream, flush=True)
