"""What the last two runs of each command wrote, and which settings changed between them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import Missing, Row, Section, Table, count, text
from plumbline.warehouse.provenance.history import changes

_TITLE = "Comparisons: runs"
_MEANING = (
    "Of each command the last two runs that finished. Rows are those still there: what a later run "
    "wrote anew is no longer the earlier one's. Tables that do not name their run are left out; "
    "plumbline runs show tells of these, and plumbline runs compare sets the figures of two runs "
    "side by side."
)


def section(facts: Facts) -> Section | Missing:
    """Rows by table and settings that differ, of commands that finished twice."""
    written = facts.ask("run_pair")
    if not written:
        return Missing(_TITLE, "plumbline measure")
    pairs = list(dict.fromkeys((r["command"], r["run_before"], r["run_last"]) for r in written))
    changed = _changed(facts, pairs)
    tables = [_written(facts, written)]
    if changed:
        tables.append(_settings(facts, changed))
    return Section("compare-runs", _TITLE, [_said(pairs, changed), _MEANING], tables=tables)


def _changed(facts: Facts, pairs: Sequence[tuple[str, str, str]]) -> list[Row]:
    """A row a setting that differs."""
    runs = {r["run_id"]: r for r in facts.run}
    found: list[Row] = []
    for command, before, last in pairs:
        for kind, settings in changes(runs[before], runs[last]).items():
            rows = ({"name": n, "before": a, "last": b} for n, (a, b) in settings.items())
            # Where one has it as null and the other not at all, nothing changed.
            changed = (row for row in rows if row["before"] != row["last"])
            ids = {"command": command, "run_before": before, "run_last": last}
            found += [{**ids, "kind": kind, **row} for row in changed]
    return found


def _said(pairs: Sequence[tuple[str, str, str]], changed: Sequence[Row]) -> str:
    commands = [command for command, *_ in pairs]
    said = (
        f"{len(pairs)} command{'s' if len(pairs) > 1 else ''} finished more than once: "
        f"{', '.join(commands)}."
    )
    alike = [c for c in commands if not any(r["command"] == c for r in changed)]
    if alike:
        said += f" Same options and versions both times: {', '.join(alike)}."
    for kind in ("options", "versions"):
        of = [r for r in changed if r["kind"] == kind]
        names = ", ".join(dict.fromkeys(f"{r['name']} of {r['command']}" for r in of[:6]))
        more = f" and {len(of) - 6} more" if len(of) > 6 else ""
        said += f" {kind.capitalize()} that changed: {names}{more}." if of else ""
    return said


def _written(facts: Facts, rows: Sequence[Row]) -> Table:
    headings = ["command", "table", "run before", "its rows", "last run", "its rows"]
    cells = [
        [
            text(r["command"]),
            text(r["table_name"]),
            text(r["run_before"]),
            count(r["n_rows_before"]),
            text(r["run_last"]),
            count(r["n_rows_last"]),
        ]
        for r in rows
    ]
    caption = "What the last two runs of each command wrote, by table"
    return Table(caption, headings, cells, len(cells) > 20, facts.sql("run_pair"))


def _settings(facts: Facts, rows: Sequence[Row]) -> Table:
    headings = ["command", "kind", "setting", "run before", "last run"]
    cells = [
        [
            *(text(r[name]) for name in ("command", "kind", "name")),
            *(text(_value(r[name])) for name in ("before", "last")),
        ]
        for r in rows
    ]
    caption = f"Settings that differ between these runs ({len(cells)})"
    ids = tuple(sorted({r[name] for r in rows for name in ("run_before", "run_last")}))
    query = facts.sql("run", {"run_id": ids})
    return Table(caption, headings, cells, len(cells) > 20, query, searchable=True)


def _value(value: object) -> str | None:
    """A setting as text; nothing where a run has it not.

    >>> _value("a"), _value([1, None]), _value(None)
    ('a', '[1, null]', None)
    """
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)
