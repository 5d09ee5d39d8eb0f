"""Work in chunks, each with a file that is to hold its results: the unit that a kill can lose."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from plumbline.warehouse.storage.locks import claimed
from plumbline.warehouse.storage.store import write_file

Item = TypeVar("Item", bound=Hashable)
Result = TypeVar("Result")
_WAIT_S = 0.2


@dataclass(frozen=True)
class ChunkFiles(Generic[Item, Result]):
    """Items by the file that is to hold their results, one each and in their order.

    What a chunk holds depends on the items alone, so that all workers and later runs agree on it.
    A result has the attributes that ``schema`` names, and ``made`` makes it of them again.
    """

    schema: ClassVar[pa.Schema]
    made: ClassVar[Callable[..., Any]]

    directory: Path
    items: Mapping[Path, Sequence[Item]]

    def todo(self) -> list[Path]:
        """Files that are not there yet."""
        return [path for path in self.items if not path.exists()]

    def work(
        self, compute: Callable[[Sequence[Item]], Sequence[Result]], tell: Callable[[], None]
    ) -> None:
        """Compute chunk by chunk until all have their file, or their directory is gone.

        Chunks that are there, or that another worker holds, are left to it. ``tell`` is called
        after each.
        """
        while (todo := self.todo()) and self.directory.is_dir():
            n_done = 0
            for path in todo:
                with claimed(self._claim(path)) as mine:
                    if mine and self.directory.is_dir() and not path.exists():
                        write_results(path, compute(self.items[path]), self.schema)
                        n_done += 1
                tell()
            if not n_done:
                time.sleep(_WAIT_S)

    def results(self) -> dict[Item, Result] | None:
        """The result of every item; ``None`` when a file is missing or damaged.

        A damaged file (of a machine that lost power) is removed: it is to be computed again.
        """
        found: dict[Item, Result] = {}
        whole = True
        for path, items in self.items.items():
            rows = _read(path, self.schema)
            if rows is None or len(rows) != len(items):
                path.unlink(missing_ok=True)
                whole = False
            else:
                made = (type(self).made(**row) for row in rows)
                found.update(zip(items, made, strict=True))
        return found if whole else None

    def published_in_turn(self) -> AbstractContextManager[bool]:
        """One process at a time is in the block, which publishes and may remove the directory."""
        return claimed(self.directory.with_name(f"{self.directory.name}.claim"), wait=True)

    def _claim(self, path: Path) -> Path:
        """A chunk's lock file: beside the directory, which goes once the chunks are published."""
        name = hashlib.sha256(f"{self.directory.name}/{path.name}".encode()).hexdigest()[:16]
        return self.directory.with_name(f"{name}.claim")


def write_results(path: Path, results: Sequence[object], schema: pa.Schema) -> None:
    """Write the results of a chunk; the file appears when it is whole."""
    columns = {name: [getattr(result, name) for result in results] for name in schema.names}
    write_file(path, pa.table(columns, schema=schema))


def _read(path: Path, schema: pa.Schema) -> list[dict[str, Any]] | None:
    try:
        rows: list[dict[str, Any]] = pq.read_table(path, schema=schema).to_pylist()
    except (OSError, pa.ArrowException):
        return None
    return rows
