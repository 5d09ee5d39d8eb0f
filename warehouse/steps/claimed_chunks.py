"""Compute a step's items in chunks: a command claims a chunk, computes it, and saves it.

So a killed command loses at most the chunk that it was computing.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from plumbline.warehouse.paths import opened
from plumbline.warehouse.storage.data_files import write_file
from plumbline.warehouse.storage.locks import claimed

_WAIT_S = 0.2


@dataclass(frozen=True)
class Chunk:
    """Items that are computed together. An item is a string, or a dataclass with plain fields.

    ``n_units`` is the size of the chunk in the unit that the step counts, such as pairs.
    """

    items: Sequence[Any]
    n_units: int

    @property
    def name(self) -> str:
        """Hash of the items (16 hex digits). It is the same in all workers and in later runs."""
        text = json.dumps(list(self.items), default=astuple)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class ChunkPlan:
    """The chunks to compute. ``chunks`` maps the path of each result file to its chunk."""

    directory: Path
    chunks: Mapping[Path, Chunk]
    result_type: type[Any]

    @property
    def n_units(self) -> int:
        return sum(chunk.n_units for chunk in self.chunks.values())

    def n_left(self) -> int:
        return sum(self.chunks[path].n_units for path in self.todo())

    def todo(self) -> list[Path]:
        existing = {path.name for path in self.directory.glob("*.parquet")}
        return [path for path in self.chunks if path.name not in existing]

    def work(
        self, compute: Callable[[Sequence[Any]], Sequence[Any]], tell: Callable[[int], None]
    ) -> None:
        """Compute chunks one by one until each has a result file. Skip chunks of other workers.

        Stop early if another worker publishes the results and removes ``directory``. After each
        chunk, computed or skipped, call ``tell`` with the number of units not yet computed.
        """
        while (todo := self.todo()) and self.directory.is_dir():
            n_done = 0
            for path in todo:
                # Keep the lock file outside the directory, which is removed after publishing.
                name = hashlib.sha256(f"{self.directory.name}/{path.name}".encode()).hexdigest()
                with claimed(self.directory.with_name(f"{name[:16]}.claim")) as is_claimed:
                    if is_claimed and self.directory.is_dir() and not path.exists():
                        write_results(path, compute(self.chunks[path].items))
                        n_done += 1
                tell(self.n_left())
            if not n_done:
                time.sleep(_WAIT_S)

    def results(self) -> dict[Any, Any] | None:
        """Return the result of each item, or ``None`` if a chunk's file is missing or damaged.

        A damaged file (after a power cut) is removed, so that its chunk will be computed again.
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


def write_results(path: Path, results: Sequence[object]) -> None:
    import pyarrow as pa

    write_file(path, pa.Table.from_pylist(list(map(vars, results))))


def _read(path: Path, result_type: type[Any]) -> list[Any] | None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with opened(path) as file:
            rows = pq.read_table(file, page_checksum_verification=True).to_pylist()
    except (OSError, pa.ArrowException):
        return None
    return [result_type(**row) for row in rows]
