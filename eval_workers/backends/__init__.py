"""Model backends, one file each (``NAME_backend.py``); the only modules that import torch."""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

from plumbline.warehouse.errors import UsageProblem

if TYPE_CHECKING:
    from plumbline.eval_workers.backends._continuer import Continuer
    from plumbline.eval_workers.options import ModelOptions

_SUFFIX = "_backend"


def names() -> list[str]:
    """Names of the backends there are; none is imported.

    >>> "transformers" in names()
    True
    """
    modules = (module.name for module in pkgutil.iter_modules(__path__))
    return sorted(name.removesuffix(_SUFFIX) for name in modules if name.endswith(_SUFFIX))


def open_backend(model: str, options: ModelOptions) -> Continuer:
    """The model under ``options.backend``, weights not loaded yet.

    Raises ``UsageProblem`` for a backend that is none, and what the backend raises.
    """
    if options.backend not in names():
        problem = f"is not one of {', '.join(names())}"
        raise UsageProblem(f"--backend {options.backend}", problem)
    module = importlib.import_module(f"{__name__}.{options.backend}{_SUFFIX}")
    backend: Continuer = module.open_model(model, options)
    return backend
