"""Import published word statistics as a corpus: each word's occurrences and its she/he delta.

UnStereoEval released a table of the words of the Pile. For each word, the table has the she/he
delta in nats, the number of occurrences, and their share of all kept tokens. A second, larger file,
called the PMI file here, has the PMI values from which the deltas were computed. If the PMI file is
in the same folder, the counts are restored from it. Otherwise, the corpus has no PMI and no
standard errors, and its only total is the number of kept tokens.

The PMI file, ``pmi_by_gendered_expressions.csv``, has a column ``pmi__WORD`` for each of 48
gendered words. A value is ln(c / (K n_w n_g)) with six decimals or more. Here c is the number of
co-occurrences, n_w and n_g are the occurrences of the two words, and K is a constant. So the counts
can be restored as c = K exp(value) n_w n_g. K is estimated as the value that makes every c a whole
number.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plumbline.jobs.association.associations import associate
from plumbline.jobs.counting.corpus_lookup import writes_corpus
from plumbline.jobs.kernel.line_verdict import excerpt
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.input.input_rows import number, records
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.data_files import cast
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.escape import is_unicode
from plumbline.warehouse.wordlists import WordList, load, one_word

#: The contrast of the released deltas.
CONTRAST = "she/he"
#: Name of the list of the words whose co-occurrences are released.
LIST = "gendered-released"
#: How the release counted, as far as the paper says. There are about 1.66 pairs per token of the
#: Pile. The rule `windows`, which counts a pair once per window, would have given more.
RULE, WINDOW = "pairs", 10
#: Name of the PMI file.
FILE = "pmi_by_gendered_expressions.csv"

_TABLE = "pmi_file_w_counts.csv"
_INT64_MAX = 2**63 - 1
_PREFIX = "pmi__"
#: K to six digits, from fifteen rows of the release. It is the number of pairs per kept token.
_K = 1.66432
#: K is estimated from counts up to this size. With ``_K``, their error is below 0.03.
_SMALL = 10_000
#: Largest relative error of a count. It arises because the values are rounded to six decimals.
_ROUNDING = 1e-6
_ONE_RELEASE = "both files must be from the same release"


@dataclass(frozen=True)
class ReleasedRow:
    """A row of the released table or of the PMI file. ``reason`` is empty if it can be used.

    Rows are numbered from 1. In the PMI file, the keys of ``values`` are the targets. In the table,
    the keys are ``delta_nats``, ``n_word`` and ``total``. ``total`` is the corpus's number of kept
    tokens, computed as the row's count divided by its frequency.
    """

    number: int
    word: str
    values: Mapping[str, float]
    reason: str = ""


def import_statistics(
    store: Store, corpus: str, path: Path, run_id: str
) -> dict[str, str | int | None]:
    """Read released word statistics into ``corpus``, ``word_count``, ``word_delta`` and ``reject``.

    If the PMI file is in the same folder, ``pair_count`` and ``word_list`` are written too, and
    :func:`~plumbline.jobs.association.associations.associate` computes its tables. Words that have
    no counts in the PMI file keep the released delta, without a standard error.

    The number of kept tokens isn't in the table. It is computed from each row as ``counts / freq``,
    rounded. More than half of the usable rows must give the same number. Rows that give another
    number are rejected. Importing the same file again changes only the column ``run_id``.

    Args:
        path: the table, plain or gzipped, or a directory with the table in it or in its ``data/``.

    Returns:
        A dictionary. ``corpus`` is the name. ``n_words`` and ``n_rejected`` count the imported and
        rejected rows of the table. ``n_counted`` and ``n_uncounted`` count the
        used and rejected rows of the PMI file (``None`` without that file). ``n_tokens`` counts
        kept tokens, including words not in the table.

    Raises:
        UsageProblem: a corpus of that name was counted from shards, or another command writes it.
        BadInput: a file does not exist, can't be read to its end, lacks a column or has no usable
            rows, or ``counts / freq`` varies. The warehouse doesn't change.
    """
    done = _import(store, corpus, path, run_id)
    if done["n_counted"] is not None:
        associate(store, corpus)
    return done


@writes_corpus
def _import(store: Store, corpus: str, path: Path, run_id: str) -> dict[str, str | int | None]:
    file = _located(path)
    if "counted" in store.read("corpus", corpus=corpus)["source"].to_pylist():
        problem, fix = "was counted from shards", f"give another name: --corpus {corpus}-released"
        raise UsageProblem(f"corpus {corpus!r}", problem, fix)
    columns = ("word", "pmi_diff", "counts", "freq")
    rows, total = _of_one_total(file, [*_read(file, columns, _numbers)])
    known = {r.word: r for r in rows if not r.reason}
    rejects = [(file, r) for r in rows if r.reason]
    counts = n_counted = n_uncounted = None
    if pmi := pmi_file_of(file):
        counts = _released_counts(pmi, known)
        uncounted = [(pmi, r) for r in counts.rows if r.reason]
        rejects += uncounted
        n_counted, n_uncounted = len(counts.pairs["word"].unique()), len(uncounted)
    _write(store, corpus, known, counts, rejects, total, run_id)
    of_table = {"n_words": len(known), "n_rejected": len(rows) - len(known), "n_tokens": total}
    return {"corpus": corpus, **of_table, "n_counted": n_counted, "n_uncounted": n_uncounted}


def _located(path: Path) -> Path:
    names = (_TABLE, f"{_TABLE}.gz")
    for file in (path, *(path / below / name for below in ("data", "") for name in names)):
        if file.is_file():
            return file
    problem = "does not contain it" if path.is_dir() else "does not exist"
    raise BadInput(f"{path}", problem, f"give the released {_TABLE}.gz")


def pmi_file_of(file: Path) -> Path | None:
    """Return the PMI file (plain or gzipped) in the same folder as ``file``, or None."""
    return next(filter(Path.is_file, (file.with_name(f"{FILE}{end}") for end in ("", ".gz"))), None)


def _read(
    file: Path, columns: tuple[str, ...], numbers: Callable[[dict[str, str]], dict[str, float]]
) -> Iterator[ReleasedRow]:
    """Yield the rows of a file. ``numbers`` converts a row's fields to values.

    A row is unusable if ``numbers`` raises ``ValueError``, or if the word is missing or not UTF-8.
    Raises ``BadInput`` if the file can't be read to its end or lacks a column.
    """
    for row, fields, problem in records(file, columns):
        word, values, reason = fields.get("word", ""), dict[str, float](), problem or ""
        try:
            if not reason:
                if not word.strip():
                    raise ValueError("the row has no word")
                if not is_unicode(word):
                    raise ValueError("the word holds bytes that are not UTF-8")
                values = numbers(fields)
        except ValueError as e:
            reason = str(e)
        yield ReleasedRow(row, word, values, reason)


def _first_of_each_word(rows: Iterable[ReleasedRow]) -> Iterator[ReleasedRow]:
    """Yield the rows. Mark a row as unusable if an earlier usable row has the same word."""
    row_of: dict[str, int] = {}
    for row in rows:
        if not row.reason and row_of.setdefault(row.word, row.number) != row.number:
            reason = f"the word was already in row {row_of[row.word]:,}"
            row = replace(row, values={}, reason=reason)
        yield row


def _numbers(fields: dict[str, str]) -> dict[str, float]:
    """Return the values of a row of the table. Raises ``ValueError`` if a value can't be used."""
    counts, share = fields["counts"], number(fields, "freq")
    n_word = int(counts) if counts.isascii() and counts.isdigit() and len(counts) < 20 else 0
    if not 0 < n_word <= _INT64_MAX:
        raise ValueError(f"counts is {counts!r}, expected a whole number above 0, below 2^63")
    if not (0 < share <= 1 and n_word / share <= _INT64_MAX):
        raise ValueError(f"freq is {fields['freq']!r}, no share of {n_word:,} tokens")
    delta = number(fields, "pmi_diff")
    return {"delta_nats": delta, "n_word": n_word, "total": round(n_word / share)}


def read_pmi(file: Path) -> Iterator[ReleasedRow]:
    """Yield the rows of the PMI file.

    Raises ``BadInput`` if the file can't be read to its end or lacks the columns of she and he.
    """

    def values(fields: dict[str, str]) -> dict[str, float]:
        names = [name for name in fields if name.startswith(_PREFIX) and fields[name]]
        return {name.removeprefix(_PREFIX): number(fields, name) for name in names}

    rows = _read(file, ("word", f"{_PREFIX}she", f"{_PREFIX}he"), values)
    return _first_of_each_word(rows)


def _of_one_total(file: Path, rows: list[ReleasedRow]) -> tuple[list[ReleasedRow], int]:
    """Return the rows, and the ``total`` (number of kept tokens) of most rows.

    Rows with another ``total`` and repeated words are marked as unusable. Raises ``BadInput`` if no
    ``total`` is shared by most usable rows, or if the words occur more than ``total`` times.
    """
    totals = Counter(int(r.values["total"]) for r in rows if not r.reason)
    if not totals:
        first = f", the first of {len(rows):,}: {rows[0].reason}" if rows else ": it has no rows"
        raise BadInput(f"{file}", f"no usable row{first}")
    ((total, n),) = totals.most_common(1)
    if 2 * n <= totals.total():
        problem = f"only {n:,} of {totals.total():,} rows agree on counts / freq: {total:,}"
        raise BadInput(f"{file}", problem, "freq needs all its digits")
    checked = []
    for row in rows:
        if not row.reason and (implied := int(row.values["total"])) != total:
            reason = f"counts / freq is {implied:,}, expected the {total:,} of most rows"
            row = replace(row, reason=reason)
        checked.append(row)
    checked = list(_first_of_each_word(checked))
    n_sum = sum(int(r.values["n_word"]) for r in checked if not r.reason)
    if n_sum > total:
        problem = f"counts sum to {n_sum:,}, more than the {total:,} tokens by counts / freq"
        raise BadInput(f"{file}", problem, "all rows must be from one corpus")
    return checked, total


class _Counts(NamedTuple):
    """Counts restored from the PMI file, the constant K (``per_token``), and the file's rows."""

    pairs: pa.Table
    per_token: float
    rows: list[ReleasedRow]


def _released_counts(file: Path, known: Mapping[str, ReleasedRow]) -> _Counts:
    """Convert the values of the PMI file to counts. ``known`` is {word: usable row of the table}.

    A row is rejected if its word isn't in ``known``, if a value doesn't give a whole number of
    co-occurrences, or if the value for she minus the value for he isn't the released delta. Counts
    above a million may be inexact, since values with six decimals give a relative error of 5e-7.

    Raises:
        BadInput: the file can't be read, or has a column for a word that isn't in ``known``, or
            at least half of the rows of known words are rejected.
    """
    rows = [replace(r, reason=r.reason or _problem(r, known)) for r in read_pmi(file)]
    targets = {g for r in rows for g in r.values}
    if unknown := targets - known.keys():
        problem = f"has a column {_PREFIX}{min(unknown)}, a word whose occurrences aren't released"
        raise BadInput(f"{file}", problem, _ONE_RELEASE)
    try:
        for target in sorted(targets):
            one_word(target)
    except ValueError as e:
        raise BadInput(f"{file}", f"has a column {_PREFIX}{target}: {e}") from e
    cells = [(k, g) for k, r in enumerate(rows) if not r.reason for g in r.values]
    pmi = np.array([rows[k].values[g] for k, g in cells])
    n_word = {word: float(r.values["n_word"]) for word, r in known.items()}
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.exp(pmi) * np.array([n_word[rows[k].word] * n_word[g] for k, g in cells])
        near = np.rint(_K * scaled)
        is_small = (near >= 1) & (near <= _SMALL)
        ratios = near[is_small] / scaled[is_small]
        per_token = float(np.median(ratios)) if ratios.size else math.nan
        count = per_token * scaled
        n_pair = np.rint(count)
        is_whole = (n_pair >= 1) & (np.abs(count - n_pair) <= _ROUNDING * count) & (count < 2**53)
    for i in np.flatnonzero(~is_whole)[::-1]:  # in reverse, to keep a row's first reason
        k, g = cells[i]
        reason = f"{_PREFIX}{g} gives {count[i]:,.4f} co-occurrences, expected a whole number"
        rows[k] = replace(rows[k], reason=reason)
    used = [i for i, (k, _) in enumerate(cells) if not rows[k].reason]
    off = [r for r in rows if r.reason and r.values and r.word in known]
    if 2 * len(off) >= sum(not r.reason for r in rows) + len(off):
        problem = "has no row of a word whose occurrences are released"
        if off:
            first = f"the first: row {off[0].number:,}: {off[0].reason}"
            problem = f"{len(off):,} rows of known words don't come out as counts; {first}"
        raise BadInput(f"{file}", problem, _ONE_RELEASE)
    pairs = {"word": [rows[cells[i][0]].word for i in used], "target": [cells[i][1] for i in used]}
    return _Counts(pa.table({**pairs, "n_pair": n_pair[used].astype(np.int64)}), per_token, rows)


def _problem(row: ReleasedRow, known: Mapping[str, ReleasedRow]) -> str:
    """Return why a word's row can't be turned into counts, or an empty text if it can."""
    if row.word not in known:
        return "the word's occurrences aren't released"
    if not {"she", "he"} <= row.values.keys():
        return "has no value for she or he"
    difference = row.values["she"] - row.values["he"]
    delta = known[row.word].values["delta_nats"]
    if not abs(difference - delta) <= 2 * _ROUNDING:
        return f"she minus he is {difference:.6f}, expected the pmi_diff {delta:.6f}"
    return ""


def _list_of(targets: Collection[str]) -> WordList:
    """Make a word list of the targets, with all pairs of `gendered` whose words are targets."""
    known = load("gendered")
    pairs = tuple(p for p in known.pairs if p.a in targets and p.b in targets)
    paired = {word for p in pairs for word in (p.a, p.b)}
    unpaired = tuple(sorted({*targets} - paired))
    return WordList(LIST, "", known.source, pairs, unpaired, known.groups)


def _write(
    store: Store,
    corpus: str,
    known: Mapping[str, ReleasedRow],
    counts: _Counts | None,
    rejects: Sequence[tuple[Path, ReleasedRow]],
    total: int,
    run_id: str,
) -> None:
    partition = {"corpus": corpus}
    n_word = {word: int(r.values["n_word"]) for word, r in known.items()}
    row: dict[str, object] = {
        **{"corpus": corpus, "source": "imported", "run_id": run_id},
        **dict.fromkeys(("n_shards", "n_shards_failed", "n_rejected"), 0),
        "n_kept_tokens": total,
        "n_words_kept": len(known),
        "n_tokens_pruned": total - sum(n_word.values()),
    }
    counted = set[str]()
    new: dict[str, pa.Table | list[dict[str, object]]] = {"pair_count": [], "word_list": []}
    if counts:
        counted = set(counts.pairs["word"].to_pylist())
        listed = _list_of(set(counts.pairs["target"].to_pylist()))
        rule: dict[str, object] = {"rule": RULE, "window_tokens": WINDOW}
        row |= {**rule, "targets": LIST, "targets_hash": listed.hash}
        row["n_words"] = len(known.keys() | {r.word for r in counts.rows if r.word})
        row["n_pairs"] = round(counts.per_token * total)
        pairs = counts.pairs
        for name, value in {**partition, **rule}.items():
            pairs = pairs.append_column(name, pa.array([value] * len(pairs)))
        new |= {"pair_count": pairs, "word_list": listed.rows(corpus)}
    new["word_count"] = [{**partition, "word": w, "n_word": n} for w, n in n_word.items()]
    released = {**partition, "contrast": CONTRAST, "n_defined": 1}
    deltas = [
        {**released, "word": w, "n_word": n_word[w], "delta_nats": r.values["delta_nats"]}
        for w, r in known.items()
        if w not in counted
    ]
    key = {"stage": "import", "subject": corpus, "run_id": run_id}
    rejected = [
        {
            **key,
            "source_file": file.name,
            "source_row": r.number,
            "reason": r.reason,
            "excerpt": excerpt(r.word.encode("utf-8", "surrogateescape")),
        }
        for file, r in rejects
    ]
    # Keep the old deltas of words with counts until `associate` has computed them again.
    is_counted = pc.field("word").isin(pa.array(counted, pa.string()))
    earlier = store.read("word_delta", pc.field("n_pair_f").is_valid() & is_counted, **partition)
    new["word_delta"] = pa.concat_tables([cast(TABLES["word_delta"], deltas), earlier])
    with store.transaction(run_id, "corpus import"):
        for name, rows in new.items():
            store.replace(name, rows, partition, run_id)
        store.replace("reject", rejected, {"stage": "import", "subject": corpus}, run_id)
        store.publish("corpus", [row], unit="corpus", run_id=run_id)
