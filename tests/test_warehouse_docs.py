"""Sentences of docs/warehouse.md that no other test is about."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from plumbline.warehouse import paths
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.storage import compaction
from plumbline.warehouse.storage.compaction import compact
from plumbline.warehouse.storage.store import Store


def rows(unit: str, n_word: int = 1) -> list[dict[str, object]]:
    return [{"corpus": "c", "word": f"{unit}-{i}", "n_word": n_word} for i in range(5)]


def test_no_data_file_ever_changes(store: Store) -> None:
    def there() -> dict[str, tuple[int, bytes]]:
        paths = store.root.glob("word_count/corpus=c/*.parquet")
        return {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in paths}

    steps = [
        lambda: store.publish("word_count", rows("b"), unit="b", run_id="r"),
        lambda: compact(store, "r"),
        lambda: store.publish("word_count", rows("a", 2), unit="a", run_id="r"),
        lambda: store.restore(1, "r"),
        lambda: store.drop("word_count", {"corpus": "c"}),
    ]
    store.publish("word_count", rows("a"), unit="a", run_id="r")
    before = there()
    for step in steps:
        step()
        assert before.items() <= there().items()
        before = there()
    assert len(before) == 5  # two, their merger, and the unit that replaces one beside the rest


def test_only_small_files_are_merged(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for unit in "abc":
        many = [{**row, "word": f"{unit}{k}"} for k in range(99) for row in rows(unit)[:1]]
        store.publish("word_count", many if unit == "a" else rows(unit), unit=unit, run_id="r")
    sizes = sorted(file.n_bytes for file in store.snapshot().files("word_count"))
    monkeypatch.setattr(compaction, "SMALL_BYTES", sizes[-1])
    ((merge,), _) = compact(store, "r")
    assert sorted(unit.name for file in merge.files for unit in file.units) == ["b", "c"]


def test_a_commit_of_any_length_is_not_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    assert paths.LARGEST == 256 << 20
    monkeypatch.setattr(paths, "LARGEST", 100)
    with pytest.raises(BadInput, match="more than 100 bytes"):
        Store.open(store.root).snapshot()


def test_links_are_followed_only_to_what_a_commit_names(store: Store, tmp_path: Path) -> None:
    store.publish("word_count", rows("a"), unit="a", run_id="r")
    (file,) = store.snapshot().files("word_count")
    path, elsewhere = store.root / file.path, tmp_path / "elsewhere"
    shutil.move(path, elsewhere)
    path.symlink_to(elsewhere)
    assert store.read("word_count").num_rows == 5
    elsewhere.write_bytes(elsewhere.read_bytes() + b"x")
    with pytest.raises(BadInput, match="is damaged"):
        store.read("word_count")
