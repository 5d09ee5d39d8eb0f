"""`plumbline warehouse`: check, compact, migrate, export, history and copies of a warehouse."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.pipelines.command.base import Command, Context, Done, On, Row, planned
from plumbline.pipelines.command.fields import OutputDirectory
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.options import STRICT
from plumbline.warehouse.query.export import export
from plumbline.warehouse.storage import check, compaction, log, migration, versions
from plumbline.warehouse.storage.opening import is_marked, place_of, version_of
from plumbline.warehouse.storage.run_records import others_running
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.progress import progress

_CHECK = "plumbline warehouse check"


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Check(Command):
    """Check every version's files by hash; the newest's by schema, run, partition and unique keys.

    Leftovers are found, too. Rows are read in a process with limited memory and time: check
    warehouses of others first. In an object store the stored bytes are read, not local copies. Each
    problem has a fix; the status is 3 if there is one. With --since 7d, in a daily cron job, each
    file is read about once a week.

    Example: plumbline warehouse check --since 7d
    """

    records = False
    deployable = True

    since: Annotated[
        str,
        Field(description="Leave out files hashed since then: 7d (ago), or 2026-05-01 (UTC)."),
    ] = ""

    def run(self, context: Context) -> Done:
        """Return one row per problem, and an error if there is one."""
        after = check.moment(self.since) if self.since else math.inf
        with progress("check", "files") as update:
            faults = check.check(context.store, apart=True, since=after, update=update)
        if not faults:
            return Done(said=[f"{self.warehouse}: no problems"])
        n = f"{len(faults)} problem{'' if len(faults) == 1 else 's'}"
        failed = BadInput(f"warehouse {self.warehouse}", f"has {n}", "see the fix of each")
        return Done(rows=[{**asdict(f), "path": str(f.path)} for f in faults], failed=failed)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Compact(Command):
    """Merge small files, forget old versions, and remove what stopped commands left.

    Others may read and write meanwhile. Every merged file is compared with the rows of its parts.
    Stored work that saves time later is kept.

    Example: plumbline warehouse compact --dry-run
    """

    deployable = True

    keep_days: Annotated[
        float,
        Field(ge=0, le=1e6, allow_inf_nan=False, description="How long versions are kept."),
    ] = 7.0

    def plan(self, store: Store | None) -> Iterator[Row]:
        """Leftovers to remove, and files to merge."""
        assert store is not None, "this command makes no warehouse"
        todo = compaction.plan(store, self.keep_days)
        for leftover in todo.leftovers:
            yield planned(leftover.path, "to remove", 1, "", leftover.why)
        for merge in todo.merges:
            subject = " ".join((merge.table, *merge.partition))
            yield planned(subject, "to merge", len(merge.files), "files")

    def run(self, context: Context) -> Done:
        done = compaction.compact(context.store, context.run_id, self.keep_days)
        row = {"n_partitions_merged": len(done.merges), "n_files_removed": len(done.leftovers)}
        why = "so nothing unfinished was removed"
        others = others_running(context.store)
        said = [f"Run {one['run_id']} ({one['command']}): {one['error']}; {why}" for one in others]
        return Done(rows=[row], said=said, next=_CHECK)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Migrate(Command):
    """Bring an older warehouse to the current format, in one commit.

    Old files stay until `plumbline warehouse compact --keep-days 0`. After an interruption run the
    same command again.

    Example: plumbline warehouse migrate --dry-run
    """

    opens_warehouse = False  # opening accepts the current format only

    def check(self) -> None:
        """Raise for a directory that isn't a warehouse."""
        if not is_marked(place_of(self.warehouse)):
            Store.open(self.warehouse, create=False)  # raises for what it is instead
            raise UsageProblem(f"warehouse {self.warehouse}", "not a Plumbline warehouse")

    def plan(self, store: Store | None) -> Iterator[Row]:
        """The versions, and the files that would be written again; no row at the newest version."""
        done = migration.migrate(self.warehouse, dry_run=True)
        if done.files or done.before < done.after:
            note = f"version {done.before} to {done.after}"
            yield planned(str(self.warehouse), "to write again", len(done.files), "files", note)

    def run(self, context: Context) -> Done:
        done = migration.migrate(self.warehouse)
        row = {"version_before": done.before, "version": done.after, "n_files": len(done.files)}
        return Done(rows=[row], next=_CHECK)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class History(Command):
    """List the versions that are kept, newest first: when each was made, by which run, doing what.

    Also the run's author (PLUMBLINE_AUTHOR) and note (`runs note`), if it has them.

    Example: plumbline warehouse history --limit 5
    """

    records = False

    limit: Annotated[int, Field(ge=1, le=1_000_000, description="Most versions to list.")] = 50

    def run(self, context: Context) -> Done:
        place = context.store.place
        runs = {row["run_id"]: row for row in context.store.read("run").to_pylist()}
        snapshots = (log.snapshot(place, v) for v in reversed(log.versions(place)[-self.limit :]))
        rows = [
            {"version": s.version, "time_utc": f"{s.time:%Y-%m-%d %H:%M:%S}"}
            | {"run_id": s.run_id, "what": s.about}
            | {name: runs.get(s.run_id, {}).get(name) for name in ("author", "note")}
            for s in snapshots
        ]
        return Done(
            rows=rows, next="plumbline sql --at VERSION, or plumbline warehouse restore VERSION"
        )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Restore(Command):
    """Make all tables what they were at an earlier version, in a new commit. No file is removed.

    Example: plumbline warehouse restore 12
    """

    version: Annotated[
        str,
        Field(description="A version, the start of a run's id, or a time."),
        On(positional=True),
    ]

    def check(self) -> None:
        """Raise for a version that is not kept."""
        version_of(Store.open(self.warehouse, create=False), self.version)

    def run(self, context: Context) -> Done:
        number = version_of(context.store, self.version)
        versions.restore(context.store, number, context.run_id)
        return Done(said=[f"{self.warehouse}: as of version {number} again"], next=_CHECK)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Forget(Command):
    """Take a damaged data file out of its table. Then run the command that wrote it again.

    Example: plumbline warehouse forget out/warehouse/word_count/corpus=pile/0a1b.parquet
    """

    path: Annotated[
        Path,
        Field(description="A data file, as the message about it names it."),
        On(positional=True),
    ]

    def check(self) -> None:
        """Raise for a file that belongs to no table."""
        versions.file_of(Store.open(self.warehouse, create=False), self.path)

    def run(self, context: Context) -> Done:
        table, file = versions.file_of(context.store, self.path)
        versions.forget(context.store, table, file, context.run_id)
        runs = sorted({unit.run_id for unit in file.units})
        table_file = {"table": table, "path": file.path, "n_rows": file.n_rows}
        rows = [{**table_file, "run_id": run_id} for run_id in runs]
        said = ["No longer in the table: run again what wrote it."]
        return Done(rows=rows, said=said, next=f"plumbline runs show {runs[0]}")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class WarehouseExport(Command):
    """Write tables and views as files to hand on, with their data dictionary.

    Example: plumbline warehouse export pair_score us_by_start --format csv --out figures
    """

    records = False

    names: Annotated[
        tuple[str, ...],
        Field(description="Tables and views; default: tables with rows."),
        On(positional=True),
    ] = ()
    out: Annotated[OutputDirectory, Field(description="Directory for the files.")] = Path(
        "out/export"
    )
    format: Annotated[
        Literal["parquet", "csv", "jsonl", "duckdb"],
        Field(description="Format of the files; duckdb: one database."),
    ] = "parquet"

    def run(self, context: Context) -> Done:
        made = export(self.warehouse, self.names, self.out, self.format)
        rows = [{"name": e.name, "n_rows": e.n_rows, "path": str(e.path)} for e in made]
        page = f"{self.out}/dictionary.md"
        return Done(rows=rows, files=(page,), next=f"read {page}")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class _Copy(Command):
    """A copy to or from elsewhere."""

    records = False  # the copy gets the runs of its source

    uri: Annotated[
        Path,
        Field(description="s3://BUCKET/DIR, gs://, az://, or a directory."),
        On(positional=True),
    ]
    force: Annotated[bool, Field(description="Replace what the copy's own runs wrote.")] = False

    def copied(self, source: Store, target: Store, following: str) -> Done:
        """Copy; the row has the numbers of files. ``following`` is the command to run next."""
        with progress("copy", "files") as update:
            n_files, n_sent = versions.copy(source, target, self.force, update)
        row = {"copy": str(target.place), "n_files": n_files, "n_files_copied": n_sent}
        return Done(rows=[row], said=["Files already there were not read."], next=following)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class WarehousePush(_Copy, Command):
    """Copy the warehouse's newest version to an object store or another directory.

    Only files that are missing there are sent, then all tables change in one commit. Keys and
    region come from the object store's own environment variables and files.

    Example: plumbline warehouse push s3://bucket/warehouse
    """

    deployable = True

    def run(self, context: Context) -> Done:
        there = Store.open(self.uri)
        return self.copied(context.store, there, f"plumbline sql --warehouse {there.place}")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Pull(_Copy, Command):
    """Copy the newest version of a warehouse that lies elsewhere to this one.

    Only files that are missing here are fetched, then all tables change in one commit.

    Example: plumbline warehouse pull s3://bucket/warehouse
    """

    makes_warehouse = True

    def check(self) -> None:
        """Raise if there is no warehouse to copy."""
        if Store.existing(self.uri) is None:
            fix = "check the address; `plumbline warehouse push` makes one there"
            raise BadInput(f"warehouse {place_of(self.uri)}", "does not exist", fix)

    def run(self, context: Context) -> Done:
        return self.copied(Store.open(self.uri, create=False), context.store, _CHECK)
