"""Restore an earlier version of a warehouse."""

from __future__ import annotations

from plumbline.warehouse.storage import log
from plumbline.warehouse.storage.log import Draft
from plumbline.warehouse.storage.opening import reading
from plumbline.warehouse.storage.store import Store


def restore(store: Store, version: int, run_id: str) -> None:
    """Bring every table, except ``run``, back to its state at a version.

    Raises as ``pinned``, and ``BadInput`` for a file that is unreadable or not as published; then
    nothing is changed.
    """

    def change(draft: Draft) -> None:
        for table in {*draft.base.declared, *state.declared} - {"run"}:
            draft.become(table, state.files(table))

    with store.place.writing():  # from here on `compact` removes no file of this version
        state = store.pinned(version).snapshot()
        for table in state.declared.keys() - {"run"}:
            for file in state.files(table):
                with reading(store.place, store.root / file.path):
                    store.place.local(file.path, file.n_bytes, file.sha256, stored=True)
        log.commit(store.place, change, run_id, f"restore {version}")
