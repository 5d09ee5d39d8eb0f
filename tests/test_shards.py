"""Shards are found, read whole or not at all, and told apart by content."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from plumbline.jobs.count_corpus import CountRequest, count_corpus
from plumbline.jobs.counting.verify import shard_states, update_command
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.input.shards import (
    RecordForm,
    documents,
    expand_shards,
    fingerprint,
    kind_of,
    lines,
)
from plumbline.warehouse.storage.store import Store

BODY = b"".join(b'{"text": "document %d", "n": "%s"}\n' % (i, b"x" * (i % 97)) for i in range(9000))
TEXTS = [f"document {i}" for i in range(9000)]


def zst(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


FORMS = {
    "a.jsonl": BODY,
    "one.jsonl.zst": zst(BODY),
    "frames.jsonl.zst": zst(BODY[:100_001]) + zst(BODY[100_001:]),
    "one.jsonl.gz": gzip.compress(BODY),
    "members.jsonl.gz": gzip.compress(BODY[:100_001]) + gzip.compress(BODY[100_001:]),
}


@pytest.mark.parametrize("name", FORMS)
def test_all_forms_hold_the_same_documents(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(FORMS[name])
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


@pytest.mark.parametrize("name", ["one.jsonl.zst", "one.jsonl.gz"])
def test_rubbish_after_the_stream_is_an_error(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(FORMS[name] + b"rubbish at the end")
    with pytest.raises(BadInput):
        list(lines(path))


def test_last_line_needs_no_newline_and_empty_files_hold_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "a"}\n\n{"text": "b"}')
    assert list(lines(path)) == [b'{"text": "a"}', b"", b'{"text": "b"}']
    path.write_bytes(b"")
    assert list(lines(path)) == []


def test_documents_pass_over_what_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "a"}\n[1]\n{"text": 3}\n{"text": "\\ud800"}\n\xff\n{"text": "b"}\n')
    assert list(documents(path)) == ["a", "b"]


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": ["a", None, "b"], "x": [1, 2, 3]}), path)
    assert list(documents(path)) == ["a", "b"]
    assert [v for b in text_batches(path, "text") for v in b.to_pylist()] == ["a", None, "b"]
    with pytest.raises(BadInput, match="no column named `body`"):
        list(text_batches(path, "body"))
    with pytest.raises(BadInput, match="not text"):
        list(text_batches(path, "x"))
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(BadInput, match=r"a\.parquet"):
        list(text_batches(path, "text"))


def text_batches(path: Path, field: str) -> Iterator[pa.Array]:
    kind = kind_of(path)
    assert kind
    return kind.texts(path, RecordForm(field))


def counted(where: Path, path: Path, field: str) -> Store:
    request = CountRequest(corpus="c", shards=(path,), text_field=field)
    count_corpus(Store.open(where), request)
    return Store.open(where)


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
    assert list(documents(path, RecordForm(field))) == ["she sat", "é tea"]
    path.write_text('{"content": "more"}')
    again = update_command(store, "c", shard_states(store, "c"))
    assert f"--text-field {field}" in str(again).replace("'", "")
    with pytest.raises(UsageProblem, match=f"exists with text_field {field}"):
        count_corpus(store, CountRequest(corpus="c", shards=(path,)))


def test_texts_of_another_column(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    inner = [{"b": "she sat"}, {"b": None}, None]
    pq.write_table(pa.table({"content": ["tea", None, "more tea"], "a": inner}), path)
    store = counted(tmp_path / "content", path, "content")
    assert store.read("reject")["reason"].to_pylist() == ["`content` is NULL"]
    store = counted(tmp_path / "nested", path, "a.b")
    assert store.read("word_count")["word"].to_pylist() == ["sat", "she"]
    assert store.read("reject")["source_row"].to_pylist() == [2, 3]
    with pytest.raises(BadInput, match=r"no column named `a.x` \(it has content, a: name one"):
        counted(tmp_path / "none", path, "a.x")


def test_fingerprint_is_of_the_content(tmp_path: Path) -> None:
    a, b = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    a.write_bytes(b"x")
    b.write_bytes(b"x")
    assert fingerprint(a) == fingerprint(b)
    b.write_bytes(b"y")
    assert fingerprint(a) != fingerprint(b)
    with pytest.raises(BadInput):
        fingerprint(tmp_path / "none.jsonl")


def test_expand(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.jsonl", "c[1].jsonl"):
        (tmp_path / name).write_bytes(b"")
    names = [p.name for p in expand_shards([f"{tmp_path}/b*", f"{tmp_path}/*.jsonl"])]
    assert names == ["b.jsonl", "a.jsonl", "c[1].jsonl"]
    assert expand_shards([f"{tmp_path}/c[1].jsonl"]) == [tmp_path / "c[1].jsonl"]
