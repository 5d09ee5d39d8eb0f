"""Kinds of files × what is in them × what reads them: one line, no hang, bounded memory."""

import gzip
import json
import math
import os
import signal
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import pytest
import zstandard

from plumbline.eval_workers.chat.ledger import open_ledger, read_ledger
from plumbline.eval_workers.models.local.source import find_source
from plumbline.eval_workers.pairs.benchmarks import import_benchmark
from plumbline.eval_workers.training.trained_models import train_model
from plumbline.eval_workers.training.training_options import TrainOptions
from plumbline.jobs.counting.partials import _read
from plumbline.jobs.seed_words.vocabulary import load_model as load_language
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.input import input_rows as csv_rows
from plumbline.warehouse.input.input_rows import read_text
from plumbline.warehouse.input.shards import documents, expand_shards
from plumbline.warehouse.query.connection import connect
from plumbline.warehouse.storage import log
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text import progress, toml_file
from tests.hostile import peak_mb, spoilt


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine, no line of progress stands beside the one that is looked for."""
    monkeypatch.setattr(progress, "PATIENCE_S", math.inf)


@pytest.fixture
def no_hang() -> Iterator[None]:
    """Whatever waits for a pipe is interrupted."""
    signal.alarm(300)
    yield
    signal.alarm(0)


# Kinds of files, what is in them instead, and what reads them


class Reader(NamedTuple):
    """A kind of file: makes a whole one, reads it, and the pattern of its error's line."""

    make: Callable[[Store], Path]
    read: Callable[[Store, Path], object]
    line: str


def beside(*names: str, content: str = "") -> Callable[[Store], Path]:
    """Makes files of these names in a directory beside the warehouse; the first is the one."""

    def make(store: Store) -> Path:
        directory = store.root.parent / "beside"
        directory.mkdir()
        for name in names:
            (directory / name).write_text(content)
        return directory / names[0]

    return make


def in_work(kind: str, name: str, file: str) -> Callable[[Store], Path]:
    """Makes a file in a directory of unfinished work."""

    def make(store: Store) -> Path:
        path = store.work_directory(kind, name) / file
        path.write_text("{}")
        return path

    return make


def in_log(kind: str) -> Callable[[Store], Path]:
    """Makes a commit with a data file; the path of either."""

    def make(store: Store) -> Path:
        row = {"corpus": "c", "word": "tea", "n_word": 1}
        store.publish("word_count", [row], unit="a", run_id="r")
        (file,) = store.snapshot().files("word_count")
        return store.root / (file.path if kind == "data" else log.commit_name(1))

    return make


def opened_ledger(store: Store, _: Path) -> None:
    with open_ledger(store, "b"):
        pass


def model_beside(_: Store, path: Path) -> object:
    return find_source(str(path.parent), None)


#: What a small JSON file may hold instead of what we wrote.
CONTENTS = ["null", "[]", "[" * 100_000, "\xff\xfe", "7" * 5000, '{"files": [3]}']
NO_FILES = ["pipe", "directory", "circle"]
ROW = {"request_id": "q", "prompt": "p", "model": "m", "parameters": "{}", "run_id": "r"}
ROW |= {"purpose": "write", "word": "w", "pronoun": "she", "round": 1, "status": "failed"}
ROW |= {"n_attempts": 1, "n_tokens_most": 5, "seconds": 0.0, "reply": None}
ROWS = [
    *(None, [], {}, 5),
    *({**ROW, "n_attempts": "many"}, {**ROW, "n_attempts": 10**30}, {**ROW, "request_id": []}),
    *({**ROW, "error": {}, "reply": 7}, {**ROW, "nobody": 1}, {**ROW, "seconds": None}),
]
LEDGERS = [f"{json.dumps(ROW)}\n{json.dumps(row)}\n" for row in ROWS]
COMMITS = ["", "\xff\xfe", "{}\n\xff", sha256().hexdigest(), '{"format": 1' + "0" * 5000 + "}"]
_SIGNED = ("", "\xff", "null", "[]", "{}", "[" * 100_000)
_SIGNED += ('{"tables": {"word_count": "../../x"}, "leases": {}}', COMMITS[-1])
COMMITS += [log.signed(c.encode("latin-1")).decode("latin-1") for c in _SIGNED]
PACKED = gzip.compress(b"word\n") + gzip.compress(b"tea\n")
COUNTS = in_work("count", "x", "ledger.json")
REPLIES = in_work("generate", "b", "ledger.jsonl")
WEIGHTS = ("model.safetensors", "tokenizer.json", "config.json")
TABLE = beside("scores.csv.gz")

READERS = {
    "counts": Reader(COUNTS, lambda _, path: _read(path.parent), r"ledger\.json"),
    "marker": Reader(
        lambda store: store.root / "plumbline.json",
        lambda store, _: Store.open(store.root),
        r"plumbline\.json",
    ),
    "data": Reader(in_log("data"), lambda store, _: store.read("word_count"), r"\.parquet"),
    "commit": Reader(in_log("commit"), lambda store, _: connect(store.root), "is damaged|can't be"),
    "settings": Reader(beside("a.toml"), lambda _, path: toml_file.read(path), "can't be read"),
    "weights": Reader(beside(*WEIGHTS, content="{}"), model_beside, "not a regular file"),
    "tokenizer": Reader(
        beside(*reversed(WEIGHTS[:2]), "config.json", content="{}"),
        model_beside,
        "not a regular file",
    ),
    "shard": Reader(
        beside("a.jsonl"), lambda _, path: expand_shards([str(path)]), "is not a regular file|links"
    ),
    "replies": Reader(REPLIES, lambda store, _: read_ledger(store, "b"), r"ledger\.jsonl"),
    "replies, resumed": Reader(REPLIES, opened_ledger, r"ledger\.jsonl"),
    "language model": Reader(
        beside("lid.bin"),
        lambda _, path: load_language(path),
        r"not a fastText model|expected __label__en and others",
    ),
    "packed table": Reader(TABLE, lambda _, path: read_text(path), "can't be read: "),
}
DAMAGES = {
    "counts": [*NO_FILES, *CONTENTS],
    "marker": [*NO_FILES, *CONTENTS],
    "data": ["pipe"],
    "commit": ["pipe", *COMMITS],
    "settings": [*NO_FILES, "\xff"],
    "weights": NO_FILES,
    "tokenizer": NO_FILES,
    "shard": ["pipe", "circle"],
    "replies": LEDGERS,
    "replies, resumed": ["pipe", "directory", *LEDGERS],
    "language model": ["\x80\x04.", "\x00" * 64, "\xba\x16\x4f\x2f" * 99],
    "packed table": [t.decode("latin-1") for t in (PACKED[:-3], PACKED + b"rubbish", PACKED[:12])],
}


@pytest.mark.usefixtures("no_hang")
@pytest.mark.parametrize(
    ("name", "damage"),
    [
        pytest.param(name, damage, id=f"{name}-{damage if damage in NO_FILES else k}")
        for name in READERS
        for k, damage in enumerate(DAMAGES[name])
    ],
)
def test_a_file_that_is_none_is_one_line(store: Store, name: str, damage: str) -> None:
    reader = READERS[name]
    path = reader.make(store)
    spoilt(path, damage)
    with pytest.raises(BadInput, match=reader.line) as raised:
        reader.read(store, path)
    assert str(raised.value).isprintable()


def test_shards_have_names_in_utf_8(tmp_path: Path) -> None:
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.jsonl")
    Path(odd).write_text("")
    with pytest.raises(BadInput, match="not in UTF-8"):
        expand_shards([odd])


# Shards, tables and replies made to exhaust: memory stays bounded, and time in proportion


def packed(path: Path, *parts: bytes) -> Path:
    """A file of these parts, each packed before the next is made."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    if path.suffix == ".zst":
        packer = zstandard.ZstdCompressor().compressobj()  # type: ignore[assignment]
    path.write_bytes(b"".join(map(packer.compress, parts)) + packer.flush())
    return path


SUFFIXES = [pytest.param(".gz", marks=pytest.mark.slow), ".zst"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_line_without_end_is_not_held_in_memory(tmp_path: Path, suffix: str) -> None:
    """What reads whole lines, as training does; 640 megabytes of one line in less than one."""
    path, first = tmp_path / f"line.jsonl{suffix}", b'{"text": "tea"}\n{"text": "'
    packed(path, first, *[b"a" * (1 << 20)] * 640)
    options = TrainOptions(300, 16, 1, 2, 16, 4, 1e-3, max_tokens=600)
    before = peak_mb()
    with pytest.raises(BadInput, match=r"shard line\.jsonl.*, line 2: has more than 134,217,728"):
        list(documents(path))
    assert peak_mb() - before < 400
    with pytest.raises(BadInput, match=r"line 2: has more than 134,217,728 bytes"):
        train_model([path], "m", "c", options, tmp_path)
    assert not (tmp_path / "m").exists()


def test_pairs_that_unpack_without_end_are_refused_in_little_memory(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_rows, "LARGEST", 1 << 20)
    path = tmp_path / "pairs.csv.gz"
    path.write_bytes(gzip.compress(bytes(1 << 26)))
    tracemalloc.start()
    try:
        with pytest.raises(BadInput, match="more than 1,048,576 bytes"):
            import_benchmark(store, "mine", path, "run")
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()
