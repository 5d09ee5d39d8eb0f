"""Sentences around a word: a sample of its occurrences near targets, with the text as it stands."""

from __future__ import annotations

import json
import re
from bisect import bisect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plumbline.jobs.counting.kept_documents import Documents, Evidence
from plumbline.jobs.counting.partials import DECODER, ORDER
from plumbline.jobs.evidence.sightings import Inquiry, Ints, Meetings, document_marks, mixed
from plumbline.jobs.kernel.tokenizer import Tokenizer
from plumbline.warehouse.errors import PlumblineError
from plumbline.warehouse.input.shards import RecordForm, field_value, kind_of, lines
from plumbline.warehouse.input.sources import located
from plumbline.warehouse.input.training_order import blocks
from plumbline.warehouse.text.escape import is_unicode

#: What separates the chunks that are split into words, each for itself.
_CHUNK = re.compile(r"[^\s\x00]+")
#: Chunks of text shown before and after.
_AROUND = 8
#: Chunks whose words are counted together.
_STRETCH = 256
#: Texts whose words are looked up at once.
_AT_ONCE = 256
#: Where `corpus pack` notes the file of a document.
_FILE_FIELD = "meta.file"
#: The sides of a contrast.
SIDES = ("female", "male")


@dataclass(frozen=True)
class Occurrence:
    """An occurrence of a word near a target.

    Attributes:
        rank: a hash of the document's words, the position and the seed: the lowest are the sample.
        word, side: index of the word; 0 near a female target, 1 near a male one.
        shard, row: of the document.
        mark: of the document.
        position, target_position: of the word and of the nearest such target, in kept words from 0.
    """

    rank: int
    word: int
    side: int
    shard: int
    row: int
    mark: int
    position: int
    target_position: int


class OccurrenceSample:
    """The occurrences of lowest rank of each word and side, over all that was offered.

    Every occurrence has the same chance, whatever order they come in and however they are spread
    over shards, since its rank comes from the text around it. Copies of a document have the same
    ranks and are drawn together, as one.
    """

    def __init__(self, question: Inquiry, n: int, seed: int, targets: Sequence[str] = ()) -> None:
        self._n = n
        self._seed = np.array([seed], np.uint64)
        near = set(targets or question.targets)
        self._is_on = [
            np.isin(question.targets, sorted(near.intersection(side))) for side in question.sides
        ]
        # Of each word and side the highest rank that is still in the sample.
        self._limit = np.full((len(question.words), 2), np.iinfo(np.uint64).max, np.uint64)

    def offer(self, shard: int, met: Meetings, marks: NDArray[np.uint64]) -> list[Occurrence]:
        """The occurrences in some documents that may be among the lowest."""
        starts = met.documents.offsets[:-1]
        found = []
        for side, is_on in enumerate(self._is_on):
            on = np.flatnonzero(is_on[met.target])
            distance = np.abs(met.target_at[on] - met.at[met.occurrence[on]])
            on = on[np.lexsort((distance, met.occurrence[on]))]
            occurrence, first = np.unique(met.occurrence[on], return_index=True)
            word, document = met.word[occurrence], met.document[occurrence]
            position = met.at[occurrence] - starts[document]
            with np.errstate(over="ignore"):
                own = position.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
                rank = mixed(marks[document] ^ mixed(own + mixed(self._seed)))
            some = self._first(word, side, rank)
            document, place = document[some], met.target_at[on[first[some]]]
            columns = rank[some], word[some], met.documents.row[document], marks[document]
            places = position[some], place - starts[document]
            found += [
                Occurrence(r, w, side, shard, row, mark, here, there)
                for r, w, row, mark, here, there in zip(
                    *(column.tolist() for column in (*columns, *places)), strict=True
                )
            ]
        return found

    def _first(self, word: Ints, side: int, rank: NDArray[np.uint64]) -> Ints:
        """Which are the first of the lowest ranks of each word."""
        within = np.flatnonzero(rank <= self._limit[word, side])
        order = within[np.lexsort((rank[within], word[within]))]
        word, rank = word[order], rank[order]
        starts = np.append(True, word[1:] != word[:-1])[: word.size]
        # Copies have equal ranks and are one: the first stands for all.
        distinct = starts | np.append(True, rank[1:] != rank[:-1])[: word.size]
        number = np.cumsum(distinct)
        number -= np.maximum.accumulate(np.where(starts, number, 0))
        chosen: Ints = order[distinct & (number < self._n)]
        return chosen

    def lowest(self, places: Sequence[Occurrence]) -> list[Occurrence]:
        """Those of the places offered that are in the sample; later ones must rank as low."""
        found = lowest(places, self._n)
        for (word, side), own in groupby(found, key=lambda p: (p.word, p.side)):
            ranks = [p.rank for p in own]
            if len(ranks) == self._n:
                self._limit[word, side] = ranks[-1]
        return found


def lowest(places: Sequence[Occurrence], n: int) -> list[Occurrence]:
    """The ``n`` of lowest rank for each word and side; of copies the first that stands there."""
    order = sorted(places, key=lambda p: (p.word, p.side, p.rank, p.shard, p.row))
    found = []
    for _, group in groupby(order, key=lambda p: (p.word, p.side)):
        distinct = {p.rank: p for p in reversed(list(group))}
        found += [distinct[rank] for rank in sorted(distinct)[:n]]
    return found


@dataclass(frozen=True)
class Snippet:
    """A place with its text: what stands before the word, the word, what follows, the target.

    ``text`` is false when the shard can't be read any more or has changed: then these are the kept
    words alone. ``file`` is what the document's record names as ``meta.file``, which
    ``corpus pack`` writes.
    """

    place: Occurrence
    before: str
    keyword: str
    after: str
    target: str
    text: bool = True
    file: str | None = None


def snippets(
    evidence: Evidence,
    question: Inquiry,
    places: Sequence[Occurrence],
    progress: Callable[[int, int], None] = lambda *_: None,
) -> list[Snippet]:
    """The places with their texts, in the same order; each shard is read once, as far as needed.

    Args:
        progress: called with (shards read, shards).
    """
    tokenizer = Tokenizer(evidence.options.targets, language=evidence.options.language)
    found: dict[Occurrence, Snippet] = {}
    for shard, source in enumerate(evidence.shards):
        of_row: dict[int, list[Occurrence]] = {}
        for place in places:
            if place.shard == shard:
                of_row.setdefault(place.row, []).append(place)
        texts = _readable(located(source.name), evidence, of_row) if of_row else iter(())
        while some := list(islice(texts, _AT_ONCE)):
            for snippet in _from_texts(question, some, of_row, tokenizer):
                found[snippet.place] = snippet
        for snippet in _from_kept_words(evidence, question, shard, of_row, found):
            found[snippet.place] = snippet
        progress(shard + 1, len(evidence.shards))
    return [found[place] for place in places]


def _readable(path: Path, evidence: Evidence, rows: Collection[int]) -> Iterator[RowText]:
    """The texts of rows as far as the shard can be read."""
    try:
        yield from (of_row for of_row in texts_of(path, evidence, set(rows)) if of_row.is_valid)
    except (PlumblineError, OSError, ValueError):
        return


class RowText(NamedTuple):
    """The text of a row of a shard, and the file that the record names."""

    row: int
    text: str
    file: str | None = None

    @property
    def is_valid(self) -> bool:
        """Whether both can be written as UTF-8."""
        return is_unicode(self.text) and is_unicode(self.file or "")


def texts_of(path: Path, evidence: Evidence, rows: set[int]) -> Iterator[RowText]:
    """The texts of some rows of a shard; read no further than needed.

    Raises ``ValueError``, too, when the shard isn't what it was.
    """
    field, last = evidence.options.text_field, max(rows)
    if kind := kind_of(path):
        options, start = evidence.options, 1
        decoder = (evidence.directory / DECODER).read_bytes() if options.decoder else b""
        batches = kind.texts(path, RecordForm(field, decoder))
        if options.order:
            order = (evidence.directory / ORDER).read_bytes()
            batches = (batch for _, batch in blocks(path, decoder, order))
        for batch in batches:
            for row in sorted(r for r in rows if start <= r < start + len(batch)):
                text = batch[row - start].as_py() or ""
                yield RowText(row, text if isinstance(text, str) else text.decode())
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
            yield RowText(row, str(field_value(record, field)), name)
        if row >= last:
            return


def _from_texts(
    question: Inquiry,
    texts: Sequence[RowText],
    of_row: Mapping[int, Sequence[Occurrence]],
    tokenizer: Tokenizer,
) -> Iterator[Snippet]:
    """The places in texts; none of a text that has other words than those counted."""
    kept = [tokenizer.tokens(text) for _, text, _ in texts]
    ids = question.ids(pa.array([word for words in kept for word in words], pa.string()))
    ends = np.cumsum([0, *map(len, kept)])
    rows = np.array([row for row, _, _ in texts])
    marks = document_marks(
        Documents(ids, ends, rows, pa.nulls(len(texts), pa.string())), question.keys
    )
    for (row, text, file), words, mark in zip(texts, kept, marks.tolist(), strict=True):
        found = [place for place in of_row[row] if place.mark == mark]
        if not found:
            continue
        chunks = _Chunks(text, tokenizer)
        for place in found:
            yield replace(_from_text(place, text, words, chunks), file=file)


class _Chunks:
    """The chunks of a text, and which of them holds a kept word.

    Words never cross chunks, so their number up to a chunk is a sum. It is known at the start of
    every so many chunks: a text may be a whole book, too long to count anew for each place.
    """

    def __init__(self, text: str, tokenizer: Tokenizer) -> None:
        self.spans = [m.span() for m in _CHUNK.finditer(text)]
        self._text, self._tokenizer = text, tokenizer
        firsts = range(0, len(self.spans), _STRETCH)
        counts = (self._count(k, min(k + _STRETCH, len(self.spans)) - 1) for k in firsts)
        self._before = [0, *accumulate(counts)]

    def _count(self, first: int, last: int) -> int:
        """Kept words of the chunks first..last."""
        return self._tokenizer.count(self._text[self.spans[first][0] : self.spans[last][1]])

    def holding(self, position: int) -> int:
        """Which chunk holds the kept word at this position, from 0."""
        stretch = bisect(self._before, position) - 1
        first, left = stretch * _STRETCH, position - self._before[stretch]
        within = range(first, min(first + _STRETCH, len(self.spans)))
        return first + bisect(within, left, key=lambda k: self._count(first, k))


def _from_text(place: Occurrence, text: str, kept: Sequence[str], chunks: _Chunks) -> Snippet:
    spans = chunks.spans
    here, there = chunks.holding(place.position), chunks.holding(place.target_position)
    first = max(min(here, there) - _AROUND, 0)
    last = min(max(here, there) + _AROUND, len(spans) - 1)
    before, after = text[spans[first][0] : spans[here][0]], text[spans[here][1] : spans[last][1]]
    target = kept[place.target_position]
    return Snippet(place, _plain(before), text[slice(*spans[here])], _plain(after), target)


def _plain(text: str) -> str:
    return " ".join(text.split())


def _from_kept_words(
    evidence: Evidence,
    question: Inquiry,
    shard: int,
    of_row: Mapping[int, Sequence[Occurrence]],
    found: Collection[Occurrence],
) -> Iterator[Snippet]:
    """The places of a shard that were not found in its text."""
    left = {row: [p for p in places if p not in found] for row, places in of_row.items()}
    left = {row: places for row, places in left.items() if places}
    if not left:
        return
    for documents in evidence.documents(evidence.shards[shard], question.ids):
        for at in np.flatnonzero(np.isin(documents.row, list(left))).tolist():
            ids = documents.values[documents.offsets[at] : documents.offsets[at + 1]]
            for place in left[int(documents.row[at])]:
                yield _kept(question, place, ids)


def _kept(question: Inquiry, place: Occurrence, ids: Ints) -> Snippet:
    words = [question.vocabulary[int(k)].as_py() if k >= 0 else "…" for k in ids]
    first = max(min(place.position, place.target_position) - _AROUND, 0)
    last = max(place.position, place.target_position) + _AROUND + 1
    before = " ".join(words[first : place.position])
    after = " ".join(words[place.position + 1 : last])
    target = words[place.target_position]
    return Snippet(place, before, words[place.position], after, target, text=False)
