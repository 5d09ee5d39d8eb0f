"""Blocks hold the bytes of their source, appear whole or not at all, and count the same."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import fields
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.jobs.counting.shard import count_shard
from plumbline.jobs.ingest import split
from plumbline.jobs.ingest.split import LEDGER, read_ledger, split_shards
from plumbline.jobs.kernel import CountOptions
from plumbline.pipelines.command.main import main
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.input.shards import lines

BODY = b"".join(b'{"text": "She has %d teas and he."}\n' % (i % 97) for i in range(4000))
BODY += b'not json\n\n{"text": 3}\n\xff\xfe\n{"text": "the last he"}'


def zst(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


def blocks_of(out: Path) -> list[Path]:
    return sorted(out.glob("*.jsonl.zst"))


def plain(path: Path) -> bytes:
    """Decompressed by a library that the product does not use."""
    with path.open("rb") as file:
        return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()


def joined(out: Path) -> bytes:
    return b"".join(map(plain, blocks_of(out)))


@settings(max_examples=150)
@given(
    st.lists(st.binary(max_size=40).map(lambda b: b.replace(b"\n", b"")), max_size=30),
    st.booleans(),
    st.integers(1, 60),
    st.integers(1, 50),
)
def test_blocks_are_the_source(body: list[bytes], final: bool, size: int, chunk: int) -> None:
    data = b"\n".join(body) + (b"\n" if final and body else b"")
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        patch.setattr(split, "_CHUNK_BYTES", chunk)
        source, out = Path(place, "a.jsonl"), Path(place, "out")
        source.write_bytes(data)
        entry = split_shards([source], out, size).sources[0]
        found = [plain(out / b.name) for b in entry.blocks]
        assert b"".join(found) == data
        assert [line for b in entry.blocks for line in lines(out / b.name)] == list(lines(source))
        assert [len(f) for f in found] == [b.n_bytes for b in entry.blocks]
        assert [b.n_lines for b in entry.blocks] == [len(list(lines(p))) for p in blocks_of(out)]
        for held in found[:-1]:
            # Whole lines, and no line more than the size takes.
            assert held.endswith(b"\n") and len(held) >= size
            assert held[:-1].rfind(b"\n") + 1 < size


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.jsonl", BODY),
        ("a.jsonl.zst", zst(BODY)),
        ("a.jsonl.gz", gzip.compress(BODY)),
        ("a.jsonl.zst", zst(BODY[:50_001]) + zst(BODY[50_001:])),
        ("a.jsonl.gz", gzip.compress(BODY[:50_001]) + gzip.compress(BODY[50_001:])),
    ],
)
def test_every_form_counts_the_same(tmp_path: Path, name: str, data: bytes) -> None:
    source, out = tmp_path / name, tmp_path / "out"
    source.write_bytes(data)
    split_shards([source], out, 20_000)
    assert joined(out) == BODY and len(blocks_of(out)) == -(-len(BODY) // 20_010)
    options = CountOptions(("she", "he"), "pairs", 10)
    whole, parts = count_shard(source, options), [count_shard(b, options) for b in blocks_of(out)]
    for field in fields(whole):
        if field.name.startswith("n_"):
            total = sum(getattr(p, field.name) for p in parts)
            assert total == getattr(whole, field.name), field.name
    assert len(whole.rejects) == sum(len(p.rejects) for p in parts) == 3
    for kind, keys, value in (
        ("words", ["word"], "n_word"),
        ("pairs", ["word", "target"], "n_pair"),
    ):
        summed: dict[tuple[str, ...], int] = {}
        for row in (r for p in parts for r in getattr(p, kind).to_pylist()):
            key = tuple(row[k] for k in keys)
            summed[key] = summed.get(key, 0) + row[value]
        expected = {tuple(r[k] for k in keys): r[value] for r in getattr(whole, kind).to_pylist()}
        assert summed == expected


def test_a_truncated_source_leaves_no_blocks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, cut, out = tmp_path / "good.jsonl", tmp_path / "cut.jsonl.zst", tmp_path / "out"
    good.write_bytes(BODY)
    cut.write_bytes(zst(BODY)[:-3])
    given = ["corpus", "split", str(cut), str(good), "--out", str(out), "--block-mb", "0.01"]
    assert main(given) == 3
    error = capsys.readouterr().err
    assert "cut.jsonl.zst" in error and len(error.strip().splitlines()) == 1
    assert joined(out) == BODY and {s.source for s in read_ledger(out).values()} == {str(good)}
    assert {p.name for p in out.iterdir()} == {LEDGER, *(b.name for b in blocks_of(out))}
    before = {b: b.stat().st_mtime_ns for b in blocks_of(out)}
    cut.write_bytes(zst(BODY))
    assert main(given) == 0
    shown = capsys.readouterr().out
    assert "1 of 2 were cut already" in shown and "plumbline corpus count" in shown
    assert joined(out) == BODY * 2
    assert before.items() <= {b: b.stat().st_mtime_ns for b in blocks_of(out)}.items()


def test_a_source_that_stops_early_is_noticed_after_many_blocks(tmp_path: Path) -> None:
    source, out = tmp_path / "a.jsonl.zst", tmp_path / "out"
    data = zst(os.urandom(9_000_000).hex().encode() + b"\n" + BODY)
    source.write_bytes(data[: len(data) * 9 // 10])
    with pytest.raises(BadInput, match=r"a\.jsonl\.zst"):
        split_shards([source], out, 1000)
    assert list(out.iterdir()) == []


def test_changed_moved_missing_and_recut(tmp_path: Path) -> None:
    source, other, out = tmp_path / "a.jsonl", tmp_path / "b.jsonl", tmp_path / "out"
    source.write_bytes(BODY)
    other.write_bytes(b"x\ny\n")
    split_shards([source, other], out, 50_000)
    assert split_shards([source], out, 50_000).n_kept == 1
    # Moved: known by its content.
    moved = tmp_path / "elsewhere" / "a.jsonl"
    moved.parent.mkdir()
    source.rename(moved)
    assert split_shards([moved], out, 50_000).n_kept == 1
    # A block is gone: the source is cut again.
    blocks_of(out)[0].unlink()
    assert split_shards([moved], out, 50_000).n_kept == 0
    assert joined(out) == BODY + b"x\ny\n"
    # Another size replaces the blocks, also when the ledger of the first cut was not written.
    (out / LEDGER).unlink()
    split_shards([moved, other], out, 90_000)
    assert joined(out) == BODY + b"x\ny\n"
    # Changed content replaces its own blocks and no others.
    moved.write_bytes(b"new\n")
    split_shards([moved], out, 90_000)
    assert sorted(map(plain, blocks_of(out))) == [b"new\n", b"x\ny\n"]


def test_equal_shards_are_cut_twice(tmp_path: Path) -> None:
    paths = [tmp_path / d / "a.jsonl" for d in ("x", "y")]
    for path in paths:
        path.parent.mkdir()
        path.write_bytes(b"one\ntwo\n")
    done = split_shards(paths, tmp_path / "out", 4)
    assert len({b.name for s in done.sources for b in s.blocks}) == 4
    assert split_shards(paths, tmp_path / "out", 4).n_kept == 2
    assert joined(tmp_path / "out") == b"one\ntwo\n" * 2


def test_a_directory_is_cut_into_by_one_command_at_a_time(tmp_path: Path) -> None:
    shards, out = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"], tmp_path / "out"
    for path in shards:
        path.write_bytes(path.name.encode() + BODY)

    def begin_another(done: int, _: int) -> None:
        if done == 1:
            with pytest.raises(UsageProblem, match=r"out: another command writes to it: process"):
                split_shards([shards[1]], out, 20_000)

    done = split_shards(shards[:1], out, 20_000, progress=begin_another)
    assert read_ledger(out).keys() == {done.sources[0].label}
    split_shards(shards[1:], out, 20_000)
    assert len(read_ledger(out)) == 2 and not list(out.glob("_*"))


def test_a_killed_split_goes_on(tmp_path: Path) -> None:
    shards, out = [tmp_path / f"{n}.jsonl" for n in range(6)], tmp_path / "out"
    for n, path in enumerate(shards):
        path.write_bytes(b'{"text": "shard %d"}\n' % n + BODY * 60)
    code = (
        "import sys; from pathlib import Path\n"
        "from plumbline.jobs.ingest import split\n"
        "split.n_cores = lambda: 1\n"
        "split.split_shards([Path(p) for p in sys.argv[2:]], Path(sys.argv[1]), 20000)"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(out), *map(str, shards)])
    deadline = time.monotonic() + 60
    while not (out / LEDGER).exists():
        assert process.poll() is None and time.monotonic() < deadline, "nothing to kill"
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    finished = read_ledger(out)
    assert 0 < len(finished) < 6
    kept = {b.name: (out / b.name).stat().st_mtime_ns for s in finished.values() for b in s.blocks}
    done = split_shards(shards, out, 20_000)
    assert done.n_kept == len(finished)
    assert {name: (out / name).stat().st_mtime_ns for name in kept} == kept
    for entry in done.sources:
        found = b"".join(plain(out / b.name) for b in entry.blocks)
        assert found == Path(entry.source).read_bytes()
    assert {b.name for s in done.sources for b in s.blocks} == {b.name for b in blocks_of(out)}
    assert not [p for p in out.iterdir() if p.name.startswith("_")]
