"""The commit log of a warehouse: the data files of its tables at each version.

``_log/commits/<version>.json`` names one manifest per table; the manifests are in ``_log/tables``.
A manifest lists all data files of a table, or the difference from an earlier manifest: so n commits
write about n log n lines. None of these files ever changes. A commit creates the next version,
which only one of several writers can do; the others apply their change to the new state and try
again. So readers see all changes of a commit, in any number of tables, or none. A reader stays at
the version at which it began.

The hash of a commit is in the commit, the hash of a manifest in its name, the hash of a data file
in its manifest.
"""

from __future__ import annotations

import errno
import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, field, replace
from datetime import datetime, timezone
from functools import lru_cache
from hashlib import sha256
from typing import Any, TypeAlias, TypeVar
from urllib.parse import unquote

from plumbline.warehouse.errors import BadInput, Interrupted, UsageProblem
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.schema.columns import Table
from plumbline.warehouse.storage import delta
from plumbline.warehouse.storage.place import Place

COMMITS = "_log/commits"
MANIFESTS = "_log/tables"
#: Advice for a missing or damaged file of the log or of a table.
GET_COPY = "get it from a copy; without one see docs/warehouse.md"
#: Hexadecimal digits of a manifest's hash in its name.
_DIGITS = 32
_DAMAGED = "`plumbline warehouse check` names all damaged files"


@dataclass(frozen=True)
class Unit:
    """Rows that are published and replaced together: their name, their number, their run."""

    name: str
    n_rows: int
    run_id: str


@dataclass(frozen=True)
class File:
    """A data file: its path, the size and hash of its content, and the units it holds.

    ``columns`` is the ``columns_id`` when it was written; ``partition`` holds the values of the
    table's partition columns. The units are in the order of their rows. ``written_ms`` is when its
    newest row was written (Unix time in milliseconds).
    """

    path: str
    n_bytes: int
    sha256: str
    written_ms: int
    columns: str
    partition: tuple[str, ...]
    units: tuple[Unit, ...]

    @property
    def n_rows(self) -> int:
        """Number of rows of all units."""
        return sum(unit.n_rows for unit in self.units)

    @property
    def directory(self) -> str:
        """Directory of the file's partition."""
        return self.path.rpartition("/")[0]

    @classmethod
    def of(cls, table: str, values: Mapping[str, Any]) -> File:
        """A file from its entry in a manifest. Raises ``ValueError`` for an invalid entry."""
        path = values["path"]
        parts = path.split("/")
        if parts[0] != table or len(parts) < 2 or {"", ".", ".."} & set(parts) or "\0" in path:
            raise ValueError(f"{path!r} is not a data file of {table}")
        units = tuple(Unit(str(name), int(n), str(run)) for name, n, run in values["units"])
        return cls(
            path,
            int(values["n_bytes"]),
            str(values["sha256"]),
            int(values["written_ms"]),
            str(values["columns"]),
            tuple(map(str, values["partition"])),
            units,
        )


def columns_id(table: Table) -> str:
    """Hash of the names of a table's columns, in their order.

    >>> len(columns_id(TABLES["word_count"]))
    8
    """
    return sha256(" ".join(table.names).encode()).hexdigest()[:8]


@dataclass(frozen=True)
class Difference:
    """Difference between two lists of files: first paths to remove, then files to append."""

    gone: tuple[str, ...] = ()
    added: tuple[File, ...] = ()

    @property
    def n_lines(self) -> int:
        """Number of entries in a manifest that stores the difference."""
        return len(self.gone) + len(self.added)

    def then(self, later: Difference) -> Difference:
        """One difference with the effect of this one followed by ``later``."""
        gone, added = dict.fromkeys(self.gone), {file.path: file for file in self.added}
        for path in later.gone:
            if added.pop(path, None) is None:
                gone[path] = None
        added |= {file.path: file for file in later.added}
        return Difference(tuple(gone), tuple(added.values()))

    def of(self, files: tuple[File, ...]) -> tuple[File, ...]:
        """``files`` with the difference applied."""
        if self.gone:
            gone = frozenset(self.gone)
            files = tuple(file for file in files if file.path not in gone)
        return (*files, *self.added)


def _between(old: Sequence[File], new: Sequence[File]) -> Difference:
    """The difference of two lists; ``new`` must begin with the files it shares with ``old``."""
    now = {file.path for file in new}
    gone = tuple(file.path for file in old if file.path not in now)
    return Difference(gone, tuple(new[len(old) - len(gone) :]))


class Listing:
    """A mutable list of a table's data files, in their order."""

    def __init__(self, files: Iterable[File]) -> None:
        self._files = {file.path: file for file in files}
        self._of_unit: dict[tuple[tuple[str, ...], str], dict[str, File]] = {}
        self._gone: dict[str, None] = {}
        self._added: dict[str, File] = {}
        for file in self._files.values():
            self._note(file)

    @property
    def files(self) -> tuple[File, ...]:
        """All files."""
        return tuple(self._files.values())

    def of_unit(self, partition: tuple[str, ...], unit: str) -> list[File]:
        """The files of a partition that hold rows of a unit."""
        return list(self._of_unit.get((partition, unit), {}).values())

    def swap(self, old: Iterable[File], new: Iterable[File]) -> None:
        """Remove the files ``old``, if the list has them, and append ``new``."""
        for path in [file.path for file in old]:
            file = self._files.pop(path, None)
            if file is not None:
                for key in _units_of(file):
                    del self._of_unit[key][path]
                    if not self._of_unit[key]:
                        del self._of_unit[key]
                if self._added.pop(path, None) is None:
                    self._gone[path] = None
        for file in new:
            self._files[file.path] = self._added[file.path] = file
            self._note(file)

    def difference(self) -> Difference:
        """The changes that ``swap`` made since the last call."""
        made = Difference(tuple(self._gone), tuple(self._added.values()))
        self._gone, self._added = {}, {}
        return made

    def _note(self, file: File) -> None:
        for key in _units_of(file):
            self._of_unit.setdefault(key, {})[file.path] = file


def _units_of(file: File) -> set[tuple[tuple[str, ...], str]]:
    return {(file.partition, unit.name) for unit in file.units}


@dataclass(frozen=True)
class Manifest:
    """All data files of a table. ``version``: number of earlier manifests; -1: no manifest.

    ``previous`` names the manifest before this one. ``columns``: names of the table's columns in
    the newest Plumbline that wrote to it. The log stores the difference from the manifest ``base``,
    or all files if ``base`` is None.
    """

    table: str
    version: int = -1
    previous: str | None = None
    columns: tuple[str, ...] = ()
    files: tuple[File, ...] = ()
    base: str | None = None
    difference: Difference | None = field(default=None, compare=False, repr=False)
    #: The ``Listing`` of these files, which the next draft takes and changes; empty once taken.
    listing: list[Listing] = field(default_factory=list, compare=False, repr=False)

    def content(self, base: str | None = None, difference: Difference | None = None) -> bytes:
        """The manifest as JSON, deterministic: its difference from a base, or all files."""
        values: dict[str, Any] = {"table": self.table, "version": self.version}
        values |= {"previous": self.previous, "columns": self.columns}
        added = difference.added if difference else self.files
        values["files"] = [{**vars(f), "units": [astuple(unit) for unit in f.units]} for f in added]
        values |= {"base": base, **({"gone": difference.gone} if difference else {})}
        return json.dumps(values).encode()


def _is_of_name(name: str, content: bytes) -> bool:
    """True if a manifest's content has the hash in its name."""
    digest = name.removesuffix(".json").rpartition("-")[2]
    return sha256(content).hexdigest()[:_DIGITS] == digest


def _version_in(manifest: str) -> int:
    return int(manifest.split("-")[1])


def _stored(place: Place, table: str, name: str) -> tuple[Manifest, Difference]:
    """A manifest without its files, and the difference of its files from its base's files."""

    def parsed(content: bytes) -> tuple[Manifest, Difference]:
        if not _is_of_name(name, content):
            raise ValueError("its hash differs from the one in its name")
        values = json.loads(content)
        files = tuple(File.of(table, file) for file in values["files"])
        columns = tuple(map(str, values["columns"]))
        base = values["base"]
        if base is not None and ("/" in base or _version_in(base) >= _version_in(name)):
            raise ValueError("its base isn't an earlier manifest")
        gone = tuple(map(str, values["gone"] if base else ()))
        version = int(values["version"])
        manifest = Manifest(table, version, values["previous"], columns, base=base)
        return manifest, Difference(gone, files)

    file = f"{MANIFESTS}/{name}"
    try:
        return _parsed(place, file, parsed)
    except FileNotFoundError as e:
        raise FileNotFoundError(errno.ENOENT, "is not there", file) from e


@lru_cache(maxsize=512)
def _read_manifest(place: Place, table: str, name: str) -> Manifest:
    """A manifest with all its files. ``FileNotFoundError`` names the missing manifest or base."""
    manifest, difference = _stored(place, table, name)
    if manifest.base is None:
        return replace(manifest, files=difference.added)
    base = _read_manifest(place, table, manifest.base)
    return replace(manifest, files=difference.of(base.files), difference=difference)


def chain(place: Place, table: str, name: str | None) -> Iterator[str]:
    """Names of a manifest, its base, the base's base, ...

    Each manifest is read after its name is yielded: ``BadInput`` and ``FileNotFoundError`` are
    about the name yielded last.
    """
    while name is not None:
        yield name
        name = _stored(place, table, name)[0].base


def _content(place: Place, manifest: Manifest) -> bytes:
    """Content of a new manifest: its difference from a base, or all files if that is shorter.

    ``manifest.difference`` is from the previous manifest. The base of version v is v & (v - 1): v
    without its lowest bit. So every line is rewritten once for each power of two that passes, and
    the newest of n manifests is read from at most log2(n) manifests (Subversion's skip deltas). All
    files are also listed if the chain can't be read.
    """
    name, difference = manifest.previous, manifest.difference
    oldest = manifest.version & (manifest.version - 1)
    with suppress(BadInput, FileNotFoundError):
        while name is not None and difference is not None:
            base = _read_manifest(place, manifest.table, name)
            if base.difference is None or base.version <= oldest:
                if difference.n_lines < len(manifest.files):
                    return manifest.content(name, difference)
                break
            name, difference = base.base, base.difference.then(difference)
    return manifest.content()


_Parsed = TypeVar("_Parsed")


def _parsed(place: Place, name: str, make: Callable[[bytes], _Parsed]) -> _Parsed:
    """Apply ``make`` to a file of the log; ``BadInput`` if it is unreadable or ``make`` fails."""
    try:
        return stable(place, name, make)
    except FileNotFoundError:
        raise
    except OSError as e:
        problem = f"{name[:80]} can't be read: {e.strerror}"
        raise BadInput(f"warehouse {place}", problem, _DAMAGED) from e
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as e:
        raise BadInput(f"warehouse {place}", f"{name} is damaged", GET_COPY) from e


def stable(place: Place, name: str, make: Callable[[bytes], _Parsed]) -> _Parsed:
    """Apply ``make`` to the content of a small file; if it fails, read the file once more.

    Raises what ``make`` raises if both reads agree. Raises ``Interrupted`` if they differ and
    ``make`` fails again: a server or proxy sends different bytes each time.
    """
    content = place.read(name)
    try:
        return make(content)
    except Exception as e:
        if (again := place.read(name)) == content:
            raise
        try:
            return make(again)
        except Exception:
            problem = f"{name} differs each time it is read"
            raise Interrupted(f"warehouse {place}", problem, "run the same command again") from e


@dataclass(frozen=True)
class Snapshot:
    """A warehouse as of one commit. ``tables`` maps each table with rows to its manifest's name.

    ``out_of_date``: number of rows that were deleted because what they were made from changed, by
    the directory of their partition, until rows are written there again.
    """

    place: Place
    version: int
    time: datetime
    run_id: str
    about: str
    tables: Mapping[str, str]
    leases: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    out_of_date: Mapping[str, int] = field(default_factory=dict)

    def manifest(self, table: str) -> Manifest:
        """The manifest of a table; empty if the table never had rows.

        Raises ``BadInput`` for a damaged or missing manifest, and for columns of a newer Plumbline;
        ``UsageProblem`` if the version is no longer kept.
        """
        if table not in self.tables:
            return Manifest(table)
        try:
            manifest = _read_manifest(self.place, table, self.tables[table])
        except FileNotFoundError as e:
            if self.version == max(versions(self.place), default=-1):
                raise BadInput(
                    f"warehouse {self.place}", f"{e.filename} is not there", GET_COPY
                ) from e
            fix = "see `plumbline warehouse history`"
            raise UsageProblem(f"version {self.version}", "is no longer kept", fix) from e
        if table in TABLES and (unknown := set(manifest.columns) - set(TABLES[table].names)):
            writer = TABLES.parts.source(table).partition(" ")[0] or "Plumbline"
            raise newer(self.place, f"a newer {writer} wrote {table}.{min(unknown)}")
        return manifest

    @property
    def declared(self) -> list[str]:
        """The tables that Plumbline or an installed package declares."""
        return [table for table in self.tables if table in TABLES]

    @property
    def kept(self) -> list[str]:
        """A line for each table of a package that isn't installed: no command changes its files."""
        why = "no installed package declares it; kept as it is"
        return [f"Table {table}: {why}" for table in self.tables if table not in TABLES]

    def files(self, table: str, partition: Mapping[str, str] | None = None) -> list[File]:
        """Data files of a table, or of its partitions with these values of leading columns."""
        return _of_partition(self.manifest(table).files, table, partition)


def newer(place: Place, problem: str) -> BadInput:
    """The error for a warehouse that a newer Plumbline or package wrote to."""
    fix = "upgrade it, or use another --warehouse directory"
    return BadInput(f"warehouse {place}", problem, fix)


def _of_partition(
    files: Sequence[File], table: str, partition: Mapping[str, str] | None
) -> list[File]:
    values = partition_values(table, partition) if partition else ()
    return [file for file in files if file.partition[: len(values)] == values]


def partition_values(table: str, partition: Mapping[str, str]) -> tuple[str, ...]:
    """Values of the leading partition columns, in order; ``KeyError`` for other columns."""
    columns = TABLES[table].partitions[: len(partition)]
    if len(columns) < len(partition):
        raise KeyError(f"{table} has no partitions by {', '.join(partition)}")
    return tuple(partition[name] for name in columns)


def versions(place: Place) -> list[int]:
    """Versions of the commits that are kept, oldest first."""
    names = (name.removesuffix(".json") for name in place.names(COMMITS))
    return [int(name) for name in names if name.isdecimal()]


#: The newest version seen at each place: only later versions need to be listed.
_SEEN: dict[Place, int] = {}


def _newest(place: Place) -> int:
    for after in (f"{_SEEN.get(place, 0):020}", ""):  # lists all if that version is gone
        for name in reversed(place.names(COMMITS, after)):
            if (number := name.removesuffix(".json")).isdecimal():
                _SEEN[place] = int(number)
                return int(number)
    raise BadInput(f"warehouse {place}", "its commit log is gone", _DAMAGED)


def snapshot(place: Place, version: int | None = None) -> Snapshot:
    """The warehouse as of a commit, by default the newest.

    Raises ``BadInput`` for a log that is damaged or of a newer Plumbline, ``UsageProblem`` for a
    version that does not exist or is no longer kept.
    """
    number = _newest(place) if version is None else version

    def parsed(content: bytes) -> Snapshot:
        values: dict[str, Any] = json.loads(content)
        if values.pop("sha256", None) != _digest(values):
            raise ValueError("its hash does not match its content")
        tables = {str(table): str(name) for table, name in values["tables"].items()}
        if any("/" in name for name in tables.values()):
            raise ValueError("the name of a manifest holds a slash")
        leases = {str(name): dict(lease) for name, lease in values["leases"].items()}
        out_of_date = {str(where): int(n) for where, n in values["out_of_date"].items()}
        return Snapshot(
            place,
            number,
            datetime.fromisoformat(values["time"]),
            str(values["run_id"]),
            str(values["about"]),
            tables,
            leases,
            out_of_date,
        )

    try:
        return _parsed(place, f"{COMMITS}/{number:020}.json", parsed)
    except FileNotFoundError:
        existing = versions(place)
        if version is None and number not in existing:  # compacted meanwhile
            return snapshot(place)
        if version is not None and number not in existing:
            problem = f"is not kept: there are {min(existing, default=0)} to {_newest(place)}"
            fix = "see `plumbline warehouse history`"
            raise UsageProblem(f"version {version}", problem, fix) from None
        raise


def _digest(values: Mapping[str, Any]) -> str:
    return sha256(json.dumps(values).encode()).hexdigest()


class Draft:
    """The next state of a warehouse, which a commit's change modifies."""

    def __init__(self, base: Snapshot) -> None:
        self.base = base
        self.leases = dict(base.leases)
        self.out_of_date = dict(base.out_of_date)
        #: Paths of files whose rows this draft's change wrote.
        self._new: set[str] = set()
        self._listings: dict[str, Listing] = {}
        self._replaced: set[str] = set()

    def _listing(self, table: str) -> Listing:
        if table not in self._listings:
            manifest = self.base.manifest(table)
            try:  # none if the manifest was just read, or another draft has taken its listing
                self._listings[table] = manifest.listing.pop()
            except IndexError:
                self._listings[table] = Listing(manifest.files)
        return self._listings[table]

    def files(self, table: str, partition: Mapping[str, str] | None = None) -> list[File]:
        """As ``Snapshot.files``, with the changes of this draft."""
        return _of_partition(self._listing(table).files, table, partition)

    def files_of_unit(self, table: str, partition: Mapping[str, str], unit: str) -> list[File]:
        """Files of a partition that hold rows of a unit."""
        return self._listing(table).of_unit(partition_values(table, partition), unit)

    def old_files(self, table: str) -> list[File]:
        """Files with rows that earlier commits wrote."""
        return [file for file in self.files(table) if file.path not in self._new]

    def changes(self, table: str) -> tuple[list[File], list[File]]:
        """Files of a table that the draft removes, and files that it adds."""
        if table not in self._listings:
            return [], []
        before, after = self.base.manifest(table).files, self._listings[table].files
        paths = {f.path for f in before}, {f.path for f in after}
        return (
            [file for file in before if file.path not in paths[1]],
            [file for file in after if file.path not in paths[0]],
        )

    def swap(
        self, table: str, old: Iterable[File], new: Iterable[File], kept: Iterable[File] = ()
    ) -> None:
        """Remove files from a table, and append ``kept``, with rows of these files, and ``new``."""
        new = list(new)
        self._listing(table).swap(old, [*kept, *new])
        self._new.update(file.path for file in new)
        for file in new:
            self.out_of_date.pop(file.directory, None)

    def become(self, table: str, files: Iterable[File]) -> None:
        """Replace all files of a table, even if the table's manifest can't be read."""
        self._listings[table] = Listing(files)
        self._replaced.add(table)

    def manifests(self) -> dict[str, Manifest]:
        """The manifests of the tables that changed."""
        by_table = {}
        for table, listing in self._listings.items():
            files, is_read = listing.files, True
            try:
                before = self.base.manifest(table)
            except BadInput:  # the version is in its name, and `become` replaces all else
                version = _version_in(self.base.tables[table])
                before, is_read = Manifest(table, version, columns=("unknown",)), False
            difference: Difference | None = listing.difference()
            is_other = difference != Difference()
            if table in self._replaced:
                difference, is_other = _between(before.files, files), before.files != files
                if not is_read or difference.of(before.files) != files:
                    difference = None
            columns = tuple(TABLES[table].names)
            if is_other or set(before.columns) - set(columns):
                previous, version = self.base.tables.get(table), before.version + 1
                by_table[table] = Manifest(
                    table, version, previous, columns, files, None, difference
                )
        return by_table

    def hand_on(self, state: Snapshot) -> None:
        """Leave the listings to the next draft, which starts from this draft's result ``state``."""
        for table, listing in self._listings.items():
            manifest = state.manifest(table)
            if len(manifest.files) == len(listing.files):
                manifest.listing[:] = [listing]


#: Tokens of this process's leases, by place and name; a commit checks those at its place.
HELD: dict[tuple[str, str], str] = {}
#: A function that changes a draft; called again on the newer state if another writer was faster.
Change: TypeAlias = Callable[[Draft], None]


def commit(place: Place, change: Change, run_id: str, about: str = "") -> Snapshot:
    """Apply a change to the newest state and make the result the next version.

    Writes nothing if nothing changed. Raises what ``change`` raises, and ``LeaseLost``; then the
    warehouse is unchanged.
    """
    with place.writing():
        state = None
        while state is None:
            draft = Draft(snapshot(place))
            for (where, name), token in HELD.items():
                if where == str(place):
                    _refuse_lost(draft, name, token)
            change(draft)
            manifests = draft.manifests()
            if not manifests and draft.leases == dict(draft.base.leases):
                draft.hand_on(draft.base)
                return draft.base
            state = _create(place, draft, manifests, run_id, about)
        draft.hand_on(state)
        for table, manifest in manifests.items():
            write_delta_log(place, state.manifest(table), manifest.difference)
    return state


def write_delta_log(place: Place, manifest: Manifest, change: Difference | None = None) -> None:
    """Write a table's Delta Lake log up to a manifest, also entries that killed writers left out.

    ``change``: the difference from the previous manifest, if known. With it, only the last entry is
    written, if the entry before exists. The files of an earlier manifest that can't be read are
    taken from the Delta Lake log.
    """
    if change is not None and (before := _logged_before(place, manifest)) is not None:
        _write_entry(place, before.columns, manifest, change)
        return
    table, missing = manifest.table, [manifest]
    existing = {f"{table}/_delta_log/{name}" for name in place.names(f"{table}/_delta_log")}
    if delta.log_name(table, manifest.version) in existing:
        return
    before = Manifest(table)
    while (previous := missing[-1].previous) is not None:
        try:
            before = _read_manifest(place, table, previous)
        except (FileNotFoundError, BadInput):
            before = None
            break
        if delta.log_name(table, before.version) in existing:
            break
        missing.append(before)
        before = Manifest(table)
    old = {f.path for f in before.files} if before else _listed(place, missing[-1], existing)
    columns = before.columns if before else ()
    for step in reversed(missing):
        new = {file.path for file in step.files}
        added = tuple(file for file in step.files if file.path not in old)
        _write_entry(place, columns, step, Difference(tuple(old - new), added))
        old, columns = new, step.columns


def _logged_before(place: Place, manifest: Manifest) -> Manifest | None:
    """The previous manifest, if it is readable and has its entry in the Delta Lake log."""
    if manifest.previous is None:
        return Manifest(manifest.table)
    with suppress(BadInput, FileNotFoundError):
        before = _read_manifest(place, manifest.table, manifest.previous)
        place.read(delta.log_name(manifest.table, before.version))
        return before
    return None


def _write_entry(place: Place, columns: Sequence[str], step: Manifest, change: Difference) -> None:
    """Write a manifest's Delta Lake entry; ``columns`` are the columns of the entry before."""
    gone, added = set(change.gone), {file.path for file in change.added}
    content = delta.entry(
        step.table,
        None if columns == step.columns else step.columns,
        sorted(gone - added),
        [(f.path, f.n_bytes, f.written_ms, f.n_rows) for f in change.added if f.path not in gone],
    )
    place.create(delta.log_name(step.table, step.version), content)


def _listed(place: Place, manifest: Manifest, existing: set[str]) -> set[str]:
    """Files listed before a manifest's Delta Lake entry; adds missing entries, without actions."""
    listed: dict[str, int] = {}
    for version in range(manifest.version):
        name = delta.log_name(manifest.table, version)
        if name in existing:
            listed = delta.replay(place.read(name), listed)
        else:
            columns = None if version else manifest.columns
            place.create(name, delta.entry(manifest.table, columns, [], []))
    return {f"{manifest.table}/{unquote(path)}" for path in listed}


class LeaseLost(Interrupted):
    """Another command took a lease that this process didn't renew in time."""


def _refuse_lost(draft: Draft, name: str, token: str) -> None:
    """Raise ``LeaseLost`` if the draft's base has no lease ``name`` with this token."""
    lease = draft.leases.get(name, {})
    if lease.get("token") != token:
        taker = lease.get("holder", "a command that has ended")
        problem = f"was taken by {taker}, since this process did not renew it in time"
        fix = "nothing more was written; run the same command again to resume"
        raise LeaseLost(f"lock on {name}", problem, fix)


def _create(
    place: Place, draft: Draft, manifests: Mapping[str, Manifest], run_id: str, about: str
) -> Snapshot | None:
    """Create the next version; if another writer was faster, clean up and return ``None``."""
    names, commit_id = {}, uuid.uuid4().hex
    for table, manifest in manifests.items():
        content = _content(place, manifest)
        digest = sha256(content).hexdigest()[:_DIGITS]
        names[table] = f"{table}-{manifest.version:010}-{commit_id[:12]}-{digest}.json"
        place.create(f"{MANIFESTS}/{names[table]}", content)
    base = draft.base
    tables = {**base.tables, **names}
    time = max(datetime.now(timezone.utc), base.time)
    state = Snapshot(
        place, base.version + 1, time, run_id, about, tables, draft.leases, draft.out_of_date
    )
    if _create_commit(place, state, commit_id):
        return state
    for name in names.values():
        place.remove(f"{MANIFESTS}/{name}")
    return None


def _create_commit(place: Place, state: Snapshot, commit_id: str) -> bool:
    values = {k: v for k, v in vars(state).items() if k not in ("place", "version")}
    values |= {"time": state.time.isoformat(), "id": commit_id}
    content = json.dumps({**values, "sha256": _digest(values)}).encode()
    name = f"{COMMITS}/{state.version:020}.json"
    # The second check: an object store may create the file although its answer is lost.
    return place.create(name, content) or place.read(name) == content


def begin(place: Place) -> None:
    """Make the first, empty version of a warehouse, if it has no version.

    Raises ``BadInput`` if it has data files: their log has been lost.
    """
    if place.names(COMMITS):
        return
    if any(name.split("/")[0] in TABLES for name in place.walk()):
        raise BadInput(f"warehouse {place}", "its commit log is gone", _DAMAGED)
    now = datetime.now(timezone.utc)
    first = Snapshot(place, 0, now, "", "a new warehouse", {})
    _create_commit(place, first, "")
