"""One command at a time that writes what a corpus is counted to, or what is computed from that.

Two at once would end with rows of older counts beside newer ones: what is computed from counts is
dropped when these change, and would be written again by a command that began before.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from plumbline.warehouse.errors import disk_problems
from plumbline.warehouse.storage.locks import sole
from plumbline.warehouse.storage.paths import segment
from plumbline.warehouse.storage.store import Store

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")
_Writing = Callable[Concatenate[Store, str, _Given], _Made]


def sole_writer(store: Store, corpus: str) -> AbstractContextManager[None]:
    """Be the only one that writes a corpus for the block.

    Raises ``UsageProblem`` naming the process that does, ``BadInput`` for a disk that can't be
    written.

    >>> import tempfile
    >>> store = Store.open(tempfile.mkdtemp() + "/w")
    >>> with sole_writer(store, "novels"), sole_writer(store, "poems"):
    ...     pass
    """
    with disk_problems(store.root):
        place = store.work_directory("corpus")
    return sole(place / segment(corpus, after=".claim"), f"corpus {corpus!r}")


def writes_corpus(work: _Writing[_Given, _Made]) -> _Writing[_Given, _Made]:
    """Have a function of a warehouse and a corpus work as its ``sole_writer``."""

    @wraps(work)
    def alone(store: Store, corpus: str, /, *given: _Given.args, **named: _Given.kwargs) -> _Made:
        with sole_writer(store, corpus):
            return work(store, corpus, *given, **named)

    return alone
