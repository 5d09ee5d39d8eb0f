"""Counting one shard: open it, read it block by block, count. Without Spark."""

from __future__ import annotations

from pathlib import Path

from plumbline.jobs.counting.lines import line_blocks
from plumbline.jobs.kernel import Counter, CountOptions, Limits, ShardCounts, Spill
from plumbline.warehouse.shards import RecordForm, kind_of

#: The counter of the last shard, kept because allocating fresh memory is slow.
_spare: dict[tuple[CountOptions, Limits | None], Counter] = {}


def count_shard(
    path: Path,
    options: CountOptions,
    limits: Limits | None = None,
    spill: Spill | None = None,
    decoder: bytes = b"",
) -> ShardCounts:
    """Count one shard to its end.

    Args:
        limits, spill: see :class:`plumbline.jobs.kernel.Counter`.

        decoder: what decodes token files, see :func:`plumbline.warehouse.token_files.decoder`.

    Raises:
        BadInput: the shard is truncated, damaged, unreadable or (Parquet) has no text column.
            Nothing is returned then: a shard is counted whole or not at all.

    >>> import tempfile
    >>> from plumbline.warehouse.shards import write_jsonl_zst
    >>> path = Path(tempfile.mkdtemp()) / "a.jsonl.zst"
    >>> write_jsonl_zst(path, ["She drinks tea.", "He likes tea."])
    >>> counts = count_shard(path, CountOptions(("she", "he")))
    >>> counts.words.to_pylist()[2:4]
    [{'word': 'drinks', 'n_word': 1}, {'word': 'tea', 'n_word': 2}]
    >>> counts.n_documents, counts.n_kept_tokens, counts.n_pairs
    (2, 6, 6)
    """
    counter = _spare.pop((options, limits), None) or Counter(options, limits)
    _spare.clear()
    counter.spill = spill
    if kind := kind_of(path):
        for batch in kind.texts(path, RecordForm(options.text_field, decoder)):
            counter.feed_texts(batch, kind.missing)
    else:
        for block, end in line_blocks(path):
            counter.feed_lines(block, end)
    counts = counter.result()
    _spare[options, limits] = counter
    return counts
