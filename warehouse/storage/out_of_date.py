"""Delete rows that are out of date because a commit changed the rows that they were made from.

The deletion is part of that commit. Rows that the commit itself writes are up to date.
``Table.made_from`` declares which rows a row is made from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.schema.columns import Origin, Table
from plumbline.warehouse.storage.data_files import DataFiles
from plumbline.warehouse.storage.log import Draft
from plumbline.warehouse.storage.place import File

if TYPE_CHECKING:
    import pyarrow as pa

#: Columns that say where a row came from. A row that differs only in these has not changed.
_PROVENANCE = {"run_id", "source_file", "source_row", "extra"}
Values: TypeAlias = tuple[Any, ...]


def delete_out_of_date(store: DataFiles, draft: Draft) -> None:
    """Delete rows of other tables that were made from rows that a draft changes.

    Adds the number of rows deleted in each partition to ``draft.out_of_date``. Each table is
    checked after the tables that it is made from, so a deletion can cause further deletions. If a
    partition had no files before this draft, rows that were made from that partition are kept.
    """
    for table in (TABLES[name] for name in TABLES if name in draft.base.tables):
        for origin in table.made_from:
            gone, added = draft.changes(origin.table)
            before = draft.base.files(origin.table)
            made = [
                file
                for file in draft.old_files(table.name)
                if _overlap(table, file, origin, gone + added)
                and _overlap(table, file, origin, before)
            ]
            if keys := {key for file in made for key in _keys(store, table, file, origin.by)}:
                keys = _changed(store, origin, keys, gone, added)
            for file in made if keys else ():
                _delete(store, draft, table.name, file, origin.by, keys)


def to_make_again(now: Mapping[str, int], before: Mapping[str, int] | None = None) -> list[str]:
    """Return a message for each table that lost rows, with the command that makes them again.

    ``now`` and ``before`` are the ``out_of_date`` of a newer and an older ``Snapshot``. Only rows
    that were deleted between the two versions are reported.
    """
    n_rows: Counter[str] = Counter()
    for directory, n in now.items():
        n_rows[directory.partition("/")[0]] += n - (before or {}).get(directory, 0)
    end = "made from rows that changed; again:"
    return [
        f"deleted {n:,} row{'s' * (n > 1)} of `{name}`, {end} {table.how_filled}"
        for name, table in TABLES.items()
        if (n := n_rows[name]) > 0
    ]


def _overlap(table: Table, made: File, origin: Origin, changed: Sequence[File]) -> bool:
    """Return whether rows of the file ``made`` may come from rows of the ``changed`` files."""
    values = dict(zip(table.partitions, made.partition, strict=True))
    partitions = TABLES[origin.table].partitions
    return any(
        all(
            values.get(c, v) == v or c not in origin.by
            for c, v in zip(partitions, f.partition, strict=True)
        )
        for f in changed
    )


def _keys(store: DataFiles, table: Table, file: File, by: tuple[str, ...]) -> set[Values]:
    if set(by) <= set(table.partitions):  # all rows of the file have the same values
        values = dict(zip(table.partitions, file.partition, strict=True))
        return {tuple(values[column] for column in by)}
    return set(_rows_of(store.rows_of(table.name, file), by))


def _rows_of(rows: pa.Table, by: tuple[str, ...]) -> list[Values]:
    return list(zip(*(rows[column].to_pylist() for column in by), strict=True))


def _changed(
    store: DataFiles, origin: Origin, keys: set[Values], gone: list[File], added: list[File]
) -> set[Values]:
    """Return the ``keys`` whose rows in the files ``gone`` differ from those in ``added``."""
    import duckdb
    import pyarrow as pa
    import pyarrow.dataset as ds

    table = TABLES[origin.table]
    columns = origin.columns or tuple(c for c in table.names if c not in _PROVENANCE)
    by, compared = ", ".join(origin.by), ", ".join(dict.fromkeys((*origin.by, *columns)))
    made = [dict(zip(origin.by, key, strict=True)) for key in keys]
    with duckdb.connect() as connection:
        # Pass the files as Arrow datasets, which DuckDB reads in batches.
        for name, files in (("before", gone), ("after", added)):
            paths = [str(store.path(file)) for file in files]
            rows = ds.dataset(paths, table.arrow) if paths else table.arrow.empty_table()
            connection.register(name, rows)
        schema = pa.schema([table.arrow.field(column) for column in origin.by])
        connection.register("made", pa.Table.from_pylist(made, schema))
        found = connection.execute(f"""
            WITH
            old AS (SELECT {compared} FROM before SEMI JOIN made USING ({by})),
            new AS (SELECT {compared} FROM after SEMI JOIN made USING ({by}))
            SELECT DISTINCT {by}
            FROM ((FROM old EXCEPT ALL FROM new) UNION ALL (FROM new EXCEPT ALL FROM old))
        """)
        return set(found.fetchall())


def _delete(
    store: DataFiles, draft: Draft, table: str, file: File, by: tuple[str, ...], keys: set[Values]
) -> None:
    rows = store.rows_of(table, file)
    is_kept = [key not in keys for key in _rows_of(rows, by)]
    n_deleted = is_kept.count(False)
    if n_deleted:
        kept = [store.keep_rows(table, file, rows, is_kept)] if any(is_kept) else []
        draft.swap(table, [file], [], kept)
        draft.out_of_date[file.directory] = draft.out_of_date.get(file.directory, 0) + n_deleted
