"""Text files as a shard: every file is packed or rejected, and counting reads what is packed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from plumbline.jobs.ingest.pack import pack_files, text_files
from plumbline.pipelines.command.main import main
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.input.shards import documents
from plumbline.warehouse.storage.store import Store


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
