"""Shards, tables and texts made to exhaust: memory stays bounded, and time in proportion."""

from __future__ import annotations

import gzip
import json
import resource
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from plumbline.eval_workers.chat import replies as parse
from plumbline.eval_workers.disclosure import neutral
from plumbline.eval_workers.training.trained_models import train_model
from plumbline.eval_workers.training.training_options import TrainOptions
from plumbline.jobs.counting.lines import line_blocks
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.input.remote_files import ByteStream
from plumbline.warehouse.input.shards import documents
from plumbline.warehouse.text import csv_rows
from plumbline.warehouse.text.csv_rows import read_text, records


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def test_a_zstandard_window_of_gigabytes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "wide.jsonl.zst"
    wide = zstandard.ZstdCompressionParameters(window_log=31, compression_level=1)
    line = json.dumps({"text": "tea"}).encode()
    writer = zstandard.ZstdCompressor(compression_params=wide).compressobj()
    whole = writer.compress(line) + writer.flush()
    # A frame of unknown size: magic, a descriptor without a single segment, a window of 2 GiB.
    path.write_bytes(whole[:4] + b"\x00" + bytes([(31 - 10) << 3]) + b"\x01\x00\x00")
    before = peak_mb()
    with pytest.raises(BadInput, match=r"wide\.jsonl\.zst"):
        list(documents(path))
    assert peak_mb() - before < 200


@pytest.mark.parametrize("suffix", [pytest.param(".gz", marks=pytest.mark.slow), ".zst"])
def test_a_shard_that_unpacks_to_a_thousandfold_streams(tmp_path: Path, suffix: str) -> None:
    """300 MB of blank lines in a few hundred kilobytes."""
    path, block = tmp_path / f"bomb.jsonl{suffix}", b"\n" * (1 << 20)
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    if suffix == ".zst":
        packer = zstandard.ZstdCompressor().compressobj()  # type: ignore[assignment]
    path.write_bytes(b"".join(packer.compress(block) for _ in range(300)) + packer.flush())
    assert path.stat().st_size < 1_000_000
    before, n = peak_mb(), 0
    for _, end in line_blocks(path):
        n += end
    assert n == 300 << 20
    assert peak_mb() - before < 150


def test_a_line_longer_than_memory_should_hold_goes_through_a_file(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    path.write_bytes(b'{"text": "' + b"a" * (1 << 16) + b'"}\n{"text": "b"}\n')
    sizes = [end for _, end in line_blocks(path, long_line=1 << 12)]
    assert sum(sizes) + 1 >= path.stat().st_size - 1 and len(sizes) == 2


@pytest.mark.parametrize("suffix", [pytest.param(".gz", marks=pytest.mark.slow), ".zst"])
def test_a_line_without_end_is_not_held_in_memory(tmp_path: Path, suffix: str) -> None:
    """What reads whole lines, as training does; 640 megabytes of one line in less than one."""
    path, block = tmp_path / f"line.jsonl{suffix}", b"a" * (1 << 20)
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    if suffix == ".zst":
        packer = zstandard.ZstdCompressor().compressobj()  # type: ignore[assignment]
    parts = [packer.compress(b'{"text": "tea"}\n{"text": "')]
    parts += [packer.compress(block) for _ in range(640)]
    path.write_bytes(b"".join(parts) + packer.flush())
    options = TrainOptions(300, 16, 1, 2, 16, 4, 1e-3, max_tokens=600)
    before = peak_mb()
    with pytest.raises(BadInput, match=r"shard line\.jsonl.*, line 2: has more than 134,217,728"):
        list(documents(path))
    assert peak_mb() - before < 400
    with pytest.raises(BadInput, match=r"line 2: has more than 134,217,728 bytes"):
        train_model([path], "m", "c", options, tmp_path)
    assert not (tmp_path / "m").exists()


def test_a_long_line_is_read_whole(tmp_path: Path) -> None:
    path, text = tmp_path / "long.jsonl", "a" * (9 << 20)
    path.write_text(json.dumps({"text": text}) + '\n{"text": "b"}\n')
    assert list(documents(path)) == [text, "b"]


def test_json_made_to_exhaust_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "deep.jsonl"
    lines = [
        "[" * 200_000,
        '{"text":' * 100_000,
        '{"text": ' + "9" * 100_000 + "}",
        '{"text": "x"}',
    ]
    path.write_text("\n".join(lines))
    assert list(documents(path)) == ["x"]


def test_a_released_table_that_unpacks_without_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_rows, "LARGEST", 1 << 20)
    path = tmp_path / "scores.csv.gz"
    path.write_bytes(gzip.compress(b"word\n" + b"a" * (1 << 20)))
    with pytest.raises(BadInput, match="more than 1,048,576 bytes"):
        read_text(path)
    plain = tmp_path / "scores.csv"
    plain.write_bytes(b"a" * ((1 << 20) + 1))
    with pytest.raises(BadInput, match="more than 1,048,576 bytes"):
        read_text(plain)
    two = gzip.compress(b"word\n") + gzip.compress(b"tea\n")  # members follow each other
    path.write_bytes(two)
    assert [r.fields for r in records(path, ("word",))] == [{"word": "tea"}]
    for broken in (two[:-3], two + b"rubbish", two[:12]):
        path.write_bytes(broken)
        with pytest.raises(BadInput, match="can't be read to its end"):
            read_text(path)


def test_a_field_without_end_is_a_rejected_row(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text("word\n" + "a" * 200_000 + "\ntea\n")
    found = list(records(path, ("word",)))
    assert "not a CSV row" in str(found[0].problem) and found[-1].fields == {"word": "tea"}


def test_a_truncated_stream_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "cut.jsonl.zst"
    path.write_bytes(zstandard.compress(b'{"text": "tea"}\n' * 999)[:-9])
    with pytest.raises(BadInput), ByteStream(path) as stream:
        while stream.readinto(bytearray(4096)):
            pass


#: Openings that a pattern begins to match again and again, and never ends.
RUNS = ["<think>", "> ", "1. ", "**", "``` ", "((", "[", '["', '"\\', " .", "\n", "\t", "- ", "* _"]
READERS: dict[str, Callable[[str], object]] = {
    "sentences": parse.sentences,
    "verdict": parse.verdict,
}


@pytest.mark.parametrize("name", READERS)
def test_replies_are_read_in_time(name: str) -> None:
    """A reply has at most some thousand characters; one of 8,000 takes no seconds."""
    for run in RUNS:
        text = "1. " + (run * 8000)[:8000] + "\x00x"
        start = time.process_time()
        READERS[name](text)
        assert time.process_time() - start < 2, f"{name} of {run!r}"


def test_sentences_of_a_file_are_read_in_time() -> None:
    for run in (" ", ".", ". ", ",;", "\t"):
        start = time.process_time()
        neutral._END.search("a" + (run * 8000)[:8000] + "x")
        assert time.process_time() - start < 2, run
