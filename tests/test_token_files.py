"""Token files and web archives give the counts of the same documents in JSON lines."""

from __future__ import annotations

import gzip
import json
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from plumbline.jobs.count_corpus import CountRequest, count_corpus
from plumbline.jobs.evidence.explanation import explain
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.input import token_files, web_archives
from plumbline.warehouse.input.shards import documents, expand_shards, record_form
from plumbline.warehouse.storage.store import Store
from tests.hub_server import environment, hub
from tests.test_evidence import kept

DOCUMENTS = [
    "She drinks tea, and he doesn't.",
    "He said: “naïve” — twice.\n\nShe left 🙂 at 3.14.",
    "x",
    *(f"The nurse {i} saw her and his {'very ' * (i % 7)}old house." for i in range(60)),
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a byte-level tokenizer, whose last token is `<|endoftext|>`."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(DOCUMENTS, trainer)
    directory = tmp_path_factory.mktemp("model")
    tokenizer.save(str(directory / "tokenizer.json"))
    (directory / "tokenizer_config.json").write_text('{"eos_token": "<|endoftext|>"}')
    return directory


def encoded(model: Path) -> list[list[int]]:
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    return [tokenizer.encode(text).ids for text in DOCUMENTS]


def megatron(path: Path, sequences: Sequence[Sequence[int]], starts: Sequence[int]) -> None:
    """A `.bin` of 16-bit tokens and its `.idx`, byte by byte as Megatron-LM defines them."""
    data, pointers = b"", []
    for sequence in sequences:
        pointers.append(len(data))
        data += struct.pack(f"<{len(sequence)}H", *sequence)
    path.write_bytes(data)
    index = b"MMIDIDX\x00\x00" + struct.pack("<Q", 1) + struct.pack("<B", 8)
    index += struct.pack("<QQ", len(sequences), len(starts))
    index += struct.pack(f"<{len(sequences)}i", *map(len, sequences))
    index += struct.pack(f"<{len(sequences)}q", *pointers)
    index += struct.pack(f"<{len(starts)}q", *starts)
    path.with_suffix(".idx").write_bytes(index)


def rows(where: Path, shards: Sequence[Path], **options: Any) -> dict[str, list[Any]]:
    store = Store.open(where)
    count_corpus(store, CountRequest(corpus="c", shards=tuple(shards), **options))
    return read(store)


def read(store: Store) -> dict[str, list[Any]]:
    tables = {k: store.read(k).sort_by("word").to_pylist() for k in ("word_count", "pair_count")}
    totals = store.read("corpus").select(["n_documents", "n_rejected", "n_tokens", "n_pairs"])
    for table in tables.values():
        table.sort(key=str)
    words = [words for shard in kept(store, "c") for _, _, words in shard]
    return {**tables, "corpus": totals.to_pylist(), "documents": words}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """The rows of the same documents in JSON lines."""
    top = tmp_path_factory.mktemp("lines")
    (top / "a.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in DOCUMENTS))
    return rows(top / "w", [top / "a.jsonl"])


def test_megatron(model: Path, expected: Any, tmp_path: Path) -> None:
    ids = encoded(model)
    form = record_form("text", str(model))
    megatron(tmp_path / "plain.bin", ids, range(len(ids) + 1))
    assert rows(tmp_path / "w", [tmp_path / "plain.bin"], tokenizer=str(model)) == expected
    assert list(documents(tmp_path / "plain.bin", form)) == DOCUMENTS
    # Documents of several sequences, one of them of none.
    halves = [part for one in ids for part in (one[:3], one[3:])]
    starts = [0, *(2 * k for k in range(1, len(ids))), 2 * len(ids), 2 * len(ids)]
    megatron(tmp_path / "halves.bin", halves, starts)
    assert list(documents(tmp_path / "halves.bin", form)) == DOCUMENTS
    # Packed: sequences of one length, and the token that ends a text between documents.
    packed = [token for one in ids for token in (*one, 0)]
    megatron(tmp_path / "packed.bin", [packed], [0, 1])
    assert list(documents(tmp_path / "packed.bin", form)) == DOCUMENTS
    megatron(
        tmp_path / "sequences.bin", [packed[k : k + 64] for k in range(0, len(packed), 64)], [0]
    )
    assert "".join(documents(tmp_path / "sequences.bin", form)) == "".join(DOCUMENTS)


def test_parts_of_megatron(model: Path, expected: Any, tmp_path: Path) -> None:
    """Cut in the middle of tokens and of documents, as Pythia's are; each shard starts its own."""
    ids = encoded(model)
    megatron(tmp_path / "document.bin", ids, range(len(ids) + 1))
    data = (tmp_path / "document.bin").read_bytes()
    (tmp_path / "document.bin").unlink()
    size = len(data) // 3 | 1
    names = [tmp_path / f"document-{k:05}-of-00003.bin" for k in range(4)]
    for k, name in enumerate(names):
        name.write_bytes(data[k * size : (k + 1) * size])
    assert rows(tmp_path / "w", names, tokenizer=str(model)) == expected
    form = record_form("text", str(model))
    assert [text for name in names for text in documents(name, form)] == DOCUMENTS


@pytest.mark.parametrize("cut", [0, 1, 3])
def test_a_truncated_part_of_megatron_is_refused(cut: int, model: Path, tmp_path: Path) -> None:
    """Else the documents behind the cut, which begin in later parts, would be garbled."""
    megatron(tmp_path / "document.bin", encoded(model), range(len(DOCUMENTS) + 1))
    data = (tmp_path / "document.bin").read_bytes()
    size, form = len(data) // 4 & ~1, record_form("text", str(model))
    names = [tmp_path / f"document-{k:05}-of-00003.bin" for k in range(4)]
    for k, name in enumerate(names):
        name.write_bytes(data[k * size : (k + 1) * size if k < 3 else None])
    whole = names[cut].read_bytes()
    names[cut].write_bytes(whole[:-64])
    for name in names:
        with pytest.raises(BadInput, match=f"hold {len(data) - 64:,} bytes, their index names"):
            list(documents(name, form))
    names[cut].write_bytes(whole)
    names[3].unlink()  # the parts before are counted all the same
    assert list(documents(names[0], form)) == DOCUMENTS[: len(list(documents(names[0], form)))]


def test_any_tokens_are_decoded_as_the_library_does(model: Path, tmp_path: Path) -> None:
    """Also bytes that are no text, cut in the middle of a character, and tokens added as text."""
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    tokenizer.add_tokens(["   ", "[[→]]"])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    n_ids = tokenizer.get_vocab_size()
    rng = np.random.default_rng(5)
    made = [rng.integers(1, n_ids, rng.integers(1, 40)).tolist() for _ in range(500)]
    megatron(tmp_path / "a.bin", made, range(len(made) + 1))
    found = list(documents(tmp_path / "a.bin", record_form("text", str(tmp_path))))
    assert found == [tokenizer.decode(ids, skip_special_tokens=False) for ids in made]
    assert any("\ufffd" in text for text in found) and any("[[→]]" in text for text in found)


def test_tokens_that_are_not_bytes(tmp_path: Path) -> None:
    tokenizer = Tokenizer(models.WordLevel({"she": 0, "drinks": 1, "tea": 3}, unk_token="tea"))
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    megatron(tmp_path / "a.bin", [[0, 1, 3], [3, 4], [0, 2]], range(4))
    assert list(documents(tmp_path / "a.bin", record_form("text", str(tmp_path)))) == [
        "she drinks tea"
    ]


@pytest.mark.parametrize("has_header", [True, False])
def test_arrays(has_header: bool, model: Path, expected: Any, tmp_path: Path) -> None:
    """As OLMo's: tokens alone, each document followed by the last token; or written by NumPy."""
    packed = [token for one in encoded(model) for token in (*one, 0)]
    path = tmp_path / "part-0.npy"
    if has_header:
        np.save(path, np.array(packed, np.uint32))
    else:
        path.write_bytes(struct.pack(f"<{len(packed)}H", *packed))
    assert rows(tmp_path / "w", [path], tokenizer=str(model)) == expected


def test_an_array_of_64_bits_without_sign(model: Path, expected: Any, tmp_path: Path) -> None:
    packed = [token for one in encoded(model) for token in (*one, 0)]
    np.save(tmp_path / "part-0.npy", np.array(packed, np.uint64))
    assert rows(tmp_path / "w", [tmp_path / "part-0.npy"], tokenizer=str(model)) == expected
    np.save(tmp_path / "a.npy", np.array([40, 0, (1 << 64) - 1, 0], np.uint64))
    counted = rows(tmp_path / "v", [tmp_path / "a.npy"], tokenizer=str(model))
    assert counted["corpus"][0]["n_rejected"] == 1


@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
def test_an_array_of_another_size_than_its_header_says(
    version: tuple[int, int], model: Path, tmp_path: Path
) -> None:
    path, form = tmp_path / "a.npy", record_form("text", str(model))
    with path.open("wb") as file:
        np.lib.format.write_array(file, np.array([40, 0] * 8, np.uint16), version=version)
    whole = path.read_bytes()
    assert len(list(documents(path, form))) == 8
    for content, n_bytes in ((whole[:-4], 28), (whole + b"  ", 34)):
        path.write_bytes(content)
        with pytest.raises(BadInput, match=f"holds {n_bytes} bytes of values, its header says 32"):
            list(documents(path, form))


def test_counted_once_by_each_tokenizer(model: Path, tmp_path: Path) -> None:
    ids = encoded(model)
    path, other = tmp_path / "a.bin", tmp_path / "other"
    megatron(path, ids, range(len(ids) + 1))
    store, request = Store.open(tmp_path / "w"), CountRequest(corpus="c", shards=(path,))
    with pytest.raises(UsageProblem, match="holds a model's tokens, not text"):
        count_corpus(store, request)
    given = CountRequest(corpus="c", shards=(path,), tokenizer=str(model))
    assert count_corpus(store, given).changed and not count_corpus(store, given).changed
    other.mkdir()
    tokenizer = json.loads((model / "tokenizer.json").read_text())
    known = sorted(tokenizer["model"]["vocab"], key=tokenizer["model"]["vocab"].get)
    gone = {word: k for k, word in enumerate(known) if k < 300}
    merges = [m for m in tokenizer["model"]["merges"] if "".join(m) in gone]
    tokenizer["model"] |= {"vocab": gone, "merges": merges}
    (other / "tokenizer.json").write_text(json.dumps(tokenizer))
    wrong = CountRequest(corpus="c", shards=(path,), tokenizer=str(other))
    with pytest.raises(UsageProblem, match="exists with decoder"):
        count_corpus(store, wrong)
    counted = count_corpus(store, CountRequest(**{**vars_of(wrong), "replace": True}))
    (ledger,) = counted.ledgers
    assert ledger.n_documents_in == ledger.n_documents + ledger.n_rejected == len(DOCUMENTS)
    assert ledger.n_rejected > 50
    assert set(store.read("reject")["reason"].to_pylist()) == {token_files.NOT_DECODED}


def vars_of(request: CountRequest) -> dict[str, Any]:
    return {k: getattr(request, k) for k in ("corpus", "shards", "tokenizer")}


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data, index: (data[:-4], index), "ends before its index does"),
        (lambda data, index: (data, index[:-9]), r"index a\.idx: is truncated"),
        (lambda data, index: (data, b"other" + index), "is not a Megatron index"),
        (lambda data, index: (data, index[:17] + b"\x07" + index[18:]), "or type 7"),
        (lambda data, index: (data, index[:38] + bytes(8) + index[46:]), None),
        (lambda data, index: (data, index[:80] + b"\xff" * 8 + index[88:]), "no valid offset"),
        (lambda data, index: (data, None), "no such file|No such file"),
    ],
)
def test_damage_is_one_line(damage: Any, message: str | None, model: Path, tmp_path: Path) -> None:
    path, form = tmp_path / "a.bin", record_form("text", str(model))
    megatron(path, [[40, 41], [42], [43, 44, 45], [46]], range(5))
    data, index = damage(path.read_bytes(), path.with_suffix(".idx").read_bytes())
    path.write_bytes(data)
    path.with_suffix(".idx").unlink() if index is None else path.with_suffix(".idx").write_bytes(
        index
    )
    if message is None:  # lengths of sequences are not needed
        assert len(list(documents(path, form))) == 4
        return
    with pytest.raises(BadInput, match=message) as caught:
        list(documents(path, form))
    assert "\n" not in str(caught.value)


def test_an_array_without_ends_and_tokenizers_without_what_is_needed(
    model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(b"\x05\x00\x06")
    with pytest.raises(BadInput, match="ends inside a token of 2 bytes"):
        list(documents(path, record_form("text", str(model))))
    bare = tmp_path / "bare"
    bare.mkdir()
    with pytest.raises(BadInput, match=r"has no tokenizer\.json"):
        record_form("text", str(bare))
    (bare / "tokenizer.json").write_bytes((model / "tokenizer.json").read_bytes())
    with pytest.raises(BadInput, match="the tokenizer has no eos_token"):
        list(documents(path, record_form("text", str(bare))))
    (bare / "tokenizer.json").write_text("{}")
    with pytest.raises(BadInput, match=r"tokenizer\.json can't be read"):
        record_form("text", str(bare))


def archive(records: Sequence[tuple[str, str, bytes]]) -> list[bytes]:
    """Records of a web archive as ISO 28500 defines them: kind, type of content, content."""
    made = []
    for kind, content_type, body in records:
        header = f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: https://example.org/\r\n"
        header += f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
        made.append(header.encode() + body + b"\r\n\r\n")
    return made


@pytest.mark.parametrize("name", ["a.wet", "CC-MAIN-0.warc.wet.gz", "a.warc.zst"])
def test_web_archives(name: str, expected: Any, tmp_path: Path) -> None:
    texts = [("conversion", "text/plain", text.encode()) for text in DOCUMENTS]
    made = archive([("warcinfo", "application/warc-fields", b"software: x\r\n"), *texts])
    pack = {".gz": gzip.compress, ".zst": zstandard.ZstdCompressor().compress}
    packed = pack.get(Path(name).suffix, bytes)
    path = tmp_path / name
    path.write_bytes(b"".join(map(packed, made)))  # a member per record, as archives have
    assert expand_shards([str(path)]) == [path]
    assert rows(tmp_path / "w", [path]) == expected
    assert list(documents(path)) == DOCUMENTS
    path.write_bytes(b"".join(map(packed, made))[:-60])
    with pytest.raises(BadInput, match=name):
        list(documents(path))


def test_records_of_archives_that_are_no_text(tmp_path: Path) -> None:
    page = ("response", "application/http; msgtype=response", b"HTTP/1.1 200 OK\r\n\r\n<p>she")
    asked = ("request", "application/http; msgtype=request", b"GET / HTTP/1.1")
    text = ("conversion", "text/plain", b"She \xff sat")
    good = ("resource", "text/plain; charset=utf-8", b"she sat")
    (tmp_path / "a.warc").write_bytes(b"".join(archive([asked, page, text, good])))
    store = Store.open(tmp_path / "w")
    counted = count_corpus(store, CountRequest(corpus="c", shards=(tmp_path / "a.warc",)))
    assert (counted.row["n_documents"], counted.row["n_rejected"]) == (1, 2)
    rejects = {r["source_row"]: r["reason"] for r in store.read("reject").to_pylist()}
    assert rejects == {1: web_archives.NOT_TEXT, 2: "invalid UTF-8"}
    long = b"WARC/1.0\r\nContent-Length: 9999999999\r\n\r\n"
    for damage, message in ((b"GARBAGE", "does not begin"), (long, "Content-Length '9999999999'")):
        (tmp_path / "b.warc").write_bytes(archive([good])[0] + damage)
        with pytest.raises(BadInput, match=f"record 2: {message}"):
            list(documents(tmp_path / "b.warc"))


@pytest.mark.slow
def test_tokens_and_tokenizer_on_the_hub(model: Path, expected: Any, tmp_path: Path) -> None:
    ids = encoded(model)
    (tmp_path / "data").mkdir()
    megatron(tmp_path / "data" / "a.bin", ids, range(len(ids) + 1))
    code = "from plumbline.pipelines.command.main import entry; entry()"
    given = ["--tokenizer", "org/model", "--corpus", "c", "--warehouse", str(tmp_path / "w")]
    with hub({"org/model": model}, {"org/data": tmp_path / "data"}) as server:
        done = subprocess.run(
            [sys.executable, "-c", code, "corpus", "count", "hf://datasets/org/data/*.bin", *given],
            env=environment(server, tmp_path / "home"),
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stderr
    assert read(Store.open(tmp_path / "w")) == expected


def test_sentences_around_a_word(model: Path, tmp_path: Path) -> None:
    """What `plumbline why` shows of tokens is the text that they stand for."""
    megatron(tmp_path / "a.bin", ids := encoded(model), range(len(ids) + 1))
    store = Store.open(tmp_path / "w")
    request = CountRequest(corpus="c", shards=(tmp_path / "a.bin",), tokenizer=str(model))
    count_corpus(store, request)
    rows = explain(store, "c", ["nurse"], "her/his")["word_snippet"]
    assert len(rows) == 10
    for row in rows:
        said = f"{row['text_before']} {row['keyword']} {row['text_after']}"
        assert row["is_text"] and DOCUMENTS[row["source_row"] - 1].startswith(said)
