"""Importing published word statistics as a corpus: each word's occurrences and lean.

The table that UnStereoEval released has the words of the Pile with their she/he delta (nats),
occurrences and share of all kept tokens. The counts behind the deltas are in a second, larger file
(:mod:`plumbline.jobs.ingest.released_pmi`). With it in the same folder the corpus has counts like
one that was counted here; without it, no PMI, no standard errors and no total except the tokens.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from plumbline.jobs.association.associations import associate, uncounted
from plumbline.jobs.counting.corpus_lookup import writes_corpus
from plumbline.jobs.ingest.released_pmi import PmiRow, ReleasedCounts, pmi_file_of, released_counts
from plumbline.jobs.kernel.line_verdict import excerpt
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.input.input_rows import Record, records
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.store import Store, cast
from plumbline.warehouse.wordlists import WordList, load

#: The contrast of the released deltas.
CONTRAST = "she/he"
#: Name of the word list of the words whose co-occurrences are released.
LIST = "gendered-released"
#: How the release counted, as far as the paper says; a token of the Pile has about 1.66 pairs, so a
#: co-occurrence isn't counted in each window that holds it, as by the rule `windows`.
RULE, WINDOW = "pairs", 10

_FILE = "pmi_file_w_counts.csv"
_COLUMNS = ("word", "pmi_diff", "counts", "freq")
_INT64_MAX = 2**63 - 1


@dataclass(frozen=True)
class ImportedStatistics:
    """Outcome of an import: rows in the file = ``n_words`` + ``n_rejected``.

    ``n_tokens`` is the corpus's number of kept tokens, also of words that the file lacks.
    ``n_counted``: words with co-occurrences, from the file of PMI; its other rows are
    ``n_uncounted`` rejects. Both None without that file.
    """

    corpus: str
    n_words: int
    n_rejected: int
    n_tokens: int
    n_counted: int | None = None
    n_uncounted: int | None = None


@dataclass(frozen=True)
class _Row:
    """A row of the file; ``total`` is the number of kept tokens that its frequency implies.

    A rejected row has a ``reason`` instead of numbers.
    """

    number: int
    word: str
    delta_nats: float = math.nan
    n_word: int = 0
    total: int = 0
    reason: str = ""


def import_statistics(store: Store, corpus: str, path: Path, run_id: str) -> ImportedStatistics:
    """Read released word statistics into ``corpus``, ``word_count``, ``word_delta`` and ``reject``.

    If the file of PMI is in the same folder, also into ``pair_count`` and ``word_list``; the tables
    of :func:`~plumbline.jobs.association.associations.associate` are then computed. Words that have
    no counts in that file keep the released delta, without an error.

    The file does not hold the total of kept tokens. It is the value of ``counts / freq``, rounded,
    that more than half of the usable rows share. Rows that imply another total, or can't be used
    for another reason, are rejected. Importing the same file again changes only the run.

    Args:
        path: the table, plain or gzipped, or a directory that holds it or holds ``data/`` with it.

    Raises:
        UsageProblem: a corpus of that name was counted from shards, or another command writes it.
        BadInput: the file does not exist, can't be read to its end, lacks a column, or holds no
            usable row or no total; the warehouse is then left as it was.
    """
    done = _import(store, corpus, path, run_id)
    if done.n_counted is not None:
        associate(store, corpus)
    return done


@writes_corpus
def _import(store: Store, corpus: str, path: Path, run_id: str) -> ImportedStatistics:
    file = _locate(path)
    _refuse_counted(store, corpus)
    rows = [_parse(record) for record in records(file, _COLUMNS)]
    total = _total(file, rows)
    good, rejected = _agreeing(rows, total)
    if (n_sum := sum(r.n_word for r in good)) > total:
        problem = f"counts sum to {n_sum:,}, more than the {total:,} tokens by counts / freq"
        raise BadInput(f"{file}", problem, "all rows have to be of one corpus")
    rejects: list[tuple[Path, _Row | PmiRow]] = [(file, r) for r in rejected]
    pmi, counts = pmi_file_of(file), None
    if pmi:
        deltas = {r.word: r.delta_nats for r in good}
        counts = released_counts(pmi, {r.word: r.n_word for r in good}, deltas)
        rejects += [(pmi, r) for r in counts.rejected]
    _write(store, corpus, good, counts, rejects, total, run_id)
    n_counted = len({*counts.word}) if counts else None
    n_uncounted = len(counts.rejected) if counts else None
    return ImportedStatistics(corpus, len(good), len(rejected), total, n_counted, n_uncounted)


def _locate(path: Path) -> Path:
    names = (_FILE, f"{_FILE}.gz")
    for file in (path, *(path / below / name for below in ("data", "") for name in names)):
        if file.is_file():
            return file
    if path.is_dir():
        raise BadInput(f"{path}", f"has no {_FILE} or {_FILE}.gz", "give the file itself")
    raise BadInput(f"{path}", "does not exist", f"give the released {_FILE}.gz")


def _refuse_counted(store: Store, corpus: str) -> None:
    sources = store.read("corpus", corpus=corpus)["source"].to_pylist()
    if "counted" in sources:
        problem, fix = "was counted from shards", f"give another name: --corpus {corpus}-released"
        raise UsageProblem(f"corpus {corpus!r}", problem, fix)


def _parse(record: Record) -> _Row:
    word, delta, counts, freq = (record.fields.get(c, "") for c in _COLUMNS)
    n_word = int(counts) if counts.isascii() and counts.isdigit() and len(counts) < 20 else 0
    share, reason = _number(freq), ""
    if record.problem:
        reason = record.problem
    elif not word.strip():
        reason = "the row has no word"
    elif any("\udc80" <= c <= "\udcff" for c in word):
        reason = "the word holds bytes that are not UTF-8"
    elif not 0 < n_word <= _INT64_MAX:
        reason = f"counts is {counts!r}, expected a whole number of 1 or more"
    elif not math.isfinite(_number(delta)):
        reason = f"pmi_diff is {delta!r}, expected a number"
    elif not 0 < share <= 1:
        reason = f"freq is {freq!r}, expected a number above 0, at most 1"
    elif n_word / share > _INT64_MAX:
        reason = f"freq is {freq!r}, too small for {n_word:,} occurrences"
    if reason:
        return _Row(record.number, word, reason=reason)
    return _Row(record.number, word, float(delta), n_word, round(n_word / share))


def _number(text: str) -> float:
    """A decimal number, NaN for other text."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _total(file: Path, rows: Sequence[_Row]) -> int:
    """The number of kept tokens that more than half of the usable rows imply."""
    usable = [r for r in rows if not r.reason]
    if not usable:
        first = (
            f", {len(rows):,} rejected; the first: {rows[0].reason}" if rows else ": it has no rows"
        )
        raise BadInput(f"{file}", f"no usable row{first}")
    ((total, n),) = Counter(r.total for r in usable).most_common(1)
    if 2 * n <= len(usable):
        other = next(r for r in usable if r.total != total)
        problem = f"rows do not agree on counts / freq: {total:,}, but {other.total:,} in"
        raise BadInput(f"{file}", f"{problem} row {other.number:,}", "freq needs all its digits")
    return total


def _agreeing(rows: Sequence[_Row], total: int) -> tuple[list[_Row], list[_Row]]:
    """Two lists: the usable rows that imply this total, each word once; and the rejected rows."""
    good: dict[str, _Row] = {}
    rejected = []
    for row in rows:
        reason = row.reason
        if not reason and row.total != total:
            reason = f"counts / freq is {row.total:,}, expected the {total:,} of most rows"
        elif not reason and row.word in good:
            reason = f"the word was already in row {good[row.word].number:,}"
        if reason:
            rejected.append(replace(row, reason=reason))
        else:
            good[row.word] = row
    return list(good.values()), rejected


def _list_of(targets: Collection[str]) -> WordList:
    """The pairs of the list `gendered` whose words are both among the targets, and the others."""
    known = load("gendered")
    pairs = tuple(p for p in known.pairs if p.a in targets and p.b in targets)
    paired = {word for p in pairs for word in (p.a, p.b)}
    unpaired = tuple(sorted({*targets} - paired))
    return WordList(LIST, "", known.source, pairs, unpaired, known.groups)


def _write(
    store: Store,
    corpus: str,
    good: Sequence[_Row],
    counts: ReleasedCounts | None,
    rejects: Sequence[tuple[Path, _Row | PmiRow]],
    total: int,
    run_id: str,
) -> None:
    partition = {"corpus": corpus}
    words = [{"corpus": corpus, "word": r.word, "n_word": r.n_word} for r in good]
    counted, fixed_delta = (
        {*counts.word} if counts else set(),
        {"contrast": CONTRAST, "n_defined": 1},
    )
    deltas = [
        {**word, **fixed_delta, "delta_nats": r.delta_nats}
        for word, r in zip(words, good, strict=True)
        if r.word not in counted
    ]
    key = {"stage": "import", "subject": corpus}
    rejected = [
        {
            **key,
            "run_id": run_id,
            "source_file": file.name,
            "source_row": r.number,
            "reason": r.reason,
            "excerpt": excerpt(r.word.encode("utf-8", "surrogateescape")),
        }
        for file, r in rejects
    ]
    row: dict[str, object] = {
        **{"corpus": corpus, "source": "imported", "run_id": run_id},
        **dict.fromkeys(("n_shards", "n_shards_failed", "n_rejected"), 0),
        "n_kept_tokens": total,
        "n_words_kept": len(good),
        "n_tokens_pruned": total - sum(r.n_word for r in good),
    }
    new: dict[str, pa.Table | list[dict[str, object]]] = {
        **{"word_count": words, "word_delta": deltas}
    }
    if counts:
        listed = _list_of({*counts.target})
        rule: dict[str, object] = {"rule": RULE, "window_tokens": WINDOW}
        row |= {**rule, "targets": LIST, "targets_hash": listed.hash}
        row["n_words"] = len(counts.all_words.union(r.word for r in good))
        row["n_pairs"] = round(counts.per_token * total)
        columns = {"word": counts.word, "target": counts.target, "n_pair": counts.n_pair}
        fixed = {name: [value] * len(counts.word) for name, value in {**partition, **rule}.items()}
        new |= {"pair_count": pa.table({**fixed, **columns}), "word_list": listed.rows(corpus)}
    else:
        new |= {"pair_count": [], "word_list": []}
    # The deltas of counted words are computed afterwards: they don't go if nothing changes.
    is_new = any(
        not cast(TABLES[name], rows).equals(
            uncounted(store, corpus) if name == "word_delta" else store.read(name, **partition)
        )
        for name, rows in new.items()
    )
    with store.transaction(run_id, "corpus import"):
        for name, rows in new.items() if is_new else ():
            store.replace(name, rows, partition, run_id)
        store.replace("reject", rejected, key, run_id)
        store.publish("corpus", [row], unit="corpus", run_id=run_id)
