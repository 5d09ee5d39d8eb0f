"""Results of single shards, kept until and after the merge so that no shard is counted twice.

A partial is named by what it depends on: the shard's bytes, the counting options and the version of
the tokeniser. Its ledger is written last and by rename, so a partial with a ledger is complete.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from jobs.sweep import CountOptions, ShardCounts, sweep_shard
from jobs.tables import TOKENIZER_VERSION
from warehouse.errors import PlumblineError
from warehouse.runs import config_hash
from warehouse.shards import fingerprint
from warehouse.store import Store, write_file


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


def part(where: Path, mark: str, kind: str) -> Path:
    """File of a partial: kind is ``words``, ``pairs`` or ``rejects``; mark the fingerprint."""
    return where / f"{mark}.{kind}.parquet"


def count_shard(shard: str, where: str, options: Mapping[str, Any]) -> Ledger:
    """Count one shard unless it has been counted already; the body of a Spark task.

    Args: path of the shard, directory of the partials, fields of ``CountOptions``. A shard that
    cannot be read to its end gives a ledger with status ``failed`` and no counts.
    """
    started = time.monotonic()
    path, out = Path(shard), Path(where)
    mark, size = "", 0
    try:
        mark = fingerprint(path)
        size = path.stat().st_size
        ledger = out / f"{mark}.json"
        if ledger.exists():
            return Ledger(**{**json.loads(ledger.read_text("utf-8")), "shard": shard})
        counts = sweep_shard(
            path, CountOptions(**{**options, "targets": tuple(options["targets"])})
        )
    except PlumblineError as e:
        seconds = time.monotonic() - started
        return Ledger(shard, mark, "failed", str(e), size, seconds=seconds)
    return _publish(out, shard, mark, size, counts, time.monotonic() - started)


def _publish(
    out: Path, shard: str, mark: str, size: int, counts: ShardCounts, seconds: float
) -> Ledger:
    rejects = {
        "source_row": pa.array([r.row for r in counts.rejects], pa.int64()),
        "reason": pa.array([r.reason for r in counts.rejects], pa.string()),
        "excerpt": pa.array([r.excerpt for r in counts.rejects], pa.string()),
    }
    write_file(part(out, mark, "words"), counts.words)
    write_file(part(out, mark, "pairs"), counts.pairs)
    write_file(part(out, mark, "rejects"), pa.table(rejects))
    ledger = Ledger(
        shard,
        mark,
        "counted",
        None,
        size,
        n_documents_in=counts.n_documents_in,
        n_documents=counts.n_documents,
        n_rejected=len(counts.rejects),
        n_tokens=counts.n_tokens,
        n_kept_tokens=counts.n_kept_tokens,
        n_pairs=counts.n_pairs,
        seconds=seconds,
    )
    temporary = out / f"_{uuid.uuid4().hex}.tmp"
    temporary.write_text(json.dumps(asdict(ledger)), encoding="utf-8")
    os.replace(temporary, out / f"{mark}.json")
    return ledger
