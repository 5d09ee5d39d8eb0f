"""Model backends, one file each (``NAME_backend.py``).

``scoring_contract`` and ``sampling_contract`` define a backend's methods. Other packages can add
backends as entry points of the group ``plumbline.backends``: see ``docs/extend.md``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from plumbline.eval_workers.models.local.source import is_ngram
from plumbline.warehouse.errors import BadInput, disk_problems
from plumbline.warehouse.plugins import Registry

if TYPE_CHECKING:
    from plumbline.eval_workers.models.model_options import ModelOptions
    from plumbline.eval_workers.models.scoring_contract import Backend
    from plumbline.warehouse.storage.store import Store


class BackendModule(Protocol):
    """What the module of a backend has to define."""

    def open_model(self, model: str, options: ModelOptions) -> Backend:
        """Return the model with this hub id or path; its weights are loaded when first needed.

        To be scored, the model needs the methods of ``scoring_contract.Backend``; to be sampled,
        the methods of ``sampling_contract.SamplingModel``.
        """


BACKENDS = Registry("backend", __name__, "_backend.py", "plumbline.backends", BackendModule)


def open_backend(model: str, options: ModelOptions) -> Backend:
    """Open the model with ``options.backend``, without loading its weights.

    If the backend is `transformers`, an n-gram model's directory is opened with `ngram` instead.
    Raises the errors of the backend and of ``Registry.load``, such as ``UsageProblem`` for an
    unknown backend.
    """
    if options.backend == "transformers" and is_ngram(model):
        options = replace(options, backend="ngram")
    module: BackendModule = BACKENDS.load(options.backend)
    return module.open_model(model, options)


@contextmanager
def memory_released() -> Iterator[None]:
    """Decorate a function that opens a model: free the model's memory after the function returns.

    Until the function returns, its variables keep the model alive.
    """
    try:
        yield
    finally:
        _release()


def _release() -> None:
    if "torch" in sys.modules:
        from plumbline.eval_workers.models.devices import release

        release()


@contextmanager
def memory_problems(
    model: str,
    fix: str = "see `--dry-run`; try a smaller batch_tokens (option or setting) or another --dtype",
) -> Iterator[None]:
    """Raise ``BadInput`` with the advice ``fix`` if memory runs out inside the block."""
    try:
        yield
    except (MemoryError, RuntimeError) as e:
        if not is_about_memory(e):
            raise
        raise BadInput(f"model {model}", "takes more memory than there is", fix) from e


def is_about_memory(error: Exception) -> bool:
    """Return True if memory ran out; torch's ``RuntimeError`` is recognised by its text."""
    words = ("out of memory", "can't allocate memory")
    return isinstance(error, MemoryError) or any(said in str(error) for said in words)


#: Maps the name and options of the open model to the model; ``None`` outside ``one_model_kept``.
_kept: dict[tuple[str, ModelOptions], Any] | None = None


@contextmanager
def one_model_kept() -> Iterator[None]:
    """Within the block, keep the last opened model loaded for the next step that needs it."""
    global _kept
    _kept = {}
    try:
        yield
    finally:
        _kept = None
        _release()


@contextmanager
def opened(store: Store, model: str, options: ModelOptions) -> Iterator[Any]:
    """Yield a model for several steps; raise ``BadInput`` if disk or memory runs out in the block.

    If a different model is open, it is closed first to free its memory.
    """
    kept = {} if _kept is None else _kept
    if (model, options) not in kept:
        if kept:
            kept.clear()
            _release()
        kept[model, options] = open_backend(model, options)
    try:
        with disk_problems(store.root), memory_problems(model):
            yield kept[model, options]
    except BaseException:
        kept.clear()  # the model itself may have failed
        raise
