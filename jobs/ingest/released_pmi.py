"""Co-occurrences of words with gendered words, from the PMI that UnStereoEval released.

``pmi_by_gendered_expressions.csv`` has a column ``pmi__WORD`` for each of 48 gendered words. A
value is ln(c / (K n_w n_g)) with six decimals or more, where c is the number of co-occurrences, n_w
and n_g are the occurrences of the two words, and K is one constant. So the counts come back as
c = K exp(value) n_w n_g. K is solved from the file, and every c must come out whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.input.input_rows import records

FILE = "pmi_by_gendered_expressions.csv"
_PREFIX = "pmi__"
#: K to six digits, from fifteen rows of the release; read as co-occurrences per kept token.
_K = 1.66432
#: Counts up to which K is solved: with ``_K`` they come out whole to within 0.03.
_SMALL = 10_000
#: Rounding of a value's six decimals, and of K: largest relative error of a count.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class PmiRow:
    """A row of the file: PMI by target, without missing values; or the reason why it is unusable.

    ``number`` counts from 1.
    """

    number: int
    word: str
    pmi: Mapping[str, float]
    reason: str = ""


def pmi_file_of(file: Path) -> Path | None:
    """The file of PMI, plain or gzipped, in the folder of another file; None if it isn't there."""
    return next(filter(Path.is_file, (file.with_name(f"{FILE}{end}") for end in ("", ".gz"))), None)


def read_pmi(file: Path) -> Iterator[PmiRow]:
    """Yield the rows; a repeated word or a value that is no number makes a row unusable.

    Raises ``BadInput`` if the file can't be read to its end or lacks the columns of she and he.
    """
    rows_of: dict[str, int] = {}
    for number, fields, problem in records(file, ("word", f"{_PREFIX}she", f"{_PREFIX}he")):
        word, pmi, reason = fields.get("word", ""), dict[str, float](), problem or ""
        if not reason and word in rows_of:
            reason = f"the word was already in row {rows_of[word]:,}"
        for name, text in fields.items() if not reason else ():
            if name.startswith(_PREFIX) and text:
                try:
                    pmi[name.removeprefix(_PREFIX)] = value = float(text)
                except ValueError:
                    value = math.nan
                if not math.isfinite(value):
                    reason = reason or f"{name} is {text!r}, expected a number"
        rows_of.setdefault(word, number)
        yield PmiRow(number, word, pmi, reason)


@dataclass(frozen=True)
class ReleasedCounts:
    """Co-occurrences of ``word[i]`` with ``target[i]``: ``n_pair[i]``, at least 1.

    ``per_token`` is K. ``rejected``: rows without counts. ``all_words``: words of all rows.
    """

    word: list[str]
    target: list[str]
    n_pair: NDArray[np.int64]
    per_token: float
    all_words: frozenset[str]
    rejected: list[PmiRow]


def released_counts(
    file: Path, n_word: Mapping[str, int], deltas: Mapping[str, float]
) -> ReleasedCounts:
    """Turn the PMI of a file into counts.

    A row is rejected as a whole if the word's occurrences aren't known, if a value doesn't come out
    as a whole number of co-occurrences, or if she minus he isn't the released delta. A count above
    a million is only as exact as the value's decimals: six give it to half a millionth.

    Args:
        n_word: occurrences of words. deltas: their she/he delta in nats.

    Raises:
        BadInput: the file can't be read, has a column of a word without occurrences, or most of its
            rows of known words don't come out as counts.
    """
    rows = [replace(r, reason=r.reason or _problem(r, n_word, deltas)) for r in read_pmi(file)]
    if unknown := {g for r in rows for g in r.pmi} - n_word.keys():
        problem = f"has a column {_PREFIX}{min(unknown)}, a word whose occurrences aren't released"
        raise BadInput(f"{file}", problem, "both files have to be of one release")
    cells = [(k, g) for k, r in enumerate(rows) if not r.reason for g in r.pmi]
    pmi = np.array([rows[k].pmi[g] for k, g in cells])
    product = np.array([float(n_word[rows[k].word]) * n_word[g] for k, g in cells])
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.exp(pmi) * product
        near = np.rint(_K * scaled)
        is_small = (near >= 1) & (near <= _SMALL)
        ratios = near[is_small] / scaled[is_small]
        per_token = float(np.median(ratios)) if ratios.size else math.nan
        count = per_token * scaled
        n_pair = np.rint(count)
        is_whole = (n_pair >= 1) & (np.abs(count - n_pair) <= _ROUNDING * count) & (count < 2**53)
    for i in np.flatnonzero(~is_whole)[::-1]:  # the reason is that of the row's first value
        k, g = cells[i]
        reason = f"{_PREFIX}{g} gives {count[i]:,.4f} co-occurrences, expected a whole number"
        rows[k] = replace(rows[k], reason=reason)
    rejected = [r for r in rows if r.reason]
    off = [r for r in rejected if r.pmi and r.word in n_word]
    if 2 * len(off) >= len(rows) - len(rejected) + len(off):
        problem = "has no row of a word whose occurrences are released"
        if off:
            first = f"the first: row {off[0].number:,}: {off[0].reason}"
            problem = f"{len(off):,} rows of known words don't come out as counts; {first}"
        raise BadInput(f"{file}", problem, "both files have to be of one release")
    used = [i for i, (k, _) in enumerate(cells) if not rows[k].reason]
    words, targets = [rows[cells[i][0]].word for i in used], [cells[i][1] for i in used]
    counts = n_pair[used].astype(np.int64)
    all_words = frozenset(r.word for r in rows if r.word)
    return ReleasedCounts(words, targets, counts, per_token, all_words, rejected)


def _problem(row: PmiRow, n_word: Mapping[str, int], deltas: Mapping[str, float]) -> str:
    """Why the row of a word has no counts; empty if nothing speaks against them."""
    if row.word not in n_word:
        return "the word's occurrences aren't released"
    if not {"she", "he"} <= row.pmi.keys():
        return "has no value for she or he"
    difference = row.pmi["she"] - row.pmi["he"]
    if not abs(difference - deltas[row.word]) <= 2 * _ROUNDING:
        return f"she minus he is {difference:.6f}, expected the pmi_diff {deltas[row.word]:.6f}"
    return ""
