"""What differs: n-grams that one group holds more often, with the texts behind them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import (
    Cell,
    Column,
    Columns,
    Figure,
    Table,
    count,
    number,
    shown,
    stem,
    table,
    text,
)
from plumbline.pipelines.report.plots import fairpair as plots
from plumbline.pipelines.report.rows import Row, Rows

#: What tells one sampled and perturbed set from another.
KEY = ("probe_set", "model_key", "sampling_key", "perturber")
#: N-grams shown a side, read a side before those that say the same are left out, texts behind each.
_SHOWN, _READ, _TEXTS = 12, 60, 3
#: Length of a text's cutting, in characters.
_LENGTH = 120


@dataclass(frozen=True)
class NGrams:
    """N-grams of one set, those of the perturbed texts first, and cuttings by n-gram.

    ``told_of`` and ``other`` are whose texts are compared, both told in the terms of ``told_of``.
    """

    rows: Rows
    cuttings: dict[str, list[str]]
    told_of: str
    other: str

    def figure(self, of: Row) -> Figure:
        """Log-odds and z of the n-grams; ``of`` is a row of the set."""
        n = self.rows[0]["n_ngrams"]
        limit = NormalDist().inv_cdf(1 - 0.025 / n)
        lists = [
            ", ".join(r["ngram"] for r in self.rows if (r["z"] > 0) == perturbed) or "none"
            for perturbed in (True, False)
        ]
        alt = f"N-grams in more texts of {self.other}: {lists[0]}. Of {self.told_of}: {lists[1]}."
        caption = (
            f"N-grams of up to four words in more texts written of {self.other} than of "
            f"{self.told_of}, and the other way round; all texts told of {self.told_of}. Of {n:,} "
            f"n-grams compared, about one in twenty such plots has one beyond |z| = "
            f"{shown(limit, 1)} by chance. Of a phrase's parts, in as many texts, one is shown."
        )
        title = "What is written more often of whom"
        plot = plots.ngrams(self.rows, self.other, self.told_of, title)
        name = stem("fairpair", "ngrams", of["probe_set"], of["model"])
        return Figure(name, alt, caption, plot, self.rows)

    def table(self) -> Table:
        """Counts, log-odds and z, with cuttings of texts."""
        columns: Columns = [
            ("n-gram", "ngram"),
            ("more often of", lambda r: text(self.other if r["z"] > 0 else self.told_of)),
            ("log-odds", lambda r: number(r["log_odds_nats"], signed=True)),
            ("z", lambda r: number(r["z"], 1, signed=True)),
            (f"texts of {self.other}", _of("n_texts_perturbed", "n_perturbed")),
            (f"texts of {self.told_of}", _of("n_texts_other", "n_other")),
            ("in texts such as", self._cuttings),
        ]
        caption = "What is written more often of whom, and where"
        return table(caption, self.rows, columns, folded=True, searchable=True)

    def _cuttings(self, row: Row) -> Cell:
        return text("\n".join(self.cuttings.get(row["ngram"], [])) or None)


def _of(n: str, total: str) -> Column:
    return lambda r: Cell(f"{count(r[n]).text} of {count(r[total]).text}", r[n], True)


def read_ngrams(facts: Facts, sets: Rows) -> dict[tuple[object, ...], NGrams]:
    """The n-grams of every set that has any, by its key; of the first of its sides.

    ``sets`` are rows of the set for all prompts. The view is read once per side that is needed.
    """
    found = {}
    for of in sets.groups(*KEY):
        row = min(of, key=lambda r: str(r["side"]))
        own = {column: row[column] for column in KEY}
        rows = facts.rows("fairpair_ngram", side=row["side"], most=_READ).where(**own)
        if rows:
            found[tuple(own.values())] = _ngrams(facts, rows, row, own)
    return found


def _ngrams(facts: Facts, rows: Rows, of: Row, own: Mapping[str, object]) -> NGrams:
    upper = distinct([r for r in rows if r["z"] > 0])
    lower = distinct([r for r in reversed(rows) if r["z"] < 0])
    kept = Rows([*upper, *reversed(lower)], rows.sql)
    wanted = {"ngrams": [r["ngram"] for r in kept], "of_perturbed": [r["z"] > 0 for r in kept]}
    cuttings: dict[str, list[str]] = {}
    for r in facts.rows("fairpair_example", **wanted, **own, side=of["side"], most=_TEXTS):
        cuttings.setdefault(r["ngram"], []).append(cutting(r["text"], r["ngram"]))
    names = [of["entity"] or "the one named", of["perturbed_entity"] or "the counterpart"]
    other, told_of = names if of["side"] == "original" else reversed(names)
    return NGrams(kept, cuttings, told_of, other)


def distinct(rows: Sequence[Row]) -> list[Row]:
    """The first of n-grams; of those in as many texts that are parts of one phrase, one.

    >>> rows = [{"ngram": g, "n_texts_perturbed": n, "n_texts_other": 0}
    ...         for g, n in (("take care of", 5), ("her", 9), ("care", 5), ("care of her", 5))]
    >>> [row["ngram"] for row in distinct(rows)]
    ['take care of', 'her']
    """
    kept: list[Row] = []
    for row in rows:
        if not any(_is_one_phrase(row, other) for other in kept):
            kept.append(row)
    return kept[:_SHOWN]


def _is_one_phrase(row: Row, other: Row) -> bool:
    """Whether one holds the other, or goes on where the other began but for a word."""
    if any(row[c] != other[c] for c in ("n_texts_perturbed", "n_texts_other")):
        return False
    short, long = sorted((row["ngram"].split(), other["ngram"].split()), key=len)
    n, shared = len(short), max(len(short) - 1, 1)
    if any(long[k : k + n] == short for k in range(len(long) - n + 1)):
        return True
    return bool(long[-shared:] == short[:shared] or short[-shared:] == long[:shared])


def cutting(said: str, ngram: str) -> str:
    """The part of a text around an n-gram, on one line, with dots where it was cut.

    >>> cutting("a " * 100 + "She, CARES for" + " b" * 100, "she cares")[46:74]
    'a a a a a She, CARES for b b'
    >>> cutting("short", "not there")
    'short'
    """
    said = " ".join(said.split())
    pattern = r"[^\w]+".join(re.escape(word).replace("'", "['’]") for word in ngram.split())
    place = re.search(rf"(?<!\w){pattern}(?!\w)", said, re.IGNORECASE)
    middle = (place.start() + place.end()) // 2 if place else 0
    start = max(0, min(middle - _LENGTH // 2, len(said) - _LENGTH))
    part = said[start : start + _LENGTH]
    # Whole words, where there is a blank to cut at.
    before, after = start > 0, start + _LENGTH < len(said)
    if before and " " in part[: _LENGTH // 4]:
        part = part.split(" ", 1)[1]
    if after and " " in part[-_LENGTH // 4 :]:
        part = part.rsplit(" ", 1)[0]
    return f"{'… ' if before else ''}{part}{' …' if after else ''}"
