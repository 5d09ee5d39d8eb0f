"""The installed distribution of Plumbline, whose name on PyPI differs from the package's."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import Distribution

#: Somebody else's project has the name `plumbline` on PyPI.
NAME = "plumbline-lm"
#: The name before 0.2, in environments and in rows of ``run`` of that time.
OLD_NAME = "plumbline"


def distribution() -> Distribution:
    """Metadata of the installed distribution.

    Raises ``PackageNotFoundError`` for a copy that isn't installed.
    """
    from importlib import metadata  # importing it takes longer than many commands do

    try:
        return metadata.distribution(NAME)
    except metadata.PackageNotFoundError:
        return metadata.distribution(OLD_NAME)


def install_line(extra: str) -> str:
    """The command that installs an extra, or several separated by commas.

    >>> install_line("spark")
    "pip install 'plumbline-lm[spark]'"
    """
    return f"pip install '{NAME}[{extra}]'"
