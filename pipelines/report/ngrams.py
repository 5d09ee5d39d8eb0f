"""N-grams that are more frequent in one group's texts, with texts that contain them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import NormalDist

from plumbline.pipelines.report.model import Column
from plumbline.pipelines.report.rows import Row, Rows

#: N-grams shown for each side.
_SHOWN = 12
_COUNTS = ("n_texts_perturbed", "n_texts_other")
#: Length of an ``excerpt``, in characters.
_LENGTH = 120


def z_by_chance(n_ngrams: int) -> float:
    """The |z| that the largest of ``n_ngrams`` z exceeds by chance one time in twenty.

    >>> round(z_by_chance(1), 2), round(z_by_chance(10000), 1)
    (1.96, 4.6)
    """
    return NormalDist().inv_cdf(1 - 0.025 / n_ngrams)


def distinct(rows: Rows) -> Rows:
    """The ``_SHOWN`` n-grams furthest to either side, without parts of others as frequent.

    >>> rows = Rows({"ngram": g, "z": z, "n_texts_perturbed": n, "n_texts_other": 0}
    ...             for g, z, n in (("care of", 3, 5), ("her", 2, 9), ("care", 1, 5)))
    >>> [row["ngram"] for row in distinct(rows)]
    ['care of', 'her']
    """
    upper = _phrases([r for r in rows if r["z"] > 0])
    lower = _phrases([r for r in reversed(rows) if r["z"] < 0])
    return Rows([*upper, *reversed(lower)], rows.sql)


def _phrases(rows: Sequence[Row]) -> list[Row]:
    phrases: list[Row] = []
    for row in rows:
        alike = [f" {p['ngram']} " for p in phrases if all(p[c] == row[c] for c in _COUNTS)]
        if not any(f" {row['ngram']} " in one or one in f" {row['ngram']} " for one in alike):
            phrases.append(row)
    return phrases[:_SHOWN]


def excerpts(texts: Rows) -> Column:
    """A column with the parts of ``texts`` around the n-gram of a row, one on each line."""

    def cell(row: Row) -> str | None:
        parts = (excerpt(t["text"], t["ngram"]) for t in texts if t["ngram"] == row["ngram"])
        return "\n".join(parts) or None

    return cell


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
