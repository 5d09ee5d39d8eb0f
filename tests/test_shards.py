"""Shards are found, read whole or not at all, told apart by content, and packed from files."""

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from plumbline.jobs.ingest.count_corpus import count_corpus
from plumbline.jobs.ingest.pack import pack_files, text_files
from plumbline.jobs.kernel.corpus_options import CorpusOptions
from plumbline.pipelines.command.main import main
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


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """Three good texts, one below and one with a byte order mark, and two that are none."""
    directory = tmp_path / "texts"
    (directory / "below").mkdir(parents=True)
    (directory / "a.txt").write_bytes(b"She met him.\r\nHe left.\n")
    (directory / "below" / "c.txt").write_text("née\u2028\x00 tea", encoding="utf-8")
    (directory / "b.TXT").write_bytes(b"\xef\xbb\xbfTea.")
    (directory / "latin.txt").write_bytes(b"caf\xe9 au lait")
    (directory / "blank.txt").write_text(" \n\t")
    (directory / "notes.md").write_text("not a text of this directory")
    return directory


def test_files_in_are_packed_or_rejected(
    texts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, warehouse = tmp_path / "new" / "mine.jsonl.zst", tmp_path / "warehouse"
    where = ["--out", str(out), "--warehouse", str(warehouse)]
    assert main(["corpus", "pack", str(texts), *where]) == 0
    said = capsys.readouterr().out
    assert re.search(r" 5 │ +3 │ +2 │", said) and "blank.txt" in said
    assert f"Next: plumbline corpus count {out} --corpus {out.name.split('.')[0]}" in said
    assert list(documents(out)) == ["She met him.\r\nHe left.\n", "Tea.", "née\u2028\x00 tea"]
    rows = Store.open(warehouse).read("reject", stage="pack").to_pylist()
    assert {(Path(r["source_file"]).name, r["reason"][:18]) for r in rows} == {
        ("blank.txt", "holds only white s"),
        ("latin.txt", "not UTF-8: 'utf-8'"),
    }
    assert {r["subject"] for r in rows} == {out.name}
    (texts / "blank.txt").unlink()
    (texts / "latin.txt").write_text("café")
    assert main(["corpus", "pack", str(texts), *where]) == 0
    assert len(list(documents(out))) == 4
    assert Store.open(warehouse).read("reject", stage="pack").num_rows == 0


@pytest.mark.parametrize(
    ("names", "sources"),
    [
        (["a.txt", "b.txt"], ["texts/a.txt", "texts/b.txt"]),
        (["x/a.txt", "x/b.txt", "y/a.txt"], ["texts/x", "texts/x", "texts/y"]),
        ([f"{k:03}.txt" for k in range(101)], ["texts"] * 101),
    ],
    ids=["files", "folders", "many files"],
)
def test_a_sentence_is_traced_to_its_file(
    names: list[str],
    sources: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for k, name in enumerate(names):
        path = Path("texts", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"she likes tea {k}x and then he likes tea too")
    assert main(["corpus", "pack", "texts", "--out", "a.jsonl.zst"]) == 0
    assert main(["corpus", "count", "a.jsonl.zst", "--corpus", "c"]) == 0
    capsys.readouterr()
    assert main(["why", "tea", "--corpus", "c", "--n", "200"]) == 0
    assert f"texts/{names[0]}, a.jsonl.zst:1" in capsys.readouterr().out
    store = Store.open(tmp_path / "out" / "warehouse")
    rows = store.read("word_snippet", corpus="c").to_pylist()
    assert {r["file"] for r in rows} == {f"texts/{name}" for name in names}
    of_row = {int(r["source_row"]): (r["file"], r["source"]) for r in rows}
    expected = zip([f"texts/{n}" for n in names], sources, strict=True)
    assert of_row == dict(enumerate(expected, 1))
    listed = store.read("word_source", corpus="c")["source"].to_pylist()
    assert sorted(listed) == sorted(set(sources))


def test_files_of_one_name_have_names_of_their_own(tmp_path: Path) -> None:
    given = [tmp_path / a / "letters" for a in ("anna", "ben", "cy")]
    for directory, name in zip(given, ("x.txt", "x.txt", "y.txt"), strict=True):
        directory.mkdir(parents=True)
        (directory / name).write_text("Tea.")
    names = [*text_files(given).values()]
    assert names == ["anna/letters/x.txt", "ben/letters/x.txt", "cy/letters/y.txt"]


def test_utf_16_is_no_text_of_nul_characters(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("Tea, she said.".encode("utf-16-le"))
    files, store = text_files([tmp_path / "a.txt"]), Store.open(tmp_path / "w")
    with pytest.raises(BadInput, match=r"a quarter of its characters are NUL .*: iconv"):
        pack_files(store, files, tmp_path / "a.jsonl.zst", "r")
