"""Sentences around a word: a sample of its occurrences near targets, with the original text."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice, pairwise
from threading import Lock
from typing import NamedTuple
from warnings import warn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plumbline.jobs.counting.co_occurrences import Occurrences, Query
from plumbline.jobs.counting.kept_documents import Documents, Evidence, Shard
from plumbline.jobs.evidence.index import Hashes, Index, Row, mixed, text_hashes
from plumbline.jobs.kernel.tokens.tokenizer import Tokenizer
from plumbline.warehouse.errors import PlumblineError
from plumbline.warehouse.input.remote_files import located
from plumbline.warehouse.input.shards import field_value, is_parquet, lines, text_column
from plumbline.warehouse.text.escape import is_unicode

#: Pattern of a chunk of text. The tokenizer splits each chunk into words independently.
_CHUNK = re.compile(r"[^\s\x00]+")
#: Chunks of text shown before and after an occurrence and its target.
_N_CONTEXT = 8
#: Texts that are tokenized as one batch.
_BATCH = 256
#: New occurrences held beyond the sample before the sample is drawn again.
_MOST_PENDING = 200_000
#: Field of a record in which `corpus pack` writes the document's file.
_FILE_FIELD = "meta.file"
#: The sides of a contrast.
SIDES = ("a", "b")


class Occurrence(NamedTuple):
    """An occurrence of a word near a target.

    Attributes:
        rank: hash of the document's words, the position and the seed.
        word: index of the word.
        side: side of the target, 0 or 1.
        shard, row: index of the document's shard, and the document's row in that shard.
        text_hash: hash of the document's kept words.
        position, target_position: places of the word and of the nearest target among the
            document's kept words, from 0.
    """

    rank: int
    word: int
    side: int
    shard: int
    row: int
    text_hash: int
    position: int
    target_position: int


_HASHES = ("rank", "text_hash")
_RECORD = np.dtype([(x, np.uint64 if x in _HASHES else np.int64) for x in Occurrence._fields])
_Records = NDArray[np.void]


class OccurrenceSample:
    """The ``n`` occurrences of each word and side that have the lowest ranks of all offered.

    Each occurrence has the same chance, whatever the order of documents and shards, since its rank
    depends on the text and the seed alone. Copies of a document have equal ranks and count as one.
    """

    def __init__(self, query: Query, n: int, seed: int) -> None:
        self._n = n
        self._seed = np.array([seed], np.uint64)
        self._is_target_of_side = [np.isin(query.targets, side) for side in query.sides]
        self._held, self._lock = [np.empty(0, _RECORD)], Lock()

    def offer(self, shard: int, found: Occurrences, hashes: Hashes) -> None:
        """Offer the occurrences in some documents to the sample. Thread-safe."""
        offered = []
        for side, is_target in enumerate(self._is_target_of_side):
            pair = np.flatnonzero(is_target[found.target])
            distance = np.abs(found.target_at[pair] - found.at[found.occurrence[pair]])
            pair = pair[np.lexsort((distance, found.occurrence[pair]))]
            occurrence, nearest = np.unique(found.occurrence[pair], return_index=True)
            document = found.document[occurrence]
            position = found.documents.places(found.at[occurrence], document)
            with np.errstate(over="ignore"):
                scaled = position.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
                rank = mixed(hashes[document] ^ mixed(scaled + mixed(self._seed)))
            target_at = found.target_at[pair[nearest]]
            records = np.empty(occurrence.size, _RECORD)
            records["rank"], records["word"], records["side"] = rank, found.word[occurrence], side
            records["shard"], records["row"] = shard, found.documents.row[document]
            records["text_hash"], records["position"] = hashes[document], position
            records["target_position"] = found.documents.places(target_at, document)
            offered.append(_lowest(records, self._n))
        with self._lock:
            self._held += offered
            if sum(map(len, self._held)) > 2 * len(self._held[0]) + _MOST_PENDING:
                self._held = [_lowest(np.concatenate(self._held), self._n)]

    def occurrences(self) -> list[Occurrence]:
        """Return the sample, sorted by word, side and rank, without later copies."""
        lowest = _lowest(np.concatenate(self._held), self._n)
        return [Occurrence(*record) for record in lowest.tolist()]


def _lowest(records: _Records, n: int) -> _Records:
    """Return the ``n`` lowest ranks per word and side. Copies have equal ranks: keep the first."""
    keys = ("row", "shard", "rank", "side", "word")  # the last one decides first
    records = records[np.lexsort([records[key] for key in keys])]
    key, rank = records["word"] * 2 + records["side"], records["rank"]
    starts = np.diff(key, prepend=-1) != 0
    distinct = starts | np.append(True, rank[1:] != rank[:-1])[: rank.size]
    number = np.cumsum(distinct)
    number -= np.maximum.accumulate(np.where(starts, number, 0))
    lowest: _Records = records[distinct & (number < n)]
    return lowest


def snippet_rows(
    evidence: Evidence, index: Index, sample: Sequence[Occurrence], seed: int
) -> list[Row]:
    """Return a sample's rows of ``word_snippet``, without corpus, contrast and run.

    An occurrence has no row if its shard can no longer be read or has changed; a warning says how
    many have none. Each shard is read once, as far as needed.
    """
    hashes, n_copies = np.unique(index.text_hash, return_counts=True)
    copies = n_copies[np.searchsorted(hashes, np.array([o.text_hash for o in sample], np.uint64))]
    texts = _snippets(evidence, index.query, sample)
    if n_missing := len(sample) - len(texts):
        gone = "their shards are gone or have changed"
        warn(f"{n_missing:,} of {len(sample):,} sentences are left out: {gone}", stacklevel=2)
    sampled = {(o.shard, o.row) for o in sample}
    places = zip(index.shard.tolist(), index.row.tolist(), index.source.tolist(), strict=True)
    source = {(shard, row): k for shard, row, k in places if (shard, row) in sampled}
    rows, number = [], dict.fromkeys(((o.word, o.side) for o in sample), 0)
    for o, n in zip(sample, copies.tolist(), strict=True):
        if o not in texts:
            continue
        number[o.word, o.side] += 1
        file = texts[o].pop("file")
        row = {
            "word": index.query.words[o.word],
            "side": SIDES[o.side],
            "place": number[o.word, o.side],
            "seed": seed,
            **texts[o],
            "shard": evidence.shards[o.shard].name,
            "source_row": o.row,
            "source": index.sources[source[o.shard, o.row]],
            "file": file,
            "position": o.position,
            "n_copies": n,
        }
        rows.append(row)
    return rows


def _snippets(
    evidence: Evidence, query: Query, occurrences: Sequence[Occurrence]
) -> dict[Occurrence, Row]:
    """Return the text around each occurrence whose shard can be read and hasn't changed."""
    tokenizer = Tokenizer(evidence.targets.words, language=evidence.targets.language)
    snippet_of: dict[Occurrence, Row] = {}
    by_shard: list[dict[int, list[Occurrence]]] = [{} for _ in evidence.shards]
    for occurrence in occurrences:
        by_shard[occurrence.shard].setdefault(occurrence.row, []).append(occurrence)
    for shard, by_row in zip(evidence.shards, by_shard, strict=True):
        texts = _texts(shard, evidence.options.text_field, by_row) if by_row else iter(())
        while batch := list(islice(texts, _BATCH)):
            snippet_of.update(_from_texts(query, batch, by_row, tokenizer))
    return snippet_of


class _RowText(NamedTuple):
    """The text of a row of a shard, and the record's ``meta.file``."""

    row: int
    text: str
    file: str | None = None


def _texts(shard: Shard, field: str, rows: Collection[int]) -> Iterator[_RowText]:
    """Yield the texts of some rows, up to the first that can't be read.

    Texts that UTF-8 can't encode are skipped. The shard is read no further than needed.
    """
    with suppress(PlumblineError, OSError, ValueError):
        path, start, last = located(shard.name), 1, max(rows)
        for batch in text_column(path, field) if is_parquet(path) else ():
            for row in sorted(r for r in rows if start <= r < start + len(batch)):
                yield _RowText(row, batch[row - start].as_py() or "")
            start += len(batch)
            if start > last:
                return
        for row, line in enumerate(() if is_parquet(path) else lines(path), 1):
            if row in rows:
                parsed = json.loads(line)
                record = parsed if isinstance(parsed, dict) else {}
                file = field_value(record, _FILE_FIELD)
                text = str(field_value(record, field)), file if isinstance(file, str) else None
                if is_unicode(text[0]) and is_unicode(text[1] or ""):
                    yield _RowText(row, *text)
            if row >= last:
                return


def _from_texts(
    query: Query,
    texts: Sequence[_RowText],
    by_row: Mapping[int, Sequence[Occurrence]],
    tokenizer: Tokenizer,
) -> Iterator[tuple[Occurrence, Row]]:
    """Yield snippets of the occurrences in texts that haven't changed since they were counted."""
    spans = [[match.span() for match in _CHUNK.finditer(text)] for _, text, _ in texts]
    split = [
        tokenizer.words_of_chunks([text[a:b] for a, b in spans_of_text])
        for (_, text, _), spans_of_text in zip(texts, spans, strict=True)
    ]
    ids = query.ids(pa.array([word for words, _ in split for word in words], pa.string()))
    ends = np.cumsum([0, *(len(words) for words, _ in split)])
    rows = np.array([row for row, _, _ in texts])
    documents = Documents(ids, ends, rows, pa.nulls(len(texts), pa.string()))
    hashes = text_hashes(documents, query.keys).tolist()
    for k, (row, text, file) in enumerate(texts):
        words, chunk_ends = split[k]
        for o in by_row[row]:
            if o.text_hash == hashes[k]:
                last = o.position + (len(query.phrase) or 1) - 1
                places = np.searchsorted(
                    chunk_ends, [o.position, last, o.target_position], side="right"
                )
                parts = _parts(text, spans[k], *places.tolist())
                yield o, {"target": words[o.target_position], **parts, "file": file}


def _parts(text: str, spans: Sequence[tuple[int, int]], start: int, end: int, target: int) -> Row:
    """Return the text before, in and after chunks start..end, wide enough to include ``target``."""
    first = max(min(start, target) - _N_CONTEXT, 0)
    last = min(max(end, target) + _N_CONTEXT, len(spans) - 1)
    cuts = spans[first][0], spans[start][0], spans[end][1], spans[last][1]
    before, keyword, after = (" ".join(text[a:b].split()) for a, b in pairwise(cuts))
    return {"text_before": before, "keyword": keyword, "text_after": after}
