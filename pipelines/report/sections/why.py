"""The reasons why words lean, for words that `plumbline why` explained."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.findings.estimates import finding
from plumbline.pipelines.report.findings.sentences import word_leans
from plumbline.pipelines.report.model import (
    Cell,
    Columns,
    Missing,
    PageTable,
    Section,
    counted,
    estimate,
    probability,
    shown,
    stem,
    table,
    text,
)
from plumbline.pipelines.report.rows import Row, Rows
from plumbline.warehouse.finding import ALPHA
from plumbline.warehouse.wordlists import side_names

PLACE = 1010
NAMES = ("why",)
#: Words that `why WORD` explained, the last first; those of `why --top` have no `word_copies`.
_EXPLAINED = """FROM word_evidence SEMI JOIN word_copies USING (corpus, contrast, word)
ORDER BY run_id DESC, corpus, contrast, word;"""
#: The same by the bound nearer 0 of their intervals, with q over this list of words.
_RANKED = """WITH explained AS (
    SELECT
        *,
        coalesce(bound_nearer_zero(NULL, delta_nats_low, delta_nats_high), 0) AS bound_nats,
        p * count(p) OVER of_list / row_number() OVER (of_list ORDER BY p, word) AS scaled_p
    FROM word_evidence SEMI JOIN word_copies USING (corpus, contrast, word)
    WINDOW of_list AS (PARTITION BY corpus, contrast)
)
SELECT *, CASE WHEN p IS NOT NULL THEN least(1, min(scaled_p) OVER (
    PARTITION BY corpus, contrast ORDER BY p DESC, word DESC
)) END AS q
FROM explained ORDER BY corpus, contrast, abs(bound_nats) DESC, word;"""
_SECTIONS = 12
_PICKED = (
    "Somebody asked about these words by name. They are not the words that lean most: those are in "
    "the section on how words lean."
)


def sections(facts: Facts) -> Iterator[Section | Missing]:
    """A section for each of the words explained last, and a table of all if there are more."""
    explained = facts.query(_EXPLAINED)
    if not explained:
        yield Missing("Why words lean", "plumbline why WORD --corpus NAME")
    if len(explained) > _SECTIONS:
        yield Section(
            "why",
            "Words that were picked by hand",
            [_PICKED],
            tables=[_picked(facts.query(_RANKED))],
        )
    for lean in explained[:_SECTIONS]:
        word = {key: lean[key] for key in ("corpus", "contrast", "word")}
        queries = {name: Rows((), query).where(**word).sql for name, query in QUERIES.items()}
        answer = {name: facts.query(query) for name, query in queries.items()}
        yield word_section(answer, folded=True)


def _picked(rows: Rows) -> PageTable:
    columns: Columns = [
        *("corpus", "contrast", "word"),
        ("lean, nats", "delta_nats"),
        ("co-occurrences", lambda r: f"{r['n_pair_f']:,} / {r['n_pair_m']:,}"),
        ("interval over", lambda r: counted(r["n_clusters"], r["clusters"])),
        ("q", lambda r: probability(r["q"])),
    ]
    caption = "Words asked about, 95% intervals in brackets; q is over these words"
    return table(caption, rows, columns, searchable=True)


#: Most collocates listed per side, and most sources; the warehouse's tables have more.
_COLLOCATES, _SOURCES = 10, 12
#: Table -> query for its rows on all words, in the order in which a section shows them.
QUERIES = {
    "word_evidence": "FROM word_evidence ORDER BY run_id DESC, corpus, contrast, word;",
    "word_source": "FROM word_source ORDER BY n_pair_f + n_pair_m DESC, source;",
    "word_copies": "FROM word_copies ORDER BY counted;",
    "word_collocate": """FROM word_collocate
ORDER BY abs(log_odds_nats) / log_odds_nats_se DESC, collocate;""",
    "word_snippet": "FROM word_snippet ORDER BY side, place;",
}
#: The rows of one word, by table.
Answer = Mapping[str, Rows]


def word_section(answer: Answer, *, folded: bool = False) -> Section:
    """The section on a word in one corpus and contrast, from its rows of each table."""
    (lean,) = answer["word_evidence"]
    sides, sources = _sides(lean), answer["word_source"]
    tables = [
        *([_sources(sources, sides, folded)] if len(sources) > 1 else []),
        _collocates(answer["word_collocate"], sides, folded),
        *(_snippets(answer["word_snippet"], side, sides[side], folded) for side in sides),
    ]
    title = f"{lean['word']} in {lean['corpus']}"
    copies = _copies(lean, answer["word_copies"])
    sentences = [headline(lean), _ratio(lean, sides), _counts(lean, sides), copies]
    anchor = stem("why", lean["corpus"], lean["contrast"], lean["word"])
    return Section(anchor, title, [s for s in sentences if s], tables=[t for t in tables if t.rows])


def _sides(lean: Row) -> dict[str, str]:
    a, b = side_names(lean["contrast"], ())
    return {"a": lean.get("side_a") or a, "b": lean.get("side_b") or b}


def headline(lean: Row) -> str:
    """The lean of a word, in a sentence with its interval.

    >>> headline({"word": "tea", "corpus": "c", "contrast": "she/he", "delta_nats": 0.7,
    ...           "delta_nats_low": 0.2, "delta_nats_high": 1.2, "clusters": "document",
    ...           "n_clusters": 40})
    '“tea” leans to she in c: +0.70 nats (95% interval +0.20 to +1.20 over 40 documents).'
    """
    first, second = _sides(lean).values()
    return f"“{lean['word']}” {word_leans(lean, first, second, ' in ' + lean['corpus'])}."


def _ratio(lean: Row, sides: Mapping[str, str]) -> str:
    """A lean as a ratio, in a sentence; empty if its side is unclear or the contrast is a list.

    >>> _ratio({"contrast": "she/he", "delta_nats_low": -1.2, "delta_nats": -0.7,
    ...         "delta_nats_high": -0.2}, {"a": "she", "b": "he"})
    'A “he” has it nearby 2.0 times as often as a “she” (1.2 to 3.3 times).'
    """
    ends = [lean[end] for end in ("delta_nats_low", "delta_nats", "delta_nats_high")]
    verdict = finding(lean, "delta_nats").verdict
    if "/" not in lean["contrast"] or verdict == "cannot be told":
        return ""
    more, less = sides.values()
    if verdict == "below":
        more, less, ends = less, more, [-end for end in reversed(ends)]
    low, ratio, high = (shown(math.exp(end), 1) for end in ends)
    return f"A “{more}” has it nearby {ratio} times as often as a “{less}” ({low} to {high} times)."


def _counts(lean: Row, sides: Mapping[str, str]) -> str:
    near = " and ".join(
        f"{counted(lean[f'n_pair_{side}'], 'co-occurrence')} with {name}"
        f"{_pmi(lean[f'pmi_{side}_nats'])}"
        for name, side in zip(sides.values(), "fm", strict=True)
    )
    sentence = (
        f"It occurs {counted(lean['n_word'], 'time')}, {lean['per_million']:,.1f} per million kept "
        f"tokens (rank {lean['frequency_rank']:,} by frequency), and has {near}."
    )
    if "/" not in lean["contrast"]:
        sentence += f" It occurs near both words of {counted(lean['n_defined'], 'pair')}."
    if lean["delta_nats_se"] is not None and lean["delta_nats_count_se"] is not None:
        sentence += (
            f" The standard error of the lean is {lean['delta_nats_se']:.3f} nats over "
            f"{lean['clusters']}s; the counts alone give {lean['delta_nats_count_se']:.3f}."
        )
    return sentence


def _pmi(pmi: float | None) -> str:
    return "" if pmi is None else f" (PMI {shown(pmi, 2, signed=True)} nats)"


def _copies(lean: Row, copies: Rows) -> str:
    if not copies or lean["share_copied"] is None:
        return ""
    if {row["n_documents"] for row in copies} == {lean["n_documents"]}:
        return "No document behind its lean is a copy or near copy of another."
    copied, often = (shown(100 * lean[share], 1) for share in ("share_copied", "share_often"))
    leans = [f"{estimate(r, 'delta_nats').text} counting {r['counted']}" for r in copies]
    return (
        f"{copied}% of its co-occurrences are in documents that occur more than once, {often}% in "
        f"ones that occur more than ten times; its lean is {' and '.join(leans)}."
    )


def _sources(rows: Rows, sides: Mapping[str, str], folded: bool) -> PageTable:
    first, second = sides.values()
    listed, more = rows, ""
    if len(rows) > _SOURCES:
        listed = rows.where(source=tuple(row["source"] for row in rows[:_SOURCES]))
        more = f", {_SOURCES} of {len(rows)}"
    return table(
        f"Lean by source (95% intervals){more}",
        listed,
        [
            "source",
            ("documents", "n_documents"),
            (f"near {first}", "n_pair_f"),
            (f"near {second}", "n_pair_m"),
            ("lean in nats", "delta_nats"),
            ("without this source", "delta_without_nats"),
        ],
        folded=folded,
    )


def _collocates(rows: Rows, sides: Mapping[str, str], folded: bool) -> PageTable:
    first, second = sides.values()
    # The prior may put a rare word on a side near which it was never seen: leave it out there.
    columns = [
        [r for r in rows if sign * r["log_odds_nats"] > 0 and r[n] > 0][:_COLLOCATES]
        for sign, n in ((1, "n_f"), (-1, "n_m"))
    ]
    collocates = [r for column in columns for r in column]
    listed = rows.where(collocate=tuple(r["collocate"] for r in collocates))
    lines = [[*_collocate(a), *_collocate(b)] for a, b in zip_longest(*columns)]
    n_beyond_chance = sum(
        finding(r, "log_odds_nats").verdict != "cannot be told" for r in collocates
    )
    counts = ["log odds", f"{first} / {second}"]
    headings = [f"more near {first}", *counts, f"more near {second}", *counts]
    clear = f"{n_beyond_chance or 'none'} of them beyond chance"
    caption = f"Words around it that differ most between the two sides, {clear} (q ≤ {ALPHA:.0%})"
    return PageTable(caption, headings, lines, folded, listed.sql)


def _collocate(row: Row | None) -> list[Cell]:
    if row is None:
        return [text(""), text(""), text("")]
    counts = text(f"{row['n_f']:,} / {row['n_m']:,}")
    return [text(row["collocate"]), estimate(row, "log_odds_nats"), counts]


def _snippets(rows: Rows, side: str, name: str, folded: bool) -> PageTable:
    side_rows = rows.where(side=side)
    caption = f"Text near {name}: {len(side_rows)} drawn, with equal chances for each occurrence"
    return concordance(caption, side_rows, [("near", "target")], folded)


def concordance(
    caption: str, rows: Rows, near: Sequence[tuple[str, str]], folded: bool = False
) -> PageTable:
    """A table of rows of ``word_snippet`` around the word; ``near`` are further columns."""
    return table(
        caption,
        rows,
        [
            ("before", lambda r: Cell(r["text_before"], None, True)),
            ("word", lambda r: r["keyword"]),
            ("after", lambda r: r["text_after"]),
            *near,
            ("where", _where),
        ],
        folded=folded,
    )


def _where(row: Row) -> str:
    place = f"{row['shard'].rpartition('/')[2]}:{row['source_row']}"
    name = row["file"] or row["source"]
    source = f"{name}, " if name else ""
    copies = f", {row['n_copies']:,} copies" if row["n_copies"] > 1 else ""
    return f"{source}{place}{copies}{'' if row['is_text'] else ', kept tokens only'}"


def answers(rows: Mapping[str, Rows]) -> list[dict[str, Rows]]:
    """The rows of all tables, split by word, corpus and contrast."""
    words = [
        {key: lean[key] for key in ("corpus", "contrast", "word")} for lean in rows["word_evidence"]
    ]
    return [{name: table_rows.where(**word) for name, table_rows in rows.items()} for word in words]
