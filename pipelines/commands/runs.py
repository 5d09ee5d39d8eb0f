"""`plumbline runs`: list and show the runs of a warehouse."""

from __future__ import annotations

import re
import shlex
from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from pydantic.dataclasses import dataclass

from plumbline.pipelines.command.base import Command, Context, Done, On
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.options import STRICT
from plumbline.warehouse.query import history

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
                **{name: _Long(row[name] or "") for name in ("error", "author")},
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

    run_id: Annotated[
        str, Field(min_length=1, description="Run id, or the start of one."), On(positional=True)
    ]

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


def _text(value: object) -> str:
    """A value as text, since a column has values of many types; ``None`` is empty."""
    return "" if value is None else str(value)
