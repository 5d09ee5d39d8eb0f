"""`plumbline runs replay`: the command that a run recorded, again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from pydantic import Field
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
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.options import STRICT
from plumbline.warehouse.provenance import history
from plumbline.warehouse.provenance.runs import package_versions
from plumbline.warehouse.storage.store import Store


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Replay(Command):
    """Run a recorded command again, on the same warehouse or another.

    What is there already is not done again, as with the command itself: on an empty warehouse
    everything is. Afterwards it says which versions differ from then.

    Example: plumbline runs replay 20260501T12 --into other/warehouse
    """

    joins = False

    run_id: Annotated[str, Field(description="Run id, or the start of one."), On(positional=True)]
    into: Annotated[Path | None, Field(description="Another warehouse to run it on.")] = None

    def command(self, store: Store) -> Command:
        """The recorded command. Raises ``UsageProblem`` for a run that can't be replayed."""
        row = history.find(store, self.run_id)
        name = current(row["command"])
        if name not in targets():
            known = f"these can be: {', '.join(targets())}"
            raise UsageProblem(f"run {row['run_id']}", f"is of `{row['command']}`", known)
        where = self.into or self.warehouse
        return of_values(class_of(name), row["config"], where)

    def plan(self, store: Store | None) -> Iterator[Row]:
        """The command line, and what it would take."""
        assert store is not None, "this command makes no warehouse"
        command = self.command(store)
        yield planned(line_of(command), "command", None)
        if has_plan(type(command)):
            yield from plan_of(command)
        yield from differences(history.find(store, self.run_id))

    def run(self, context: Context) -> Done:
        """Run it, under a run of its own."""
        command = self.command(context.store)
        then = history.find(context.store, self.run_id)
        done = execute(command, context.stages)
        said = [line_of(command), *done.said]
        said += [f"{row['subject']}: {row['note']}" for row in differences(then)]
        return replace(done, said=said, warehouse=command.warehouse)


def differences(then: Row) -> Iterator[Row]:
    """Packages whose versions differ from those of a run."""
    before, now = json.loads(then["packages"]), package_versions()
    for name in sorted(before.keys() | now.keys()):
        if before.get(name) != now.get(name):
            note = f"{before.get(name) or 'none'} then, {now.get(name) or 'none'} now"
            yield planned(name, "version", None, "", note)
