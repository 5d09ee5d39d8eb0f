"""Agreement of corpora on the lean of words."""

from __future__ import annotations

from collections.abc import Iterator

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.findings.estimates import finding
from plumbline.pipelines.report.model import (
    Columns,
    Lead,
    Missing,
    Section,
    estimate,
    shown,
    table,
)
from plumbline.pipelines.report.rows import Row, Rows
from plumbline.pipelines.report.sections.lean_of_words import MIN_PAIRS

PLACE = 800
NAMES = ("compare-corpora",)
LEAD_PLACE = 310  # after the answers on models
#: Most pairs of corpora with a sentence; those that agree least come first.
MAX_PAIRS = 4
_TITLE = "Comparisons: corpora"
_MEANING = (
    "Correlations are of delta of the same word in two corpora. They leave out words that only one "
    f"corpus has, and words seen fewer than {MIN_PAIRS} times with either side in one of them. "
    "The noise of counting lowers a correlation."
)


def sections(facts: Facts) -> Iterator[Section | Missing]:
    """Correlations of the leans of words in two corpora."""
    pairs = _pairs(facts)
    if not pairs:
        yield Missing(_TITLE, "plumbline corpus associate --corpus ANOTHER")
        return
    columns: Columns = [
        ("corpora", lambda r: f"{r['corpus_a']} and {r['corpus_b']}"),
        "contrast",
        ("shared words", "n_words"),
        "correlation",
        ("rank correlation", "rank_correlation", 3),
        ("lean the other way", "n_opposite"),
    ]
    caption = "Corpora two by two, those that agree least first; 95% intervals in brackets"
    tables = [table(caption, pairs, columns, folded=len(pairs) > 20)]
    yield Section("compare-corpora", _TITLE, [*_sentences(pairs), _MEANING], tables=tables)


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
    return (
        f"{names} {verdict}: correlation {estimate(row, 'correlation').text} {over}; "
        f"{_share(row, 'n_same')} lean the same way in both, {_share(row, 'n_opposite')} the other "
        "way."
    )


def _share(row: Row, name: str) -> str:
    """A number of shared words in column ``name``, with its percentage.

    >>> _share({"n_words": 3980, "n_opposite": 1544}, "n_opposite")
    '1,544 (38.8%)'
    """
    return f"{row[name]:,} ({shown(100 * row[name] / row['n_words'], 1)}%)"
