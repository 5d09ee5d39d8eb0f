"""Rebuild the frozen warehouse: publish stored rows, and run real commands for everything else."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from plumbline.pipelines.command.main import main
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.store import Store
from tools.frozen import recipe

WAREHOUSE = Path("out/warehouse")

#: Lines of progress, which are printed only if a step takes long enough.
_PROGRESS = re.compile(
    r"^[^\n:]+: (?:[\d,]+ of [\d,]+ \w+(?:, [^\n]*)?, )?[\d,.]+ s(?:, about [\d,]+ s left)?$\n?",
    re.M,
)

#: Columns that stored rows have besides those of the table.
_OF_UNITS = frozenset(("unit", "unit_run"))


@dataclass(frozen=True)
class Printed:
    """A command with its exit status and what it printed."""

    command: Sequence[str]
    status: int
    out: str
    err: str

    def __str__(self) -> str:
        out = f"\n{self.out.rstrip()}" if self.out.strip() else ""
        err = f"\n-- stderr\n{self.err.rstrip()}" if self.err.strip() else ""
        status = f"\n-- status {self.status}" if self.status else ""
        return f"$ plumbline {' '.join(self.command)}{out}{err}{status}"


def run(command: Sequence[str]) -> Printed:
    """Run a command in this process."""
    # ``sql`` writes bytes to the stream below.
    out, err = _Stream(io.BytesIO(), "utf-8"), _Stream(io.BytesIO(), "utf-8")
    with redirect_stdout(out), redirect_stderr(err), _as_console_script():
        status = main(command)
    return Printed(command, status, out.text(), _PROGRESS.sub("", err.text()))


@contextmanager
def _as_console_script() -> Iterator[None]:
    """Make help texts say `plumbline`, not how this process was started."""
    module, given = sys.modules["__main__"], sys.argv
    package = module.__package__
    module.__package__, sys.argv = None, ["plumbline"]
    try:
        yield
    finally:
        module.__package__, sys.argv = package, given


class _Stream(io.TextIOWrapper):
    def text(self) -> str:
        self.flush()
        buffer = self.buffer
        assert isinstance(buffer, io.BytesIO)
        return buffer.getvalue().decode("utf-8")


def rebuild() -> list[Printed]:
    """Make the warehouse in the working directory; return what its commands printed."""
    recipe.lay_out(Path())
    printed, left = [], _stored()
    for step in recipe.STEPS:
        if step.tables:
            _publish(left, {*step.tables, "run"})
            continue
        printed.append(run(recipe.expanded(step.command, {})))
        if printed[-1].status != step.status:
            raise RuntimeError(str(printed[-1]))
    assert not left, f"rows of {', '.join(left)} are stored and not named by the recipe"
    return printed


def _stored() -> dict[str, list[dict[str, Any]]]:
    files = {path.stem: pq.read_table(path) for path in recipe.ROWS.glob("*.parquet")}
    return {name: rows.to_pylist() for name, rows in files.items()}


def _publish(left: dict[str, list[dict[str, Any]]], tables: set[str]) -> None:
    """Publish the rows of tables that are still unpublished, by their partition and unit."""
    store = Store.open(WAREHOUSE)
    for table in [name for name in TABLES if name in tables & left.keys()]:
        of_unit = itemgetter(*TABLES[table].partitions, "unit")
        for _, rows in groupby(left.pop(table), of_unit):
            found = list(rows)
            data = [{k: v for k, v in row.items() if k not in _OF_UNITS} for row in found]
            store.publish(table, data, unit=found[0]["unit"], run_id=found[0]["unit_run"])


@contextmanager
def frozen(directory: Path) -> Iterator[list[Printed]]:
    """Change to this directory for the block, with the warehouse in it."""
    directory.mkdir(parents=True, exist_ok=True)
    with recipe.place(directory):
        yield rebuild()
