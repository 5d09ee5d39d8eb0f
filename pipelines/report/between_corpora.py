"""How far the corpora agree on which way words lean."""

from __future__ import annotations

from collections.abc import Sequence

from plumbline.pipelines.report.facts import MIN_PAIRS, Facts
from plumbline.pipelines.report.model import (
    Cell,
    Lead,
    Missing,
    Row,
    Section,
    Table,
    count,
    estimate,
    number,
    shown,
    text,
)

#: Pairs of corpora told in sentences, and whose words are listed: those that agree least.
MAX_PAIRS = 4
_TITLE = "Comparisons: corpora"
_MEANING = (
    "delta of the same word in two corpora. Words seen fewer than "
    f"{MIN_PAIRS} times with either side in one of them are left out; so is what only one has. A "
    "difference comes with the 95% interval that both counts give, the texts taken as "
    "independent; it is clear where that leaves out 0, as chance alone makes it for one word in "
    "20. The noise of counting lowers a correlation."
)


def section(facts: Facts) -> Section | Missing:
    """Correlations of delta, and the words that differ most."""
    pairs = _pairs(facts)
    if not pairs:
        return Missing(_TITLE, "plumbline corpus associate --corpus ANOTHER")
    intro = [*_sentences(pairs), _MEANING]
    if len(pairs) > MAX_PAIRS:
        intro.append(
            f"Words are listed of the {MAX_PAIRS} of {len(pairs)} pairs of corpora that agree "
            "least."
        )
    query = facts.sql("corpus_pair")
    tables = [_agreement(pairs, query)]
    words = facts.ask("word_difference")
    tables += [_words(facts, pair, words) for pair in pairs[:MAX_PAIRS]]
    return Section("compare-corpora", _TITLE, intro, (), (), tables)


def lead(facts: Facts) -> Lead:
    """The same in sentences, for the opening."""
    return Lead("Do the corpora agree?", _sentences(_pairs(facts)))


def _pairs(facts: Facts) -> list[Row]:
    """Two and two corpora; those that share a single word have nothing to compare."""
    found = facts.ask("corpus_pair")
    return [r for r in found if r["n_words"] > 1]


def _sentences(pairs: Sequence[Row]) -> list[str]:
    told = [_said(row) for row in pairs[:MAX_PAIRS]]
    if len(pairs) > MAX_PAIRS:
        best = max(pairs, key=lambda r: -2 if r["correlation"] is None else r["correlation"])
        told.append(
            f"Of {len(pairs)} pairs of corpora these agree least; {best['corpus_a']} and "
            f"{best['corpus_b']} agree most, correlation {shown(best['correlation'], 3)}."
        )
    return told


def _said(row: Row) -> str:
    names = f"{row['corpus_a']} and {row['corpus_b']} ({row['contrast']})"
    over = f"over {row['n_words']:,} shared words"
    if row["correlation"] is None:
        return f"{names}: delta does not vary {over}, so that there is no correlation."
    cell = _correlation(row, "correlation", "r")
    verdict = "are not shown to agree"
    if row["r_low"] is not None and row["r_low"] > 0:
        verdict = "agree"
    if row["r_high"] is not None and row["r_high"] < 0:
        verdict = "contradict each other"
    clear = ""
    if row["n_with_se"]:
        clear = f"; {row['n_different']:,} of {row['n_with_se']:,} with an interval differ clearly"
    return (
        f"{names} {verdict}: correlation {cell.text} {over}; {row['n_opposite']:,} lean the other "
        f"way{clear}."
    )


def _correlation(row: Row, name: str, letter: str) -> Cell:
    found = {"value": row[name], "ci_low": row[f"{letter}_low"], "ci_high": row[f"{letter}_high"]}
    return estimate(found, 3)


def _agreement(pairs: Sequence[Row], query: str) -> Table:
    headings = ["corpora", "contrast", "shared words", "correlation", "rank correlation"]
    headings += ["lean the other way", "with an interval", "differ clearly"]
    rows = [
        [
            text(f"{r['corpus_a']} and {r['corpus_b']}"),
            text(r["contrast"]),
            count(r["n_words"]),
            _correlation(r, "correlation", "r"),
            _correlation(r, "rank_correlation", "rho"),
            *(count(r[name]) for name in ("n_opposite", "n_with_se", "n_different")),
        ]
        for r in pairs
    ]
    caption = "Corpora two by two, those that agree least first; 95% intervals in brackets"
    return Table(caption, headings, rows, len(rows) > 20, query)


def _words(facts: Facts, pair: Row, words: Sequence[Row]) -> Table:
    where = {name: pair[name] for name in ("corpus_a", "corpus_b", "contrast")}
    of = [r for r in words if all(r[name] == value for name, value in where.items())]
    headings = ["word", f"delta in {pair['corpus_a']}", f"delta in {pair['corpus_b']}"]
    headings += ["difference, nats", "standard error"]
    rows = [
        [
            text(r["word"]),
            *(number(r[name], signed=True) for name in ("delta_a_nats", "delta_b_nats")),
            estimate(_interval(r), 2, signed=True),
            number(r["se_nats"]),
        ]
        for r in of
    ]
    caption = f"Words that differ most between {pair['corpus_a']} and {pair['corpus_b']}"
    caption += f" ({pair['contrast']}), the surest first"
    query = facts.sql("word_difference", where)
    return Table(caption, headings, rows, True, query, searchable=True)


def _interval(row: Row) -> Row:
    names = {"value": "difference_nats", "ci_low": "ci_low_nats", "ci_high": "ci_high_nats"}
    return {name: row[column] for name, column in names.items()}
