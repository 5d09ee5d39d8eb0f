"""Counting one shard in this process: open it, read it block by block, count."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, repeat
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from plumbline.jobs.corpus_options import CorpusOptions
from plumbline.jobs.counting.lines import line_blocks
from plumbline.jobs.kernel import (
    TARGET_BYTES,
    Counter,
    Limits,
    Recount,
    ShardCounts,
    Spill,
    Targets,
)
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.input.shards import column_values, is_parquet, text_column

#: The counter of the last shard, kept because allocating fresh memory is slow.
_spare: dict[tuple[Targets, CorpusOptions, Limits | None], Counter] = {}


def count_shard(
    path: Path,
    targets: Targets,
    options: CorpusOptions,
    limits: Limits | None = None,
    spill: Spill | None = None,
    read_ahead: bool = False,
) -> ShardCounts:
    """Count one shard to its end.

    Args:
        targets, options, limits, spill: see :class:`plumbline.jobs.kernel.Counter`.
        read_ahead: decompress JSON lines in another thread, which takes a core.

    Raises:
        BadInput: the shard is truncated, damaged, unreadable or (Parquet) has no text column.
            Nothing is returned then: a shard is counted whole or not at all.

    >>> import tempfile
    >>> from plumbline.warehouse.input.shards import write_jsonl_zst
    >>> path = Path(tempfile.mkdtemp()) / "a.jsonl.zst"
    >>> write_jsonl_zst(path, ["She drinks tea.", "He likes tea."])
    >>> counts = count_shard(path, Targets(("she", "he")), CorpusOptions(evidence=False))
    >>> counts.words.to_pylist()[2:4]
    [{'word': 'drinks', 'n_word': 1}, {'word': 'tea', 'n_word': 2}]
    >>> counts.n_documents, counts.n_kept_tokens, counts.n_pairs
    (2, 6, 6)
    """
    key = targets, options, limits
    counter = _spare.pop(key, None) or Counter(*key)
    _spare.clear()
    counter.spill = spill
    if is_parquet(path):
        sources = _sources(path, options.kept_source_field)
        for batch in text_column(path, options.text_field):
            counter.feed_texts(batch, list(islice(sources, len(batch))))
    else:
        for block, end in line_blocks(path, read_ahead=read_ahead):
            counter.feed_lines(block, end)
    counts = counter.result()
    _spare[key] = counter
    return counts


def _sources(path: Path, field: str | None) -> Iterator[str | None]:
    """Yield the source of each text, then ``None`` forever; only ``None`` without such a column."""
    if field:
        try:
            for values in column_values(path, field):
                if pa.types.is_large_string(values.type):
                    yield from map(_decoded, values.cast(pa.large_binary()).to_pylist())
        except BadInput:
            pass  # no such column; or a damaged file, and reading its texts raises
    yield from repeat(None)


def _decoded(name: bytes | None) -> str | None:
    """A source's name; ``None`` if it is not UTF-8, which Parquet does not check.

    >>> _decoded(b"tea"), _decoded(b"caf\\xe9"), _decoded(None)
    ('tea', None, None)
    """
    try:
        return None if name is None else name.decode()
    except UnicodeDecodeError:
        return None


#: Files of tokens, each with the file of the words that it refers to.
Segments: TypeAlias = Sequence[tuple[Path, Path]]


def recount_shard(
    segments: Segments,
    targets: Targets,
    options: CorpusOptions,
    limits: Limits,
    spill: Callable[[pa.Table], None],
) -> tuple[int, int, int]:
    """Count the pairs of a shard's kept words, in passes over as many targets as fit in memory.

    ``spill`` gets the pairs. Returns the shard's numbers of documents, kept words and
    co-occurrences. Raises ``BadInput`` for damaged files.
    """
    step = max(limits.n_bytes // 2 // TARGET_BYTES, 1)
    totals = 0, 0, 0
    for start in range(0, len(targets.words), step):
        words = targets.words[start : start + step]
        recount = Recount(words, options.rule, options.window, limits, spill)
        for ids in _documents(segments, recount):
            recount.feed(ids)
        recount.finish()
        totals = recount.totals
    return totals


def _documents(segments: Segments, recount: Recount) -> Iterator[NDArray[np.int32]]:
    """Yield a shard's word ids, with ``recount.end`` between documents and after the last."""
    last = 0
    for tokens, words in segments:
        try:
            table = pq.read_table(words, columns=["word", "word_id", "n_word"])
            old = table["word_id"].to_numpy()
            new = np.empty(int(old.max(initial=-1)) + 1, np.int32)
            new[old] = recount.rename(table["word"].combine_chunks(), table["n_word"].to_numpy())
            file = pq.ParquetFile(tokens)
            for group in range(file.num_row_groups):
                rows = file.read_row_group(group, columns=["document", "tokens"])
                lists, document = rows["tokens"].combine_chunks(), rows["document"].to_numpy()
                offsets = lists.offsets.to_numpy()
                ids = new[lists.values.to_numpy()[offsets[0] : offsets[-1]]]
                # A document may continue in the next row, which then has the same number.
                begins = np.flatnonzero(np.diff(document, prepend=last))
                yield np.insert(ids, offsets[begins] - offsets[0], recount.end)
                last = document[-1]
        except (OSError, pa.ArrowInvalid) as e:
            fix = "count the corpus again with --replace"
            raise BadInput(f"evidence {tokens.name}", f"can't be read: {e}", fix) from e
    yield np.full(1, recount.end, np.int32)
