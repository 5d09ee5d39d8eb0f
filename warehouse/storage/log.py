"""The commit log of a warehouse: which data files each table has at each version.

The file ``_log/commits/<version>.json.gz`` lists all files of all tables in this version. It never
changes. A commit creates the next version. If several writers commit at the same time, only one
succeeds; the others apply their changes to the new state and try again. So readers see either all
changes of a commit, even in several tables, or none. A reader stays at one version.

A commit's file is compressed JSON, followed by a hash, which `zcat` ignores. The JSON contains the
hash of each data file. Adding a table, or a column that may be NULL, doesn't change the format.
Rows of older data files have NULL in the new column.
"""

from __future__ import annotations

import gzip
import json
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import lru_cache
from hashlib import sha256
from typing import Any, TypeAlias

from plumbline.warehouse.errors import BadInput, Interrupted, UsageProblem
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage import delta
from plumbline.warehouse.storage.place import File, Listing, Place

COMMITS = "_log/commits"
#: Advice for a missing or damaged file of the log or of a table.
GET_COPY = "get it from a copy; without one see docs/warehouse.md"
#: Hexadecimal digits of the hash at the end of a commit.
_DIGITS = 64
_DAMAGED = "`plumbline warehouse check` names all damaged files"


@dataclass(frozen=True)
class Snapshot:
    """A warehouse as of one commit: the files of its tables, and the leases.

    ``tables`` has every table that ever had rows. ``oldest`` is the first version that is still
    kept. ``out_of_date`` maps a partition's directory to the number of rows that were deleted there
    because they were out of date. When new rows are written there, the entry is removed.
    """

    place: Place
    version: int
    time: datetime
    run_id: str
    about: str
    tables: Mapping[str, Listing]
    leases: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    oldest: int = 0
    out_of_date: Mapping[str, int] = field(default_factory=dict)

    @property
    def declared(self) -> dict[str, Listing]:
        """The tables that Plumbline or an installed package declares, with their files."""
        return {name: listing for name, listing in self.tables.items() if name in TABLES}

    @property
    def kept(self) -> list[str]:
        """A message for each table that no installed package declares: the table is left as is."""
        why = "no installed package declares it; kept as it is"
        return [f"Table {table}: {why}" for table in self.tables if table not in TABLES]

    def files(self, table: str, partition: Mapping[str, str] | None = None) -> list[File]:
        """Return a table's data files. ``partition`` gives values of the leading partition columns.

        Raises ``BadInput`` if a newer Plumbline has added columns to the table.
        """
        listing = self.tables.get(table, Listing())
        if table in TABLES and (unknown := set(listing.columns) - set(TABLES[table].names)):
            writer = TABLES.parts.source(table).partition(" ")[0] or "Plumbline"
            problem = f"a newer {writer} wrote {table}.{min(unknown)}"
            fix = "upgrade it, or use another --warehouse directory"
            raise BadInput(f"warehouse {self.place}", problem, fix)
        return _of_partition(listing.files, table, partition)


def _of_partition(
    files: Sequence[File], table: str, partition: Mapping[str, str] | None
) -> list[File]:
    values = TABLES[table].partition_values(partition) if partition else ()
    return [file for file in files if file.partition[: len(values)] == values]


def commit_name(version: int) -> str:
    return f"{COMMITS}/{version:020}.json.gz"


def versions(place: Place) -> list[int]:
    """Return the versions that still exist, oldest first. Raises the errors of ``snapshot``."""
    return _kept(place)[0]


def _kept(place: Place) -> tuple[list[int], Snapshot]:
    while True:
        names = place.names(COMMITS)
        stems = (name.removesuffix(".json.gz") for name in names)
        numbers = [int(stem) for stem in stems if stem.isdecimal()]
        if not numbers:
            raise BadInput(f"warehouse {place}", "its commit log is gone", _DAMAGED)
        try:
            state = _read(place, numbers[-1])
        except FileNotFoundError:
            if names == place.names(COMMITS):
                raise
            continue  # another process has just removed old versions
        return [number for number in numbers if number >= state.oldest], state


def snapshot(place: Place, version: int | None = None) -> Snapshot:
    """Return the warehouse as of a version, by default the newest.

    Raises ``BadInput`` if the log is damaged, and ``UsageProblem`` if the version doesn't exist or
    is no longer kept.
    """
    kept, newest = _kept(place)
    if version is None:
        return newest
    if version in kept:
        with suppress(FileNotFoundError):  # another process has just removed the version
            return _read(place, version)
    problem = f"is not kept: there are {kept[0]} to {kept[-1]}"
    raise UsageProblem(f"version {version}", problem, "see `plumbline warehouse restore`")


def _read(place: Place, version: int) -> Snapshot:
    name = commit_name(version)
    try:
        return _parsed(place, version, place.read(name))
    except FileNotFoundError:
        raise
    except OSError as e:
        problem = f"{name} can't be read: {e.strerror}"
        raise BadInput(f"warehouse {place}", problem, _DAMAGED) from e
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as e:
        raise BadInput(f"warehouse {place}", f"{name} is damaged", GET_COPY) from e


@lru_cache(maxsize=8)
def _parsed(place: Place, version: int, content: bytes) -> Snapshot:
    body, digest = content[:-_DIGITS], content[-_DIGITS:]
    if sha256(body).hexdigest() != digest.decode():
        raise ValueError("its hash does not match its content")
    values = json.loads(gzip.decompress(body))
    del values["id"]
    for name, listing in values["tables"].items():
        files = tuple(File.of(file) for file in listing["files"])
        values["tables"][name] = Listing(listing["version"], tuple(listing["columns"]), files)
    values["time"] = datetime.fromisoformat(values["time"])
    return Snapshot(place, version, **values)


class Draft:
    """The next state of a warehouse. ``commit`` passes it to a function that modifies it."""

    def __init__(self, base: Snapshot) -> None:
        self.base = base
        self.leases = dict(base.leases)
        self.oldest = base.oldest
        self.out_of_date = dict(base.out_of_date)
        #: Paths of files with rows that this draft's change wrote.
        self._new: set[str] = set()
        self._files: dict[str, tuple[File, ...]] = {}

    def files(self, table: str, partition: Mapping[str, str] | None = None) -> list[File]:
        """Return a table's files after this draft's changes (see ``Snapshot.files``)."""
        if table not in self._files:
            return self.base.files(table, partition)
        return _of_partition(self._files[table], table, partition)

    def old_files(self, table: str) -> list[File]:
        """Return a table's files whose rows come from earlier commits."""
        return [file for file in self.files(table) if file.path not in self._new]

    def changes(self, table: str) -> tuple[list[File], list[File]]:
        """Return the files of a table that the draft removes, and those that it adds."""
        before, after = ({f.path: f for f in x.files(table)} for x in (self.base, self))
        gone = [file for path, file in before.items() if path not in after]
        return gone, [file for path, file in after.items() if path not in before]

    def swap(
        self, table: str, old: Iterable[File], new: Iterable[File], kept: Iterable[File] = ()
    ) -> None:
        """Replace ``old`` files with ``new`` and ``kept`` files. ``kept`` has no new rows."""
        new = list(new)
        added = (*kept, *new)
        gone = {file.path for file in (*old, *added)}
        self._files[table] = (*(f for f in self.files(table) if f.path not in gone), *added)
        self._new.update(file.path for file in new)
        for file in new:
            self.out_of_date.pop(file.directory, None)

    def tables(self) -> dict[str, Listing]:
        tables = dict(self.base.tables)
        for table, files in self._files.items():
            before, columns = tables.get(table, Listing()), tuple(TABLES[table].names)
            if files != before.files or set(before.columns) - set(columns):
                tables[table] = Listing(before.version + 1, columns, files)
        return tables


#: Tokens of this process's leases, by place and name. A commit checks the leases at its place.
HELD: dict[tuple[str, str], str] = {}
#: A function that changes a draft. It is called again if another writer commits first.
Change: TypeAlias = Callable[[Draft], None]


def commit(place: Place, change: Change, run_id: str, about: str = "") -> Snapshot:
    """Apply ``change`` to the newest state, and write the result as the next version.

    If nothing changed, nothing is written. Raises the errors of ``change``, and ``LeaseLost``.
    After an error, the warehouse is unchanged.
    """
    while True:
        base = snapshot(place)
        draft = Draft(base)
        for (where, name), token in HELD.items():
            if where == str(place):
                _refuse_lost(draft, name, token)
        change(draft)
        made = draft.tables(), draft.leases, draft.oldest, draft.out_of_date
        if made == (base.tables, base.leases, base.oldest, base.out_of_date):
            return base
        time = max(datetime.now(timezone.utc), base.time)
        state = Snapshot(place, base.version + 1, time, run_id, about, *made)
        if _create(state):
            break
    for table, listing in state.tables.items():
        before = base.tables.get(table, Listing())
        if listing != before:
            delta.follow(place, table, before, listing)
    return state


class LeaseLost(Interrupted):
    """Another command took a lease because this process didn't renew it in time."""


def _refuse_lost(draft: Draft, name: str, token: str) -> None:
    lease = draft.leases.get(name, {})
    if lease.get("token") != token:
        taker = lease.get("holder", "a command that has ended")
        problem = f"was taken by {taker}, since this process did not renew it in time"
        fix = "nothing more was written; run the same command again to resume"
        raise LeaseLost(f"lock on {name}", problem, fix)


def _create(state: Snapshot) -> bool:
    """Write a state's commit file. Return false if another writer has written this version."""
    values = {k: v for k, v in vars(state).items() if k not in ("place", "version")}
    tables = {
        name: {**vars(listing), "files": list(map(_entry, listing.files))}
        for name, listing in state.tables.items()
    }
    values |= {"time": state.time.isoformat(), "tables": tables, "id": uuid.uuid4().hex}
    content = signed(json.dumps(values).encode())
    name = commit_name(state.version)
    # If the existing file has our content, the store created it, but its answer was lost.
    return state.place.create(name, content) or state.place.read(name) == content


def signed(text: bytes) -> bytes:
    """Return the content of a commit's file: the compressed text and the hash of these bytes."""
    body = gzip.compress(text, compresslevel=1, mtime=0)
    return body + sha256(body).hexdigest().encode()


def _entry(file: File) -> dict[str, Any]:
    return {**vars(file), "units": [[*vars(unit).values()] for unit in file.units]}


def begin(place: Place) -> None:
    """Write an empty first version, unless the warehouse has versions already.

    Raises ``BadInput`` if there are data files but no versions, because the log has been lost.
    """
    if place.names(COMMITS):
        return
    if any(name.split("/")[0] in TABLES for name, _ in place.walk()):
        raise BadInput(f"warehouse {place}", "its commit log is gone", _DAMAGED)
    _create(Snapshot(place, 0, datetime.now(timezone.utc), "", "a new warehouse", {}))
