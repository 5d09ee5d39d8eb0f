"""The command line that runs one of our modules in another Python process."""

from __future__ import annotations

import sys

#: With `-c` and `-m` Python puts the working directory first on its path, so a file there could
#: replace a module. The program imports only ``sys`` before it removes that directory.
_PROGRAM = (
    "import sys; sys.path[:] = [path for path in sys.path if path]; import runpy; "
    "runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
)


def command(module: str, *arguments: str) -> list[str]:
    """The command that runs a module like ``python -m``, without the working directory on the path.

    >>> command("json.tool", "--compact")[1], command("json.tool", "--compact")[-1]
    ('-c', '--compact')
    """
    return [sys.executable, "-c", _PROGRAM.format(module=module), *arguments]
