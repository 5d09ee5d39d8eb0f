"""What differs: n-grams that one group holds more often, with the texts behind them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from plumbline.pipelines.report import draw_fairpair as draw
from plumbline.pipelines.report.corpora import stem
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.fairpair_words import SET
from plumbline.pipelines.report.model import Cell, Figure, Row, Table, count, number, shown, text

#: N-grams shown a side, read a side before those that say the same are left out, texts behind each.
_SHOWN, _READ, _TEXTS = 12, 60, 3
#: Length of a text's cutting, in characters.
_LENGTH = 120


@dataclass(frozen=True)
class NGrams:
    """N-grams of one set, those of the perturbed texts first, and cuttings by n-gram.

    ``told_of`` and ``other`` are whose texts are compared, both told in the terms of ``told_of``.
    """

    rows: Sequence[Row]
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
        plot = draw.ngrams(
            self.rows, self.other, self.told_of, "What is written more often of whom"
        )
        name = stem("fairpair", "ngrams", of["probe_set"], of["model"])
        return Figure(name, alt, caption, plot, self.rows)

    def sql(self, facts: Facts, whose: Mapping[str, object]) -> str:
        """The query of the set's n-grams, of which those that say the same are left out here."""
        return facts.sql("fairpair_ngram", whose, side=self.rows[0]["side"], most=_READ)

    def tables(self) -> list[Table]:
        """Counts, log-odds and z, with cuttings of texts."""
        headings = ["n-gram", "more often of", "log-odds", "z", f"texts of {self.other}"]
        headings += [f"texts of {self.told_of}", "in texts such as"]
        cells = [
            [
                text(r["ngram"]),
                text(self.other if r["z"] > 0 else self.told_of),
                number(r["log_odds_nats"], signed=True),
                number(r["z"], 1, signed=True),
                _of(r["n_texts_perturbed"], r["n_perturbed"]),
                _of(r["n_texts_other"], r["n_other"]),
                text("\n".join(self.cuttings.get(r["ngram"], [])) or None),
            ]
            for r in self.rows
        ]
        return [
            Table(
                "What is written more often of whom, and where",
                headings,
                cells,
                folded=True,
                searchable=True,
            )
        ]


def _of(n: int, total: int) -> Cell:
    return Cell(f"{count(n).text} of {count(total).text}", n, True)


def read_ngrams(facts: Facts, sets: Sequence[Row]) -> dict[tuple[object, ...], NGrams]:
    """The n-grams of every set that has any, by its key; of the first of its sides.

    ``sets`` are rows of the set for all prompts. The view is asked once a side that is needed.
    """
    sides: dict[tuple[object, ...], Row] = {}
    for row in sorted(sets, key=lambda r: str(r["side"])):
        sides.setdefault(tuple(row[c] for c in SET), row)
    found = {}
    for side in sorted({str(row["side"]) for row in sides.values()}):
        rows = facts.ask("fairpair_ngram", side=side, most=_READ)
        for key, row in sides.items():
            own = [r for r in rows if tuple(r[c] for c in SET) == key]
            if row["side"] == side and own:
                found[key] = _ngrams(facts, own, row)
    return found


def _ngrams(facts: Facts, rows: Sequence[Row], of: Row) -> NGrams:
    upper = distinct([r for r in rows if r["z"] > 0])
    lower = distinct([r for r in reversed(rows) if r["z"] < 0])
    kept = [*upper, *reversed(lower)]
    asked = {"ngrams": [r["ngram"] for r in kept], "of_perturbed": [r["z"] > 0 for r in kept]}
    whose = {c: of[c] for c in (*SET, "side")}
    cuttings: dict[str, list[str]] = {}
    for r in facts.ask("fairpair_example", **asked, **whose, most=_TEXTS):
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
