"""Count words and their co-occurrences in JSON lines or texts, and return Arrow tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plumbline.jobs.kernel.cooccurrences import TargetPairs
from plumbline.jobs.kernel.document_stream import DocumentLog, TokenStream
from plumbline.jobs.kernel.json_parser import DOUBT, FULL, ReaderState, read_lines
from plumbline.jobs.kernel.line_verdict import LONGEST_JUDGED, LineVerdict, excerpt, judge
from plumbline.jobs.kernel.memory import SLACK, Limits, address, new_record
from plumbline.jobs.kernel.pair_runs import AllPairs
from plumbline.jobs.kernel.tokens.chunks import END, move
from plumbline.jobs.kernel.tokens.tokenizer import Targets, Tokenizer, tokenize
from plumbline.jobs.kernel.tokens.words import IdState, Words, WordState

if TYPE_CHECKING:
    from plumbline.jobs.kernel.corpus_options import CorpusOptions

#: Bytes of text that are tokenized and counted together. They fit in the processor's cache.
BATCH_BYTES = 1 << 18
#: Maximum number of rejected documents in memory.
_MAX_REJECTS = 1 << 15
#: Columns of a rejected document: its line or row (from 1), the reason, and how its text begins.
_REJECT = pa.schema([("source_row", pa.int64()), ("reason", pa.string()), ("excerpt", pa.string())])


@dataclass(frozen=True)
class ShardCounts:
    """Totals of one shard. ``n_documents_in`` is always ``n_documents`` + ``n_rejected``.

    Attributes:
        n_tokens: word tokens before the stop filter.
        n_kept_tokens: word tokens after the stop filter.
        n_pairs: co-occurrences of any two kept words, not only of a word and a target.
    """

    n_documents: int
    n_rejected: int
    n_tokens: int
    n_kept_tokens: int
    n_pairs: int

    @property
    def n_documents_in(self) -> int:
        return self.n_documents + self.n_rejected


#: A function that stores a table. Its arguments are the kind of table and the table. The kinds are
#: ``words`` (word, n_word and, if documents are kept, word_id), ``pairs`` (word, target, n_pair),
#: ``rejects``, and ``tokens`` (documents as word ids, which are in the next table of words).
Spill = Callable[[str, pa.Table], None]


class Counter:
    """Counts the words of documents and the pairs of words that co-occur.

    Args:
        targets: words whose pairs are counted. If all pairs are counted, the targets only specify
            which stop words to keep.
        options: counting options. With ``evidence``, documents are also passed to ``spill``.
        spill: function that receives tables of counts, at the end and before memory runs out. If a
            word or pair is in several tables, its counts must be added up.
        limits: limits on the counter's memory.

    >>> from plumbline.jobs.kernel.corpus_options import CorpusOptions
    >>> tables = {}
    >>> options = CorpusOptions(evidence=False)
    >>> counter = Counter(Targets(("she", "he")), options, tables.__setitem__)
    >>> counter.feed_texts(["She drinks tea.", "He likes tea."])
    >>> counts = counter.result()
    >>> tables["words"].to_pylist()[2:4]
    [{'word': 'drinks', 'n_word': 1}, {'word': 'tea', 'n_word': 2}]
    >>> counts.n_documents, counts.n_kept_tokens, counts.n_pairs
    (2, 6, 6)
    """

    def __init__(
        self,
        targets: Targets,
        options: CorpusOptions,
        spill: Spill,
        limits: Limits | None = None,
    ) -> None:
        self._limits = limits or Limits()
        self.spill = spill
        self._tokenizer = Tokenizer(
            targets.words,
            n_bytes=BATCH_BYTES + 4 * options.window,
            limits=self._limits,
            language=targets.language,
        )
        self._words, self._ids = self._tokenizer.words, self._tokenizer.ids
        self._pairs: TargetPairs | AllPairs
        if options.all_pairs:
            self._pairs = AllPairs(options.rule, options.window)
        else:
            self._pairs = TargetPairs(targets.words, options.rule, options.window)
        self._texts = np.empty(BATCH_BYTES + 2 * SLACK, np.uint8)
        self._reader = new_record(ReaderState)
        self._reader.texts, self._reader.limit = address(self._texts), BATCH_BYTES
        self._field = options.text_field
        self._field_name = np.frombuffer(self._field.encode(), np.uint8).copy()
        self._reader.field, self._reader.n_field = address(self._field_name), self._field_name.size
        self._source_field = options.kept_source_field or ""
        self._documents = DocumentLog(self._reader, self._source_field)
        self._stream = TokenStream() if options.evidence else None
        self._is_streamed = False  # True while the stream has word ids that aren't counted yet
        self._rejects: list[dict[str, Any]] = []
        self._n_rejected = self._n_rows = 0
        self._n_drained = 0

    def feed_lines(self, block: NDArray[np.uint8], end: int) -> None:
        """Count the JSON lines in block[:end] as documents. SLACK more bytes must be readable."""
        reader, start = self._reader, address(block)
        reader.next, reader.n_lines, reader.first_row = start, 0, self._n_rows
        sources = self._documents.sources.state
        while code := read_lines(reader, sources, start + end):
            if code == FULL:
                self._count()
            elif code == DOUBT:
                self._judge(block, int(reader.line) - start, int(reader.line_end) - start)
        self._n_rows += int(reader.n_lines)

    def feed_texts(
        self,
        texts: pa.LargeStringArray | Sequence[str],
        sources: Sequence[str | None] | None = None,
    ) -> None:
        """Count texts, one document each. Reject texts that are NULL or aren't valid UTF-8.

        Raises:
            UnicodeEncodeError: a string contains a lone surrogate.
        """
        array = texts if isinstance(texts, pa.Array) else pa.array(texts, pa.large_string())
        good, places = [], []
        for k, text in enumerate(array.cast(pa.large_binary()).to_pylist()):
            if text is None:
                self._reject(self._n_rows + k + 1, f"`{self._field}` is NULL", b"")
            elif not text.isascii() and decoded(text) is None:
                self._reject(self._n_rows + k + 1, "invalid UTF-8", text)
            else:
                good.append(text)
                places.append(k)
        if self._stream:
            good_sources = None if sources is None else [sources[k] for k in places]
            self._documents.add(self._n_rows + 1 + np.array(places, np.int64), good_sources)
        self._n_rows += len(array)
        self._append(b"".join(text + END for text in good))

    def _drain(self) -> None:
        """Pass all counts to ``spill``, and set them to 0. The shard's totals don't change."""
        self._hand_over_stream()
        vocabulary = self._words.vocabulary()
        self.spill("words", self._words.table(vocabulary, with_ids=self._stream is not None))
        for table in self._pairs.take_tables(vocabulary):
            self.spill("pairs", table)
        self._hand_over_rejects()
        self._tokenizer.clear()
        if self._stream:
            self._stream.rename(self._tokenizer.pending(self._n_uncounted))
        self._n_drained = self._n_tallied

    def result(self) -> ShardCounts:
        """Pass the remaining counts to ``spill``. Return the totals, and reset the counter."""
        self._count()
        self._drain()
        pairs = self._pairs.state
        counts = ShardCounts(
            n_rejected=self._n_rejected,
            n_documents=int(pairs.n_documents),
            n_tokens=int(self._ids.n_tokens),
            n_kept_tokens=int(pairs.n_kept),
            n_pairs=int(pairs.n_pairs),
        )
        pairs.n_documents = pairs.n_kept = pairs.n_pairs = self._ids.n_tokens = 0
        self._n_rejected = self._n_rows = self._n_drained = 0
        self._documents.clear()
        return counts

    def _count(self) -> None:
        """Count the texts in the buffer. Keep the last word if later text may continue it."""
        reader, words, ids = self._reader, self._words.state, self._ids
        start = at = int(reader.texts)
        end = start + _whole_characters(self._texts, int(reader.n))
        while True:
            at = self._tokenizer.scan(at, end)
            if not self._tokenizer.need:
                break
            self._make_room(self._words, self._tokenizer.need)
        if self._stream:
            self._documents.collect()
            self._is_streamed = True
            self._stream.add(self._tokenizer.pending(self._n_uncounted))
        else:
            reader.n_documents = 0
        is_done = False
        while not is_done:
            if not self._pairs.has_room:
                self._make_room(self._pairs, 0)
            is_done = self._pairs.count(words, ids)
        self._is_streamed = False
        if self._stream and self._stream.is_full:
            self._hand_over_stream()
        left = self._texts[at - start : int(reader.n)].copy()
        self._texts[: left.size] = left
        reader.n = left.size
        self._tokenizer.cache.renew(self._limits.n_bytes - self._n_bytes)

    @property
    def _n_bytes(self) -> int:
        return self._tokenizer.n_bytes + self._pairs.n_bytes

    @property
    def _n_uncounted(self) -> int:
        """Number of ids in the stream that are not counted as words yet."""
        return int(self._ids.n - self._pairs.state.tallied) if self._is_streamed else 0

    def _hand_over_stream(self) -> None:
        if self._stream:
            end_id = int(self._words.state.n_fixed) - 1
            for table in self._stream.table(self._documents, end_id, self._n_uncounted):
                self.spill("tokens", table)

    @property
    def _n_tallied(self) -> int:
        pairs = self._pairs.state
        return int(pairs.n_kept + pairs.n_gone + pairs.tallied - pairs.start)

    def _make_room(self, table: Words | TargetPairs | AllPairs, need: int) -> None:
        """Enlarge a table. If that would exceed the memory limit, pass all counts to ``spill``."""
        is_over = self._n_bytes + table.growth(need) > self._limits.n_bytes
        # Draining frees memory only if something was counted since the last drain.
        if is_over and self._n_tallied > self._n_drained:
            self._drain()
        else:
            table.grow(need)

    def _append(self, data: bytes) -> None:
        """Copy texts, each followed by END, into the buffer. Count them when the buffer is full."""
        view, at = np.frombuffer(data, np.uint8), 0
        while at < view.size:
            n = int(self._reader.n)
            part = view[at : at + BATCH_BYTES - n]
            self._texts[n : n + part.size] = part
            self._reader.n = n + part.size
            at += part.size
            if self._reader.n >= BATCH_BYTES:
                self._count()

    def _judge(self, block: NDArray[np.uint8], start: int, end: int) -> None:
        """Let Python read the line block[start:end]. Count its text or reject the line."""
        line = bytes(block[start : min(end, start + LONGEST_JUDGED)])
        if (n := end - start) > LONGEST_JUDGED:
            why = f"not strict JSON with a `{self._field}`; at {n:,} bytes, too long to say why"
            verdict = LineVerdict(reason=why)
        else:
            verdict = judge(line, self._field, self._source_field)
        if verdict.reason is not None:
            self._reject(self._n_rows + int(self._reader.n_lines), verdict.reason, line)
        elif verdict.text is not None:
            if self._stream:
                row = np.array([self._n_rows + int(self._reader.n_lines)])
                self._documents.add(row, [verdict.source])
            self._append(verdict.text.encode() + END)

    def _reject(self, row: int, reason: str, data: bytes) -> None:
        reject = {"source_row": row, "reason": reason, "excerpt": excerpt(data)}
        self._rejects.append(reject)
        self._n_rejected += 1
        if len(self._rejects) >= _MAX_REJECTS:
            self._hand_over_rejects()

    def _hand_over_rejects(self) -> None:
        self.spill("rejects", pa.Table.from_pylist(self._rejects, _REJECT))
        self._rejects.clear()


def _whole_characters(texts: NDArray[np.uint8], n: int) -> int:
    """Return the length of texts[:n], not counting a last character that may be incomplete."""
    for k in range(n - 1, max(n - 4, -1), -1):
        if texts[k] >= 0xC0:
            return k
        if texts[k] < 0x80:
            break
    return n


def decoded(text: bytes | None) -> str | None:
    """Decode a text. Return ``None`` if the text isn't valid UTF-8. Parquet doesn't check that.

    >>> decoded(b"tea"), decoded(b"caf\\xe9"), decoded(None)
    ('tea', None, None)
    """
    try:
        return None if text is None else text.decode()
    except UnicodeDecodeError:
        return None


def warm_up() -> None:
    """Load all compiled functions except ``count_windows``. Compile those that aren't cached."""
    words, ids = new_record(WordState), new_record(IdState)
    read_lines(new_record(ReaderState), words, 0)
    move(0, 0, 0, 0)
    pairs = TargetPairs(["she"], "pairs", 2)
    pairs.count(words, ids)
    pairs.grow(0)
    tokenize("tea")


if __name__ == "__main__":
    warm_up()
