"""Plumbline: measure gender preferences of language models, and trace them to their training text.

This package links to the repository's directories, such as ``jobs`` and ``warehouse``. Code imports
them as ``plumbline.jobs``, for example, so that their names can't clash with other packages.

How to use Plumbline from Python::

    import plumbline

    plumbline.lean(["She met the nurse.", "He met the baker."])    # without a warehouse
    plumbline.prefer("EleutherAI/pythia-70m", [("She ran.", "He ran.")])
    plumbline.continues("EleutherAI/pythia-70m", ("John", "Jane"))

    wh = plumbline.open("out/warehouse")
    wh.words(["nurse", "captain"])

See :mod:`plumbline.quick` and :mod:`plumbline.api`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plumbline.api import Warehouse, open
    from plumbline.quick import continues, lean, prefer

    __version__: str

__all__ = ["Warehouse", "continues", "lean", "open", "prefer"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that commands that don't need it start faster.

    ``__version__`` is the installed version, or ``unknown`` if Plumbline isn't installed.
    """
    if name == "__version__":
        from importlib import metadata  # slow to import

        from plumbline.warehouse.plugins import NAME

        try:
            return metadata.version(NAME)
        except metadata.PackageNotFoundError:
            return "unknown"
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = "api" if name in ("Warehouse", "open") else "quick"
    return getattr(import_module(f"plumbline.{module}"), name)
