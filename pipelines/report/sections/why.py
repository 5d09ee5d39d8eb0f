"""Why words lean: the words that `plumbline why` was asked about."""

from __future__ import annotations

from collections.abc import Iterator

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import Missing, Section
from plumbline.pipelines.report.words import answers, word_section
from plumbline.warehouse.schema.evidence import ANSWERS

PLACE = 1010
#: Most words on the page; the tables hold all of them.
MOST_WORDS = 12


def sections(facts: Facts) -> Iterator[Section | Missing]:
    """A section per word, those that were asked about last."""
    rows = {table: facts.query(f"FROM {table} ORDER BY ALL") for table in ANSWERS}
    found = sorted(answers(rows), key=lambda a: str(a["word_evidence"][0]["run_id"]), reverse=True)
    if not found:
        yield Missing("Why words lean", "plumbline why WORD --corpus NAME")
    for answer in found[:MOST_WORDS]:
        yield word_section(answer, folded=True)
