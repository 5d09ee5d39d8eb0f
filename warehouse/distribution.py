"""The installed distribution of Plumbline: its name on PyPI isn't the package's name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import Distribution

#: On PyPI, `plumbline` is another project.
NAME = "plumbline-lm"


def distribution() -> Distribution:
    """Metadata of the installed distribution.

    Raises ``PackageNotFoundError`` for a copy that isn't installed.
    """
    from importlib import metadata  # slow to import: slower than many commands

    return metadata.distribution(NAME)


def install_line(extra: str) -> str:
    """The command that installs an extra, or several separated by commas.

    >>> install_line("spark")
    "pip install 'plumbline-lm[spark]'"
    """
    return f"pip install '{NAME}[{extra}]'"
