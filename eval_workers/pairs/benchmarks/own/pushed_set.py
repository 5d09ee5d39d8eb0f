"""Reads a benchmark that ``plumbline benchmark push`` wrote: the same pairs, or an error."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pyarrow as pa
import pyarrow.parquet as pq

from plumbline.eval_workers.pairs.benchmarks._parsed import Parsed, Row
from plumbline.eval_workers.pairs.benchmarks.own.file_rows import KINDS
from plumbline.eval_workers.pairs.benchmarks.own.recipe import FACTS
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.input.remote_files import describe, located, open_file, unreadable
from plumbline.warehouse.paths import Address
from plumbline.warehouse.regular_files import LARGEST, object_of
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.schema.columns import Column

#: JSON file that lists the files of pairs and holds the pairs' fingerprint.
METADATA = "plumbline.json"
#: Columns that are pushed: all but the benchmark's name, and the baseline, which an import makes.
COLUMNS: dict[str, Column] = {
    c.name: c
    for c in TABLES["benchmark_pair"].columns
    if c.name not in ("benchmark", "baseline_a", "baseline_b")
}


def fingerprint(pairs: Iterable[Mapping[str, object]]) -> str:
    """SHA-256 of the pairs of a benchmark; the order of the rows does not matter.

    The benchmark's name is left out; a missing column counts as NULL.

    >>> one, other = {"pair_id": "1", "word": "tea"}, {"pair_id": "2"}
    >>> fingerprint([one, other]) == fingerprint([{**other, "word": None}, one])
    True
    >>> fingerprint([one]) == fingerprint([{**one, "word": "cup"}])
    False
    """
    digest = hashlib.sha256()
    for pair in sorted(pairs, key=lambda row: str(row["pair_id"])):
        digest.update(json.dumps([pair.get(name) for name in COLUMNS]).encode() + b"\n")
    return digest.hexdigest()


@dataclass(frozen=True)
class PushedBenchmark:
    """Name, fingerprint, files and facts of a benchmark, from a repository's metadata."""

    name: str
    fingerprint: str
    files: tuple[Path, ...]
    facts: Mapping[str, str]


def pushed(source: Path) -> PushedBenchmark | None:
    """The pushed benchmark in a directory or at an address; ``None`` for anything else.

    Raises ``BadInput`` if its metadata can't be read.
    """
    path = located(f"{source}/{METADATA}")
    if isinstance(path, Address):
        is_file = source.suffix.lower() in KINDS or "*" in str(source)
        if is_file or str(path).startswith("http") or describe(path) is None:
            return None
    elif not path.is_file():
        return None
    try:
        with open_file(path) as file:
            metadata = object_of(file.read(LARGEST))
    except OSError as e:
        raise unreadable(path, e) from e
    except ValueError as e:
        raise BadInput(str(path), str(e)) from e
    name, pairs_hash, listed = (metadata.get(key) for key in ("name", "fingerprint", "files"))
    if not (isinstance(name, str) and isinstance(pairs_hash, str) and isinstance(listed, list)):
        return None
    # Only files beside the metadata: a pushed benchmark must not read other files of this machine.
    names_beside = [n for n in listed if isinstance(n, str) and PurePosixPath(n).name == n]
    files = [located(f"{source}/{n}") for n in names_beside if n.endswith(".parquet")]
    stored_facts = metadata.get("facts")
    texts = stored_facts.items() if isinstance(stored_facts, dict) else ()
    facts = {k: v for k, v in texts if k in FACTS and isinstance(v, str)}
    return PushedBenchmark(name, pairs_hash, tuple(files), facts)


def name_at(address: Path) -> str:
    """Name of the benchmark pushed to an address. Raises ``UsageProblem`` if there is none."""
    benchmark = pushed(address)
    if benchmark is None:
        fix = f"plumbline benchmark import NAME --source {address}"
        raise UsageProblem(str(address), "has no benchmark that was pushed there", fix)
    return benchmark.name


def read_pushed(name: str, source: Path, metadata: PushedBenchmark) -> Parsed:
    """All pairs of a pushed benchmark, with all their columns.

    Raises ``BadInput`` if a file can't be read, or the pairs are not those that were pushed.
    """
    parsed = Parsed(name, facts=metadata.facts)
    for path in metadata.files:
        for row in _rows(path):
            parsed.take([row])
    reason = f"; {parsed.rejects[0]['reason']}" if parsed.rejects else ""
    if reason or fingerprint(parsed.pairs) != metadata.fingerprint:
        problem = f"its pairs are not those that {METADATA} names{reason}"
        fix = "push it again; or import one of its Parquet files with --source FILE"
        raise BadInput(str(source), problem, fix)
    return parsed


def _rows(path: Path) -> Iterator[Row]:
    try:
        with open_file(path) as raw, pq.ParquetFile(raw) as file:
            names = [name for name in COLUMNS if name in file.schema_arrow.names]
            table = file.read(columns=names)
    except (OSError, pa.ArrowInvalid) as e:
        raise unreadable(path, e) from e
    for name, column in COLUMNS.items():
        kind = table[name].type if name in names else None
        if kind not in (None, column.type) or (
            not column.nullable and (kind is None or table[name].null_count)
        ):
            problem = f"column {name} is {kind or 'missing'}"
            needs = "" if column.nullable else ", without NULL"
            raise BadInput(str(path), problem, f"expected {column.type}{needs}")
    yield from table.to_pylist()
