"""Agreement of corpora on the lean of words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.findings.estimates import finding
from plumbline.pipelines.report.model import (
    Columns,
    Lead,
    Missing,
    PageTable,
    Section,
    estimate,
    first_of,
    shown,
    stem,
    table,
)
from plumbline.pipelines.report.rows import Row, Rows
from plumbline.pipelines.report.sections.lean_of_words import MIN_PAIRS, TOP_WORDS
from plumbline.warehouse.query.finding import ALPHA, verdict

PLACE = 800
NAMES = ("compare-corpora", "change", "audit")
LEAD_PLACE = 310  # after the answers on models
#: Most pairs of corpora with a sentence and a list of words; those that agree least come first.
MAX_PAIRS = 4
_TITLE = "Comparisons: corpora"
_MEANING = (
    "delta of the same word in two corpora. Correlations leave out words that only one corpus has, "
    f"and words seen fewer than {MIN_PAIRS} times with either side in one of the corpora. A "
    "difference has a 95% interval from the counts, with the texts taken as independent: a lower "
    "bound of the uncertainty. By chance alone, up to one word in 20 has an interval without 0. A "
    "word that is near one side only in one corpus has a bound of the difference. The noise of "
    "counting lowers a correlation."
)


def sections(facts: Facts) -> Iterator[Section | Missing]:
    """Results of `corpus compare` and `corpus audit`, correlations, words that differ most."""
    pairs = _pairs(facts)
    for rows in facts.query("FROM word_change ORDER BY ALL").groups("text_a", "text_b", "contrast"):
        yield change_section(rows, TOP_WORDS, folded=True)
    audits = facts.query("FROM corpus_audit ORDER BY ALL")
    for rows in audits.groups("text_before", "text_after", "contrast"):
        yield audit_section(rows, TOP_WORDS, folded=True)
    if not pairs:
        yield Missing(_TITLE, "plumbline corpus associate --corpus ANOTHER")
        return
    intro = [*_sentences(pairs), _MEANING]
    if len(pairs) > MAX_PAIRS:
        intro.append(
            f"Words are listed of the {MAX_PAIRS} of {len(pairs)} pairs of corpora that agree "
            "least."
        )
    columns: Columns = [
        ("corpora", lambda r: f"{r['corpus_a']} and {r['corpus_b']}"),
        "contrast",
        ("shared words", "n_words"),
        "correlation",
        ("rank correlation", "rank_correlation", 3),
        ("lean the other way", "n_opposite"),
        ("with an interval", "n_with_se"),
        ("near one side only", "n_one_sided"),
        ("interval without 0", "n_different"),
    ]
    caption = "Corpora two by two, those that agree least first; 95% intervals in brackets"
    tables = [table(caption, pairs, columns, folded=len(pairs) > 20)]
    words = facts.rows("word_difference", min_pairs=MIN_PAIRS, top=TOP_WORDS)
    tables += [_words(pair, words) for pair in pairs[:MAX_PAIRS]]
    yield Section("compare-corpora", _TITLE, intro, tables=tables)


def leads(facts: Facts) -> Iterator[Lead]:
    """Sentences on differences between corpora, for the first page."""
    yield Lead("Do the corpora agree?", _sentences(_pairs(facts)))


def _pairs(facts: Facts) -> Rows:
    """Pairs of corpora, by contrast, that share two or more words; the least alike first."""
    pairs = facts.rows("corpus_pair", min_pairs=MIN_PAIRS).only(lambda r: r["n_words"] > 1)
    pairs.sort(key=lambda r: (r["correlation"] is None, r["correlation"] or 0.0))
    return pairs


def _sentences(pairs: Rows) -> list[str]:
    sentences = list(map(_sentence, pairs[:MAX_PAIRS]))
    if len(pairs) > MAX_PAIRS:
        best = max(pairs, key=lambda r: -2 if r["correlation"] is None else r["correlation"])
        sentences.append(
            f"Of {len(pairs)} pairs of corpora these correlate least; {best['corpus_a']} and "
            f"{best['corpus_b']} ({best['contrast']}) most, correlation "
            f"{shown(best['correlation'], 3)}."
        )
    return sentences


def _sentence(row: Row) -> str:
    names = f"{row['corpus_a']} and {row['corpus_b']} ({row['contrast']})"
    over = f"over {row['n_words']:,} shared words"
    if row["correlation"] is None:
        return (
            f"{names}: at least one has the same delta for all {row['n_words']:,} shared words, so "
            "the correlation is undefined."
        )
    verdict = finding(row, "correlation").pick(
        above="go together", below="run against each other", untold="are not shown to go together"
    )
    different = ""
    if row["n_with_se"]:
        different = (
            f"; of {row['n_with_se']:,} with an interval of the difference "
            f"({row['n_one_sided']:,} near one side only in one corpus) {row['n_different']:,} "
            f"have one without 0, up to {row['n_with_se'] / 20:,.0f} by chance"
        )
    return (
        f"{names} {verdict}: correlation {estimate(row, 'correlation').text} {over}; "
        f"{_share(row, 'n_same')} lean the same way in both, {_share(row, 'n_opposite')} the other "
        f"way{different}."
    )


def _share(row: Row, name: str) -> str:
    """A number of shared words in column ``name``, with its percentage.

    >>> _share({"n_words": 3980, "n_opposite": 1544}, "n_opposite")
    '1,544 (38.8%)'
    """
    return f"{row[name]:,} ({shown(100 * row[name] / row['n_words'], 1)}%)"


def _words(pair: Row, words: Rows) -> PageTable:
    a, b, contrast = (pair[name] for name in ("corpus_a", "corpus_b", "contrast"))
    columns: Columns = [
        "word",
        (f"lean in {a}", "lean_a_nats"),
        (f"lean in {b}", "lean_b_nats"),
        ("difference, nats", "difference_nats"),
    ]
    caption = f"Words that differ most between {a} and {b} ({contrast}), the surest first"
    rows = words.where(corpus_a=a, corpus_b=b, contrast=contrast)
    return table(caption, rows, columns, folded=True, searchable=True)


def surest(rows: Rows) -> list[Row]:
    """Rows of ``word_change``, those with the smallest adjusted p first."""
    return sorted(rows, key=lambda row: (row["q"], row["p"], -abs(row["change_nats"])))


def change_section(rows: Rows, n: int, *, folded: bool = False) -> Section:
    """The section on two texts, from their rows of ``word_change``; lists at most ``n`` words."""
    a, b, contrast = (rows[0][name] for name in ("text_a", "text_b", "contrast"))
    first, _, second = contrast.partition("/")
    ways = Counter(finding(row, "change_nats").verdict for row in rows)
    if n_clear := ways["above"] + ways["below"]:
        verdict = (
            f"{n_clear:,} lean otherwise in {b} than in {a}: "
            f"{ways['above']:,} more to {first}, {ways['below']:,} more to {second} (q ≤ "
            f"{ALPHA:.0%}: of such words one in {1 / ALPHA:.0f} is expected by chance)"
        )
    else:
        smallest = shown(min(row["q"] for row in rows), 2)
        verdict = f"none is shown to lean otherwise in {b} than in {a} (smallest q {smallest})"
    listed = table(
        f"Words with the smallest adjusted p ({contrast})",
        Rows(surest(rows)[:n], rows.sql),
        [
            "word",
            (f"lean in {a}", "delta_a_nats"),
            (f"lean in {b}", "delta_b_nats"),
            ("difference, nats", "change_nats"),
            ("adjusted p", "q"),
        ],
        folded=folded,
        searchable=True,
    )
    base = rows[0]["base_change_nats"]
    intro = (
        f"Of {len(rows):,} words compared {verdict}. "
        f"{shown(base, 2, signed=True)} nats are in every difference, since {b} has "
        f"{shown(math.exp(-base), 2)} times as many {first} per {second} as {a}: a word with the "
        "same co-occurrences in both differs by that alone. Intervals are over documents; p is "
        "adjusted for all words compared."
    )
    title = f"Words that lean otherwise in {b} than in {a}"
    return Section(stem("change", a, b, contrast), title, [intro], tables=[listed])


def audit_section(rows: Rows, n: int, *, folded: bool = False) -> Section:
    """The section on a curation, from its rows of ``corpus_audit``; up to ``n`` per part."""
    before, after, contrast = (rows[0][name] for name in ("text_before", "text_after", "contrast"))
    counts = {(row["part"], row["subject"]): (row["n_before"], row["n_after"]) for row in rows}
    captions = {
        "word": f"Words by how surely their lean changed ({contrast})",
        "group": "Groups of the word lists, by the change of their share of all words",
        "source": "Documents of sources, those of which most were removed first",
    }
    tables = [
        table(caption, part_rows, AUDITED[part], folded=folded, searchable=folded)
        for part, caption in captions.items()
        if len(part_rows := audited(rows, part, n)) > (part == "source")
    ]
    intro = [*_documents_kept(counts), _words_changed(rows, counts), *_groups_changed(rows)]
    if rows[0]["study"]:
        intro.append(_predicted(rows))
    title = f"What is left of {before} in {after}"
    return Section(stem("audit", before, after, contrast), title, intro, tables=tables)


def audited(rows: Rows, part: str, n: int) -> Rows:
    """The first ``n`` rows of a part of ``corpus_audit``.

    Sources are sorted by the share of documents lost, largest first. Words and groups are sorted by
    the distance of their change's interval from 0, farthest first. Groups without a change, which
    are gone, come first; words without a change come last.
    """

    def rank(row: Row) -> tuple[float, ...]:
        if part == "source":
            return (row["n_after"] / row["n_before"], -row["n_before"])
        if row["change_nats"] is None:
            return (-1 if part == "group" else 1,)
        low, high = row["change_nats_low"], row["change_nats_high"]
        return (0, -max(low, -high, 0), row["q"], row["p"])

    return Rows(sorted(rows.where(part=part), key=rank)[:n], rows.sql)


#: Part of `corpus_audit` -> the columns of its table.
AUDITED: dict[str, Columns] = {
    "word": [
        ("word", "subject"),
        ("lean before", "delta_before_nats"),
        ("lean after", "delta_after_nats"),
        ("change, nats", "change_nats"),
        ("adjusted p", "q"),
        ("predicted preference, nats", "predicted_nats"),
    ],
    "group": [
        ("group", "subject"),
        ("before", "n_before"),
        ("after", "n_after"),
        ("change of share, nats", "change_nats"),
        ("adjusted p", "q"),
    ],
    "source": [("source", "subject"), ("before", "n_before"), ("after", "n_after")],
}


def _documents_kept(counts: dict[tuple[str, str], tuple[int, int]]) -> Iterator[str]:
    """Sentences on documents (all = kept + removed + not matched), copies and missing words."""
    n, kept = counts["documents", "documents"]
    unmatched, new = counts["documents", "not matched"]
    words, left = counts["documents", "kept words"]
    yield (
        f"Of {n:,} documents {kept:,} were kept ({shown(100 * kept / n, 1)}%, with "
        f"{shown(100 * left / words, 1)}% of the words), {n - kept - unmatched:,} removed, "
        f"{unmatched:,} not matched"
        + (f"; {new:,} of AFTER match none and are left out." if new else ".")
    )
    copies, often = (counts["copies", name] for name in ("copies", "in more than 10 copies"))
    yield (
        f"Copies of other documents: {copies[0]:,} before, {copies[1]:,} after; documents in more "
        f"than 10 copies: {often[0]:,} and {often[1]:,}."
    )
    distinct, leaning = (counts["coverage", name] for name in ("words", "words with a lean"))
    yield (
        f"{distinct[0] - distinct[1]:,} of {distinct[0]:,} words are gone; "
        f"{leaning[0] - leaning[1]:,} of {leaning[0]:,} have too few co-occurrences left "
        "for a lean."
    )


def _words_changed(rows: Rows, counts: dict[tuple[str, str], tuple[int, int]]) -> str:
    first, _, second = rows[0]["contrast"].partition("/")
    words = rows.where(part="word").but(change_nats=None)
    turned = [row["subject"] for row in words if row["q_turn"] <= ALPHA]
    (f, f_after), (m, m_after) = counts["documents", first], counts["documents", second]
    if not f * m * f_after * m_after:
        return f"The lean of no word is compared: one text has no {first} or no {second}."
    base = f_after / m_after / (f / m)
    own_changes = _own_changes(words, first, second, rows[0]["clusters"])
    return (
        f"There are {shown(base, 3)} times as many {first} per {second} as before, which is "
        f"{shown(-math.log(base), 3, signed=True)} nats of every change. {own_changes}; "
        f"{len(turned):,} turn, leaning clearly to one side before and to the other "
        f"after{_few(turned)}."
    )


def _own_changes(words: Rows, first: str, second: str, clusters: str) -> str:
    """The start of a sentence: how many words change beyond the change that all words share."""
    if any(row["base_change_nats"] is None for row in words):
        return (
            f"Which of {len(words):,} words change beyond that isn't known of an audit by an older "
            "version: run `plumbline corpus audit` again"
        )
    ways = Counter(
        verdict(row["change_nats"] - row["base_change_nats"], None, None, q=row["q_own"])
        for row in words
    )
    return (
        f"Beyond that, of {len(words):,} words {ways['above']:,} lean more to {first} than before, "
        f"{ways['below']:,} more to {second} (q ≤ {ALPHA:.0%}, over {clusters}s)"
    )


def _groups_changed(rows: Rows) -> Iterator[str]:
    """Sentences on groups that are gone, and on groups whose share of all words changed."""
    groups = rows.where(part="group")
    if gone := [row["subject"] for row in groups if not row["n_after"]]:
        yield f"Gone{_few(gone)}."
    ways: dict[str, list[str]] = {}
    for row in groups.but(change_nats=None):
        share = f"{row['subject']} ({shown(math.exp(row['change_nats']), 2)} times)"
        ways.setdefault(finding(row, "change_nats").verdict, []).append(share)
    named = [
        f"{name}{_few(ways[way])}"
        for name, way in (("more frequent", "above"), ("less frequent", "below"))
        if way in ways
    ]
    changes = "; ".join(named) or "no share is shown to change"
    yield f"Of {len(groups):,} groups of the word lists, by their share of all words: {changes}."


def _predicted(rows: Rows) -> str:
    """A sentence on the predicted preferences of a model trained on the curated text."""
    words = rows.where(part="word").but(predicted_nats=None)
    ways = Counter(finding(row, "predicted_nats").verdict for row in words)
    spread = max(abs(row["predicted_nats"]) for row in words)
    return (
        f"A model like those of {rows[0]['study']} would change its preference by up to "
        f"{shown(spread, 3)} nats for a word; for {ways['above'] + ways['below']:,} of "
        f"{len(words):,} words the change stands out from the scatter of single words. A shift "
        "that all words share is not predicted."
    )


def _few(names: list[str]) -> str:
    return f": {first_of(names, 5)}" if names else ""
