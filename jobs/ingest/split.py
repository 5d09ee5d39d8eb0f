"""Cutting shards into blocks, so that more cores than shards can count them.

Blocks are `.jsonl.zst`. A source's decompressed blocks, joined in order, are its decompressed
bytes: every line keeps its place, even a blank line or a line that counting rejects.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa

from plumbline.warehouse.cores import n_cores
from plumbline.warehouse.errors import BadInput, Interrupted, PlumblineError, UsageProblem
from plumbline.warehouse.input.remote_files import ByteStream
from plumbline.warehouse.input.shards import fingerprint, kind_of
from plumbline.warehouse.regular_files import json_object
from plumbline.warehouse.storage.locks import NoLocks, sole

#: The ledger's name in the directory of the blocks.
LEDGER = "split.json"
_STAGING = "_staging"
_LOCK = "_split.claim"
_RESUME = "run the same command again to resume"
_CHUNK_BYTES = 1 << 22


@dataclass(frozen=True)
class Block:
    """One published block: its lines, decompressed bytes, and bytes on disk."""

    name: str
    n_lines: int
    n_bytes: int
    n_bytes_on_disk: int


@dataclass(frozen=True)
class SplitSource:
    """A shard's entry in the ledger: its path, its fingerprint when it was cut, its blocks.

    Attributes:
        label: start of the names of its blocks.
        block_bytes: requested size of a block.
    """

    source: str
    label: str
    fingerprint: str
    block_bytes: int
    n_lines: int
    n_bytes: int
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class SplitDone:
    """Outcome: the sources' entries, and how many of them existed before."""

    sources: tuple[SplitSource, ...]
    n_kept: int


def split_shards(
    shards: Sequence[Path],
    out: Path,
    block_bytes: int,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> SplitDone:
    """Cut each shard into blocks of about ``block_bytes`` decompressed bytes.

    A block ends with the line that reaches the size; it is larger if that line is long. Shards are
    cut in parallel, one thread each (the codecs release Python's lock), in memory that depends on
    neither the shard nor its lines. A shard's blocks appear when it has been read to its end. A
    shard that was cut before is skipped if its content, the block size and its blocks are the same;
    otherwise its new blocks replace the old ones. Other sources' blocks in ``out`` stay.

    Raises:
        UsageProblem: a size below 1, a shard that isn't JSON lines or lies in ``out``, or another
            command that cuts into ``out``.
        BadInput: shards that can't be read to their end, raised after the others are cut; ``out``
            can't be written, or its ledger isn't valid.
        Interrupted: stopped from the keyboard.

    >>> import tempfile
    >>> where = Path(tempfile.mkdtemp())
    >>> _ = (where / "a.jsonl").write_bytes(b"one\\ntwo\\nthree")
    >>> done = split_shards([where / "a.jsonl"], where / "out", 5)
    >>> [(b.n_lines, b.n_bytes) for b in done.sources[0].blocks]
    [(2, 8), (1, 5)]
    """
    _check(shards, out, block_bytes)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise BadInput(f"output directory {out}", e.strerror or "can't be made") from e
    with ExitStack() as locks:
        with suppress(NoLocks):  # without locks another command goes unnoticed
            locks.enter_context(sole(out / _LOCK, f"--out {out}"))
        return _split(shards, out, block_bytes, progress)


def _split(
    shards: Sequence[Path],
    out: Path,
    block_bytes: int,
    progress: Callable[[int, int], None] | None,
) -> SplitDone:
    """Cut shards into a directory that no other process cuts into."""
    shutil.rmtree(out / _STAGING, ignore_errors=True)
    job = _Job(out, block_bytes, read_ledger(out))
    with ThreadPoolExecutor(min(len(shards), n_cores())) as pool:
        try:
            marks = [pool.submit(fingerprint, path) for path in shards]
            wait(marks)
            errors = [x for m in marks if (x := m.exception())]
            readable = [
                (p, m.result()) for p, m in zip(shards, marks, strict=True) if not m.exception()
            ]
            labels = _labels(readable)
            job.labels.update(labels)
            tasks = [
                pool.submit(job.run, path, mark, label)
                for (path, mark), label in zip(readable, labels, strict=True)
            ]
            for n, _ in enumerate(as_completed(tasks), 1):
                if progress:
                    progress(n, len(tasks))
        except KeyboardInterrupt:
            job.stop.set()
            raise Interrupted("split", "interrupted", _RESUME) from None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            shutil.rmtree(out / _STAGING, ignore_errors=True)
    failed = errors + [x for t in tasks if (x := t.exception())]
    for error in failed:
        if not isinstance(error, PlumblineError):
            raise error
    if failed:
        what = f"{len(failed)} of {len(shards)} shards"
        fix = f"blocks of other shards are kept: {_RESUME}"
        raise BadInput(what, f"not cut, the first because of {failed[0]}", fix)
    outcomes = [t.result() for t in tasks]
    return SplitDone(tuple(s for s, _ in outcomes), sum(kept for _, kept in outcomes))


def read_ledger(out: Path) -> dict[str, SplitSource]:
    """The ledger of a directory of blocks by label; empty before the first run.

    Raises:
        BadInput: the file exists and is not a ledger.
    """
    path = out / LEDGER
    if not path.exists():
        return {}
    try:
        entries = json_object(path)["sources"]
        sources = [
            SplitSource(**{**x, "blocks": tuple(Block(**b) for b in x["blocks"])}) for x in entries
        ]
    except (OSError, ValueError, KeyError, TypeError) as e:
        fix = "give another --out, or remove it with the blocks"
        raise BadInput(f"ledger {path}", "was not written by `corpus split`", fix) from e
    return {s.label: s for s in sources}


def _check(shards: Sequence[Path], out: Path, block_bytes: int) -> None:
    if block_bytes < 1:
        raise UsageProblem("--block-mb", "a block holds at least one byte", "such as 64")
    for path in shards:
        if kind_of(path):
            fix = "count it without splitting it"
            raise UsageProblem(f"shard {path}", "only JSON lines can be split", fix)
        if path.resolve().parent == out.resolve():
            raise UsageProblem(f"--out {out}", f"shard {path.name} lies in it", "name another")


def _labels(shards: Sequence[tuple[Path, str]]) -> list[str]:
    """Start of the names of each shard's blocks, from its name and fingerprint.

    A shard that was moved on a disk keeps its label. Copies of one shard in one command get
    different labels.

    >>> _labels([(Path("x/a.jsonl.zst"), "0123456789"), (Path("y/a.jsonl"), "0123456789")])
    ['a-01234567', 'a-01234567-2']
    """
    seen: Counter[str] = Counter()
    labels = []
    for path, mark in shards:
        label = f"{path.name.rpartition('.jsonl')[0]}-{mark[:8]}"
        seen[label] += 1
        labels.append(f"{label}-{seen[label]}" if seen[label] > 1 else label)
    return labels


class _Job:
    """State shared by the threads of one command: directory, ledger, a stop flag."""

    def __init__(self, out: Path, block_bytes: int, ledger: dict[str, SplitSource]) -> None:
        self.out, self.block_bytes, self.ledger = out, block_bytes, ledger
        self.stop = threading.Event()
        self._lock = threading.Lock()
        self.labels: set[str] = set()

    def run(self, path: Path, mark: str, label: str) -> tuple[SplitSource, bool]:
        """Cut one shard; returns its entry and whether that existed before."""
        entry_before = self.ledger.get(label)
        if entry_before and entry_before.fingerprint == mark and self._is_whole(entry_before):
            return entry_before, True
        staging = self.out / _STAGING / label
        try:
            staging.mkdir(parents=True)
            blocks = tuple(self._blocks(path, label, staging))
            totals = sum(b.n_lines for b in blocks), sum(b.n_bytes for b in blocks)
            entry = SplitSource(str(path), label, mark, self.block_bytes, *totals, blocks)
            self._publish(entry, staging)
        except OSError as e:
            problem = e.strerror or str(e)
            fix = f"check the disk; {_RESUME}"
            raise BadInput(f"output directory {self.out}", problem, fix) from e
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        return entry, False

    def _is_whole(self, entry: SplitSource) -> bool:
        sizes = ((self.out / b.name, b.n_bytes_on_disk) for b in entry.blocks)
        present = all(path.is_file() and path.stat().st_size == n for path, n in sizes)
        return present and entry.block_bytes == self.block_bytes

    def _blocks(self, path: Path, label: str, staging: Path) -> Iterator[Block]:
        with ByteStream(path) as stream:
            pieces = _cut(stream, self.block_bytes, self.stop)
            ended, number = False, 0
            while not ended:
                name = f"{label}.{number:05}.jsonl.zst"
                block, ended = _write_block(staging / name, pieces)
                if block is not None:
                    yield block
                number += 1
        if self.stop.is_set():
            raise Interrupted("split", "interrupted", _RESUME)

    def _publish(self, entry: SplitSource, staging: Path) -> None:
        """Remove older blocks, rename the new ones into place, then enter them in the ledger."""
        home = Path(entry.source).resolve()
        with self._lock:
            old = [
                s
                for s in self.ledger.values()
                if s.label == entry.label
                or (s.label not in self.labels and Path(s.source).resolve() == home)
            ]
            if old:
                for s in old:
                    del self.ledger[s.label]
                self._save()
            stale = [self.out / b.name for s in old for b in s.blocks]
            # A command killed between the renames and the ledger leaves blocks of this label.
            blocks = self.out.glob("*.jsonl.zst")
            stale += [f for f in blocks if f.name.startswith(f"{entry.label}.")]
            for file in stale:
                file.unlink(missing_ok=True)
            for block in entry.blocks:
                os.replace(staging / block.name, self.out / block.name)
            self.ledger[entry.label] = entry
            self._save()

    def _save(self) -> None:
        entries = [asdict(self.ledger[k]) for k in sorted(self.ledger)]
        temporary = self.out / f"_{uuid.uuid4().hex}.tmp"
        temporary.write_text(json.dumps({"sources": entries}, indent=1), encoding="utf-8")
        os.replace(temporary, self.out / LEDGER)


#: Some bytes of the stream, and whether a block ends after them.
_Piece = tuple[memoryview, bool]


def _cut(stream: ByteStream, block_bytes: int, stop: threading.Event) -> Iterator[_Piece]:
    """The stream in pieces; each ends at the end of a block or of a chunk that was read."""
    chunk = bytearray(_CHUNK_BYTES)
    size = 0
    while (n := stream.readinto(chunk)) and not stop.is_set():
        at = 0
        while at < n:
            # The first newline at or after byte number `block_bytes` ends the block.
            newline = chunk.find(b"\n", at + max(block_bytes - size - 1, 0), n)
            end = n if newline < 0 else newline + 1
            size = 0 if newline >= 0 else size + end - at
            yield memoryview(chunk)[at:end], newline >= 0
            at = end


def _write_block(path: Path, pieces: Iterator[_Piece]) -> tuple[Block | None, bool]:
    """Write one block; returns it (None if nothing was left) and whether the stream has ended."""
    n_lines = n_bytes = 0
    last, ended = b"\n", True
    with pa.OSFile(str(path), "wb") as raw, pa.CompressedOutputStream(raw, "zstd") as out:
        for piece, is_end in pieces:
            data = bytes(piece)
            out.write(data)
            n_bytes += len(data)
            n_lines += data.count(b"\n")
            last = data[-1:]
            if is_end:
                ended = False
                break
    if n_bytes == 0:
        path.unlink()
        return None, ended
    n_lines += last != b"\n"
    return Block(path.name, n_lines, n_bytes, path.stat().st_size), ended
