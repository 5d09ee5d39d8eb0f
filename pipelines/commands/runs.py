"""`plumbline runs`: list, show, compare, annotate and replay the runs of a warehouse."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field
from pydantic.dataclasses import dataclass

from plumbline.pipelines.command.base import (
    Command,
    Context,
    Done,
    On,
    Row,
    class_of,
    execute,
    has_plan,
    line_of,
    of_values,
    plan_of,
    planned,
)
from plumbline.pipelines.command.registry import current, targets
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.options import STRICT
from plumbline.warehouse.query import history
from plumbline.warehouse.storage.run_records import package_versions, recorded_versions
from plumbline.warehouse.storage.store import Store

RunId: TypeAlias = Annotated[
    str, Field(min_length=1, description="Run id, or the start of one."), On(positional=True)
]
#: Characters that a table shows of a long text.
_SHOWN = 24


class _Long(str):
    """A long text: tables show only its start, JSON and Python all of it.

    >>> import json
    >>> len(str(_Long("no " * 40))), len(json.loads(json.dumps(_Long("no " * 40))))
    (24, 120)
    """

    def __str__(self) -> str:
        return self[:] if len(self) <= _SHOWN else f"{self[: _SHOWN - 1]}…"


def _time(text: str) -> str:
    if not re.fullmatch(r"(\d{4}(-\d\d(-\d\d([T ]\d\d(:\d\d){0,2})?)?)?)?", text):
        fix = "give such as 2026-05-01 or 2026-05-01T12:30"
        raise UsageProblem(f"--since {text!r}", "is not the start of a time", fix)
    return text


@dataclass(frozen=True, kw_only=True, config=STRICT)
class RunsList(Command):
    """List runs, the newest first; tables shorten long texts, `--format json` gives them whole.

    Example: plumbline runs list --command score --since 2026-05-01 --status finished
    """

    records = False

    command: Annotated[str, Field(description="Only commands whose name begins with this.")] = ""
    since: Annotated[
        str,
        AfterValidator(_time),
        Field(description="Only runs started from then on (UTC), such as 2026-05-01."),
    ] = ""
    status: Annotated[
        Literal["finished", "failed", "interrupted", "running"] | None,
        Field(description="Only runs of this status."),
    ] = None

    def run(self, context: Context) -> Done:
        filters = {
            "command": self.command,
            "since": self.since,
            "status": self.status or "",
        }
        runs = history.runs(context.store, **filters)
        rows = [
            {name: row[name] for name in ("run_id", "command", "status")}
            | {
                "started_utc": f"{row['started_at']:%Y-%m-%d %H:%M:%S}",
                "seconds": None if row["seconds"] is None else round(row["seconds"], 1),
                **{name: _Long(row[name] or "") for name in ("error", "author", "note")},
            }
            for row in runs
        ]
        if not rows:
            return Done(said=["No run matches."])
        return Done(rows=rows, next=f"plumbline runs show {shlex.quote(runs[0]['run_id'])}")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class RunsShow(Command):
    """Show a run: options, versions, git commit, seeds, time, what it wrote and rejected.

    Example: plumbline runs show 20260501T12
    """

    records = False

    run_id: RunId

    def run(self, context: Context) -> Done:
        details = history.details(context.store, self.run_id)
        parts = {
            "option": history.flat(details.pop("options")),
            "seed": details.pop("seeds"),
            "version": details.pop("versions"),
            "rows written that are still there": details.pop("written"),
            "rejected rows by reason": details.pop("rejects"),
        }
        rows = [
            {"of": of, "name": name, "value": _text(value)}
            for of, part in {"run": details, **parts}.items()
            for name, value in part.items()
            if of != "run" or value is not None
        ]
        return Done(rows=rows)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class RunsCompare(Command):
    """Compare two runs: options and versions that differ, metrics of both.

    The difference is the second minus the first; `a` and `b` of a metric are the models.

    Example: plumbline runs compare 20260501T12 20260502T09
    """

    records = False

    first: RunId
    second: RunId

    def run(self, context: Context) -> Done:
        comparison = history.compare(context.store, self.first, self.second)
        rows: list[Row] = [
            {"of": of, "name": name, "a": _text(pair[0]), "b": _text(pair[1])}
            for of, part in (("option", comparison["options"]), ("version", comparison["versions"]))
            for name, pair in part.items()
        ]
        return Done(
            rows=[*rows, *map(_metric, comparison["metrics"])],
            said=[
                f"{side}: run {run_id}"
                for side, run_id in zip("ab", comparison["runs"], strict=True)
            ],
        )


def _metric(metric: Mapping[str, Any]) -> Row:
    (a, b), (value_a, value_b) = metric["models"], metric["values"]
    identity = {name: metric[name] for name in ("benchmark", "corpus", "subset")}
    values = {"value_a": value_a, "value_b": value_b, "difference": metric["difference"]}
    return {"of": "metric", "name": metric["metric"], "a": a, "b": b, **identity, **values} | {
        "unit": metric["unit"]
    }


def _text(value: object) -> str:
    """A value as text, since a column has values of many types; ``None`` is empty."""
    return "" if value is None else str(value)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Note(Command):
    """Set the note of a run that has ended; an empty text removes it.

    Example: plumbline runs note 20260501T12 "with the first word list, don't use"
    """

    records = False

    run_id: RunId
    text: Annotated[
        str, Field(max_length=2000, description="The note, in one line."), On(positional=True)
    ]

    def run(self, context: Context) -> Done:
        row = history.note(context.store, self.run_id, " ".join(self.text.split()))
        return Done(
            rows=[{name: row[name] for name in ("run_id", "command", "note")}], wrote=("run",)
        )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Replay(Command):
    """Run a recorded command again, on the same warehouse or another.

    Like the command itself, it skips what is already there; on an empty warehouse it does
    everything. At the end it lists packages whose versions have changed since.

    Example: plumbline runs replay 20260501T12 --into other/warehouse
    """

    joins = False

    run_id: RunId
    into: Annotated[
        Path | None,
        Field(description="Another warehouse to run it on, which has what the command reads."),
    ] = None

    def command(self, store: Store) -> Command:
        """The recorded command. Raises ``UsageProblem`` for a run that can't be replayed."""
        row = history.find(store, self.run_id)
        name = current(row["command"])
        if name not in targets():
            known = f"commands that can be replayed: {', '.join(targets())}"
            problem = f"is of `{row['command']}`, which can't be replayed"
            raise UsageProblem(f"run {row['run_id']}", problem, known)
        kind = class_of(name)
        if self.into and kind.opens_warehouse and not kind.makes_warehouse:
            _check_there(self.into, kind.reads)
        return of_values(kind, row["config"], self.into or self.warehouse)

    def plan(self, store: Store | None) -> Iterator[Row]:
        """The command line, the command's own plan, and packages whose versions changed."""
        assert store is not None, "this command makes no warehouse"
        command = self.command(store)
        yield planned(line_of(command), "command", None)
        if has_plan(type(command)):
            yield from plan_of(command)
        yield from differences(history.find(store, self.run_id))

    def run(self, context: Context) -> Done:
        """Run the recorded command, which gets a run of its own."""
        command = self.command(context.store)
        then = history.find(context.store, self.run_id)
        done = execute(command, context.stages)
        said = [line_of(command), *done.said]
        said += [f"{row['subject']}: {row['note']}" for row in differences(then)]
        return replace(done, said=said, warehouse=command.warehouse)


def _check_there(into: Path, reads: str) -> None:
    """Raise ``BadInput`` for a warehouse that can't be read; the advice names `--into`."""
    try:
        Store.open(into, create=False, reads=reads)
    except BadInput as e:
        what, problem, fix = e.args
        fix = re.sub("(give|use another) --warehouse", r"\1 --into", fix)
        raise BadInput(what, problem, fix) from None


def differences(then: Row) -> Iterator[Row]:
    """Rows on packages whose versions differ now from those of the run ``then``."""
    before, now = recorded_versions(then), package_versions()
    for name in sorted(before.keys() | now.keys()):
        if before.get(name) != now.get(name):
            note = f"{before.get(name) or 'none'} then, {now.get(name) or 'none'} now"
            yield planned(name, "version", None, "", note)
