"""What commands print: every line goes through here, so that no foreign text steers a terminal."""

from __future__ import annotations

import sys

from plumbline.warehouse.text.escape import terminal


def say(text: str = "", *, err: bool = False) -> None:
    """Print lines on the output stream, or on that of errors; see ``neutral.terminal``.

    What the stream's encoding lacks is shown as an escape, too.

    >>> say("tea\\x1b[2J\\ndone")
    tea\\x1b[2J
    done
    """
    stream = sys.stderr if err else sys.stdout
    encoding = stream.encoding or "utf-8"
    line = terminal(text, lines=True).encode(encoding, "backslashreplace").decode(encoding)
    print(line, file=stream, flush=True)
