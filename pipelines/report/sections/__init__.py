"""Sections of the report: the modules of this folder, and modules of other installed packages.

A section module offers:

- ``PLACE``: its position on the page. Smaller numbers come first.
- ``sections(facts)``: the parts that it adds to the page. A part without data is a ``Missing`` with
  the command that computes the data.
- ``leads(facts)``, optional: questions for the top of the page, with sentences that answer them.
  They are sorted by the module's ``LEAD_PLACE`` or, without one, by its ``PLACE``.
- ``NAMES``, optional: prefixes of the names of its plots and tables. If a plot or table is
  requested by name, only modules with a fitting prefix, or without ``NAMES``, are run.

Other packages add modules by entry points of ``plumbline.report_sections``: see
``docs/extend.md``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import Lead, Missing, Section
from plumbline.warehouse.plugins import Registry
from plumbline.warehouse.text.progress import progress


class ReportSection(Protocol):
    """The attributes that every section module has."""

    PLACE: int

    def sections(self, facts: Facts) -> Iterable[Section | Missing]:
        """The module's parts of the page, in order."""
        ...


SECTIONS = Registry("report section", __name__, ".py", "plumbline.report_sections", ReportSection)


def sections(facts: Facts, name: str = "") -> list[Section | Missing]:
    """The parts of all modules, in order; with ``name``, of modules whose ``NAMES`` fit it."""
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
    """The questions for the top of the page that have answers, in order."""
    modules = [module for module in _modules() if hasattr(module, "leads")]
    modules.sort(key=lambda module: getattr(module, "LEAD_PLACE", module.PLACE))
    return [lead for module in modules for lead in module.leads(facts) if lead.sentences]


def _modules() -> list[Any]:
    return [SECTIONS.load(name) for name in SECTIONS.names()]
