"""Work in chunks, each with a file of its results: a killed worker loses at most one chunk."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from plumbline.warehouse.paths import opened
from plumbline.warehouse.storage.locks import claimed
from plumbline.warehouse.storage.store import write_file

_WAIT_S = 0.2


@dataclass(frozen=True)
class Chunk:
    """Items that are computed together, each a string or a dataclass of plain values.

    ``n_units``: number of the step's units (pairs, samples, ...) in this chunk.
    """

    items: Sequence[Any]
    n_units: int

    @property
    def name(self) -> str:
        """Hash of the items (16 hex digits): all workers and later runs agree on it."""
        text = json.dumps(list(self.items), default=astuple)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class ChunkPlan:
    """Chunks by the file for their results; ``result_type``: see ``Step``."""

    directory: Path
    chunks: Mapping[Path, Chunk]
    result_type: type[Any]

    @classmethod
    def of(cls, chunks: Iterable[Chunk], directory: Path, result_type: type[Any]) -> ChunkPlan:
        """The plan for some chunks with their files in ``directory``."""
        return cls(directory, {directory / f"{c.name}.parquet": c for c in chunks}, result_type)

    @property
    def n_units(self) -> int:
        """Number of units of all chunks."""
        return sum(chunk.n_units for chunk in self.chunks.values())

    def n_left(self) -> int:
        """Number of units that no worker has computed yet."""
        return sum(self.chunks[path].n_units for path in self.todo())

    def todo(self) -> list[Path]:
        """Files that don't exist yet."""
        existing = {path.name for path in self.directory.glob("*.parquet")}
        return [path for path in self.chunks if path.name not in existing]

    def work(
        self, compute: Callable[[Sequence[Any]], Sequence[Any]], tell: Callable[[int], None]
    ) -> None:
        """Compute chunk by chunk until all have a file, or the directory is removed.

        Skips chunks that another worker has claimed. Calls ``tell`` with ``n_left()`` after each
        chunk, computed or skipped.
        """
        while (todo := self.todo()) and self.directory.is_dir():
            n_done = 0
            for path in todo:
                with claimed(self._claim(path)) as is_claimed:
                    if is_claimed and self.directory.is_dir() and not path.exists():
                        write_results(path, compute(self.chunks[path].items), self.result_type)
                        n_done += 1
                tell(self.n_left())
            if not n_done:
                time.sleep(_WAIT_S)

    def results(self) -> dict[Any, Any] | None:
        """The result of each item; ``None`` if a file is missing or damaged.

        A damaged file (after a power cut) is removed: its chunk will be computed again.
        """
        by_item: dict[Any, Any] = {}
        is_complete = True
        for path, chunk in self.chunks.items():
            results = _read(path, self.result_type)
            if results is None or len(results) != len(chunk.items):
                path.unlink(missing_ok=True)
                is_complete = False
            else:
                by_item.update(zip(chunk.items, results, strict=True))
        return by_item if is_complete else None

    def published_in_turn(self) -> AbstractContextManager[bool]:
        """A lock: one process at a time publishes and removes the directory."""
        return claimed(self.directory.with_name(f"{self.directory.name}.claim"), wait=True)

    def _claim(self, path: Path) -> Path:
        """A chunk's lock file: outside the directory, which is removed after publishing."""
        name = hashlib.sha256(f"{self.directory.name}/{path.name}".encode()).hexdigest()[:16]
        return self.directory.with_name(f"{name}.claim")


def write_results(path: Path, results: Sequence[object], result_type: type[Any]) -> None:
    """Write the results of a chunk to a file that appears only when complete."""
    schema = result_type.SCHEMA
    columns = {name: [getattr(result, name) for result in results] for name in schema.names}
    write_file(path, pa.table(columns, schema=schema))


def _read(path: Path, result_type: type[Any]) -> list[Any] | None:
    try:
        with opened(path) as file:
            rows = pq.read_table(
                file, schema=result_type.SCHEMA, page_checksum_verification=True
            ).to_pylist()
    except (OSError, pa.ArrowException):
        return None
    return [result_type(**row) for row in rows]
