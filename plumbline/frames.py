"""Conversions between Arrow tables and the data frames that users get and give."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from plumbline.warehouse.errors import BadInput, MissingComponent, UsageProblem

Frames = Literal["pandas", "polars", "arrow"]
#: A frame of pandas or polars, or a table of arrow, as the warehouse was opened for.
Frame: TypeAlias = Any


def frame_maker(frames: Frames) -> Callable[[pa.Table], Frame]:
    """Return the function that turns a table into a frame; import its package now, not later."""
    if frames == "arrow":
        return lambda table: table
    if frames not in ("pandas", "polars"):
        raise UsageProblem(f"frames {frames!r}", "unknown", "known: pandas, polars, arrow")
    try:
        package = import_module(frames)
    except ModuleNotFoundError as e:
        fix = f'pip install {frames}, or plumbline.open(..., "arrow")'
        raise MissingComponent(frames, "is not installed", fix) from e
    if frames == "pandas":
        return lambda table: table.to_pandas()
    return package.from_arrow  # type: ignore[no-any-return]


def listed(given: str | Sequence[str]) -> list[str]:
    """Return a text, or several, as a list.

    >>> listed("nurse"), listed(("nurse", "cook"))
    (['nurse'], ['nurse', 'cook'])
    """
    if isinstance(given, str):
        return [given]
    if not (isinstance(given, Iterable) and all(isinstance(one, str) for one in given)):
        raise UsageProblem(f"{given!r:.80}", "is not text", "give one text, or a list of them")
    return list(given)


def table_of(source: Any) -> pa.Table:
    """Return a frame, or a list of dictionaries, as a table without the frame's index.

    >>> table_of([{"sentence_a": "She ran."}]).column_names
    ['sentence_a']
    """
    if isinstance(source, Sequence) and all(isinstance(row, Mapping) for row in source):
        try:
            return pa.Table.from_pylist(list(source))
        except UnicodeEncodeError as e:
            fix = "remove what isn't Unicode"
            raise BadInput("pairs", f"half a surrogate pair in {e.object!r:.80}", fix) from e
    if not hasattr(source, "__arrow_c_stream__"):
        fix = "give a file, a data frame, or a list of dictionaries"
        raise UsageProblem(f"pairs of type {type(source).__name__}", "can't be read", fix)
    table = pa.table(source)
    return table.select([c for c in table.column_names if not c.startswith("__index_level_")])


def hash_of(table: pa.Table) -> str:
    return hashlib.sha256(repr(table.to_pylist()).encode()).hexdigest()[:8]


@contextmanager
def file_of(name: str, source: Any) -> Iterator[Path | None]:
    """Yield the path of a source; a frame is written to a temporary file with the name ``name``."""
    if source is None or isinstance(source, (str, Path)):
        yield None if source is None else Path(source)
        return
    with TemporaryDirectory() as directory:
        path = Path(directory) / f"{name}.parquet"
        pq.write_table(table_of(source), path)
        yield path
