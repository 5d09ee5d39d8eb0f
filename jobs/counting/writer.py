"""Lock of a corpus: one command at a time writes its counts or what is computed from them.

Two at once could leave rows of older counts beside newer ones: a change of the counts drops what is
computed from them, and a command that began before the change would write it again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from plumbline.warehouse.storage.locks import lock
from plumbline.warehouse.storage.store import Store

_Params = ParamSpec("_Params")
_Result = TypeVar("_Result")
_CorpusFunction = Callable[Concatenate[Store, str, _Params], _Result]


def sole_writer(store: Store, corpus: str) -> AbstractContextManager[None]:
    """Hold the corpus's lock for the block.

    Raises ``UsageProblem`` naming the process that holds it, ``BadInput`` for a disk that can't be
    written.

    >>> import tempfile
    >>> store = Store.open(tempfile.mkdtemp() + "/w")
    >>> with sole_writer(store, "novels"), sole_writer(store, "poems"):
    ...     pass
    """
    return lock(store, f"corpus {corpus}", f"corpus {corpus!r}")


def writes_corpus(
    function: _CorpusFunction[_Params, _Result],
) -> _CorpusFunction[_Params, _Result]:
    """Decorate a function of a store and a corpus to run with that corpus's lock."""

    @wraps(function)
    def locked(
        store: Store, corpus: str, /, *args: _Params.args, **kwargs: _Params.kwargs
    ) -> _Result:
        with sole_writer(store, corpus):
            return function(store, corpus, *args, **kwargs)

    return locked
