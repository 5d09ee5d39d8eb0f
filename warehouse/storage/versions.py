"""Versions of a warehouse: restore one, copy the newest to another place, forget a file."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.storage import log
from plumbline.warehouse.storage.log import Draft, File
from plumbline.warehouse.storage.opening import reading
from plumbline.warehouse.storage.place import Look, staging, verify
from plumbline.warehouse.storage.store import Store


def restore(store: Store, version: int, run_id: str) -> None:
    """Bring every table, except ``run``, back to its state at a version.

    Raises as ``pinned``, and ``BadInput`` for a file that is unreadable or not as published; then
    nothing is changed.
    """
    state = store.pinned(version).snapshot()

    def change(draft: Draft) -> None:
        for table in {*draft.base.tables, *state.tables} - {"run"}:
            draft.become(table, state.files(table))

    with store.place.writing():  # meanwhile `compact` removes none of these files
        for table in state.tables.keys() - {"run"}:
            for file in state.files(table):
                with reading(store.place, store.root / file.path):
                    store.place.local(file.path, file.n_bytes, file.sha256, Look.STORED)
        log.commit(store.place, change, run_id, f"restore {version}")


def file_of(store: Store, path: Path) -> tuple[str, File]:
    """The table and entry of the data file at a path, in the newest version.

    The path may be relative to the warehouse. Raises ``UsageProblem`` for any other path.
    """
    now = store.snapshot()
    for table in now.tables:
        for file in now.files(table):
            where = store.root / file.path
            if str(path) in (file.path, str(where), str(Path(str(where)))):  # Path: s3:// -> s3:/
                return table, file
    raise UsageProblem(f"file {path}", "belongs to no table of the newest version")


def forget(store: Store, table: str, file: File, run_id: str) -> None:
    """Take a data file out of its table; the file stays stored until ``compact`` removes it."""
    log.commit(store.place, lambda draft: draft.swap(table, [file], []), run_id, f"forget {table}")


def copy(
    source: Store, target: Store, force: bool, progress: Callable[[int, int], None]
) -> tuple[int, int]:
    """Copy a warehouse's newest state to another; returns the numbers of all and of sent files.

    Files that the target already has are not sent, so an interrupted copy resumes. Unless
    ``force``, raises ``UsageProblem`` if the target has runs that the source lacks, also runs
    recorded during the copy. Raises ``BadInput`` for a file that isn't as published.
    """
    state = source.snapshot()
    source_runs = _runs(Store(source.place, state))

    def refuse_others(store: Store) -> None:
        if not force and (others := _runs(store) - source_runs):
            problem = f"holds {len(others)} runs that {source.root} lacks"
            fix = "--force replaces what they wrote"
            raise UsageProblem(f"warehouse {target.root}", problem, fix)

    refuse_others(target)
    files = [file for table in state.tables for file in state.files(table)]
    existing = set(target.place.walk())
    missing = [file for file in files if file.path not in existing]

    def change(draft: Draft) -> None:
        refuse_others(Store(target.place, draft.base))
        for table in {*draft.base.tables, *state.tables}:
            draft.become(table, state.files(table))

    with target.place.writing():
        for done, file in enumerate(missing):
            progress(done, len(missing))
            local_copy = staging(target.place) / f"{uuid4().hex}.parquet"
            shutil.copyfile(source.path(file), local_copy)
            with reading(target.place, local_copy):
                verify(local_copy, file.n_bytes, file.sha256, Look.HASHED)
            target.place.put(local_copy, file.path)
        log.commit(target.place, change, state.run_id, f"copy of {source.root}")
    return len(files), len(missing)


def _runs(store: Store) -> set[str]:
    return set(store.read("run")["run_id"].to_pylist())
