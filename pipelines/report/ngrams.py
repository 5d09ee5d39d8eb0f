"""N-grams that are more frequent in one group's texts, with texts that contain them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import NormalDist

from plumbline.pipelines.report.model import Column
from plumbline.pipelines.report.rows import Row, Rows

#: N-grams shown for each side.
_SHOWN = 12
#: Length of an ``excerpt``, in characters.
_LENGTH = 120


def z_by_chance(n_ngrams: int) -> float:
    """The |z| that the largest of ``n_ngrams`` z exceeds by chance one time in twenty.

    >>> round(z_by_chance(1), 2), round(z_by_chance(10000), 1)
    (1.96, 4.6)
    """
    return NormalDist().inv_cdf(1 - 0.025 / n_ngrams)


def distinct(rows: Rows) -> Rows:
    """The n-grams furthest to either side, without those that are part of another's phrase."""
    upper = _phrases([r for r in rows if r["z"] > 0])
    lower = _phrases([r for r in reversed(rows) if r["z"] < 0])
    return Rows([*upper, *reversed(lower)], rows.sql)


def _phrases(rows: Sequence[Row]) -> list[Row]:
    """The first ``_SHOWN`` n-grams, leaving out any that is part of an earlier one's phrase.

    >>> rows = [{"ngram": g, "n_texts_perturbed": n, "n_texts_other": 0}
    ...         for g, n in (("take care of", 5), ("her", 9), ("care", 5), ("care of her", 5))]
    >>> [row["ngram"] for row in _phrases(rows)]
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
