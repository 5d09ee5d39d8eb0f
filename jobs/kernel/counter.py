"""One shard to its counts: stream, count with the kernel, totals as Arrow. No Spark here."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plumbline.jobs.counting.lines import line_blocks
from plumbline.jobs.kernel.bits import SLACK
from plumbline.jobs.kernel.block import FILL, NEXT_LINE, run_block, run_texts
from plumbline.jobs.kernel.growth import Limits, empty, fits, grow, n_bytes, renew
from plumbline.jobs.kernel.json_lines import LONGEST_JUDGED, excerpt, judge, too_long
from plumbline.jobs.kernel.memory import (
    ALL_PAIRS,
    ASK,
    DONE,
    ESCAPED,
    GROW_PAIRS,
    LINE_END,
    LINE_START,
    N_DOCUMENTS,
    N_KEPT,
    N_LATE,
    N_LINES,
    N_PAIRS,
    N_TOKENS,
    N_WORDS,
    NEED,
    NEXT_START,
    STAGE,
    TEXT_END,
    TEXT_START,
    Memory,
    first_words,
    new_memory,
)
from plumbline.jobs.kernel.pair_runs import PairRuns
from plumbline.jobs.kernel.results import (
    Reject,
    all_pairs_table,
    pair_table,
    reject_table,
    word_array,
    word_table,
)
from plumbline.jobs.kernel.tables import tables
from plumbline.jobs.kernel.tokenizer import tokenize
from plumbline.jobs.kernel.windows import RULES
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.shards import is_parquet, text_batches


@dataclass(frozen=True)
class CountOptions:
    """What is counted.

    Attributes:
        targets: distinct lowercase words whose pairs are kept.
        rule: ``pairs`` or ``windows``, see ``plumbline.jobs.kernel.windows``.
        window: width in kept tokens, at least 2.
        all_pairs: keep the pairs of any two kept words, each once, and not only those with a
            target; targets then are stop words that count all the same.

    Raises:
        UsageProblem: unknown rule, window below 2, no targets, or a target that is not one token.
    """

    targets: tuple[str, ...]
    rule: str = "pairs"
    window: int = 10
    all_pairs: bool = False

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
class ShardCounts:
    """Counts of one shard. ``n_documents_in`` = ``n_documents`` + ``n_rejected``, always.

    Attributes:
        words: Arrow table word, n_word; every kept word once, in order of first occurrence.
        pairs: Arrow table word, target, n_pair; every pair that co-occurs, once.
        rejects: documents that were not counted. With ``spill``, these three are empty: it has
            been handed all of them.
        n_tokens: word tokens before the stop filter. n_kept_tokens: sum of n_word.
        n_pairs: all co-occurrences under the rule, not only those with targets.
        n_blank: blank lines, which are no documents.
        seconds: wall time.
    """

    words: pa.Table
    pairs: pa.Table
    rejects: tuple[Reject, ...]
    n_documents: int
    n_rejected: int
    n_tokens: int
    n_kept_tokens: int
    n_pairs: int
    n_blank: int
    seconds: float

    @property
    def n_documents_in(self) -> int:
        """Documents read: counted and rejected."""
        return self.n_documents + self.n_rejected


#: Takes ``words``, ``pairs`` or ``rejects`` and a table of them.
Spill = Callable[[str, pa.Table], None]
#: Rejected documents held in memory.
_MAX_REJECTS = 1 << 15


#: Memory of a sweeper that is done, by what it was made for; at most one.
_spare: dict[tuple[CountOptions, Limits], tuple[Memory, PairRuns]] = {}


def _memory(options: CountOptions, limits: Limits) -> tuple[Memory, PairRuns]:
    """Memory for a sweeper: a spare one made as good as new, else fresh."""
    spare = _spare.pop((options, limits), None)
    _spare.clear()
    targets = list(options.targets)
    if spare is not None:
        renew(spare[0], first_words(targets))
        spare[1].clear()
        return spare
    rule = RULES.index(options.rule)
    memory = new_memory(targets, options.window, rule, all_pairs=options.all_pairs)
    limited = options.all_pairs and limits.n_pair_bytes < Limits.n_pair_bytes
    return memory, PairRuns(limits.n_pair_bytes // 16 if limited else 0)


class Sweeper:
    """Counts blocks of lines or batches of texts into one memory; see :func:`sweep_shard`."""

    def __init__(
        self, options: CountOptions, limits: Limits | None = None, spill: Spill | None = None
    ) -> None:
        self._targets = list(options.targets)
        self._limits = limits or Limits()
        self._spill = spill
        self._tables = tables()
        self._found = np.zeros(4, np.int64)
        self._options = options
        self._memory, self._runs = _memory(options, self._limits)
        self._rejects: list[Reject] = []
        self._n_blank = self._n_rejected = 0
        self._n_rows = 0
        self._n_tokens_spilled = 0

    def lines(self, buf: NDArray[np.uint8], end: int) -> None:
        """Count the JSON lines in buf[:end]; buf has SLACK bytes more."""
        regs = self._memory.regs
        regs[NEXT_START], regs[STAGE], regs[N_LINES] = 0, NEXT_LINE, 0
        while (code := run_block(self._tables, self._memory, buf, end, self._found)) != DONE:
            if code == ASK:
                self._ask(buf, int(regs[LINE_START]), int(regs[LINE_END]))
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
        """More room: for what ``code`` names, or by handing over the counts so far."""
        regs = self._memory.regs
        need = int(regs[NEED]) + 2
        if code == GROW_PAIRS and regs[ALL_PAIRS] and regs[N_LATE]:
            self._take_late()
            most = self._runs.n_bytes + 16 * self._memory.late.size + n_bytes(self._memory)
            if not self._spill or most <= self._limits.n_pair_bytes:
                return
        elif not self._spill or fits(self._memory, code, need, self._limits):
            self._memory = grow(self._memory, code, need, self._limits)
            return
        if regs[N_TOKENS] == self._n_tokens_spilled:
            # Nothing to hand over: the limit is too low for what must be there.
            self._memory = grow(self._memory, code, need, self._limits)
            return
        self._hand_over(self._spill)
        empty(self._memory, first_words(self._targets))
        self._runs.clear()
        self._n_tokens_spilled = int(regs[N_TOKENS])

    def _take_late(self) -> None:
        regs = self._memory.regs
        self._runs.add(self._memory.late[: int(regs[N_LATE])], int(regs[N_WORDS]))
        regs[N_LATE] = 0

    def _hand_over(self, spill: Spill) -> None:
        vocabulary = word_array(self._memory)
        spill("words", word_table(self._memory, vocabulary))
        if self._options.all_pairs:
            self._take_late()
            for chunk in self._runs.chunks():
                kept = chunk if self._spill else chunk.copy()
                spill("pairs", all_pairs_table(kept, vocabulary))
        else:
            spill("pairs", pair_table(self._memory, vocabulary, self._targets))

    def _ask(self, buf: NDArray[np.uint8], start: int, end: int) -> None:
        """Let Python decide on a line, and hand its text to the kernel when it is good."""
        regs = self._memory.regs
        line = bytes(buf[start : min(end, start + LONGEST_JUDGED + 1)])
        verdict = judge(line) if len(line) <= LONGEST_JUDGED else too_long(end - start)
        regs[STAGE] = NEXT_LINE
        if verdict.reason is not None:
            row = self._n_rows + int(regs[N_LINES])
            self._reject(Reject(row, verdict.reason, excerpt(line)))
        elif verdict.text is None:
            self._n_blank += 1
        else:
            data = verdict.text.encode()
            if self._memory.text.size < len(data) + SLACK:
                self._memory = self._memory._replace(text=np.empty(len(data) + SLACK, np.uint8))
            self._memory.text[: len(data)] = np.frombuffer(data, np.uint8)
            regs[TEXT_START], regs[TEXT_END], regs[ESCAPED] = 0, len(data), 2
            regs[STAGE] = FILL

    def _reject(self, reject: Reject) -> None:
        self._rejects.append(reject)
        self._n_rejected += 1
        if self._spill and len(self._rejects) >= _MAX_REJECTS:
            self._spill("rejects", reject_table(self._rejects))
            self._rejects.clear()

    def _reject_text(
        self,
        row: int,
        data: NDArray[np.uint8],
        offsets: NDArray[np.int64],
        valid: NDArray[np.uint8],
    ) -> None:
        shown = bytes(data[offsets[row] : min(offsets[row + 1], offsets[row] + 500)])
        reason = "invalid UTF-8" if valid[row] else "`text` is NULL"
        self._reject(Reject(self._n_rows + row + 1, reason, excerpt(shown)))
        self._memory.regs[STAGE] = NEXT_LINE

    def close(self) -> None:
        """Leave the memory to the next sweeper of this process; this one is done."""
        _spare[self._options, self._limits] = self._memory, self._runs

    def result(self, seconds: float) -> ShardCounts:
        """The totals; what was not handed over yet is, or it is in them."""
        regs = self._memory.regs
        tables: dict[str, list[pa.Table]] = {"words": [], "pairs": []}

        def keep(kind: str, table: pa.Table) -> None:
            if self._spill:
                self._spill(kind, table)
                table = table.slice(0, 0)
            tables[kind].append(table)

        self._hand_over(keep)
        if self._spill:
            self._spill("rejects", reject_table(self._rejects))
            self._rejects.clear()
        return ShardCounts(
            pa.concat_tables(tables["words"]),
            pa.concat_tables(tables["pairs"]),
            tuple(self._rejects),
            n_rejected=self._n_rejected,
            n_documents=int(regs[N_DOCUMENTS]),
            n_tokens=int(regs[N_TOKENS]),
            n_kept_tokens=int(regs[N_KEPT]),
            n_pairs=int(regs[N_PAIRS]),
            n_blank=self._n_blank,
            seconds=seconds,
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


def sweep_shard(
    path: Path,
    options: CountOptions,
    limits: Limits | None = None,
    spill: Spill | None = None,
) -> ShardCounts:
    """Count one shard to its end.

    Args:
        limits: bounds of the kernel's memory. spill: called with the counts so far whenever they
            would outgrow it, and at the end; the same word or pair may then be in several of its
            tables, and their sum is its count.

    Raises:
        BadInput: the shard is truncated, damaged, unreadable or (Parquet) has no text column.
            Nothing is returned then: a shard is counted whole or not at all.

    >>> import tempfile
    >>> from plumbline.warehouse.shards import write_jsonl_zst
    >>> path = Path(tempfile.mkdtemp()) / "a.jsonl.zst"
    >>> write_jsonl_zst(path, ["She drinks tea.", "He likes tea."])
    >>> counts = sweep_shard(path, CountOptions(("she", "he")))
    >>> counts.words.to_pylist()[2:4]
    [{'word': 'drinks', 'n_word': 1}, {'word': 'tea', 'n_word': 2}]
    >>> counts.n_documents, counts.n_kept_tokens, counts.n_pairs
    (2, 6, 6)
    """
    started = time.monotonic()
    sweeper = Sweeper(options, limits, spill)
    if is_parquet(path):
        for batch in text_batches(path):
            sweeper.texts(batch)
    else:
        for buf, end in line_blocks(path):
            sweeper.lines(buf, end)
    counts = sweeper.result(time.monotonic() - started)
    sweeper.close()
    return counts


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
