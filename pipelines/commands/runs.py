"""`plumbline runs`: the runs of a warehouse, or one of them."""

from __future__ import annotations

import shlex
from typing import Annotated

from pydantic import Field

from plumbline.pipelines.command.base import Command, Context, Done, On
from plumbline.warehouse import run_records
from plumbline.warehouse.storage.store import Store

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


class Runs(Command):
    """List runs, the newest first; of one run show options, versions, seeds and what it wrote.

    Lines below say how named models changed since their version before. Tables shorten long texts;
    `--format json` gives them whole.

    Example: plumbline runs --command score
    """

    records = False

    run_id: Annotated[
        str, Field(description="Run id, or the start of one; default: list."), On(positional=True)
    ] = ""
    command: Annotated[str, Field(description="Only commands whose name begins with this.")] = ""

    def run(self, context: Context) -> Done:
        return self._one(context.store) if self.run_id else self._list(context.store)

    def _list(self, store: Store) -> Done:
        rows = [
            {name: row[name] for name in ("run_id", "command", "status")}
            | {
                "started_utc": f"{row['started_at']:%Y-%m-%d %H:%M:%S}",
                "seconds": None if row["seconds"] is None else round(row["seconds"], 1),
                **{name: _Long(row[name] or "") for name in ("error", "author")},
            }
            for row in run_records.runs(store, command=self.command)
        ]
        if not rows:
            return Done(said=["No run matches."])
        next_line = f"plumbline runs {shlex.quote(str(rows[0]['run_id']))}"
        return Done(rows=rows, said=_changes(store), next=next_line)

    def _one(self, store: Store) -> Done:
        details = run_records.details(store, self.run_id)
        parts = {
            "option": run_records.flat(details.pop("options")),
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
        return Done(rows=rows, said=_changes(store, str(details["run_id"])))


def _changes(store: Store, run_id: str = "") -> list[str]:
    """How named models changed since their version before; of a run, those it scored first."""
    if not any(store.read("model")["name"].to_pylist()):
        return []
    from plumbline.pipelines.report.facts import Facts
    from plumbline.pipelines.report.sentences import version_changed, version_changes

    changes = version_changes(Facts(store))
    return [version_changed(row) for row in changes if run_id in ("", row["run_id"])]


def _text(value: object) -> str:
    """A value as text, since a column has values of many types; ``None`` is empty."""
    return "" if value is None else str(value)
