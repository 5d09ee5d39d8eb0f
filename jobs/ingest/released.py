"""Published word statistics as a corpus: how often each word occurs and how it leans.

The table that UnStereoEval released holds the words of the Pile with their she/he delta (nats),
their occurrences and their share of all kept tokens. The counts behind the deltas are not in it, so
an imported corpus has no PMI, no standard errors and no totals but that of its tokens.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from plumbline.jobs.counting.writer import sole_writer
from plumbline.jobs.kernel.json_lines import excerpt
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.csv_rows import records

#: The contrast that the released deltas are of.
CONTRAST = "she/he"
_FILE = "pmi_file_w_counts.csv"
_COLUMNS = ("word", "pmi_diff", "counts", "freq")
_LARGEST = 2**63 - 1


@dataclass(frozen=True)
class ImportedStatistics:
    """Outcome of an import: rows in the file = ``n_words`` + ``n_rejected``.

    ``n_tokens`` is the number of kept tokens of the corpus, those of words not in the file too.
    """

    corpus: str
    n_words: int
    n_rejected: int
    n_tokens: int


@dataclass(frozen=True)
class _Row:
    """A row that can be read: ``total`` is the number of kept tokens its frequency implies."""

    number: int
    word: str
    delta_nats: float
    n_word: int
    total: int


@dataclass(frozen=True)
class _Bad:
    number: int
    reason: str
    word: str


def import_statistics(store: Store, path: Path, corpus: str, run_id: str) -> ImportedStatistics:
    """Read released word statistics into ``corpus``, ``word_count``, ``word_delta`` and ``reject``.

    The total of kept tokens, which the file does not hold, is ``counts / freq`` rounded to a whole
    number: the one that most rows agree on. A row that implies another, or that can't be used for
    another reason, is a reject. Done again with the same file nothing but the run changes; MaxPMI,
    vocabulary and seed words made from other figures are dropped.

    Args:
        path: the table, plain or gzipped, or a directory with it or with it in ``data/``.

    Raises:
        UsageProblem: a corpus of that name was counted from shards, or another command writes it.
        BadInput: the file is not there, can't be read to its end, lacks a column, or holds no
            usable row or no total; the warehouse is then left as it was.
    """
    file = _locate(path)
    _refuse_counted(store, corpus)
    rows, bad = _parse(file)
    total = _total(file, rows, bad)
    good, late = _agreeing(rows, total)
    if (n_sum := sum(r.n_word for r in good)) > total:
        raise BadInput(f"{file}", f"counts sum to {n_sum:,}, more than the {total:,} of freq")
    rejects = sorted(bad + late, key=lambda b: b.number)
    with sole_writer(store, corpus):
        _refuse_counted(store, corpus)
        _write(store, file, corpus, good, rejects, total, run_id)
    return ImportedStatistics(corpus, len(good), len(bad) + len(late), total)


def _locate(path: Path) -> Path:
    names = (_FILE, f"{_FILE}.gz")
    for place in (path, *(path / below / name for below in ("data", "") for name in names)):
        if place.is_file():
            return place
    if path.is_dir():
        raise BadInput(f"{path}", f"holds no {_FILE} or {_FILE}.gz", "give the file itself")
    raise BadInput(f"{path}", "does not exist", f"give the released {_FILE}.gz")


def _refuse_counted(store: Store, corpus: str) -> None:
    sources = store.read("corpus", corpus=corpus)["source"].to_pylist()
    # A count that was interrupted has left a ledger and no row of `corpus`.
    if "counted" in sources or store.read("corpus_shard", corpus=corpus).num_rows:
        problem, fix = "was counted from shards", f"give another name: --corpus {corpus}-released"
        raise UsageProblem(f"corpus {corpus!r}", problem, fix)


def _parse(file: Path) -> tuple[list[_Row], list[_Bad]]:
    rows, bad = [], []
    for record in records(file, _COLUMNS):
        fields = record.fields
        outcome = record.problem or _parse_fields(record.number, fields)
        if isinstance(outcome, _Row):
            rows.append(outcome)
        else:
            bad.append(_Bad(record.number, outcome, fields.get("word", "")))
    return rows, bad


def _parse_fields(number: int, fields: dict[str, str]) -> _Row | str:
    """The row, or what is wrong with it."""
    word, delta, counts, freq = (fields[c] for c in _COLUMNS)
    if not word.strip():
        return "the row has no word"
    if any("\udc80" <= c <= "\udcff" for c in word):
        return "the word holds bytes that are not UTF-8"
    n_word = int(counts) if counts.isascii() and counts.isdigit() and len(counts) < 20 else 0
    if not 0 < n_word <= _LARGEST:
        return f"counts is {counts!r}, expected a whole number of 1 or more"
    if not math.isfinite(_number(delta)):
        return f"pmi_diff is {delta!r}, expected a number"
    share = _number(freq)
    if not 0 < share <= 1:
        return f"freq is {freq!r}, expected a number above 0, at most 1"
    if n_word / share > _LARGEST:
        return f"freq is {freq!r}, too small for {n_word:,} occurrences"
    return _Row(number, word, float(delta), n_word, round(n_word / share))


def _number(text: str) -> float:
    """A decimal number, NaN when it is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _total(file: Path, rows: Sequence[_Row], bad: Sequence[_Bad]) -> int:
    """The number of kept tokens that more than half of the rows imply."""
    if not rows:
        first = f"; the first: {bad[0].reason}" if bad else ""
        raise BadInput(f"{file}", f"no usable row, {len(bad):,} rejected{first}")
    ((total, n),) = Counter(r.total for r in rows).most_common(1)
    if 2 * n <= len(rows):
        odd = next(r for r in rows if r.total != total)
        problem = f"rows do not agree on counts / freq: {total:,}, but {odd.total:,} in"
        raise BadInput(f"{file}", f"{problem} row {odd.number:,}", "freq needs all its digits")
    return total


def _agreeing(rows: Sequence[_Row], total: int) -> tuple[list[_Row], list[_Bad]]:
    """The rows that imply this total and whose word is new, and the others."""
    good: dict[str, _Row] = {}
    bad = []
    for row in rows:
        if row.total != total:
            reason = f"counts / freq is {row.total:,}, expected the {total:,} of most rows"
            bad.append(_Bad(row.number, reason, row.word))
        elif row.word in good:
            reason = f"the word was already in row {good[row.word].number:,}"
            bad.append(_Bad(row.number, reason, row.word))
        else:
            good[row.word] = row
    return list(good.values()), bad


def _write(
    store: Store,
    file: Path,
    corpus: str,
    good: Sequence[_Row],
    bad: Sequence[_Bad],
    total: int,
    run_id: str,
) -> None:
    partition = {"corpus": corpus}
    counts = pa.table(
        {
            "corpus": pa.array([corpus] * len(good), pa.string()),
            "word": [r.word for r in good],
            "n_word": pa.array([r.n_word for r in good], pa.int64()),
        }
    )
    deltas = counts.append_column("delta_nats", pa.array([r.delta_nats for r in good]))
    deltas = deltas.append_column("contrast", pa.array([CONTRAST] * len(good), pa.string()))
    deltas = deltas.append_column("n_defined", pa.array([1] * len(good), pa.int64()))
    fixed = {"stage": "import", "subject": corpus, "source_file": file.name, "run_id": run_id}
    rejects = [
        fixed | {"source_row": b.number, "reason": b.reason, "excerpt": _excerpt(b.word)}
        for b in bad
    ]
    before = store.read("word_delta", **partition)
    # The row that says the corpus is there goes first and comes back last.
    store.drop("corpus", partition)
    store.replace("word_count", counts, partition, run_id)
    store.replace("word_delta", deltas, partition, run_id)
    store.replace("reject", rejects, {"stage": "import", "subject": corpus}, run_id)
    if not store.read("word_delta", **partition).equals(before):
        for table in ("pair_association", "vocabulary", "seed_word"):
            store.drop(table, partition)
    row = {
        **{"corpus": corpus, "source": "imported", "run_id": run_id},
        **dict.fromkeys(("n_shards", "n_shards_failed", "n_rejected"), 0),
        "n_kept_tokens": total,
        "n_words_kept": len(good),
        "n_tokens_pruned": total - sum(r.n_word for r in good),
    }
    store.publish("corpus", [row], unit="corpus", run_id=run_id)


def _excerpt(word: str) -> str:
    return excerpt(word.encode("utf-8", "surrogateescape"))
