"""Why words lean: the words that `plumbline why` was asked about."""

from __future__ import annotations

from collections.abc import Iterator

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import Missing, Section
from plumbline.pipelines.report.words import QUERIES, answers, word_section

PLACE = 1010
#: Most words on the page; the tables hold all of them.
MOST_WORDS = 12


def sections(facts: Facts) -> Iterator[Section | Missing]:
    """A section per word, those that were asked about last."""
    found = answers({name: facts.query(query) for name, query in QUERIES.items()})
    if not found:
        yield Missing("Why words lean", "plumbline why WORD --corpus NAME")
    for answer in found[:MOST_WORDS]:
        yield word_section(answer, folded=True)
