"""`plumbline warehouse` checks, compacts and restores a warehouse; `plumbline runs` lists runs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from contextlib import suppress
from textwrap import shorten
from typing import Annotated

from pydantic import Field

from plumbline.pipelines.command.base import WARNING, Command, Context, Done, On, Row
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.sentences import version_changed, version_changes
from plumbline.warehouse import run_records
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.options import MOST
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage import check, compaction, log
from plumbline.warehouse.storage.out_of_date import to_make_again
from plumbline.warehouse.storage.store import Store

_CHECK = "plumbline warehouse check"
#: Maximum number of versions to print in a terminal.
_MOST = 50
#: Maximum length of an error in the list of runs, and of a value when one run is shown.
_LONGEST, _LONGEST_VALUE = 80, 400
_REASONS = """
SELECT reason, count(*) AS n FROM reject WHERE run_id = $run_id
GROUP BY reason ORDER BY n DESC, reason
"""


class Check(Command):
    """Check the warehouse for damaged and leftover files, duplicate keys and wrong counts.

    Compares the files of every version with their hashes, and the tables of each counted corpus
    with the totals of its shards. In a bucket, checks the stored files, not local copies. Prints
    how to fix each problem, and exits with status 3 if there is one. Don't run `compact` at the
    same time: files that it deletes would be reported as missing.

    Example: plumbline warehouse check
    """

    records = False

    def run(self, context: Context) -> Done:
        rows: list[Row] = [*check.check(context.store), *_ledger_problems(context.store)]
        state = context.store.snapshot()
        deleted = [f"an earlier command {line}" for line in to_make_again(state.out_of_date)]
        noted = [*state.kept, *deleted]
        if not rows:
            return Done(said=[f"{self.warehouse}: no problems", *noted])
        n = f"{len(rows)} problem{'' if len(rows) == 1 else 's'}"
        failed = BadInput(f"warehouse {self.warehouse}", f"has {n}", "see the fix of each")
        return Done(rows=rows, said=noted, failed=failed)


def _ledger_problems(store: Store) -> Iterator[Row]:
    """Check the tables of each counted corpus. Yield a row for each check that fails.

    Skips tables that can't be read, since ``check`` reports them.
    """
    from plumbline.jobs.counting.corpus_lookup import failed_checks

    with suppress(BadInput):
        counted = (row for row in store.read("corpus").to_pylist() if row["source"] == "counted")
        for corpus in (row["corpus"] for row in counted):
            with suppress(BadInput):
                for check_name, rows in failed_checks(store, corpus).items():
                    first = rows.slice(0, 1).to_pylist()[0]
                    shown = ", ".join(f"{name} {value}" for name, value in first.items())
                    yield {
                        "path": f"corpus {corpus}",
                        "problem": f"{check_name}: {rows.num_rows:,} rows, {shown}",
                        "fix": "count it again with plumbline corpus count ... --replace",
                    }


class Compact(Command):
    """Merge small files, and delete old versions and the leftovers of interrupted commands.

    Other commands can read and write at the same time. Files less than a day old are kept.
    Partial counts and other stored results that later runs can reuse are kept, too.

    Example: plumbline warehouse compact --keep-days 30
    """

    keep_days: Annotated[
        float,
        Field(ge=0, le=1e6, allow_inf_nan=False, description="Number of days to keep versions."),
    ] = 7.0

    def run(self, context: Context) -> Done:
        n_merged, gone = compaction.compact(context.store, context.run_id, self.keep_days)
        row = {"n_partitions_merged": n_merged, "n_files_removed": len(gone)}
        return Done(rows=[row], said=context.store.snapshot().kept, next=_CHECK)


class Restore(Command):
    """Restore all tables to an earlier version, or list the versions.

    The list, newest first, shows each version's time, run, author (PLUMBLINE_AUTHOR) and what the
    run did. Versions in which only table `run` changed aren't listed. Restoring makes a new version
    and deletes no files, so you can undo it.

    Example: plumbline warehouse restore 12
    """

    version: Annotated[
        int | None,
        Field(ge=0, le=MOST, description="Version to restore; default: list the versions."),
        On(positional=True),
    ] = None

    @property
    def records(self) -> bool:  # type: ignore[override]
        """True if the command restores a version. A command that lists versions isn't recorded."""
        return self.version is not None

    def check(self) -> None:
        if self.version is not None:
            Store.open(self.warehouse, create=False).pinned(self.version)

    def run(self, context: Context) -> Done:
        if self.version is None:
            return self._versions(context.store)
        context.store.restore(self.version, context.run_id)
        again = f"{self.warehouse}: restored to version {self.version}"
        pages = "pages written earlier don't change: write them again with plumbline report"
        return Done(said=[*context.store.snapshot().kept, again, pages], next=_CHECK)

    def _versions(self, store: Store) -> Done:
        authors = {row["run_id"]: row["author"] for row in store.read("run").to_pylist()}
        snapshots = []
        for version in reversed(log.versions(store.place)):
            with suppress(BadInput):  # `warehouse check` names damaged commits
                snapshots.append(log.snapshot(store.place, version))
        rows = [
            {"version": s.version, "time_utc": f"{s.time:%Y-%m-%d %H:%M:%S}"}
            | {"run_id": s.run_id, "what": s.about, "author": authors.get(s.run_id)}
            for s in snapshots
            if s.about not in ("publish run", "compact run")
        ]
        further = "plumbline sql --at VERSION, or plumbline warehouse restore VERSION"
        return Done(rows=rows, most=_MOST, said=store.snapshot().kept, next=further)


class Runs(Command):
    """List runs, newest first, or show one run with its options, versions and rejected rows.

    Also shows how models with a --name changed since their previous versions.

    Example: plumbline runs --command score
    """

    records = False

    run_id: Annotated[
        str, Field(description="Run id or its beginning; default: list all."), On(positional=True)
    ] = ""
    command: Annotated[str, Field(description="List only runs of this command or group.")] = ""

    def run(self, context: Context) -> Done:
        return self._one(context.store) if self.run_id else self._list(context.store)

    def _list(self, store: Store) -> Done:
        rows = [
            {name: row[name] for name in ("run_id", "command", "status")}
            | {
                "started_utc": f"{row['started_at']:%Y-%m-%d %H:%M:%S}",
                "seconds": None if row["seconds"] is None else round(row["seconds"], 1),
                **{name: row[name] or "" for name in ("error", "author")},
            }
            for row in run_records.runs(store, command=self.command)
        ]
        if not rows:
            return Done(said=["No run matches."])
        next_line = f"plumbline runs {shlex.quote(str(rows[0]['run_id']))}"
        cut = [row | {"error": _cut(row["error"], _LONGEST)} for row in rows]
        return Done(rows=cut, table=rows, said=_changes(store), next=next_line)

    def _one(self, store: Store) -> Done:
        run = run_records.find(store, self.run_id)
        reasons = rows_of(store, _REASONS, {"run_id": run["run_id"]})
        parts = {
            "option": run_records.flat(json.loads(run.pop("config"))),
            "version": json.loads(run.pop("packages")),
            "rejected rows by reason": {str(row["reason"]): row["n"] for row in reasons},
        }
        rows = [
            {"of": of, "name": name, "value": "" if value is None else str(value)}
            for of, part in {"run": run, **parts}.items()
            for name, value in part.items()
            if of != "run" or value is not None
        ]
        cut = [row | {"value": _cut(row["value"], _LONGEST_VALUE)} for row in rows]
        return Done(rows=cut, table=rows, said=_changes(store, str(run["run_id"])))


def _cut(text: str, longest: int) -> str:
    return shorten(text, longest, placeholder=" ...")


def _changes(store: Store, run_id: str = "") -> list[str]:
    """Say how models with a --name changed, in all runs or only in the run ``run_id``."""
    if not any(store.read("model")["name"].to_pylist()):
        return []
    try:
        changes = version_changes(Facts(store))
    except BadInput as e:  # the runs are still worth seeing if another table is damaged
        return [f"{WARNING}{e}"]
    return [version_changed(row) for row in changes if run_id in ("", row["run_id"])]
