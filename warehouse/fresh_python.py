"""The command line that runs one of our modules in another Python process."""

from __future__ import annotations

import sys

#: Python puts the working directory first on its path, also for `-m`: a file there would be
#: imported in place of a module. Only ``sys`` is imported before it is taken out.
_PROGRAM = (
    "import sys; sys.path[:] = [path for path in sys.path if path]; import runpy; "
    "runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
)


def command(module: str, *arguments: str) -> list[str]:
    """Run a module as ``python -m`` does, without the working directory on Python's path.

    >>> command("json.tool", "--compact")[1], command("json.tool", "--compact")[-1]
    ('-c', '--compact')
    """
    return [sys.executable, "-c", _PROGRAM.format(module=module), *arguments]
