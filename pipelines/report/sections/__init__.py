"""Sections of the report: the templates of this folder, and templates of other packages.

``report/section_templates.py`` says what a template may hold. Other packages add templates by entry
points of ``plumbline.report_sections``: see ``docs/extend.md``.
"""

from __future__ import annotations

import re

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import Missing, Section
from plumbline.pipelines.report.section_templates import sections_from
from plumbline.warehouse.plugins import Registry
from plumbline.warehouse.text.progress import progress

SECTIONS = Registry("report section", __name__, ".jinja", "plumbline.report_sections")
#: Plumbline's templates in the order of the page; those of other packages come after them.
_ORDER = (
    *("methods", "preference", "versions", "forced_choice", "follow", "closed_world"),
    *("constraint", "skewed_pairs", "fairpair", "disclosure", "mitigation", "compare_models"),
    *("size", "compare_corpora", "words", "why", "provenance"),
)


def sections(facts: Facts, name: str = "") -> list[Section | Missing]:
    """The sections of all templates, in order.

    With ``name``, only templates are filled that may have a chart or table of that name: its
    section's anchor, or the literal start of a chart's name, must be a start of it.
    """
    added = [name for name in SECTIONS.names() if name not in _ORDER]
    texts = [text for part in (*_ORDER, *added) if _may_have(text := SECTIONS.text(part), name)]
    parts: list[Section | Missing] = []
    with progress("report", "sections") as update:
        for n_done, text in enumerate(texts):
            update(n_done, len(texts))
            parts += sections_from(text, facts)
        update(len(texts), len(texts))
    return parts


def _may_have(text: str, name: str) -> bool:
    starts = re.findall(r'(?m)^# ([\w-]+)|name=\("([\w-]+)"', text)
    return not name or any(name.startswith(anchor or chart) for anchor, chart in starts)
