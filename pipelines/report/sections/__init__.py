"""Sections of the report, one file each, and those of other installed packages.

A section module offers:

- ``PLACE``: where it stands on the page, after those with a smaller number.
- ``sections(facts)``: what it adds to the page: a ``Section``, or a ``Missing`` that names the
  command which would fill it; several of either where it has several.
- ``leads(facts)``, if the opening of the page is to say what it found: questions with sentences
  that answer them. They stand in the order of ``PLACE``, or of ``LEAD_PLACE`` where a module has
  that too.
- ``NAMES``, if it is to be left alone when a plot or table of another section is asked for by name:
  what the names of its own begin with.

Other packages add theirs by entry points of ``plumbline.report_sections``: see ``docs/extend.md``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import Lead, Missing, Section
from plumbline.warehouse.plugins import Registry
from plumbline.warehouse.text.progress import progress


class ReportSection(Protocol):
    """The least that a section module offers."""

    PLACE: int

    def sections(self, facts: Facts) -> Iterable[Section | Missing]:
        """Its parts of the page, in order."""
        ...


SECTIONS = Registry("report section", __name__, ".py", "plumbline.report_sections", ReportSection)


def sections(facts: Facts, name: str = "") -> list[Section | Missing]:
    """The parts of all sections, in their order; with ``name``, of those that may have it."""
    modules = sorted(_modules(), key=lambda module: module.PLACE)
    if name:
        modules = [m for m in modules if name.startswith(tuple(getattr(m, "NAMES", ("",))))]
    parts: list[Section | Missing] = []
    with progress("report", "sections") as update:
        for n_done, module in enumerate(modules):
            update(n_done, len(modules))
            parts += module.sections(facts)
        update(len(modules), len(modules))
    return parts


def leads(facts: Facts) -> list[Lead]:
    """The opening of the page; empty when there is nothing to say yet."""
    modules = [module for module in _modules() if hasattr(module, "leads")]
    modules.sort(key=lambda module: getattr(module, "LEAD_PLACE", module.PLACE))
    return [lead for module in modules for lead in module.leads(facts) if lead.sentences]


def _modules() -> list[Any]:
    return [SECTIONS.load(name) for name in SECTIONS.names()]
