"""Sections of the report, one file each, found by module name.

A section module offers:

- ``PLACE``: where it stands on the page, after those with a smaller number.
- ``sections(facts)``: what it adds to the page: a ``Section``, or a ``Missing`` that names the
  command which would fill it; several of either where it has several.
- ``leads(facts)``, if the opening of the page is to say what it found: questions with sentences
  that answer them. They stand in the order of ``PLACE``, or of ``LEAD_PLACE`` where a module has
  that too.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable
from importlib import import_module
from typing import Protocol, cast

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import Lead, Missing, Section


class ReportSection(Protocol):
    """What a module of this package offers at the least."""

    PLACE: int

    def sections(self, facts: Facts) -> Iterable[Section | Missing]:
        """What it adds to the page, in order."""
        ...


def _modules() -> list[ReportSection]:
    names = [m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_")]
    return [cast(ReportSection, import_module(f"{__name__}.{name}")) for name in names]


def sections(facts: Facts) -> list[Section | Missing]:
    """What all section modules add to the page, in their order."""
    modules = sorted(_modules(), key=lambda module: module.PLACE)
    return [part for module in modules for part in module.sections(facts)]


def leads(facts: Facts) -> list[Lead]:
    """The opening of the page; empty when there is nothing to say yet."""
    modules = [module for module in _modules() if hasattr(module, "leads")]
    modules.sort(key=lambda module: getattr(module, "LEAD_PLACE", module.PLACE))
    return [lead for module in modules for lead in module.leads(facts) if lead.sentences]
