"""Model backends, one file each (``NAME_backend.py``).

``scoring_contract`` and ``sampling_contract`` define a backend's methods. Other packages can add
backends as entry points of the group ``plumbline.backends``: see ``docs/extend.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.paths import json_object
from plumbline.warehouse.plugins import Registry

if TYPE_CHECKING:
    from plumbline.eval_workers.models.model_options import ModelOptions
    from plumbline.eval_workers.models.scoring_contract import Backend


class BackendModule(Protocol):
    """The module of a backend. It must define the function ``open_model``."""

    def open_model(self, model: str, options: ModelOptions) -> Backend:
        """Return the model with this hub id or path. Its weights are loaded when first needed.

        A model that scores texts has the methods of ``scoring_contract.Backend``. A model that
        continues prompts has the methods of ``sampling_contract.SamplingModel``.
        """


BACKENDS = Registry("backend", __name__, "_backend.py", "plumbline.backends", BackendModule)


#: The model type in the config.json of n-gram models.
NGRAM = "plumbline_ngram"


def is_ngram(model: str) -> bool:
    """Return True if ``model`` is the directory of an n-gram model.

    >>> is_ngram("EleutherAI/pythia-70m")
    False
    """
    try:
        return json_object(Path(model).expanduser() / "config.json").get("model_type") == NGRAM
    except (OSError, ValueError):
        return False


def open_backend(model: str, options: ModelOptions) -> Backend:
    """Open the model with ``options.backend``, without loading its weights.

    If ``options.backend`` is `transformers` and ``model`` is the directory of an n-gram model, the
    backend `ngram` opens it instead. Raises the errors of the backend and of ``Registry.load``,
    such as ``UsageProblem`` for an unknown backend.
    """
    if options.backend == "transformers" and is_ngram(model):
        options = replace(options, backend="ngram")
    module: BackendModule = BACKENDS.load(options.backend)
    return module.open_model(model, options)


@contextmanager
def memory_problems(model: str) -> Iterator[None]:
    """Raise ``BadInput`` if the code in the ``with`` block runs out of memory."""
    try:
        yield
    except (MemoryError, RuntimeError) as e:  # torch raises RuntimeError if memory runs out
        phrases = ("out of memory", "can't allocate memory")
        if not isinstance(e, MemoryError) and not any(phrase in str(e) for phrase in phrases):
            raise
        fix = "see `--dry-run`; try a smaller batch_tokens (option or setting) or another --dtype"
        raise BadInput(f"model {model}", "takes more memory than there is", fix) from e
