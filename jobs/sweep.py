"""One shard to its counts: stream, count with the kernel, totals as Arrow. No Spark here."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from jobs.bits import SLACK
from jobs.block import FILL, NEXT_LINE, run_block, run_texts
from jobs.memory import (
    ASK,
    DENSE_WORDS,
    DONE,
    ESCAPED,
    LINE_END,
    LINE_START,
    N_DOCUMENTS,
    N_KEPT,
    N_LINES,
    N_PAIRS,
    N_TOKENS,
    N_WORDS,
    NEED,
    NEXT_START,
    STAGE,
    TEXT_END,
    TEXT_START,
    Limits,
    Memory,
    grow,
    new_memory,
)
from jobs.records import excerpt, judge
from jobs.tables import tables
from jobs.text import tokenize
from jobs.windows import RULES
from warehouse.errors import UsageProblem
from warehouse.shards import ByteStream, is_parquet, text_batches

_BLOCK = 1 << 20


@dataclass(frozen=True)
class CountOptions:
    """What is counted.

    Attributes:
        targets: distinct lowercase words whose pairs are kept.
        rule: ``pairs`` or ``windows``, see ``jobs.windows``.
        window: width in kept tokens, at least 2.

    Raises:
        UsageProblem: unknown rule, window below 2, no targets, or a target that is not one token.
    """

    targets: tuple[str, ...]
    rule: str = "pairs"
    window: int = 10

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise UsageProblem(f"rule {self.rule!r}", f"there is none, only {', '.join(RULES)}")
        if not 2 <= self.window <= 1000:
            raise UsageProblem(f"window {self.window}", "must be 2 to 1000 tokens")
        if not self.targets or len(set(self.targets)) != len(self.targets):
            raise UsageProblem("targets", "must be distinct words, at least one")
        for word in self.targets:
            if tokenize(word, [word]) != [word]:
                raise UsageProblem(
                    f"target {word!r}", "is not one lowercase token, so never occurs"
                )


@dataclass(frozen=True)
class Reject:
    """A document that was not counted: its line or row from 1, the reason, its start."""

    row: int
    reason: str
    excerpt: str


@dataclass(frozen=True)
class ShardCounts:
    """Counts of one shard. ``n_documents_in`` = ``n_documents`` + ``len(rejects)``, always.

    Attributes:
        words: Arrow table word, n_word; every kept word once, in order of first occurrence.
        pairs: Arrow table word, target, n_pair; every pair that co-occurs, once.
        n_tokens: word tokens before the stop filter. n_kept_tokens: sum of n_word.
        n_pairs: all co-occurrences under the rule, not only those with targets.
        n_blank: blank lines, which are no documents.
        seconds: wall time.
    """

    words: pa.Table
    pairs: pa.Table
    n_documents: int
    n_tokens: int
    n_kept_tokens: int
    n_pairs: int
    n_blank: int
    rejects: tuple[Reject, ...]
    seconds: float

    @property
    def n_documents_in(self) -> int:
        """Documents read: counted and rejected."""
        return self.n_documents + len(self.rejects)


class Sweeper:
    """Counts blocks of lines or batches of texts into one memory; see :func:`sweep_shard`."""

    def __init__(self, options: CountOptions, limits: Limits | None = None) -> None:
        self._targets = list(options.targets)
        self._limits = limits or Limits()
        self._tables = tables()
        self._found = np.zeros(4, np.int64)
        self._memory = new_memory(self._targets, options.window, RULES.index(options.rule))
        self._rejects: list[Reject] = []
        self._n_blank = 0
        self._n_rows = 0

    def lines(self, buf: NDArray[np.uint8], end: int) -> None:
        """Count the JSON lines in buf[:end]; buf has SLACK bytes more."""
        regs = self._memory.regs
        regs[NEXT_START], regs[STAGE], regs[N_LINES] = 0, NEXT_LINE, 0
        while (code := run_block(self._tables, self._memory, buf, end, self._found)) != DONE:
            if code == ASK:
                self._ask(bytes(buf[int(regs[LINE_START]) : int(regs[LINE_END])]))
            else:
                self._grow(code)
        self._n_rows += int(regs[N_LINES])

    def texts(self, batch: pa.LargeStringArray) -> None:
        """Count the texts of a Parquet batch, one row a document."""
        offsets, data = _string_buffers(batch)
        valid = np.asarray(pc.is_valid(batch)).astype(np.uint8)
        regs = self._memory.regs
        regs[NEXT_START], regs[STAGE] = 0, NEXT_LINE
        while True:
            code = run_texts(self._tables, self._memory, data, offsets, valid)
            if code == DONE:
                break
            if code == ASK:
                self._reject_text(int(regs[NEXT_START]) - 1, data, offsets, valid)
            else:
                self._grow(code)
        self._n_rows += len(batch)

    def _grow(self, code: int) -> None:
        need = int(self._memory.regs[NEED]) + 2
        self._memory = grow(self._memory, code, need, self._limits)

    def _ask(self, line: bytes) -> None:
        """Let Python decide on a line, and hand its text to the kernel when it is good."""
        regs = self._memory.regs
        verdict = judge(line)
        regs[STAGE] = NEXT_LINE
        if verdict.reason is not None:
            row = self._n_rows + int(regs[N_LINES])
            self._rejects.append(Reject(row, verdict.reason, excerpt(line)))
        elif verdict.text is None:
            self._n_blank += 1
        else:
            data = verdict.text.encode()
            if self._memory.text.size < len(data) + SLACK:
                self._memory = self._memory._replace(text=np.empty(len(data) + SLACK, np.uint8))
            self._memory.text[: len(data)] = np.frombuffer(data, np.uint8)
            regs[TEXT_START], regs[TEXT_END], regs[ESCAPED] = 0, len(data), 2
            regs[STAGE] = FILL

    def _reject_text(
        self,
        row: int,
        data: NDArray[np.uint8],
        offsets: NDArray[np.int64],
        valid: NDArray[np.uint8],
    ) -> None:
        shown = bytes(data[offsets[row] : min(offsets[row + 1], offsets[row] + 500)])
        reason = "invalid UTF-8" if valid[row] else "`text` is NULL"
        self._rejects.append(Reject(self._n_rows + row + 1, reason, excerpt(shown)))
        self._memory.regs[STAGE] = NEXT_LINE

    def result(self, seconds: float) -> ShardCounts:
        """The counts so far as Arrow."""
        regs = self._memory.regs
        used = self._memory.counts[: int(regs[N_WORDS])]
        vocabulary = word_array(self._memory)
        seen = np.flatnonzero(used)
        words = pa.table({"word": vocabulary.take(pa.array(seen)), "n_word": pa.array(used[seen])})
        return ShardCounts(
            words,
            _pair_table(self._memory, vocabulary, self._targets),
            n_documents=int(regs[N_DOCUMENTS]),
            n_tokens=int(regs[N_TOKENS]),
            n_kept_tokens=int(regs[N_KEPT]),
            n_pairs=int(regs[N_PAIRS]),
            n_blank=self._n_blank,
            rejects=tuple(self._rejects),
            seconds=seconds,
        )


def word_array(memory: Memory) -> pa.Array:
    """All interned words by id, as an Arrow string array made from the arena without copying."""
    n = int(memory.regs[N_WORDS])
    offsets = pa.py_buffer(memory.offsets[: n + 1].tobytes())
    arena = pa.py_buffer(memory.arena[: int(memory.offsets[n])].tobytes())
    large = pa.LargeStringArray.from_buffers(n, offsets, arena)
    return large.cast(pa.string()) if arena.size < 1 << 31 else large


def _pair_table(memory: Memory, vocabulary: pa.Array, targets: list[str]) -> pa.Table:
    entries = memory.pairs.reshape(-1, 2)
    entries = entries[entries[:, 0] > 0].astype(np.int64)
    # Ids are given in order: rows past the last word were never written.
    rows = min(int(memory.regs[N_WORDS]), DENSE_WORDS)
    dense = np.flatnonzero(memory.dense[: rows * len(targets)])
    keys = np.concatenate([dense, entries[:, 0] - 1])
    word, target = np.divmod(keys, len(targets))
    return pa.table(
        {
            "word": pa.DictionaryArray.from_arrays(word.astype(np.int32), vocabulary),
            "target": pa.DictionaryArray.from_arrays(target.astype(np.int32), targets),
            "n_pair": pa.array(np.concatenate([memory.dense[dense], entries[:, 1]])),
        }
    )


def _string_buffers(batch: pa.LargeStringArray) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Offsets from 0 and the bytes with SLACK after them."""
    _, raw_offsets, raw_data = batch.buffers()
    offsets = np.frombuffer(raw_offsets, np.int64)[batch.offset : batch.offset + len(batch) + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    data = np.zeros(last - first + SLACK, np.uint8)
    if last > first:
        data[: last - first] = np.frombuffer(raw_data, np.uint8)[first:last]
    return offsets - first, data


def line_blocks(path: Path) -> Iterator[tuple[NDArray[np.uint8], int]]:
    """Blocks of whole lines of a shard: a buffer that is reused, and where its lines end.

    The buffer grows to the longest line and no further. Raises ``BadInput`` as the stream does.
    """
    with ByteStream(path) as stream:
        buf, kept = np.zeros(2 * _BLOCK + SLACK, np.uint8), 0
        while n := stream.readinto(buf[kept : kept + _BLOCK]):
            end = kept + n
            cut = _last_newline(buf, kept, end)
            if cut:
                yield buf, cut
                buf[: end - cut] = buf[cut:end].copy()
            kept = end - cut
            if kept + _BLOCK + SLACK > buf.size:
                buf = np.concatenate([buf[:kept], np.zeros(kept + _BLOCK + SLACK, np.uint8)])
        if kept:
            yield buf, kept


def _last_newline(buf: NDArray[np.uint8], start: int, end: int) -> int:
    """Just after the last newline of buf[start:end], 0 when there is none."""
    # Nearly always in the last few kilobytes, so that little is copied.
    for low in range(end - 4096, start - 4096, -4096):
        at = buf[max(low, start) : low + 4096].tobytes().rfind(b"\n")
        if at >= 0:
            return max(low, start) + at + 1
    return 0


def sweep_shard(path: Path, options: CountOptions) -> ShardCounts:
    """Count one shard to its end.

    Raises:
        BadInput: the shard is truncated, damaged, unreadable or (Parquet) has no text column.
            Nothing is returned then: a shard is counted whole or not at all.

    >>> import tempfile
    >>> from warehouse.shards import write_jsonl_zst
    >>> path = Path(tempfile.mkdtemp()) / "a.jsonl.zst"
    >>> write_jsonl_zst(path, ["She drinks tea.", "He likes tea."])
    >>> counts = sweep_shard(path, CountOptions(("she", "he")))
    >>> counts.words.to_pylist()[2:4]
    [{'word': 'drinks', 'n_word': 1}, {'word': 'tea', 'n_word': 2}]
    >>> counts.n_documents, counts.n_kept_tokens, counts.n_pairs
    (2, 6, 6)
    """
    started = time.monotonic()
    sweeper = Sweeper(options)
    if is_parquet(path):
        for batch in text_batches(path):
            sweeper.texts(batch)
    else:
        for buf, end in line_blocks(path):
            sweeper.lines(buf, end)
    return sweeper.result(time.monotonic() - started)


def count_texts(texts: list[str], options: CountOptions) -> ShardCounts:
    """Count texts that are in memory already, one document each.

    Raises:
        UnicodeEncodeError: a text holds a lone surrogate.
    """
    started = time.monotonic()
    sweeper = Sweeper(options)
    if texts:
        sweeper.texts(pa.array(texts, pa.large_string()))
    return sweeper.result(time.monotonic() - started)


def warm_up() -> None:
    """Compile the kernel, or load it from numba's cache, so that workers need not."""
    options = CountOptions(("she", "he"))
    sweeper = Sweeper(options)
    line = b'{"text": "She said \\u00e9: \\"tea\\"", "meta": {"a": [1, true]}}\n'
    buf = np.frombuffer(line + bytes(SLACK), np.uint8).copy()
    sweeper.lines(buf, len(line))
    count_texts(["tea"], CountOptions(("she", "he"), rule="windows"))
