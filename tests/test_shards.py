"""Shards are found, read whole or not at all, and told apart by content."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from plumbline.jobs.ingest.count_corpus import count_corpus
from plumbline.jobs.kernel.corpus_options import CorpusOptions
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.input.shards import documents, expand_shards, lines
from plumbline.warehouse.storage.store import Store

BODY = b"".join(b'{"text": "document %d", "n": "%s"}\n' % (i, b"x" * (i % 97)) for i in range(9000))
TEXTS = [f"document {i}" for i in range(9000)]


def zst(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


def long_zst(window_log: int) -> bytes:
    """What `zstd --long=N` writes: a frame of unknown size, with a window of 2^N bytes."""
    form = zstandard.ZstdCompressionParameters(window_log=window_log, enable_ldm=True)
    writer = zstandard.ZstdCompressor(compression_params=form).compressobj()
    return writer.compress(BODY) + writer.flush()


FORMS = {
    "a.jsonl": BODY,
    "one.jsonl.zst": zst(BODY),
    "frames.jsonl.zst": zst(BODY[:100_001]) + zst(BODY[100_001:]),
    "one.jsonl.gz": gzip.compress(BODY),
    "long.jsonl.zst": long_zst(31),
    "RC_2023-01.zst": long_zst(28),
    "skip.jsonl.zst": bytes.fromhex("5a2a4d18 03000000") + b"tea" + zst(BODY),
    "c4.json.gz": gzip.compress(BODY),
    "members.jsonl.gz": gzip.compress(BODY[:100_001]) + gzip.compress(BODY[100_001:]),
}


@pytest.mark.parametrize("name", FORMS)
def test_all_forms_hold_the_same_documents(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(FORMS[name])
    assert expand_shards([str(path)]) == [path]
    assert list(documents(path)) == TEXTS


@pytest.mark.parametrize("name", [n for n in FORMS if n != "a.jsonl"])
@pytest.mark.parametrize("keep", [0, 3, 0.1, 0.5, -9, -4, -1])
def test_a_cut_stream_is_an_error(tmp_path: Path, name: str, keep: float) -> None:
    whole = FORMS[name]
    cut = whole[: int(keep * len(whole))] if 0 < keep < 1 else whole[: int(keep)]
    path = tmp_path / name
    path.write_bytes(cut)
    with pytest.raises(BadInput, match=name):
        list(lines(path))


def counted(where: Path, path: Path, field: str = "text") -> Store:
    count_corpus(Store.open(where), "c", (path,), CorpusOptions(text_field=field))
    return Store.open(where)


@pytest.mark.parametrize("name", ["one.jsonl.gz", "one.jsonl.zst"])
def test_the_name_of_a_compressed_file_says_so(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(FORMS[name])
    with pytest.raises(BadInput, match=r"it is compressed, so its name must end with \.gz or"):
        counted(tmp_path / "w", path)
    store = counted(tmp_path / "w", path.rename(tmp_path / name))  # no count of it was kept
    assert store.read("corpus")["n_documents"].to_pylist() == [len(TEXTS)]


@pytest.mark.parametrize(
    ("field", "records", "row"),
    [
        ("content", [{"content": "she sat"}, {"text": "no"}, {"n": 1, "content": "é tea"}], 2),
        ("größe", [{"größe": "she sat"}, {"grö": "no"}, {"größe": "é tea"}], 2),
        ("a.b", [{"a": {"b": "she sat"}}, {"a.b": "é tea"}, {"a": {"c": "no"}}], 3),
    ],
)
def test_texts_of_another_field(
    tmp_path: Path, field: str, records: list[dict[str, Any]], row: int
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in records))
    store = counted(tmp_path / "w", path, field)
    assert store.read("word_count")["word"].to_pylist() == ["sat", "she", "tea", "é"]
    (reject,) = store.read("reject").to_pylist()
    assert (reject["source_row"], reject["reason"]) == (row, f"record has no `{field}`")
    assert store.read("corpus")["text_field"].to_pylist() == [field]
    assert list(documents(path, field)) == ["she sat", "é tea"]
    path.write_text('{"content": "more"}')
    with pytest.raises(UsageProblem, match=f"exists with text_field {field}"):
        count_corpus(store, "c", (path,))


@pytest.mark.parametrize(("pack", "suffix"), [(bytes, ""), (gzip.compress, ".gz"), (zst, ".zst")])
def test_a_byte_order_mark_begins_no_document(
    tmp_path: Path, pack: Callable[[bytes], bytes], suffix: str
) -> None:
    path, text = (
        tmp_path / f"a.jsonl{suffix}",
        b'\xef\xbb\xbf{"text": "she sat"}\n{"text": "tea"}\n',
    )
    path.write_bytes(pack(text))
    store = counted(tmp_path / "w", path)
    assert store.read("corpus_shard")["n_documents"].to_pylist() == [2]
    assert not store.read("reject").num_rows and list(documents(path)) == ["she sat", "tea"]
    # A line that the compiled parser leaves to Python, and a mark elsewhere, which is no JSON.
    deep = b'{"n": ' + b"[" * 80 + b"]" * 80 + b', "text": "tea"}\n'
    path.write_bytes(pack(b"\xef\xbb\xbf" + deep + b"\xef\xbb\xbf" + deep))
    store = counted(tmp_path / "w2", path)
    assert store.read("corpus_shard")["n_documents"].to_pylist() == [1]
    assert store.read("reject")["source_row"].to_pylist() == [2]
    for short in (b"", b"\xef\xbb\xbf", b"\xef\xbb", b"{"):
        path.write_bytes(pack(short))
        assert list(documents(path)) == []
