"""Write and read the data files of tables, and convert rows to a table's schema.

A data file, ``<table>/<partition>=<value>/.../<name>.parquet``, becomes part of a table when a
commit names it (``log.py``).
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.paths import replacing, segment
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.schema.columns import Table
from plumbline.warehouse.storage.opening import OpenWarehouse, reading
from plumbline.warehouse.storage.place import File, Unit, sha256_of, staging

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

#: Types of rows that can be written.
Rows: TypeAlias = "pa.Table | pa.RecordBatch | Iterable[Mapping[str, object]]"


def cast(table: Table, rows: Rows, **same: object) -> pa.Table:
    """Convert rows to a table's schema: the order and types of its columns, and its NULL rules.

    A missing column gets its value in ``same``, or else NULL if it may be NULL. Raises
    ``BadInput``, naming table and column, for an unknown or missing column, a value of another
    type, or a NULL that isn't allowed.
    """
    import pyarrow as pa

    if isinstance(rows, pa.RecordBatch):
        rows = pa.Table.from_batches([rows])
    values: dict[str, object]
    if isinstance(rows, pa.Table):
        n_rows = rows.num_rows
        values = dict(zip(rows.column_names, rows.columns, strict=True))
    else:
        rows = list(rows)
        n_rows = len(rows)
        names = dict.fromkeys(chain.from_iterable(rows))
        values = {name: [row.get(name) for row in rows] for name in names}
    schema = table.arrow
    lacking = set(schema.names) - values.keys()
    values |= {name: [value] * n_rows for name, value in same.items() if name in lacking}
    if unknown := sorted(values.keys() - set(schema.names)):
        raise BadInput(f"table {table.name}", f"no column named {', '.join(unknown)}")
    columns = [_column(table, f, values.get(f.name, [None] * n_rows)) for f in schema]
    return pa.table(columns, schema=schema)


def _column(table: Table, field: pa.Field, values: object) -> pa.ChunkedArray:
    import pyarrow as pa

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


def write_file(path: Path, data: pa.Table, *, temporary: bool = False) -> None:
    """Write a Parquet file, which appears under its name only when it is complete.

    A ``temporary`` file is read only once, as a whole. It is written faster than other files, but
    is larger. It has no checksums and no statistics.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    # In permanent files, only text gets dictionaries: they hardly make numbers smaller.
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
            write_page_checksum=not temporary,
            **settings,
        )


class DataFiles(OpenWarehouse):
    """An open warehouse that can read and write data files. ``Store`` adds the files to tables."""

    def read(self, table: str, where: ds.Expression | None = None, /, **partition: str) -> pa.Table:
        """Read the rows of a table. ``partition`` gives values of the leading partition columns.

        ``where`` selects rows. By default all rows are read. Raises ``BadInput``, with the path,
        for a file that can't be read or has changed since it was published.
        """
        import pyarrow as pa

        files = self.snapshot().files(table, partition)
        rows = [self.rows_of(table, file, where) for file in files]
        none = pa.Table.from_batches([], TABLES[table].arrow)  # avoids importing pandas
        return pa.concat_tables([none, *rows])

    def rows_of(self, table: str, file: File, where: ds.Expression | None = None) -> pa.Table:
        """Read the rows of one data file. Raises the errors of ``read``."""
        import pyarrow.parquet as pq

        path, schema = self.path(file), TABLES[table].arrow
        with reading(self.place, self.root / file.path):
            if where is None or file.columns != TABLES[table].columns_id:
                rows = pq.ParquetFile(path).read()
            else:
                import pyarrow.dataset as ds  # slow: may import pandas

                rows = ds.dataset(path, schema).to_table(filter=where)
            try:
                rows = cast(TABLES[table], rows)
            except BadInput as e:
                raise ValueError(e) from e
        return rows if where is None else rows.filter(where)

    def partition_of(self, table: str, data: pa.Table) -> dict[str, str]:
        """Return the partition of the rows. Raise ``BadInput`` if there are several partitions."""
        partition = {}
        for name in TABLES[table].partitions:
            values = data[name].unique().to_pylist()
            if len(values) != 1:
                raise BadInput(f"table {table}", f"a file needs one {name}, got {len(values)}")
            partition[name] = values[0]
        return partition

    def adopt(
        self, table: str, partition: Mapping[str, str], made: Path, units: Sequence[Unit]
    ) -> File:
        """Move a Parquet file to its table. A file without a commit may be removed after a day."""
        name = "/".join([table, *folders(table, partition), f"{uuid.uuid4().hex[:20]}.parquet"])
        file = File(
            name,
            made.stat().st_size,
            sha256_of(made),
            time.time_ns() // 1_000_000,
            TABLES[table].columns_id,
            TABLES[table].partition_values(partition),
            tuple(units),
        )
        self.place.put(made, name)
        return file

    def write(
        self, table: str, partition: Mapping[str, str], data: pa.Table, units: Sequence[Unit]
    ) -> File:
        """Write rows to a new data file of a partition, for the next commit (see ``adopt``)."""
        made = staging(self.place) / f"{uuid.uuid4().hex}.parquet"
        write_file(made, data)
        return self.adopt(table, partition, made, units)

    def without_unit(self, table: str, file: File, unit: str) -> File:
        is_kept = [u.name != unit for u in file.units for _ in range(u.n_rows)]
        return self.keep_rows(table, file, self.rows_of(table, file), is_kept)

    def keep_rows(self, table: str, file: File, rows: pa.Table, is_kept: Sequence[bool]) -> File:
        """Copy ``rows`` of a file to a new file. Leave out rows for which ``is_kept`` is false."""
        import pyarrow as pa

        units, start = [], 0
        for unit in file.units:
            n_rows = sum(is_kept[start : start + unit.n_rows])
            start += unit.n_rows
            if n_rows:
                units.append(replace(unit, n_rows=n_rows))
        partition = dict(zip(TABLES[table].partitions, file.partition, strict=True))
        return self.write(table, partition, rows.filter(pa.array(is_kept)), units)


def folders(table: str, partition: Mapping[str, str]) -> list[str]:
    """Return a partition's directory names. Raises ``BadInput`` for an invalid name."""
    values = TABLES[table].partition_values(partition)
    return [segment(v, f"{c}=") for c, v in zip(TABLES[table].partitions, values, strict=True)]
