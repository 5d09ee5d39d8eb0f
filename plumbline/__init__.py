"""Plumbline: which way a language model leans, and whether it follows its text.

The rooms are directories of the repository; this package links them, so that they are imported as
``plumbline.jobs``, ``plumbline.warehouse``, ... and collide with no other package. From Python::

    import plumbline

    wh = plumbline.open("out/warehouse")
    wh.words(["nurse", "captain"])

See :mod:`plumbline.api`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plumbline.api import Warehouse, Why, open

    __version__: str

__all__ = ["Warehouse", "Why", "open"]


def __getattr__(name: str) -> Any:
    """The interface, loaded at its first use: commands that need none of it start faster.

    ``__version__`` is the installed version; ``unknown`` for a copy that isn't installed.
    """
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError  # takes longer than many a command

        from plumbline.warehouse.distribution import distribution

        try:
            return distribution().version
        except PackageNotFoundError:
            return "unknown"
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from plumbline import api

    return getattr(api, name)
