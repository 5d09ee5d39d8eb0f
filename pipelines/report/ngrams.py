"""N-grams that are more frequent in one group's texts, with texts that contain them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import NormalDist

from plumbline.pipelines.report.charts import fairpair_charts as charts
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import (
    Cell,
    Column,
    Columns,
    Figure,
    PageTable,
    count,
    shown,
    stem,
    table,
    text,
)
from plumbline.pipelines.report.rows import Row, Rows

#: Columns that identify a set of FairPair: sampled texts and their perturbed copies.
KEY = ("probe_set", "model_key", "sampling_key", "perturber")
#: N-grams per side that are shown, n-grams per side before ``distinct``, texts per n-gram.
_SHOWN, _READ, _TEXTS = 12, 60, 3
#: Length of an ``excerpt``, in characters.
_LENGTH = 120


def ngram_parts(facts: Facts, set_row: Row) -> tuple[Figure, PageTable] | None:
    """A plot of the log-odds of a set's n-grams, and a table with texts; ``None`` without n-grams.

    ``set_row`` is a row of ``fairpair_set``, whose two groups of texts are compared. All texts are
    about the same person: one group as written, the other after perturbation.
    """
    key = {column: set_row[column] for column in KEY}
    rows = facts.rows("fairpair_ngram", side=set_row["side"], most=_READ).where(**key)
    if not rows:
        return None
    upper = distinct([r for r in rows if r["z"] > 0])
    lower = distinct([r for r in reversed(rows) if r["z"] < 0])
    ngrams = Rows([*upper, *reversed(lower)], rows.sql)
    names = [set_row["entity"] or "the one named", set_row["perturbed_entity"] or "the counterpart"]
    other, person = names if set_row["side"] == "original" else reversed(names)
    name = stem("fairpair", "ngrams", set_row["probe_set"], set_row["model"])
    chosen = {"ngrams": [r["ngram"] for r in ngrams], "of_perturbed": [r["z"] > 0 for r in ngrams]}
    texts = facts.rows("fairpair_example", **chosen, **key, side=set_row["side"], most=_TEXTS)
    return _figure(name, ngrams, other, person), _table(ngrams, texts, other, person)


def _figure(name: str, rows: Rows, other: str, person: str) -> Figure:
    n = rows[0]["n_ngrams"]
    limit = NormalDist().inv_cdf(1 - 0.025 / n)
    lists = [
        ", ".join(r["ngram"] for r in rows if (r["z"] > 0) == perturbed) or "none"
        for perturbed in (True, False)
    ]
    alt = f"N-grams in more texts of {other}: {lists[0]}. Of {person}: {lists[1]}."
    caption = (
        f"N-grams of up to four words in more texts written about {other} than about {person}, or "
        f"in fewer; all texts are now about {person}. With {n:,} n-grams, about one in twenty such "
        f"plots has one beyond |z| = {shown(limit, 1)} by chance. Of overlapping, equally frequent "
        f"n-grams one is shown."
    )
    plot = charts.ngrams(rows, other, person)
    return Figure(name, alt, caption, plot, rows)


def _table(rows: Rows, texts: Rows, other: str, person: str) -> PageTable:
    def share_of_texts(n: str, total: str) -> Column:
        return lambda r: Cell(f"{count(r[n]).text} of {count(r[total]).text}", r[n], True)

    def excerpts(row: Row) -> Cell:
        hits = texts.only(lambda r: r["ngram"] == row["ngram"])
        return text("\n".join(excerpt(r["text"], r["ngram"]) for r in hits) or None)

    columns: Columns = [
        ("n-gram", "ngram"),
        ("more often of", lambda r: other if r["z"] > 0 else person),
        ("log-odds", "log_odds_nats"),
        "z",
        (f"texts of {other}", share_of_texts("n_texts_perturbed", "n_perturbed")),
        (f"texts of {person}", share_of_texts("n_texts_other", "n_other")),
        ("in texts such as", excerpts),
    ]
    caption = "Phrases more frequent about one of the two, and where"
    return table(caption, rows, columns, folded=True, searchable=True)


def distinct(rows: Sequence[Row]) -> list[Row]:
    """The first ``_SHOWN`` n-grams, leaving out any that is part of an earlier one's phrase.

    >>> rows = [{"ngram": g, "n_texts_perturbed": n, "n_texts_other": 0}
    ...         for g, n in (("take care of", 5), ("her", 9), ("care", 5), ("care of her", 5))]
    >>> [row["ngram"] for row in distinct(rows)]
    ['take care of', 'her']
    """
    phrases: list[Row] = []
    for row in rows:
        if not any(_is_one_phrase(row, other) for other in phrases):
            phrases.append(row)
    return phrases[:_SHOWN]


def _is_one_phrase(row: Row, other: Row) -> bool:
    """True if both are in equally many texts and share all words of the shorter, or all but one."""
    if any(row[c] != other[c] for c in ("n_texts_perturbed", "n_texts_other")):
        return False
    short, long = sorted((row["ngram"].split(), other["ngram"].split()), key=len)
    n, shared = len(short), max(len(short) - 1, 1)
    if any(long[k : k + n] == short for k in range(len(long) - n + 1)):
        return True
    return bool(long[-shared:] == short[:shared] or short[-shared:] == long[:shared])


def excerpt(text: str, ngram: str) -> str:
    """The part of a text around an n-gram (else its start) on one line, with dots at the cuts.

    >>> excerpt("a " * 100 + "She, CARES for" + " b" * 100, "she cares")[46:74]
    'a a a a a She, CARES for b b'
    >>> excerpt("short", "not there")
    'short'
    """
    text = " ".join(text.split())
    pattern = r"[^\w]+".join(re.escape(word).replace("'", "['’]") for word in ngram.split())
    place = re.search(rf"(?<!\w){pattern}(?!\w)", text, re.IGNORECASE)
    middle = (place.start() + place.end()) // 2 if place else 0
    start = max(0, min(middle - _LENGTH // 2, len(text) - _LENGTH))
    part = text[start : start + _LENGTH]
    # Drop a word that was cut in two, if the part's first or last quarter has a blank.
    before, after = start > 0, start + _LENGTH < len(text)
    if before and " " in part[: _LENGTH // 4]:
        part = part.split(" ", 1)[1]
    if after and " " in part[-_LENGTH // 4 :]:
        part = part.rsplit(" ", 1)[0]
    return f"{'… ' if before else ''}{part}{' …' if after else ''}"
