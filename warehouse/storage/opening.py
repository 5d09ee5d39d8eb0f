"""Open a warehouse: check its marker, choose the version to read, and find its files."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from plumbline.warehouse.errors import BadInput, UsageProblem, disk_problems
from plumbline.warehouse.paths import address, check_output, json_object, segment
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage import log
from plumbline.warehouse.storage.log import Snapshot
from plumbline.warehouse.storage.place import Bucket, Damaged, Disk, File, Place

#: The file that marks a directory as a warehouse; it contains the version of the format.
MARKER = "plumbline.json"
#: The version of the format that this Plumbline reads and writes; others are refused. A new table,
#: or a new column that may be NULL, doesn't change the version. Any other change increases it.
FORMAT = 10
_GLOB_CHARACTERS = frozenset("*?[]{}")
#: Errors for too few file handles, or too little memory or disk space; the file isn't at fault.
_TOO_LITTLE = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC))
README = "README.md"
_README = """# A Plumbline warehouse

Some `.parquet` files here are old and no longer part of a table. The newest commit in
`_log/commits` names the files of each table.

- `plumbline sql` reads all tables.
- pandas, polars and Spark read a table's directory as a Delta Lake table (`deltalake`,
  `polars.read_delta`, `spark.read.format("delta")`).

Nothing but Plumbline may write here.
"""


def place_of(root: str | Path) -> Place:
    """Return the storage of a warehouse at a path or address.

    Raises ``UsageProblem`` if DuckDB would read the path as a glob pattern, or if the path can't be
    a directory.
    """
    if remote := address(root):
        return Bucket(remote)
    if _GLOB_CHARACTERS & set(str(root)):
        problem = "the path may not contain any of * ? [ ] { }"
        raise UsageProblem(f"warehouse {root}", problem, "give another --warehouse")
    check_output(Path(root), directory=True, what="warehouse")
    return Disk(Path(root))


class OpenWarehouse:
    """A warehouse at its newest commit, or pinned to one version."""

    def __init__(self, place: Place, at: Snapshot | None = None) -> None:
        self.place = place
        self._at = at

    @classmethod
    def open(cls, root: str | Path, *, create: bool = True, reads: str = "") -> Self:
        """Open a warehouse. With ``create``, make the warehouse if it's missing.

        ``reads`` is the table that will be read. If the warehouse is missing, the error names the
        command that fills this table.

        Raises ``BadInput`` if the warehouse is missing and ``create`` is false, if it has another
        format, or if the directory has files but no ``MARKER``. Raises the errors of ``place_of``.
        """
        place = place_of(root)
        marker = _marker(place)
        if marker is None:
            if next(place.walk(), None) is not None:
                problem = f"is not a Plumbline warehouse: it has no {MARKER}"
                raise BadInput(f"warehouse {place}", problem, "give another --warehouse")
            if not create:
                filler = f"{TABLES[reads].how_filled} or " if reads else ""
                make = f"make one with {filler}`plumbline pipeline`"
                fix = f"give --warehouse, or {make}: docs/tutorial.md"
                raise BadInput(f"warehouse {place}", "does not exist", fix)
            marker = json.dumps({"warehouse_version": FORMAT}).encode()
            with disk_problems(place.root):
                place.create(MARKER, marker)
                place.create(README, _README.encode())
        _check_format(place, marker)
        log.begin(place)
        log.snapshot(place)  # raises BadInput if the log is damaged
        return cls(place)

    @property
    def root(self) -> Path:
        return self.place.root

    def pinned(self, at: int | None = None) -> Self:
        """Return this warehouse pinned to a version, by default the newest.

        All reads then see the state of that version. Raises the errors of ``log.snapshot``.
        """
        state = self.snapshot() if at is None else log.snapshot(self.place, at)
        return type(self)(self.place, state)

    def snapshot(self) -> Snapshot:
        return self._at or log.snapshot(self.place)

    def path(self, file: File) -> Path:
        """Return a file's local path. Raises ``BadInput`` if it is unreadable or has changed."""
        with reading(self.place, self.root / file.path):
            return self.place.local(file)

    def units(self, table: str, **partition: str) -> set[str]:
        files = self.snapshot().files(table, partition)
        return {unit.name for file in files for unit in file.units}

    @classmethod
    def existing(cls, root: str | Path) -> Self | None:
        """Open a warehouse, or return ``None`` if there is none. Raises the errors of ``open``."""
        place = place_of(root)
        if _marker(place) is None and next(place.walk(), None) is None:
            return None
        return cls.open(root, create=False)

    def work_directory(self, *parts: str, create: bool = True) -> Path:
        """Return a directory for intermediate results, from which a stopped command can resume."""
        path = self.place.scratch().joinpath("_work", *map(segment, parts))
        if create:
            path.mkdir(parents=True, exist_ok=True)
        return path


def _marker(place: Place) -> bytes | None:
    """Read a warehouse's marker file. Return ``None`` if it's missing, ``b""`` if unreadable."""
    try:
        return place.read(MARKER)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return b""


def _check_format(place: Place, marker: bytes) -> None:
    where = f"warehouse {place}"
    try:
        version = int(json_object(marker)["warehouse_version"])
    except (ValueError, KeyError, TypeError) as e:
        raise BadInput(where, f"{MARKER} is not readable") from e
    if version != FORMAT:
        fix = "use the Plumbline that wrote it; for one before 1.0, the tag v0.2.0"
        raise BadInput(where, f"has format {version}, this Plumbline reads {FORMAT}", fix)


@contextmanager
def reading(place: Place, path: Path) -> Iterator[None]:
    """Turn errors in the block into ``BadInput``. The block reads the data file ``path``.

    Errors due to too little memory or disk space, or too few file handles, pass unchanged.
    """
    where = f"warehouse {place}, {path}"
    try:
        yield
    except Damaged as e:
        raise BadInput(where, f"is damaged: {e}", log.GET_COPY) from e
    except FileNotFoundError as e:
        raise BadInput(where, "is not there", log.GET_COPY) from e
    except (OSError, ValueError, NotImplementedError) as e:  # base classes of Arrow's errors
        if getattr(e, "errno", None) in _TOO_LITTLE:
            raise
        reason = getattr(e, "strerror", None) or str(e) or type(e).__name__
        raise BadInput(where, f"can't be read: {reason.splitlines()[0]}", log.GET_COPY) from e
