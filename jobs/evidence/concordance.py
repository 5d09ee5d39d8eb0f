"""Sentences around a word: a sample of its occurrences near targets, with the original text."""

from __future__ import annotations

import json
import re
from bisect import bisect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, islice
from pathlib import Path
from threading import Lock
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plumbline.jobs.counting.document_words import Documents, Evidence
from plumbline.jobs.evidence.index import Hashes, Ints, Occurrences, mixed, text_hashes
from plumbline.jobs.evidence.queries import Query
from plumbline.jobs.kernel.chunks import Tokenizer
from plumbline.warehouse.errors import PlumblineError
from plumbline.warehouse.input.remote_files import located
from plumbline.warehouse.input.shards import field_value, is_parquet, lines, text_column
from plumbline.warehouse.text.escape import is_unicode

#: Pattern of a chunk of text. The tokenizer splits each chunk into words independently.
_CHUNK = re.compile(r"[^\s\x00]+")
#: Chunks of text shown before and after an occurrence and its target.
_N_CONTEXT = 8
#: Chunks between two running totals of kept words, see ``_Chunks``.
_STRIDE = 256
#: Texts that are tokenized as one batch.
_BATCH = 256
#: Most occurrences held besides the sample before it is drawn anew.
_MOST_PENDING = 200_000
#: The record's field in which `corpus pack` writes the file of a document.
_FILE_FIELD = "meta.file"
#: Columns of ``word_snippet`` with the text around an occurrence. ``is_text`` is false if the shard
#: can no longer be read or has changed; the text columns then hold only the kept words. ``file`` is
#: the record's field ``meta.file``.
Snippet: TypeAlias = dict[str, str | bool | None]
#: The sides of a contrast.
SIDES = ("a", "b")


@dataclass(frozen=True)
class Occurrence:
    """An occurrence of a word near a target.

    Attributes:
        rank: hash of the document's words, the position and the seed.
        word: index of the word.
        side: side of the target, 0 or 1.
        shard, row: index of the document's shard, and its row there.
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


class OccurrenceSample:
    """The ``n`` offered occurrences with the lowest ranks per word and side.

    Each occurrence has the same chance, whatever the order of documents and shards, since its rank
    depends on the text and the seed alone. Copies of a document have equal ranks and count as one.
    If ``targets`` are given, only occurrences near them count; if ``words`` are, only theirs.
    """

    def __init__(
        self,
        query: Query,
        n: int,
        seed: int,
        targets: Sequence[str] = (),
        words: Collection[str] | None = None,
    ) -> None:
        self._n = n
        self._seed = np.array([seed], np.uint64)
        accepted = set(targets or query.targets)
        self._is_target_of_side = [
            np.isin(query.targets, sorted(accepted.intersection(x))) for x in query.sides
        ]
        self._is_sampled = np.array([words is None or word in words for word in query.words])
        # The highest rank in the sample, by word and side.
        self._limit = np.full((len(query.words), 2), np.iinfo(np.uint64).max, np.uint64)
        self._held: list[Occurrence] = []
        self._n_pending = min(max(n * self._limit.size, 1000), _MOST_PENDING)
        self._most_held, self._lock = self._n_pending, Lock()

    def offer(self, shard: int, found: Occurrences, hashes: Hashes) -> None:
        """Offer the occurrences in some documents to the sample. Thread-safe."""
        offered = []
        for side, is_target in enumerate(self._is_target_of_side):
            is_sampled = self._is_sampled[found.word[found.occurrence]]
            pair = np.flatnonzero(is_target[found.target] & is_sampled)
            distance = np.abs(found.target_at[pair] - found.at[found.occurrence[pair]])
            pair = pair[np.lexsort((distance, found.occurrence[pair]))]
            occurrence, nearest = np.unique(found.occurrence[pair], return_index=True)
            word, document = found.word[occurrence], found.document[occurrence]
            position = found.documents.places(found.at[occurrence], document)
            with np.errstate(over="ignore"):
                scaled = position.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
                rank = mixed(hashes[document] ^ mixed(scaled + mixed(self._seed)))
            lowest = self._lowest(word, side, rank)
            document, target_at = document[lowest], found.target_at[pair[nearest[lowest]]]
            columns = rank[lowest], word[lowest], found.documents.row[document], hashes[document]
            positions = position[lowest], found.documents.places(target_at, document)
            offered += [
                Occurrence(r, w, side, shard, row, text_hash, here, there)
                for r, w, row, text_hash, here, there in zip(
                    *(column.tolist() for column in (*columns, *positions)), strict=True
                )
            ]
        with self._lock:
            self._held += offered
            if len(self._held) > self._most_held:
                self._most_held = len(self.occurrences()) + self._n_pending

    def _lowest(self, word: Ints, side: int, rank: NDArray[np.uint64]) -> Ints:
        """Indices of each word's occurrences with the lowest ranks, without later copies."""
        within = np.flatnonzero(rank <= self._limit[word, side])
        order = within[np.lexsort((rank[within], word[within]))]
        word, rank = word[order], rank[order]
        starts = np.append(True, word[1:] != word[:-1])[: word.size]
        # Copies have equal ranks.
        distinct = starts | np.append(True, rank[1:] != rank[:-1])[: word.size]
        number = np.cumsum(distinct)
        number -= np.maximum.accumulate(np.where(starts, number, 0))
        chosen: Ints = order[distinct & (number < self._n)]
        return chosen

    def occurrences(self) -> list[Occurrence]:
        """The sample, sorted by word, side and rank, without later copies."""
        order = sorted(self._held, key=lambda o: (o.word, o.side, o.rank, o.shard, o.row))
        self._held = []
        for (word, side), group in groupby(order, key=lambda o: (o.word, o.side)):
            distinct = {o.rank: o for o in reversed(list(group))}
            ranks = sorted(distinct)[: self._n]
            self._held += [distinct[rank] for rank in ranks]
            if len(ranks) == self._n:
                self._limit[word, side] = ranks[-1]
        return self._held


def snippets(
    evidence: Evidence,
    query: Query,
    occurrences: Sequence[Occurrence],
    progress: Callable[[int, int], None] = lambda *_: None,
) -> list[Snippet]:
    """The texts of the occurrences, in their order; each shard is read once, as far as needed.

    Args:
        progress: called with (shards read, shards).
    """
    tokenizer = Tokenizer(evidence.targets.words, language=evidence.targets.language)
    snippet_of: dict[Occurrence, Snippet] = {}
    for shard, source in enumerate(evidence.shards):
        by_row: dict[int, list[Occurrence]] = {}
        for occurrence in occurrences:
            if occurrence.shard == shard:
                by_row.setdefault(occurrence.row, []).append(occurrence)
        texts = _readable(located(source.name), evidence, by_row) if by_row else iter(())
        while batch := list(islice(texts, _BATCH)):
            snippet_of.update(_from_texts(query, batch, by_row, tokenizer))
        textless = {row: [o for o in group if o not in snippet_of] for row, group in by_row.items()}
        snippet_of.update(_from_kept_words(evidence, query, shard, textless))
        progress(shard + 1, len(evidence.shards))
    return [snippet_of[occurrence] for occurrence in occurrences]


def _readable(path: Path, evidence: Evidence, rows: Collection[int]) -> Iterator[RowText]:
    """The valid texts of some rows, up to the first row that can't be read."""
    try:
        yield from (text for text in texts_of(path, evidence, set(rows)) if text.is_valid)
    except (PlumblineError, OSError, ValueError):
        return


class RowText(NamedTuple):
    """The text of a row of a shard, and the record's ``meta.file``."""

    row: int
    text: str
    file: str | None = None

    @property
    def is_valid(self) -> bool:
        """True if both can be written as UTF-8."""
        return is_unicode(self.text) and is_unicode(self.file or "")


def texts_of(path: Path, evidence: Evidence, rows: set[int]) -> Iterator[RowText]:
    """The texts of some rows of a shard, which is read no further than needed.

    Raises ``ValueError`` if the shard has changed and a row can't be parsed, and the errors that
    readers of shards raise.
    """
    text_field, last = evidence.options.text_field, max(rows)
    if is_parquet(path):
        start = 1
        for batch in text_column(path, text_field):
            for row in sorted(r for r in rows if start <= r < start + len(batch)):
                yield RowText(row, batch[row - start].as_py() or "")
            start += len(batch)
            if start > last:
                return
        return
    for row, line in enumerate(lines(path), 1):
        if row in rows:
            parsed = json.loads(line)
            record = parsed if isinstance(parsed, dict) else {}
            file = field_value(record, _FILE_FIELD)
            name = file if isinstance(file, str) else None
            yield RowText(row, str(field_value(record, text_field)), name)
        if row >= last:
            return


def _from_texts(
    query: Query,
    texts: Sequence[RowText],
    by_row: Mapping[int, Sequence[Occurrence]],
    tokenizer: Tokenizer,
) -> Iterator[tuple[Occurrence, Snippet]]:
    """Snippets of the occurrences in those texts that haven't changed since they were counted."""
    kept_words = [tokenizer.tokens(text) for _, text, _ in texts]
    ids = query.ids(pa.array([word for words in kept_words for word in words], pa.string()))
    ends = np.cumsum([0, *map(len, kept_words)])
    rows = np.array([row for row, _, _ in texts])
    documents = Documents(ids, ends, rows, pa.nulls(len(texts), pa.string()))
    hashes = text_hashes(documents, query.keys).tolist()
    for (row, text, file), words, text_hash in zip(texts, kept_words, hashes, strict=True):
        unchanged = [occurrence for occurrence in by_row[row] if occurrence.text_hash == text_hash]
        if unchanged:
            chunks, n_words = _Chunks(text, tokenizer), len(query.phrase) or 1
            for occurrence in unchanged:
                snippet = _from_text(occurrence, n_words, text, words, chunks)
                yield occurrence, {**snippet, "is_text": True, "file": file}


class _Chunks:
    """The chunks of a text, and a lookup of the chunk that holds a kept word.

    No word crosses chunks, so the words before a chunk can be counted. A running total is stored
    every ``_STRIDE`` chunks, since a text may be a book, too long to count for each occurrence.
    """

    def __init__(self, text: str, tokenizer: Tokenizer) -> None:
        self.spans = [m.span() for m in _CHUNK.finditer(text)]
        self._text, self._tokenizer = text, tokenizer
        firsts = range(0, len(self.spans), _STRIDE)
        counts = (self._count(k, min(k + _STRIDE, len(self.spans)) - 1) for k in firsts)
        self._n_before = [0, *accumulate(counts)]

    def _count(self, first: int, last: int) -> int:
        """Kept words of the chunks first..last."""
        return self._tokenizer.count(self._text[self.spans[first][0] : self.spans[last][1]])

    def index_of(self, position: int) -> int:
        """Index of the chunk that holds the kept word at this position, from 0."""
        total = bisect(self._n_before, position) - 1
        first, offset = total * _STRIDE, position - self._n_before[total]
        candidates = range(first, min(first + _STRIDE, len(self.spans)))
        return first + bisect(candidates, offset, key=lambda k: self._count(first, k))


def _from_text(
    occurrence: Occurrence, n_words: int, text: str, kept_words: Sequence[str], chunks: _Chunks
) -> Snippet:
    spans = chunks.spans
    start, target = map(chunks.index_of, (occurrence.position, occurrence.target_position))
    end = chunks.index_of(occurrence.position + n_words - 1)
    first = max(min(start, target) - _N_CONTEXT, 0)
    last = min(max(end, target) + _N_CONTEXT, len(spans) - 1)
    parts = (
        text[spans[first][0] : spans[start][0]],
        text[spans[start][0] : spans[end][1]],
        text[spans[end][1] : spans[last][1]],
    )
    before, keyword, after = (" ".join(part.split()) for part in parts)
    return {
        "target": kept_words[occurrence.target_position],
        "text_before": before,
        "keyword": keyword,
        "text_after": after,
    }


def _from_kept_words(
    evidence: Evidence, query: Query, shard: int, by_row: Mapping[int, Sequence[Occurrence]]
) -> Iterator[tuple[Occurrence, Snippet]]:
    """Snippets of the occurrences in a shard, made of kept words."""
    rows = [row for row, occurrences in by_row.items() if occurrences]
    for documents in evidence.documents(evidence.shards[shard], query.ids) if rows else ():
        for at in np.flatnonzero(np.isin(documents.row, rows)).tolist():
            ids = documents.values[documents.offsets[at] : documents.offsets[at + 1]]
            for occurrence in by_row[int(documents.row[at])]:
                yield occurrence, _snippet_of_ids(query, occurrence, ids)


def _snippet_of_ids(query: Query, occurrence: Occurrence, ids: Ints) -> Snippet:
    words = [query.vocabulary[int(k)].as_py() if k >= 0 else "…" for k in ids]
    position, target_position = occurrence.position, occurrence.target_position
    first = max(min(position, target_position) - _N_CONTEXT, 0)
    end = position + (len(query.phrase) or 1)
    last = max(end - 1, target_position) + _N_CONTEXT + 1
    return {
        "target": words[target_position],
        "text_before": " ".join(words[first:position]),
        "keyword": " ".join(words[position:end]),
        "text_after": " ".join(words[end:last]),
        "is_text": False,
        "file": None,
    }
