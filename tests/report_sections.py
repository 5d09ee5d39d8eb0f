"""Sections of the report for tests: what one template makes of a warehouse."""

from pathlib import Path

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import Section
from plumbline.pipelines.report.sections import SECTIONS
from plumbline.pipelines.report.templates import sections_from
from plumbline.warehouse.storage.store import Store


def section(warehouse: Store | Path | Facts, name: str) -> Section:
    """The only section of a template."""
    facts = warehouse if isinstance(warehouse, Facts) else Facts(warehouse)
    (one,) = sections_from(SECTIONS.text(name), facts)
    return one
