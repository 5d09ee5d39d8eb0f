"""Sections of the report for tests: what one template makes of a warehouse."""

from __future__ import annotations

from pathlib import Path

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import Missing, Section
from plumbline.pipelines.report.sections import SECTIONS
from plumbline.pipelines.report.templates import sections_from
from plumbline.warehouse.storage.store import Store


def made(warehouse: Store | Path | Facts, name: str) -> list[Section | Missing]:
    """The sections of a template, and those that it says are missing."""
    facts = warehouse if isinstance(warehouse, Facts) else Facts(warehouse)
    return sections_from(SECTIONS.text(name), facts)


def section(warehouse: Store | Path | Facts, name: str) -> Section:
    """The only section of a template."""
    (one,) = [part for part in made(warehouse, name) if isinstance(part, Section)]
    return one
