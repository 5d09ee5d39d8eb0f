"""Results of single shards, kept until and after the merge so that no shard is counted twice.

A partial is named by what it depends on: the shard's bytes, the counting options and the version of
the tokeniser. Its ledger is written last and by rename, so a partial with a ledger is complete.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from plumbline.jobs.counting.shard import sweep_shard
from plumbline.jobs.kernel import TOKENIZER_VERSION, CountOptions, limits_within
from plumbline.warehouse.errors import PlumblineError
from plumbline.warehouse.provenance.runs import config_hash
from plumbline.warehouse.shards import fingerprint
from plumbline.warehouse.storage.store import Store, write_file

#: Called with (shards done, shards) whenever one is done, from any thread.
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Ledger:
    """What became of one shard; the fields are those of the table ``corpus_shard``."""

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


def settings_key(options: CountOptions) -> str:
    """Name of everything but the shard that decides its counts."""
    return config_hash({**asdict(options), "tokenizer": TOKENIZER_VERSION})


def directory(store: Store, options: CountOptions) -> Path:
    """Where partials under these options lie."""
    return store.work_directory("count", settings_key(options))


def parts(where: Path, mark: str, kind: str) -> list[Path]:
    """Files of a partial: kind is ``words``, ``pairs`` or ``rejects``; mark the fingerprint.

    A count that reached its memory limit has several; a word or pair may be in each, to be summed.
    """
    made = _read(where / f"{mark}.json")
    return [where / name for name in made["files"] if name.split(".")[-2] == kind]


def _read(ledger: Path) -> dict[str, Any]:
    return dict(json.loads(ledger.read_text("utf-8")))


@dataclass(frozen=True)
class ShardJob:
    """What is the same for every shard of a count.

    Attributes:
        where: directory of the partials.
        memory_bytes: cap of this process's memory; none without it.
    """

    where: str
    options: CountOptions
    memory_bytes: int | None = None

    def count(self, shard: str) -> Ledger:
        """Count one shard unless it has been counted already.

        A shard that cannot be read to its end gives a ledger with status ``failed`` and no counts.
        """
        started = time.monotonic()
        path, out = Path(shard), Path(self.where)
        mark, size = "", 0
        try:
            mark = fingerprint(path)
            size = path.stat().st_size
            ledger = out / f"{mark}.json"
            if ledger.exists():
                return _ledger(ledger, shard)
            writer = _Writer(out, mark)
            limits = None
            if self.memory_bytes:
                limits = limits_within(self.memory_bytes, self.options.all_pairs)
            counts = sweep_shard(path, self.options, limits, writer.write)
        except PlumblineError as e:
            seconds = time.monotonic() - started
            return Ledger(shard, mark, "failed", str(e), size, seconds=seconds)
        made = Ledger(
            shard,
            mark,
            "counted",
            None,
            size,
            n_documents_in=counts.n_documents_in,
            n_documents=counts.n_documents,
            n_rejected=counts.n_rejected,
            n_tokens=counts.n_tokens,
            n_kept_tokens=counts.n_kept_tokens,
            n_pairs=counts.n_pairs,
            seconds=time.monotonic() - started,
        )
        writer.publish(made)
        return _ledger(ledger, shard)


def _ledger(path: Path, shard: str) -> Ledger:
    made = _read(path)
    del made["files"]
    return Ledger(**{**made, "shard": shard})


class _Writer:
    """The files of one attempt at a shard; they count once the ledger that names them is there.

    Each attempt has its own names: the files of two tasks on shards of equal content, or of one
    that was killed and its successor, never mix.
    """

    def __init__(self, out: Path, mark: str) -> None:
        self._out, self._mark = out, mark
        self._attempt = uuid.uuid4().hex[:12]
        self._files: list[str] = []

    def write(self, kind: str, table: pa.Table) -> None:
        """Write one more file of a kind."""
        name = f"{self._mark}.{self._attempt}-{len(self._files):05}.{kind}.parquet"
        write_file(self._out / name, table, temporary=True)
        self._files.append(name)

    def publish(self, ledger: Ledger) -> None:
        """Make this attempt the shard's partial, unless another attempt was first."""
        temporary = self._out / f"_{uuid.uuid4().hex}.tmp"
        temporary.write_text(json.dumps({**asdict(ledger), "files": self._files}), encoding="utf-8")
        final = self._out / f"{self._mark}.json"
        try:
            os.link(temporary, final)
        except FileExistsError:
            pass
        except OSError:  # no hard links on this file system
            os.replace(temporary, final)
        temporary.unlink(missing_ok=True)
        kept = set(_read(final)["files"])
        for other in self._out.glob(f"{self._mark}.*.parquet"):
            if other.name not in kept:
                other.unlink(missing_ok=True)
