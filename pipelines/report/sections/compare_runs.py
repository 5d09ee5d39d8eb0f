"""Rows of the last two runs of each command, and settings that changed between them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import Columns, Missing, Section, table
from plumbline.pipelines.report.rows import Row, Rows
from plumbline.warehouse.query.history import changes

PLACE = 900
NAMES = ("compare-runs",)
_TITLE = "Comparisons: runs"
_MEANING = (
    "The last two finished runs of each command. Rows are those that no later run replaced. Tables "
    "without a run_id are left out: plumbline runs show lists these, and plumbline runs compare "
    "sets the figures of two runs side by side."
)


def sections(facts: Facts) -> Iterator[Section | Missing]:
    """Rows by table, and settings that differ, for commands that finished twice or more."""
    written = facts.rows("run_pair")
    if not written:
        yield Missing(_TITLE, "plumbline measure")
        return
    pairs = list(dict.fromkeys((r["command"], r["run_before"], r["run_last"]) for r in written))
    changed = _changed(facts.rows("run"), pairs)
    columns: Columns = [
        "command",
        ("table", "table_name"),
        ("run before", "run_before"),
        ("its rows", "n_rows_before"),
        ("last run", "run_last"),
        ("its rows", "n_rows_last"),
    ]
    caption = "What the last two runs of each command wrote, by table"
    tables = [table(caption, written, columns, folded=len(written) > 20)]
    if changed:
        caption = f"Settings that differ between these runs ({len(changed)})"
        columns = [
            *("command", "kind", ("setting", "name")),
            ("run before", lambda r: _value(r["before"])),
            ("last run", lambda r: _value(r["last"])),
        ]
        long = len(changed) > 20
        tables.append(table(caption, changed, columns, folded=long, searchable=True))
    intro = [_sentence(pairs, changed), _MEANING]
    yield Section("compare-runs", _TITLE, intro, tables=tables)


def _changed(runs: Rows, pairs: Sequence[tuple[str, str, str]]) -> Rows:
    """A row for each setting that differs between two runs; its ``sql`` gives the runs."""
    by_id = {r["run_id"]: r for r in runs}
    rows: list[Row] = []
    for command, before, last in pairs:
        for kind, settings in changes(by_id[before], by_id[last]).items():
            ids = {"command": command, "run_before": before, "run_last": last, "kind": kind}
            # A setting that is null in one run and absent in the other hasn't changed.
            rows += [
                {**ids, "name": name, "before": a, "last": b}
                for name, (a, b) in settings.items()
                if a != b
            ]
    both = {r[column] for r in rows for column in ("run_before", "run_last")}
    return Rows(rows, runs.where(run_id=tuple(sorted(both))).sql)


def _sentence(pairs: Sequence[tuple[str, str, str]], changed: Rows) -> str:
    commands = [command for command, *_ in pairs]
    sentence = (
        f"{len(pairs)} command{'s' if len(pairs) > 1 else ''} finished more than once: "
        f"{', '.join(commands)}."
    )
    alike = [c for c in commands if not any(r["command"] == c for r in changed)]
    if alike:
        sentence += f" Same options and versions both times: {', '.join(alike)}."
    for kind in ("options", "versions"):
        kind_rows = [r for r in changed if r["kind"] == kind]
        names = ", ".join(dict.fromkeys(f"{r['name']} of {r['command']}" for r in kind_rows[:6]))
        more = f" and {len(kind_rows) - 6} more" if len(kind_rows) > 6 else ""
        sentence += f" {kind.capitalize()} that changed: {names}{more}." if kind_rows else ""
    return sentence


def _value(value: object) -> str | None:
    """A setting as text; ``None`` if the run doesn't have it.

    >>> _value("a"), _value([1, None]), _value(None)
    ('a', '[1, null]', None)
    """
    return value if value is None or isinstance(value, str) else json.dumps(value)
