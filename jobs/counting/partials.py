"""Keep the counts of each shard in a folder (partial counts), so that no shard is counted twice.

The folder's path depends on the shard's bytes, the counting options, and the versions of the
tokenizer and the shard reader. Counting writes to a temporary folder, which gets its final name at
the end, so a shard's folder is always complete. The folder's ledger has the hash of each file. The
hash is checked whenever the file is used, since disks may damage files over the years.
"""

from __future__ import annotations

import json
import shutil
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from plumbline.jobs.counting.shard import count_shard
from plumbline.jobs.kernel.corpus_options import CorpusOptions
from plumbline.jobs.kernel.memory import limits_within
from plumbline.jobs.kernel.tokens.language_tables import tokenizer_version
from plumbline.jobs.kernel.tokens.tokenizer import Targets
from plumbline.warehouse.errors import BadInput, Interrupted, PlumblineError, naming
from plumbline.warehouse.input.remote_files import describe, fingerprint, located
from plumbline.warehouse.paths import Address, json_object
from plumbline.warehouse.run_records import config_hash
from plumbline.warehouse.storage.data_files import write_file
from plumbline.warehouse.storage.place import sha256_of
from plumbline.warehouse.storage.store import Store

#: Version of the shard reader and the ledgers. Partial counts of other versions aren't used.
_READER = 4
#: Fields of a ledger that are totals of the shard's counts.
TOTALS = ("n_documents_in", "n_documents", "n_rejected", "n_tokens", "n_kept_tokens", "n_pairs")
#: Kinds of two successive files: the word ids of documents, and the words with these ids.
_TOKENS_AND_WORDS = ("tokens", "words")
_LEDGER = "ledger.json"


@dataclass(frozen=True)
class ShardLedger:
    """The result of counting one shard. All fields except ``away`` are columns of ``corpus_shard``.

    ``away`` is true if the shard failed because its server could not be reached.
    """

    shard: str
    fingerprint: str
    status: str
    error: str | None
    n_bytes: int
    n_documents_in: int = 0
    n_documents: int = 0
    n_rejected: int = 0
    n_tokens: int = 0
    n_kept_tokens: int = 0
    n_pairs: int = 0
    seconds: float = 0.0
    away: bool = False

    def row(self) -> dict[str, Any]:
        """Return the row of ``corpus_shard``, except the columns ``corpus`` and ``run``."""
        return {name: value for name, value in asdict(self).items() if name != "away"}


def partials_directory(store: Store, targets: Targets, options: CorpusOptions) -> Path:
    """Return the directory of partial counts for these options and the current tokenizer."""
    versions = {"tokenizer": tokenizer_version(targets.language), "reader": _READER}
    words = {"targets": targets.words, "language": targets.language}
    settings = options.of_partials() | words | versions
    return store.work_directory("count", config_hash(settings))


def partial_files(directory: Path, digest: str, *kinds: str) -> list[Path]:
    """List a shard's files of the given kinds (see ``jobs.kernel.counter.Spill``).

    If counting reached its memory limit, a kind has several files, and their counts must be added
    up. Raises ``BadInput`` if a file is damaged or the ledger is missing.
    """
    return [path for _, path in _whole_files(directory, digest, kinds)]


def token_files(directory: Path, digest: str) -> list[tuple[Path, Path]]:
    """List a shard's token files in order, each paired with the file of its words.

    Raises ``BadInput`` like ``partial_files``.
    """
    files = pairwise(_whole_files(directory, digest, _TOKENS_AND_WORDS))
    return [(a, b) for (kind, a), (other, b) in files if (kind, other) == _TOKENS_AND_WORDS]


def _whole_files(directory: Path, digest: str, kinds: Sequence[str]) -> Iterator[tuple[str, Path]]:
    """Yield the kind and path of each file of the given kinds. Check the file's hash first."""
    folder = directory / digest
    for name, (kind, sha256) in _read(folder)[1].items():
        if kind in kinds:
            path = folder / name
            try:
                problem = "" if sha256_of(path) == sha256 else "is damaged: its hash differs"
            except OSError as e:
                problem = f"can't be read: {e.strerror}"
            if problem:
                raise BadInput(f"{path}", problem, f"remove {folder} to count its shard again")
            yield kind, path


def _read(folder: Path) -> tuple[ShardLedger, dict[str, tuple[str, str]]]:
    """Read a shard's ledger. Also return {file name: (kind, SHA-256)}."""
    try:
        values = json_object(folder / _LEDGER)
        files = {
            x: (str(kind), str(sha256)) for x, (kind, sha256) in dict(values.pop("files")).items()
        }
        return ShardLedger(**values), files
    except (OSError, ValueError, KeyError, TypeError) as e:
        fix = f"remove {folder} to count its shard again"
        raise BadInput(f"{folder / _LEDGER}", f"is not the ledger of a shard: {e}", fix) from e


@dataclass(frozen=True)
class ShardJob:
    """Settings shared by all shards of a count.

    Attributes:
        directory: directory of the partial counts.
        read_ahead: decompress in a separate thread, which needs a core of its own.
        staging: directory for unfinished counts. Default: ``directory``. Both must be on one disk.
    """

    directory: str
    targets: Targets
    options: CorpusOptions
    read_ahead: bool = False
    staging: str | None = None

    def count(self, shard: str) -> ShardLedger:
        """Count one shard unless it has been counted already.

        If the shard can't be read to its end, or all its documents are rejected, the ledger's
        status is ``failed``.
        """
        started = time.monotonic()
        path, digest, size = located(shard), "", 0
        try:
            digest = fingerprint(path)
            file = describe(path)
            size = file.n_bytes if file else 0
            folder = Path(self.directory, digest)
            if not folder.exists():
                attempt = Path(self.staging or self.directory, uuid.uuid4().hex)
                attempt.mkdir(parents=True)
                try:
                    writer = _Writer(attempt)
                    with naming(attempt):
                        totals = self._count(path, digest, writer)
                        seconds = time.monotonic() - started
                        ledger = ShardLedger(shard, digest, "counted", None, size, **totals)
                        writer.publish(replace(ledger, seconds=seconds), folder)
                finally:
                    shutil.rmtree(attempt, ignore_errors=True)
            return _ledger(folder, shard)
        except PlumblineError as e:
            seconds = time.monotonic() - started
            away = isinstance(e, Interrupted)
            return ShardLedger(shard, digest, "failed", str(e), size, seconds=seconds, away=away)

    def _count(self, path: Path, digest: str, writer: _Writer) -> dict[str, Any]:
        limits = limits_within(self.options.memory_bytes, self.options.all_pairs)
        counts = count_shard(
            path, self.targets, self.options, writer.write, limits, self.read_ahead
        )
        if isinstance(path, Address) and fingerprint(path) != digest:
            fix = "run the same command again to count it as it is now"
            raise BadInput(f"shard {path.name}", "was replaced while it was read", fix)
        return {name: getattr(counts, name) for name in TOTALS}


def _ledger(folder: Path, shard: str) -> ShardLedger:
    """Read a folder's ledger. The status is ``failed`` if all documents were rejected."""
    ledger = replace(_read(folder)[0], shard=shard)
    if ledger.n_documents or not ledger.n_rejected:
        return ledger
    rejects = partial_files(folder.parent, folder.name, "rejects")
    first = pq.read_table(rejects[0])["reason"][0]
    problem = f"none of its {ledger.n_rejected:,} documents can be used; the first: {first}"
    error = BadInput(f"shard {Path(shard).name}", problem)
    return replace(ledger, status="failed", error=str(error))


def check_failed(ledgers: Sequence[ShardLedger], effect: str) -> None:
    """If any shard failed, raise an error that names the first one and ends with ``effect``.

    The error is ``Interrupted`` if a failed shard's server could not be reached, else ``BadInput``.
    """
    if failed := [x for x in ledgers if x.status == "failed"]:
        more = f" and {len(failed) - 1} more" * (len(failed) > 1)
        kind = Interrupted if any(x.away for x in failed) else BadInput
        raise kind(f"{failed[0].error}{more}", "", effect)


def _token_writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """Open a writer of word ids. It stores the ids' high bytes together, to save space."""
    return pq.ParquetWriter(
        path,
        schema,
        compression="lz4",
        use_dictionary=["source"],
        write_statistics=False,
        write_batch_size=1 << 16,  # makes writing a quarter faster than the default, 1,024
        column_encoding={"tokens.list.element": "BYTE_STREAM_SPLIT"},
    )


class _Writer:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kinds: dict[str, str] = {}  # {file name: kind}
        self._tokens: pq.ParquetWriter | None = None

    def write(self, kind: str, table: pa.Table) -> None:
        """Write a table to a file. ``tokens`` tables share a file until a ``words`` table comes."""
        if kind == "rejects" and not table.num_rows:
            return
        if kind == "tokens":
            self._tokens = self._tokens or _token_writer(self._new(kind), table.schema)
            self._tokens.write_table(table)
            return
        if kind == "words" and self._tokens:
            self._tokens.close()
            self._tokens = None
        write_file(self._new(kind), table, temporary=True)

    def _new(self, kind: str) -> Path:
        name = f"{len(self._kinds):05}.{kind}.parquet"
        self._kinds[name] = kind
        return self._folder / name

    def publish(self, ledger: ShardLedger, folder: Path) -> None:
        """Make these files the shard's partial counts, unless another process has done so first."""
        files = {x: [kind, sha256_of(self._folder / x)] for x, kind in self._kinds.items()}
        content = json.dumps({**ledger.row(), "files": files})
        (self._folder / _LEDGER).write_text(content, encoding="utf-8")
        try:
            self._folder.rename(folder)
        except OSError:
            if not folder.exists():
                raise
