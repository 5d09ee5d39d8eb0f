"""Sentences around a word: a sample of its occurrences near targets, with the text as it stands."""

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

from plumbline.jobs.counting.kept_documents import Documents, Evidence
from plumbline.jobs.counting.partials import ORDER
from plumbline.jobs.evidence.sightings import Inquiry, Ints, Meetings, document_marks, mixed
from plumbline.jobs.kernel.tokenizer import Tokenizer
from plumbline.warehouse.errors import PlumblineError
from plumbline.warehouse.input.remote_files import located
from plumbline.warehouse.input.shards import field_value, kind_of, lines
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
#: Most occurrences that wait to be compared with those drawn.
_MOST_WAITING = 200_000
#: Where `corpus pack` notes the file of a document.
_FILE_FIELD = "meta.file"
#: Columns of ``word_snippet`` with the text of a place. ``is_text`` is false when the shard can't
#: be read any more or has changed: then the texts are the kept words alone. ``file`` is what the
#: document's record names as ``meta.file``, which ``corpus pack`` writes.
Snippet: TypeAlias = dict[str, str | bool | None]
#: The sides of a contrast.
SIDES = ("a", "b")


@dataclass(frozen=True)
class Occurrence:
    """An occurrence of a word near a target.

    Attributes:
        rank: a hash of the document's words, the position and the seed: the lowest are the sample.
        word, side: index of the word; 0 near a target of the first side, 1 near one of the second.
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
        self._places: list[Occurrence] = []
        self._n_waiting = min(max(n * self._limit.size, 1000), _MOST_WAITING)
        self._room, self._lock = self._n_waiting, Lock()

    def offer(self, shard: int, met: Meetings, marks: NDArray[np.uint64]) -> None:
        """Draw from the occurrences in some documents; from several threads."""
        offered = []
        for side, is_on in enumerate(self._is_on):
            on = np.flatnonzero(is_on[met.target])
            distance = np.abs(met.target_at[on] - met.at[met.occurrence[on]])
            on = on[np.lexsort((distance, met.occurrence[on]))]
            occurrence, first = np.unique(met.occurrence[on], return_index=True)
            word, document = met.word[occurrence], met.document[occurrence]
            position = met.documents.places(met.at[occurrence], document)
            with np.errstate(over="ignore"):
                own = position.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
                rank = mixed(marks[document] ^ mixed(own + mixed(self._seed)))
            some = self._first(word, side, rank)
            document, place = document[some], met.target_at[on[first[some]]]
            columns = rank[some], word[some], met.documents.row[document], marks[document]
            positions = position[some], met.documents.places(place, document)
            offered += [
                Occurrence(r, w, side, shard, row, mark, here, there)
                for r, w, row, mark, here, there in zip(
                    *(column.tolist() for column in (*columns, *positions)), strict=True
                )
            ]
        with self._lock:
            self._places += offered
            if len(self._places) > self._room:
                self._room = len(self.places()) + self._n_waiting

    def _first(self, word: Ints, side: int, rank: NDArray[np.uint64]) -> Ints:
        """Indices of the lowest ranks of each word, of copies the first."""
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

    def places(self) -> list[Occurrence]:
        """The sample by word, side and rank; of copies the first that stands there."""
        order = sorted(self._places, key=lambda p: (p.word, p.side, p.rank, p.shard, p.row))
        self._places = []
        for (word, side), group in groupby(order, key=lambda p: (p.word, p.side)):
            distinct = {p.rank: p for p in reversed(list(group))}
            ranks = sorted(distinct)[: self._n]
            self._places += [distinct[rank] for rank in ranks]
            if len(ranks) == self._n:
                self._limit[word, side] = ranks[-1]
        return self._places


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
    snippet_of: dict[Occurrence, Snippet] = {}
    for shard, source in enumerate(evidence.shards):
        of_row: dict[int, list[Occurrence]] = {}
        for place in places:
            if place.shard == shard:
                of_row.setdefault(place.row, []).append(place)
        texts = _readable(located(source.name), evidence, of_row) if of_row else iter(())
        while some := list(islice(texts, _AT_ONCE)):
            snippet_of.update(_from_texts(question, some, of_row, tokenizer))
        left = {row: [p for p in own if p not in snippet_of] for row, own in of_row.items()}
        snippet_of.update(_from_kept_words(evidence, question, shard, left))
        progress(shard + 1, len(evidence.shards))
    return [snippet_of[place] for place in places]


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
        """True if both can be written as UTF-8."""
        return is_unicode(self.text) and is_unicode(self.file or "")


def texts_of(path: Path, evidence: Evidence, rows: set[int]) -> Iterator[RowText]:
    """The texts of some rows of a shard; read no further than needed.

    Raises ``ValueError``, too, when the shard isn't what it was.
    """
    form, last = evidence.form, max(rows)
    if kind := kind_of(path):
        batches, start = kind.texts(path, form), 1
        if evidence.options.order:
            order = (evidence.directory / ORDER).read_bytes()
            batches = (batch for _, batch in blocks(path, form.decoder, order))
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
            yield RowText(row, str(field_value(record, form.text_field)), name)
        if row >= last:
            return


def _from_texts(
    question: Inquiry,
    texts: Sequence[RowText],
    of_row: Mapping[int, Sequence[Occurrence]],
    tokenizer: Tokenizer,
) -> Iterator[tuple[Occurrence, Snippet]]:
    """The places in texts; none of a text that has other words than those counted."""
    kept = [tokenizer.tokens(text) for _, text, _ in texts]
    ids = question.ids(pa.array([word for words in kept for word in words], pa.string()))
    ends = np.cumsum([0, *map(len, kept)])
    rows = np.array([row for row, _, _ in texts])
    marks = document_marks(
        Documents(ids, ends, rows, pa.nulls(len(texts), pa.string())), question.keys
    )
    for (row, text, file), words, mark in zip(texts, kept, marks.tolist(), strict=True):
        counted = [place for place in of_row[row] if place.mark == mark]
        if counted:
            chunks, n_words = _Chunks(text, tokenizer), len(question.phrase) or 1
            for place in counted:
                snippet = _from_text(place, n_words, text, words, chunks)
                yield place, {**snippet, "is_text": True, "file": file}


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
        """Index of the chunk that holds the kept word at this position, from 0."""
        stretch = bisect(self._before, position) - 1
        first, left = stretch * _STRETCH, position - self._before[stretch]
        within = range(first, min(first + _STRETCH, len(self.spans)))
        return first + bisect(within, left, key=lambda k: self._count(first, k))


def _from_text(
    place: Occurrence, n_words: int, text: str, kept: Sequence[str], chunks: _Chunks
) -> Snippet:
    spans = chunks.spans
    here, there = chunks.holding(place.position), chunks.holding(place.target_position)
    end = chunks.holding(place.position + n_words - 1)
    first = max(min(here, there) - _AROUND, 0)
    last = min(max(end, there) + _AROUND, len(spans) - 1)
    parts = (
        text[spans[first][0] : spans[here][0]],
        text[spans[here][0] : spans[end][1]],
        text[spans[end][1] : spans[last][1]],
    )
    before, keyword, after = (" ".join(part.split()) for part in parts)
    return {
        "target": kept[place.target_position],
        "text_before": before,
        "keyword": keyword,
        "text_after": after,
    }


def _from_kept_words(
    evidence: Evidence, question: Inquiry, shard: int, left: Mapping[int, Sequence[Occurrence]]
) -> Iterator[tuple[Occurrence, Snippet]]:
    """Places of a shard, by row, as kept words."""
    rows = [row for row, places in left.items() if places]
    for documents in evidence.documents(evidence.shards[shard], question.ids) if rows else ():
        for at in np.flatnonzero(np.isin(documents.row, rows)).tolist():
            ids = documents.values[documents.offsets[at] : documents.offsets[at + 1]]
            for place in left[int(documents.row[at])]:
                yield place, _kept(question, place, ids)


def _kept(question: Inquiry, place: Occurrence, ids: Ints) -> Snippet:
    words = [question.vocabulary[int(k)].as_py() if k >= 0 else "…" for k in ids]
    first = max(min(place.position, place.target_position) - _AROUND, 0)
    end = place.position + (len(question.phrase) or 1)
    last = max(end - 1, place.target_position) + _AROUND + 1
    return {
        "target": words[place.target_position],
        "text_before": " ".join(words[first : place.position]),
        "keyword": " ".join(words[place.position : end]),
        "text_after": " ".join(words[end:last]),
        "is_text": False,
        "file": None,
    }
