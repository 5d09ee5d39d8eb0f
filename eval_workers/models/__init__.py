"""Model backends, one file each (``NAME_backend.py``).

``scoring_contract`` and ``sampling_contract`` define their methods. Other packages add backends by
entry points of the group ``plumbline.backends``: see ``docs/extend.md``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from plumbline.eval_workers.models.local.source import check_directory, is_ngram
from plumbline.warehouse.plugins import Registry

if TYPE_CHECKING:
    from plumbline.eval_workers.models.continuer import Continuer
    from plumbline.eval_workers.models.model_options import ModelOptions


class BackendModule(Protocol):
    """Contract of a backend's module."""

    def open_model(self, model: str, options: ModelOptions) -> Continuer:
        """The model with this hub id or path; its weights are loaded when first needed.

        Scoring needs the methods of ``scoring_contract.Backend``, sampling those of
        ``sampling_contract.SamplingModel``.
        """
        ...


BACKENDS = Registry("backend", __name__, "_backend.py", "plumbline.backends", BackendModule)


def open_backend(model: str, options: ModelOptions) -> Continuer:
    """The model under ``options.backend``, weights not loaded yet.

    If the option is `transformers`, an n-gram model's directory is opened with `ngram`, and the
    name `dummy` with `dummy`, unless a path of that name exists. Raises the errors of the backend
    and of ``Registry.load``, such as ``UsageProblem`` for an unknown backend.
    """
    if options.backend == "transformers" and is_ngram(model):
        options = replace(options, backend="ngram")
    if options.backend == "transformers" and model == "dummy" and not Path(model).exists():
        options = replace(options, backend="dummy")
    if options.backend in ("transformers", "vllm"):
        check_directory(model)
    module: BackendModule = BACKENDS.load(options.backend)
    return module.open_model(model, options)
