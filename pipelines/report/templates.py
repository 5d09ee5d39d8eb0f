"""Render the report's Jinja templates for sections (text, tables and charts) and for pages.

A section's template consists of blocks. A block ends at a blank line, or before a line that starts
with a mark. The marks are:

- ``# anchor: Title`` begins a section.
- ``! text`` is a warning. It is also shown on the first page.
- ``> text`` says how figures are measured. It is hidden until the reader opens it.

A block without a mark is a paragraph. Text between backticks is shown as code.

``{{ table(caption, rows, columns) }}`` and ``{{ chart(function, rows, ...) }}`` add a table and a
chart to the section. ``rows(name)`` returns the rows of a query in ``sql/report``. ``query(sql)``
returns the rows of any query, and ``metrics(name)`` returns the rows of one metric.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module, resources
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from jinja2.runtime import Macro
from markupsafe import Markup, escape

from plumbline.eval_workers.models.model_texts import text_name
from plumbline.eval_workers.pairs.benchmarks.closed_world import LEXICON
from plumbline.eval_workers.training.training_options import tuned_by
from plumbline.eval_workers.writing import offline
from plumbline.pipelines.report import (
    estimates,
    metric_tables,
    model,
    rows,
    sentences,
    word_answers,
)
from plumbline.pipelines.report.facts import Facts, TrainingTexts
from plumbline.pipelines.report.model import AColumn, Cell, Figure, PageTable, Section
from plumbline.pipelines.report.rows import Rows
from plumbline.warehouse.text.escape import as_csv, policy_hash, terminal

#: A character that marks a line of a template. Data can't contain it: ``terminal`` escapes it.
_MARK = "\x02"
_CHARTS = "plumbline.pipelines.report.charts"
#: Templates of sections may use all public functions, classes and constants of these modules, and
#: functions that read the warehouse.
_MODULES = (model, rows, metric_tables, estimates, sentences, word_answers, offline)
_GLOBALS: dict[str, Any] = {
    name: value
    for module in _MODULES
    for name, value in vars(module).items()
    if name[0] != "_" and (name.isupper() or getattr(value, "__module__", "") == module.__name__)
} | {"tuned_by": tuned_by, "exp": math.exp}
_GLOBALS |= {"tuple": tuple, "zip": zip, "LEXICON": LEXICON, "text_name": text_name}


def sections_from(text: str, facts: Facts | None = None, **values: object) -> list[Section]:
    """Render a template, and return its sections. Without data to show, there are no sections.

    The template can query ``facts`` and use ``values`` as variables. Raises
    ``jinja2.TemplateError`` if the template has an error.
    """
    parts = _Parts()
    names: dict[str, Any] = {name: getattr(parts, name) for name in ("table", "chart", "add")}
    if facts is not None:
        names |= {"facts": facts, "rows": facts.rows, "query": facts.query}
        names |= {"metrics": facts.metrics, "texts": TrainingTexts(facts)}
    return parts.read(_of_sections().from_string(_marked(text)).render({**names, **values}))


def word_sections(rows: Mapping[str, Rows]) -> list[Section]:
    """Return a section for each row of ``word_evidence``. ``rows`` has the rows of each table."""
    made = []
    for lean in rows["word_evidence"]:
        answer = {
            name: table_rows.where(**word_answers.of_word(lean))
            for name, table_rows in rows.items()
        }
        made += sections_from('{% include "_word" %}', answer=answer, folded=False)
    return made


def rendered(template: str, script: str, **values: object) -> str:
    """Render the template of a page to HTML, with ``values``, a script and the stylesheet.

    All data is escaped.
    """
    texts = {"style": Markup(_read("style.css")), "script": Markup(_read(script))}
    return _of_pages().get_template(template).render({**texts, **values})


def _read(name: str) -> str:
    here = resources.files("plumbline.pipelines.report")
    return (here / name).read_text(encoding="utf-8")


def _environment(load: Callable[[str], str], **options: Any) -> Environment:
    return Environment(
        loader=FunctionLoader(load),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        **options,
    )


@cache
def _of_pages() -> Environment:
    environment = _environment(_read, autoescape=True, finalize=_visible)
    filters = {"prose": _prose, "csv": as_csv, "sha256": policy_hash, "script": as_script}
    environment.filters |= filters
    return environment


def _prose(sentence: str) -> Markup:
    shown = str(escape(terminal(sentence, lines=True)))
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", shown))


def as_script(value: object) -> Markup:
    """Return a value as JSON that is safe inside a page's ``script`` element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))


def _visible(value: object) -> object:
    if isinstance(value, str) and not isinstance(value, Markup):
        return terminal(value, lines=True)
    return value


@cache
def _of_sections() -> Environment:
    """Return Jinja's environment for sections. HTML isn't escaped here, but later by the page."""

    def included(name: str) -> str:
        return _marked(_read(f"sections/{name}.jinja"))

    environment = _environment(included, finalize=_shown)
    environment.globals |= _GLOBALS
    environment.filters |= {k: f for k, f in _GLOBALS.items() if k not in environment.filters}
    return environment


def _marked(text: str) -> str:
    return re.sub(r"(?m)^(?=[#!>] )", _MARK, text)


def _shown(value: object) -> object:
    """Format a value in a section. Numbers get thousands separators; text goes on one line."""
    if isinstance(value, _Mark):
        return value
    if isinstance(value, Cell):
        return value.text
    if value is None:
        return "–"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return terminal(re.sub(r"\s+", " ", value)) if isinstance(value, str) else value


class _Mark(str):
    """Marks the place of a table or chart in a section's text."""


class _Parts:
    """The tables and charts that a template adds while it is rendered, in order."""

    def __init__(self) -> None:
        self._added: list[PageTable | Figure] = []

    def table(self, caption: str, found: Rows, columns: Sequence[AColumn], **options: bool) -> str:
        """Add the table that ``model.table`` makes from rows. Without rows, add nothing."""
        columns = [_column(column) for column in columns]
        return self.add(model.table(_line(caption), found, columns, **options)) if found else ""

    def chart(
        self, function: str, found: Rows, *arguments: object, name: Sequence[str], caption: str
    ) -> str:
        """Add the chart that a function draws from rows. Without rows, add nothing.

        Args:
            function: ``module.function`` if it is in ``pipelines/report/charts``, else a full name.
            found, arguments: the rows, and the arguments that the function takes after them.
            name: texts that are joined to make the chart's file name.
        """
        from plumbline.pipelines.report.charts.chart_forms import specification

        if not found:
            return ""
        place, _, name_of = function.rpartition(".")
        module = import_module(place if "." in place else f"{_CHARTS}.{place}")
        drawn = specification(getattr(module, name_of)(found, *arguments))
        caption = _line(caption)
        drawn["description"] = caption
        return self.add(Figure(model.stem(*name), caption, drawn, found))

    def add(self, part: PageTable | Figure) -> str:
        """Add a table or chart. Return a mark that shows its place in the section's text."""
        self._added.append(part)
        return _Mark(f"\n\n{_MARK}@ {len(self._added) - 1}\n\n")

    def read(self, text: str) -> list[Section]:
        made: list[Section] = []
        content: dict[str, list[Any]] = {}
        for block in re.split(rf"\n\s*\n|\n\s*(?={_MARK})", text):
            mark, words = _parted(block)
            if mark == "#":
                anchor, _, title = words.partition(": ")
                content = {name: [] for name in ("intro", "alerts", "more", "figures", "tables")}
                made.append(Section(anchor, title, **content))
            elif mark == "@":
                part = self._added[int(words)]
                content["figures" if isinstance(part, Figure) else "tables"].append(part)
            elif words:
                content[{"!": "alerts", ">": "more"}.get(mark, "intro")].append(words)
        return made


def _parted(block: str) -> tuple[str, str]:
    """Split a block into its mark and its text; join the text's lines.

    The mark is `#`, `!`, `>`, `@` (for a table or chart), or an empty string for a paragraph.
    """
    text = _line(block)
    return (text[1], text[3:]) if text.startswith(_MARK) else ("", text)


def _line(text: str) -> str:
    return " ".join(text.split())


def _column(column: AColumn) -> AColumn:
    """Return a table's column. If a macro makes the cells, put each cell's text on one line."""
    if isinstance(column, str) or not isinstance(column[1], Macro):
        return column
    macro = column[1]
    return column[0], lambda row: _line(macro(row))
