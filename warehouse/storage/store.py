"""Publish, replace and restore the rows of a warehouse's tables."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from plumbline.warehouse.errors import UsageProblem, naming
from plumbline.warehouse.paths import replacing
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage import log
from plumbline.warehouse.storage.data_files import DataFiles, Rows, cast, folders
from plumbline.warehouse.storage.log import Draft, Snapshot
from plumbline.warehouse.storage.opening import reading
from plumbline.warehouse.storage.out_of_date import delete_out_of_date
from plumbline.warehouse.storage.place import File, Place, Unit, staging

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Staged:
    """A partition that is being written. Spark tasks can use this object, as it can be pickled."""

    table: str
    directory: str
    partition: tuple[tuple[str, str], ...]
    run_id: str

    def write_part(self, name: str, batches: Iterable[pa.RecordBatch]) -> int:
        """Write one part of this partition to a file. Return its number of rows.

        An old part of the same name, for example from a failed task, is replaced. If there are no
        rows, no file is written.
        """
        import pyarrow.parquet as pq

        table = TABLES[self.table]
        parts = (cast(table, batch) for batch in batches if batch.num_rows)
        first = next(parts, None)
        if first is None:
            return 0
        n_rows = 0
        with (
            replacing(Path(self.directory) / f"{name}.parquet") as temporary,
            pq.ParquetWriter(temporary, table.arrow, compression="zstd") as writer,
        ):
            for part in chain([first], parts):
                writer.write_table(part)
                n_rows += part.num_rows
        return n_rows

    def parts(self) -> list[Path]:
        return sorted(Path(self.directory).glob("*.parquet"))


class Store(DataFiles):
    """A warehouse that can be read and changed. If pinned to a version, it can only be read."""

    def __init__(self, place: Place, at: Snapshot | None = None) -> None:
        super().__init__(place, at)
        self._changes: list[log.Change] | None = None  # None outside of a `transaction`

    @contextmanager
    def transaction(self, run_id: str, about: str = "") -> Iterator[None]:
        """Collect the changes that the block makes, and publish them in one commit at its end.

        After an error, nothing is published. Inside the block, the store reads the state from
        before the block. A nested block becomes part of the outer block.
        """
        if self._changes is not None:
            yield
            return
        if self._at is not None:
            problem = "is pinned and can only be read"
            raise UsageProblem(f"version {self._at.version}", problem)
        changes = self._changes = []

        def change_all(draft: Draft) -> None:
            for change in changes:
                change(draft)
            delete_out_of_date(self, draft)

        try:
            yield
        finally:
            self._changes = None
        with naming(self.place.scratch()):
            log.commit(self.place, change_all, run_id, about)

    def publish(self, table: str, rows: Rows, *, unit: str, run_id: str) -> None:
        """Publish rows of one partition under the name ``unit``.

        Rows that the partition already has under this name are replaced. All rows must have the
        same values in the partition columns. Rows without a ``run_id`` get this one. If there are
        no rows, nothing changes.
        """
        data = cast(TABLES[table], rows, run_id=run_id)
        if data.num_rows == 0:
            return
        partition = self.partition_of(table, data)

        def change(draft: Draft) -> None:
            files = draft.files(table, partition)
            old = [f for f in files if unit in (one.name for one in f.units)]
            rest = [self.without_unit(table, f, unit) for f in old if len(f.units) > 1]
            draft.swap(table, old, [file], rest)

        file = self.write(table, partition, data, (Unit(unit, data.num_rows, run_id),))
        self._commit(change, run_id, f"publish {table}")

    def replace(self, table: str, rows: Rows, partition: Mapping[str, str], run_id: str) -> None:
        """Replace all rows of a partition. If there are no new rows, the partition becomes empty.

        If ``partition`` has only the first partition columns, several partitions are replaced.
        Rows may lack ``run_id`` and the columns in ``partition``. Rows of other tables that were
        made from removed or changed rows are deleted too (see ``Table.made_from``).
        """
        data = cast(TABLES[table], rows, **{**partition, "run_id": run_id})
        units = (Unit("part-0", data.num_rows, run_id),)
        files = [self.write(table, partition, data, units)] if data.num_rows else []
        self._replace(table, partition, files, run_id)

    def stage(self, table: str, partition: Mapping[str, str], run_id: str) -> Staged:
        """Begin to write a partition. ``Staged.write_part`` adds rows, `commit` publishes them."""
        folders(table, partition)  # raises an error for an invalid name
        directory = staging(self.place) / uuid.uuid4().hex
        directory.mkdir()
        return Staged(table, str(directory.resolve()), tuple(partition.items()), run_id)

    def commit(self, staged: Staged) -> None:
        """Publish a staged partition, which replaces the partition's old rows."""
        import pyarrow.parquet as pq

        partition, files = dict(staged.partition), []
        for part in staged.parts():
            units = (Unit(part.stem, pq.read_metadata(part).num_rows, staged.run_id),)
            files.append(self.adopt(staged.table, partition, part, units))
        shutil.rmtree(staged.directory, ignore_errors=True)
        self._replace(staged.table, partition, files, staged.run_id)

    def restore(self, version: int, run_id: str) -> None:
        """Restore all tables, except ``run``, to their state at a version.

        Tables that no installed package declares stay as they are. Raises the errors of ``pinned``,
        and ``BadInput`` if a file is unreadable or damaged. After an error, nothing is changed.
        """

        def change(draft: Draft) -> None:
            for table in {*draft.base.declared, *state.declared} - {"run"}:
                draft.swap(table, draft.files(table), [], state.files(table))
            draft.out_of_date = dict(state.out_of_date)
            log.snapshot(self.place, version)  # raises an error if `compact` removed the version

        state = self.pinned(version).snapshot()
        for table in state.declared.keys() - {"run"}:
            for file in state.files(table):
                with reading(self.place, self.root / file.path):
                    self.place.local(file, stored=True)
        with naming(self.place.scratch()):
            log.commit(self.place, change, run_id, f"restore {version}")

    def _replace(
        self, table: str, partition: Mapping[str, str], files: list[File], run_id: str
    ) -> None:
        def change(draft: Draft) -> None:
            draft.swap(table, draft.files(table, partition), files)

        self._commit(change, run_id, f"replace {table}")

    def _commit(self, change: log.Change, run_id: str, about: str) -> None:
        with self.transaction(run_id, about):
            assert self._changes is not None
            self._changes.append(change)
