"""What stopped commands left in a warehouse and nothing needs any more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import pyarrow.parquet as pq

from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.store import Store

#: Kind of unfinished work -> the table it ends in, and what its directories are named by.
_ENDS_IN = {
    "score": ("pair_score", ("model_key", "benchmark")),
    "sample": ("continuation", ("model_key", "probe_set", "sampling_key")),
    "probe": ("pronoun_probability", ("probe_set", "model_key", "word_list", "instruction_key")),
    "perplexity": ("perplexity", ("text_set", "model_key", "window_tokens")),
}


@dataclass(frozen=True)
class Leftover:
    """A file or directory that can go, and why."""

    path: Path
    why: str


def leftovers(store: Store) -> list[Leftover]:
    """Everything that may be removed while no run is writing; paths in order.

    Kept are results that save work later: counts of shards, paid replies, chunks of scores, samples
    and probabilities that are not published.
    """
    found = [*_temporary(store.root), *_staged(store.root), *_chunks(store), *_partials(store.root)]
    return sorted(found, key=lambda leftover: leftover.path)


def _temporary(root: Path) -> Iterator[Leftover]:
    for path in root.rglob("_*.tmp"):
        if "_staging" not in path.relative_to(root).parts:
            yield Leftover(path, "a file that was not finished")


def _staged(root: Path) -> Iterator[Leftover]:
    for path in (root / "_staging").glob("*"):
        if lost_partition(root, path) is None:
            yield Leftover(path, "a partition that was not finished, or has been replaced")


def lost_partition(root: Path, staged: Path) -> Path | None:
    """Where a retired partition belongs whose successor never came; ``None`` for all others.

    Between the two renames that replace a partition, a killed command leaves it so.
    """
    part = next(staged.glob("*.parquet"), None)
    if not staged.name.endswith("-retired") or part is None:
        return None
    try:
        name = (pq.read_schema(part).metadata or {})[b"plumbline.table"].decode()
        table = TABLES[name]
        first = pq.ParquetFile(part).read_row_group(0, columns=list(table.partitions)).to_pylist()
    except (OSError, ValueError, KeyError):
        return None
    destination = Store(root).directory(name, first[0] if table.partitions else {})
    return None if destination.exists() else destination


def _chunks(store: Store) -> Iterator[Leftover]:
    for kind, (table, names) in _ENDS_IN.items():
        work = store.root / "_work" / kind
        for path in work.glob("/".join("*" * len(names))):
            if path.suffix == ".claim":
                yield Leftover(path, "the lock of a command that has ended")
                continue
            values = dict(zip(names, map(unquote, path.relative_to(work).parts), strict=True))
            ordered = {p: values[p] for p in TABLES[table].partitions if p in values}
            published = _newest(store.directory(table, ordered))
            inside = _newest(path)
            if inside is None or (published is not None and published > inside):
                why = f"published in {table} since" if inside else "an empty directory"
                yield Leftover(path, why)


def _newest(directory: Path) -> int | None:
    times = [path.stat().st_mtime_ns for path in directory.rglob("*.parquet")]
    return max(times, default=None)


def _partials(root: Path) -> Iterator[Leftover]:
    """Files of attempts at a shard that no ledger names."""
    for directory in (root / "_work" / "count").glob("*"):
        named: set[str] = set()
        for ledger in directory.glob("*.json"):
            named |= set(json.loads(ledger.read_text("utf-8"))["files"])
        for path in directory.glob("*.parquet"):
            if path.name not in named:
                yield Leftover(path, "counts of a shard that were not finished")
