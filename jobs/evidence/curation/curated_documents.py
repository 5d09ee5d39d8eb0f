"""Documents of a counted corpus that a filter or deduplication kept, matched by id or content."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from plumbline.jobs.counting.document_words import Evidence
from plumbline.jobs.evidence.change import Bools, Progress, matched
from plumbline.jobs.evidence.sightings import DocumentTable
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.input.remote_files import located, open_file, unreadable
from plumbline.warehouse.input.shards import (
    MISSING,
    expand_shards,
    field_value,
    fingerprint,
    is_parquet,
    kind_of,
    lines,
)

#: Fields with a document's id, as datatrove and Dolma (`id`), and NeMo Curator write them.
ID_FIELDS = ("id", "metadata.id", "meta.id", "doc_id", "_curator_dedup_id")
#: uint64[field, document]: hashes of ids and, as the last field, of the text; 0 if there is none.
Hashes = NDArray[np.uint64]


@dataclass(frozen=True)
class Curation:
    """Mask of the documents that a curation kept, and counts; AFTER is the curated text.

    Attributes:
        kept: mask over the documents of the corpus.
        n_removed: removed documents; may be a lower bound, see ``curation_of``.
        n_after: documents of AFTER.
        n_new: documents of AFTER that match no document of the corpus.
        n_changed: kept documents, matched by their id, whose text differs.
    """

    kept: Bools
    n_removed: int
    n_after: int
    n_new: int
    n_changed: int = 0

    @property
    def n_unmatched(self) -> int:
        """Documents that are neither kept nor known to be removed; their text may have changed."""
        return len(self.kept) - int(self.kept.sum()) - self.n_removed


def of_shards(
    evidence: Evidence,
    table: DocumentTable,
    after: Sequence[str],
    removed: Sequence[str] = (),
    progress: Progress = lambda *_: None,
) -> Curation:
    """The curation, from shards of the kept and, if given, shards of the removed documents.

    A document is matched by an id that only one document of the corpus has, else by its text, one
    to one.

    Raises:
        UsageProblem: a shard is neither JSON lines nor Parquet.
        BadInput: a shard can't be read, or one of the corpus has changed since it was counted.
    """
    outputs = [expand_shards(after), expand_shards(removed) if removed else []]
    n, done = len(evidence.shards) + sum(map(len, outputs)), 0
    field = evidence.options.text_field

    def read(path: Path) -> Hashes:
        nonlocal done
        if kind_of(path) is not None and not is_parquet(path):
            fix = "count what was kept as a corpus, and give its name"
            raise UsageProblem(f"shard {path}", "has neither ids nor texts to match", fix)
        hashes = _hashes(path, field)
        done += 1
        progress(done, n)
        return hashes

    corpus_hashes = np.zeros((len(ID_FIELDS) + 1, len(table.row)), np.uint64)
    for index, shard in enumerate(evidence.shards):
        path = located(shard.name)
        if fingerprint(path) != shard.fingerprint:
            fix = "count the corpus again first"
            raise BadInput(f"shard {shard.name}", "has changed since it was counted", fix)
        is_here = table.shard == index
        corpus_hashes[:, is_here] = read(path)[:, table.row[is_here] - 1]
    kept_hashes, removed_hashes = (
        np.concatenate([corpus_hashes[:, :0], *map(read, paths)], axis=1) for paths in outputs
    )
    every = np.ones(len(table.row), np.bool_)
    kept, known, n_changed = _matches(corpus_hashes, kept_hashes, every)
    gone, *_ = _matches(corpus_hashes, removed_hashes, ~kept)
    return curation_of(kept, known, int(gone.sum()) if removed else None, n_changed)


def curation_of(
    kept: Bools, known: Bools, n_removed: int | None = None, n_changed: int = 0
) -> Curation:
    """The curation, from masks of the corpus's documents in AFTER and AFTER's in the corpus.

    If ``n_removed`` isn't known, a lower bound is used: each new document of AFTER may be a changed
    version of a document that AFTER lacks.
    """
    n_new = int((~known).sum())
    if n_removed is None:
        n_removed = max(int((~kept).sum()) - n_new, 0)
    return Curation(kept, n_removed, known.size, n_new, n_changed)


def _matches(corpus: Hashes, output: Hashes, is_free: Bools) -> tuple[Bools, Bools, int]:
    """Masks of the matched documents in corpus and output; matches by id with another text.

    ``is_free`` masks the corpus's documents that may be matched.

    >>> a, b = (np.zeros((len(ID_FIELDS) + 1, 2), np.uint64) for _ in range(2))
    >>> a[0], a[-1], b[0], b[-1] = [1, 0], [7, 8], [1, 0], [9, 8]
    >>> _matches(a, b, np.ones(2, bool))
    (array([ True,  True]), array([ True,  True]), 1)
    """
    has_match, output_has = np.zeros_like(is_free), np.zeros(output.shape[1], np.bool_)
    n_changed = 0
    for k, (a, b) in enumerate(zip(corpus, output, strict=True)):
        is_id = k < len(ID_FIELDS)
        open_a, open_b = is_free & ~has_match & (a != 0), ~output_has & (b != 0)
        if is_id:
            ids, n = np.unique(a, return_counts=True)
            open_a &= np.isin(a, ids[n == 1])
        at_a, at_b = np.flatnonzero(open_a), np.flatnonzero(open_b)
        is_matched_a, is_matched_b = matched(a[at_a], b[at_b])
        at_a, at_b = at_a[is_matched_a], at_b[is_matched_b]
        has_match[at_a], output_has[at_b] = True, True
        if is_id:
            texts = output[-1, at_b]
            texts = texts[texts != 0]
            n_changed += int(texts.size - matched(corpus[-1, at_a], texts)[0].sum())
    return has_match, output_has, n_changed


def _hashes(path: Path, text_field: str) -> Hashes:
    rows = []
    for record in _records(path, (*ID_FIELDS, text_field, "text")):
        text = field_value(record, text_field)
        ids = (field_value(record, field) for field in ID_FIELDS)
        rows.append([*map(_hash, ids), _hash(record.get("text") if text is MISSING else text)])
    return np.array(rows, np.uint64).reshape(-1, len(ID_FIELDS) + 1).T


def _hash(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, str | int):
        return 0
    digest = blake2b(str(value).encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") or 1


def _records(path: Path, fields: Sequence[str]) -> Iterator[Mapping[str, object]]:
    """Yield a shard's records, at least these fields of each; an invalid record is empty."""
    if not is_parquet(path):
        for line in lines(path):
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                record = {}
            yield record if isinstance(record, dict) else {}
        return
    try:
        with open_file(path) as raw, pq.ParquetFile(raw) as file:
            columns = {file.schema.column(k).path for k in range(len(file.schema))}
            for batch in file.iter_batches(1024, columns=[f for f in fields if f in columns]):
                yield from batch.to_pylist()
    except (OSError, pa.ArrowInvalid) as e:
        raise unreadable(path, e) from e
