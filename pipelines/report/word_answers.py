"""Texts and tables about words, for pages and commands: how words lean and where they occur."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from plumbline.eval_workers.models.model_texts import text_name
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import Cell, Columns, PageTable, Section
from plumbline.pipelines.report.rows import Row, Rows
from plumbline.pipelines.report.sentences import word_leans
from plumbline.warehouse.text.escape import terminal
from plumbline.warehouse.wordlists import side_names

#: For each table: the query for its rows about all words. Sections show tables in this order.
QUERIES = {
    "word_evidence": "FROM word_evidence ORDER BY run_id DESC, corpus, contrast, word;",
    "word_source": "FROM word_source ORDER BY n_pair_f + n_pair_m DESC, source;",
    "word_copies": "FROM word_copies ORDER BY counted;",
    "word_collocate": """FROM word_collocate
ORDER BY abs(log_odds_nats) / log_odds_nats_se DESC, collocate;""",
    "word_snippet": "FROM word_snippet ORDER BY side, place;",
}
#: Columns that show a word with the text around it, from rows of ``word_snippet``.
CONCORDANCE: Columns = [
    ("before", lambda row: Cell(row["text_before"], None, True)),
    ("word", "keyword"),
    ("after", "text_after"),
]
#: Number of words to list for each side.
TOP_WORDS = 15
#: Maximum number of collocates to list for each side.
_COLLOCATES = 10
#: Maximum length of a printed cell. A longer cell is cut at its end, or at its start if it is
#: right-aligned.
_WIDEST = 60
#: For each table, the rows about one word.
Answer = Mapping[str, Rows]


def answer_of(facts: Facts, lean: Row) -> Answer:
    """Return the rows of each table in ``QUERIES`` that are about the word of the row ``lean``."""
    return {
        name: facts.query(Rows((), query).where(**of_word(lean)).sql)
        for name, query in QUERIES.items()
    }


def found_in(row: Row) -> str:
    """Say where a sentence was found: its file or source, its shard and its line."""
    name, shard = row["file"] or row["source"], row["shard"].rpartition("/")[2]
    copies = f", {row['n_copies']:,} copies" if row["n_copies"] > 1 else ""
    return f"{f'{name}, ' if name else ''}{shard}:{row['source_row']}{copies}"


def of_word(lean: Row) -> dict[str, Any]:
    return {name: lean[name] for name in ("corpus", "contrast", "word")}


def sides_of(lean: Row) -> tuple[str, str]:
    """Return the names of a word's two sides, such as she (lean above 0) and he (below 0)."""
    a, b = side_names(lean["contrast"], ())
    return lean.get("side_a") or a, lean.get("side_b") or b


def headline(lean: Row) -> str:
    """Return a sentence that says how a word leans, with the interval.

    >>> headline({"word": "tea", "corpus": "c", "contrast": "she/he", "delta_nats": 0.7,
    ...           "delta_nats_low": 0.2, "delta_nats_high": 1.2, "clusters": "document",
    ...           "n_clusters": 40})
    '“tea” leans to she in c: +0.70 nats (95% interval +0.20 to +1.20 over 40 documents).'
    """
    return (
        f"“{lean['word']}” {word_leans(lean, *sides_of(lean), ' in ' + text_name(lean['corpus']))}."
    )


def furthest_collocates(rows: Rows) -> tuple[Rows, Rows]:
    """Return two ``Rows``: the most typical collocates of the first side and of the second side.

    The log odds have a prior, so a collocate can be typical of a side without occurring near it.
    Such collocates are left out.
    """
    first = [r["collocate"] for r in rows if r["log_odds_nats"] > 0 and r["n_f"] > 0]
    second = [r["collocate"] for r in rows if r["log_odds_nats"] < 0 and r["n_m"] > 0]
    # Use `where`, so that the query shown below each table returns exactly the table's rows.
    return (
        rows.where(collocate=tuple(first[:_COLLOCATES])),
        rows.where(collocate=tuple(second[:_COLLOCATES])),
    )


def clear_words(facts: Facts, row: Row) -> str:
    """Say how many words of a corpus clearly lean to each side, and how this was tested.

    ``row`` comes from ``sql/report/lean_count.sql``.
    """
    text, over = text_name(row["corpus"]), row["over"]
    first, second = facts.contrast_sides(row["corpus"], row["contrast"])
    if not row["n_known"]:
        n = f"{row['n_words']:,}"
        return f"The leans of {n} words of {text} are known, without counts for an interval."
    corrected = f"{row['n_corrected']:,} are clear (q < 5%)"
    lean = f"{row['n_first']:,} lean to {first} and {row['n_second']:,} to {second}"
    if over != "co-occurrences":  # the intervals come from `plumbline why`
        return (
            f"Of {row['n_all']:,} words of {text} that occur near {first} or {second}, the "
            f"{row['n_words']:,} that lean most, or were asked about, were looked up: {lean}, with "
            f"95% intervals over {over} that exclude 0. Corrected for all words, {corrected}."
        )
    alone = f", {row['n_one_sided']:,} of them near one side only" if row["n_one_sided"] else ""
    after = f" After correction for their number {corrected}." if row["n_tested"] else ""
    return (
        f"Of {row['n_known']:,} words of {text} whose lean has a 95% interval over "
        f"co-occurrences{alone}, {lean}.{after} Over documents or sources most intervals are wider."
    )


def words_columns(facts: Facts, row: Row) -> Columns:
    """Return columns for a table of the words that lean most in a corpus."""
    first, second = facts.contrast_sides(row["corpus"], row["contrast"])
    return [
        ("leans to", lambda r: first if r["lean_bound_nats"] > 0 else second),
        "word",
        ("lean, nats", "delta_nats"),
        (f"near {first}", "n_pair_f"),
        (f"near {second}", "n_pair_m"),
        "q",
    ]


def plain(section: Section) -> Iterator[str]:
    """Yield a section as lines of plain text. Cells longer than ``_WIDEST`` are cut."""
    yield terminal(section.title)
    yield from (f"  {terminal(sentence)}" for sentence in section.intro)
    for table in section.tables:
        yield from ("", f"  {terminal(table.caption)}")
        yield from (f"    {line}" for line in _aligned(table))


def _aligned(table: PageTable) -> Iterator[str]:
    right = [any(row[k].is_number for row in table.rows) for k in range(len(table.headings))]
    cells = [[_cut(cell.text, r) for cell, r in zip(row, right, strict=True)] for row in table.rows]
    lines = [list(map(terminal, table.headings)), *cells]
    widths = [max(len(line[k]) for line in lines) for k in range(len(right))]
    for line in lines:
        columns = zip(line, widths, right, strict=True)
        yield "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in columns).rstrip()


def _cut(text: str, right: bool) -> str:
    text = terminal(text)
    if len(text) <= _WIDEST:
        return text
    if right:
        return "… " + text[2 - _WIDEST :].partition(" ")[2]
    return text[: _WIDEST - 2].rpartition(" ")[0] + " …"
