"""Make the report's sections from the templates in this folder and in other packages.

``report/templates.py`` says what a template may contain. Other packages add templates through the
entry points ``plumbline.report_sections``; see ``docs/extend.md``.
"""

from __future__ import annotations

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import Section
from plumbline.pipelines.report.templates import sections_from
from plumbline.warehouse.plugins import Registry
from plumbline.warehouse.text.progress import progress

SECTIONS = Registry("report section", __name__, ".jinja", "plumbline.report_sections")
#: Plumbline's templates in the order of the page. Templates of other packages come after these.
_ORDER = (
    *("methods", "preference", "versions", "forced_choice", "follow", "closed_world"),
    *("constraint", "fairpair", "disclosure", "mitigation", "compare_models"),
    *("size", "compare_corpora", "words", "why", "provenance"),
)


def sections(facts: Facts) -> list[Section]:
    names = (*_ORDER, *(name for name in SECTIONS.names() if name not in _ORDER))
    parts: list[Section] = []
    with progress("make the report", "sections") as update:
        for n_done, name in enumerate(names):
            update(n_done, len(names))
            parts += sections_from(SECTIONS.text(name), facts)
        update(len(names), len(names))
    return parts
