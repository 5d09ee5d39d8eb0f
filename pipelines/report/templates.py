"""HTML from the templates in this directory; everything that comes from data is escaped."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from importlib import resources

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from plumbline.pipelines.report.model import Figure
from plumbline.warehouse.text.escape import as_csv, policy_hash, terminal


def rendered(
    template: str,
    *,
    styles: Sequence[str] = ("style.css",),
    scripts: Sequence[str] = ("page.js",),
    **values: object,
) -> str:
    """A page as HTML: its template filled with ``values`` and the text of styles and scripts."""
    style, script = (Markup("".join(map(_read, names))) for names in (styles, scripts))
    return _environment().get_template(template).render(style=style, script=script, **values)


def _read(name: str) -> str:
    here = resources.files("plumbline.pipelines.report")
    return (here / name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    environment = Environment(
        autoescape=True,
        loader=FunctionLoader(_read),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible,
    )
    environment.filters |= {"prose": _prose, "csv": as_csv, "sha256": policy_hash}
    environment.filters["specification"] = _specification
    return environment


def _prose(sentence: str) -> Markup:
    """A sentence as HTML; text between backticks becomes code."""
    shown = str(escape(terminal(sentence, lines=True)))
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", shown))


def _specification(figure: Figure) -> Markup:
    """A chart's specification as JSON for a script element."""
    text = json.dumps(figure.specification, ensure_ascii=False)
    return Markup(text.replace("<", "\\u003c"))


def _visible(value: object) -> object:
    """The value of a template's expression, with invisible characters of text as escapes."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return terminal(value, lines=True)
    return value
