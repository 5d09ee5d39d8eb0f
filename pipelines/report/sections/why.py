"""Why words lean: the words that `plumbline why` was asked about."""

from __future__ import annotations

from collections.abc import Iterator

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import Missing, Section
from plumbline.pipelines.report.rows import Rows
from plumbline.pipelines.report.words import QUERIES, word_section

PLACE = 1010
NAMES = ("why",)
#: Words on the page, those asked about last: `why --top` writes thousands, without copies.
_ASKED = """FROM word_evidence SEMI JOIN word_copies USING (corpus, contrast, word)
ORDER BY run_id DESC, corpus, contrast, word LIMIT 12;"""


def sections(facts: Facts) -> Iterator[Section | Missing]:
    """A section per word, those that were asked about last."""
    asked = facts.query(_ASKED)
    if not asked:
        yield Missing("Why words lean", "plumbline why WORD --corpus NAME")
    for lean in asked:
        word = {key: lean[key] for key in ("corpus", "contrast", "word")}
        queries = {name: Rows((), query).where(**word).sql for name, query in QUERIES.items()}
        answer = {name: facts.query(query) for name, query in queries.items()}
        yield word_section(answer, folded=True)
