"""The only door to the warehouse's Parquet files: cast, publish atomically, replace, read.

Layout: ``<root>/<table>/<partition>=<value>/.../<unit>.parquet``. A file or a partition appears
under its final name by one rename after it is complete: the name itself is the completion marker.
Unfinished work is under ``_staging`` and ``_work``, which no view reads.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.schema.columns import Table
from plumbline.warehouse.storage.format import newest_version, note_format, open_warehouse
from plumbline.warehouse.storage.paths import (
    parquet_files,
    refuse_links,
    replace_directory,
    replacing,
    retry_missing,
    segment,
)
from plumbline.warehouse.storage.units import PREFIX, merged_with, replaced, units_of

if TYPE_CHECKING:
    import pyarrow.dataset as ds

#: Types of rows that can be written.
Rows: TypeAlias = "pa.Table | pa.RecordBatch | Iterable[Mapping[str, object]]"


def cast(table: Table, rows: Rows) -> pa.Table:
    """Bring rows to a table's schema: column order, types, NULL rules.

    Missing columns that may be NULL are filled with NULL. Raises ``BadInput`` naming the table and
    column for unknown or missing columns, values that do not fit, and NULL where it is not allowed.

    >>> cast(TABLES["word_count"], [{"corpus": "c", "word": "tea", "n_word": 2}]).num_rows
    1
    >>> cast(TABLES["word_count"], [{"corpus": "c", "word": "tea"}])
    Traceback (most recent call last):
    ...
    plumbline.warehouse.errors.BadInput: table word_count: column n_word holds NULL, which is \
not allowed
    """
    if isinstance(rows, pa.RecordBatch):
        rows = pa.Table.from_batches([rows])
    given: dict[str, object]
    if isinstance(rows, pa.Table):
        n_rows = rows.num_rows
        given = dict(zip(rows.column_names, rows.columns, strict=True))
    else:
        listed = list(rows)
        n_rows = len(listed)
        names = dict.fromkeys(chain.from_iterable(listed))
        given = {name: [row.get(name) for row in listed] for name in names}
    schema = table.arrow
    if unknown := sorted(given.keys() - set(schema.names)):
        raise BadInput(f"table {table.name}", f"no column named {', '.join(unknown)}")
    columns = [_column(table, f, given.get(f.name, [None] * n_rows)) for f in schema]
    return pa.table(columns, schema=schema)


def _column(table: Table, field: pa.Field, values: object) -> pa.ChunkedArray:
    try:
        if isinstance(values, pa.ChunkedArray):
            column = values.cast(field.type)
        else:
            column = pa.chunked_array([pa.array(values, field.type)])
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError) as e:
        problem = f"column {field.name} should be {field.type}: {e}"
        raise BadInput(f"table {table.name}", problem) from e
    if column.null_count and not field.nullable:
        problem = f"column {field.name} holds NULL, which is not allowed"
        raise BadInput(f"table {table.name}", problem)
    return column


@dataclass(frozen=True)
class Staged:
    """A partition being written. Picklable: Spark tasks write its parts, the driver commits it."""

    table: str
    directory: str
    destination: str
    run_id: str

    def write_part(self, name: str, batches: Iterable[pa.RecordBatch]) -> int:
        """Write one part file of this partition; returns its number of rows.

        A part written twice under one name (a retried task) replaces itself. Without rows no file
        is left.
        """
        table = TABLES[self.table]
        parts = (cast(table, batch) for batch in batches if batch.num_rows)
        first = next(parts, None)
        if first is None:
            return 0
        schema, n_rows = table.arrow.with_metadata(file_metadata(self.table, self.run_id)), 0
        with (
            replacing(Path(self.directory) / f"{name}.parquet") as temporary,
            pq.ParquetWriter(temporary, schema, compression="zstd") as writer,
        ):
            for part in chain([first], parts):
                writer.write_table(part)
                n_rows += part.num_rows
        return n_rows


class Store:
    """A warehouse directory.

    >>> import tempfile
    >>> store = Store.open(tempfile.mkdtemp() + "/w")
    >>> row = {"corpus": "c", "word": "tea", "n_word": 2}
    >>> _ = store.publish("word_count", [row], unit="all", run_id="r")
    >>> store.read("word_count", corpus="c").to_pylist()
    [{'corpus': 'c', 'word': 'tea', 'n_word': 2}]
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def open(cls, root: str | Path, *, create: bool = True) -> Store:
        """Open a warehouse as :func:`format.open_warehouse` does."""
        return cls(open_warehouse(root, create=create))

    def directory(self, table: str, partition: Mapping[str, str]) -> Path:
        """Directory of a partition; a prefix of the partition columns names a whole subtree."""
        path = self.root / table
        columns = TABLES[table].partitions
        if len(partition) > len(columns):  # otherwise this would be another partition's
            raise KeyError(f"{table} has no partitions by {', '.join(partition)}")
        for name in columns[: len(partition)]:
            path /= segment(partition[name], f"{name}=")
        return path

    def publish(self, table: str, rows: Rows, *, unit: str, run_id: str) -> Path | None:
        """Publish rows of one partition as one file named by ``unit``, replacing that unit.

        All rows must share the partition's values. Without rows nothing is written.
        A unit that was merged with others is replaced inside the merged file.
        """
        data = cast(TABLES[table], rows)
        if data.num_rows == 0:
            return None
        partition = self.partition_of(table, data)
        directory = refuse_links(self.root, self.directory(table, partition))
        path = directory / segment(unit, after=".parquet")
        note_format(self.root)
        merged = merged_with(path.parent, path.stem)
        if merged is not None:
            write_file(merged, replaced(merged, path.stem, data, run_id))
            return merged
        write_file(path, data.replace_schema_metadata(file_metadata(table, run_id)))
        return path

    def replace(self, table: str, rows: Rows, partition: Mapping[str, str], run_id: str) -> None:
        """Replace a whole partition by these rows in one step; without rows it becomes empty."""
        staged = self.stage(table, partition, run_id)
        staged.write_part("part-0", cast(TABLES[table], rows).to_batches())
        self.commit(staged)

    def stage(self, table: str, partition: Mapping[str, str], run_id: str) -> Staged:
        """Begin a partition that readers do not see; see ``Staged.write_part`` and ``commit``."""
        note_format(self.root)
        destination = refuse_links(self.root, self.directory(table, partition))
        directory = refuse_links(self.root, self.root / "_staging") / uuid.uuid4().hex
        directory.mkdir(parents=True)
        return Staged(table, str(directory.resolve()), str(destination.resolve()), run_id)

    def commit(self, staged: Staged) -> None:
        """Replace the published partition by a staged one."""
        replace_directory(Path(staged.directory), Path(staged.destination))

    def drop(self, table: str, partition: Mapping[str, str]) -> None:
        """Remove a partition, or with a prefix of the partition columns a subtree of them."""
        directory = refuse_links(self.root, self.directory(table, partition))
        shutil.rmtree(directory, ignore_errors=True)

    def read(self, table: str, where: ds.Expression | None = None, /, **partition: str) -> pa.Table:
        """All rows of a table, or of one partition, in the table's schema; empty if none.

        ``where`` selects rows; ``partition`` gives the leading partition columns in order. If the
        partition is replaced meanwhile, all are the old rows or all are the new ones.
        """
        directory, schema = self.directory(table, partition), TABLES[table].arrow

        def selected() -> pa.Table:
            files = parquet_files(directory)
            if where is None or not files:
                found = (pq.ParquetFile(file).read() for file in files)
                rows = pa.concat_tables([schema.empty_table(), *found], promote_options="default")
                return pa.table(rows.select(schema.names).columns, schema=schema)
            import pyarrow.dataset as ds  # loads pandas where it is installed: half a second

            return ds.dataset([str(f) for f in files], schema=schema).to_table(filter=where)

        return retry_missing(selected)

    def units(self, table: str, **partition: str) -> set[str]:
        """Names of the units published in a partition, quoted as in file names."""
        files = list(self.directory(table, partition).glob("*.parquet"))
        merged = [f for f in files if f.name.startswith(PREFIX)]
        names = {f.stem for f in files if f not in merged}
        return names | {unit.name for f in merged for unit in units_of(f)}

    def work_directory(self, *parts: str, create: bool = True) -> Path:
        """A directory for resumable intermediate results, which no view reads."""
        path = self.root.joinpath("_work", *map(segment, parts))
        if create:
            refuse_links(self.root, path)
            path.mkdir(parents=True, exist_ok=True)
        return path

    def partition_of(self, table: str, data: pa.Table) -> dict[str, str]:
        """The values of the partition columns that all rows share; ``BadInput`` if they do not."""
        partition = {}
        for name in TABLES[table].partitions:
            values = data[name].unique().to_pylist()
            if len(values) != 1:
                raise BadInput(f"table {table}", f"one file holds one {name}, got {len(values)}")
            partition[name] = values[0]
        return partition


def write_file(path: Path, data: pa.Table, *, temporary: bool = False) -> None:
    """Write a Parquet file that appears under its name only when it is complete.

    Args:
        temporary: the file will be read once, as a whole: write it fast rather than small, and
            without the statistics that help readers select rows.
    """
    # A dictionary makes columns of text small, but hardly those of numbers.
    text_columns = [f.name for f in data.schema if not pa.types.is_primitive(f.type)]
    settings = (
        {"compression": "lz4", "use_dictionary": True, "row_group_size": 1 << 22}
        if temporary
        else {"compression": "zstd", "use_dictionary": text_columns}
    )
    with replacing(path) as unfinished:
        pq.write_table(
            data,
            unfinished,
            write_statistics=not temporary,
            dictionary_pagesize_limit=1 << 28,
            **settings,
        )


def file_metadata(table: str, run_id: str) -> dict[bytes, bytes]:
    """Metadata of a published file: its table, run and format version."""
    version = str(newest_version())
    values = {"table": table, "run_id": run_id, "warehouse_version": version}
    return {f"plumbline.{k}".encode(): v.encode() for k, v in values.items()}
