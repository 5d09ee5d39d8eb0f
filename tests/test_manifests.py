"""Manifests hold what changed: each version reads as its list, and the log stays small."""

from __future__ import annotations

import json
import math
import random
import statistics
import sys
from hashlib import sha256

import pytest

from plumbline.pipelines.command.main import main
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.storage import delta, log
from plumbline.warehouse.storage.compaction import compact, leftovers
from plumbline.warehouse.storage.log import File, Unit
from plumbline.warehouse.storage.store import Store
from tests.checked import problems


def file_of(number: int) -> File:
    units = (Unit(f"u{number}", 1, "r"),)
    path = f"word_count/corpus=c/{number}.parquet"
    return File(path, 100, "0" * 64, number, "0" * 8, ("c",), units)


def become(store: Store, files: list[File]) -> None:
    log.commit(store.place, lambda draft: draft.become("word_count", files), "r")


def swap(store: Store, now: list[File], old: list[File], new: list[File]) -> None:
    """Swap files in two steps, of those that are there now; each is found by its unit then."""

    def change(draft: log.Draft) -> None:
        draft.swap("word_count", old[:1], new[:1])
        draft.swap("word_count", old[1:], new[1:])
        for file in (*now, *new):
            found = draft.files_of_unit("word_count", {"corpus": "c"}, file.units[0].name)
            assert found == ([file] if file in new or file not in old else [])

    log.commit(store.place, change, "r")


def publish(store: Store, unit: str) -> None:
    row = {"corpus": "c", "word": unit, "n_word": 1}
    store.publish("word_count", [row], unit=unit, run_id="r")


def chain(store: Store) -> list[str]:
    name = store.snapshot().tables["word_count"]
    return list(log.chain(store.place, "word_count", name))


@pytest.mark.parametrize("seed", range(6))
def test_every_version_reads_as_the_list_that_it_was(store: Store, seed: int) -> None:
    """Files come, go, return in another order, and are merged, as an ordinary list says."""
    draw, lists = random.Random(seed), [[file_of(0)]]
    become(store, lists[0])
    for number in range(1, 120):
        files = list(lists[-1])
        match draw.choice("aaaaargm" if seed % 2 else "aargmz"):
            case "a":
                files += [file_of(number * 10 + k) for k in range(draw.randint(1, 3))]
            case "r":
                files = [*files[: len(files) // 2], file_of(number * 10)]
            case "g":
                files = draw.sample(files, k=max(1, len(files) - 2))
            case "m":
                files = [*files[:1], file_of(number * 10)]
            case _:
                files = list(draw.choice(lists))
        become(store, files)
        lists += [files] if files != lists[-1] else []
    log._read_manifest.cache_clear()
    for version, files in enumerate(lists, 1):
        assert log.snapshot(store.place, version).files("word_count") == files


@pytest.mark.slow
def test_a_commit_writes_its_change_and_few_manifests_are_read(store: Store) -> None:
    n = 300
    files = [file_of(number) for number in range(n)]
    for number in range(n):
        become(store, files[: number + 1])
        assert len(chain(store)) <= math.log2(number + 1) + 1
    texts = [path.read_text() for path in (store.root / log.MANIFESTS).iterdir()]
    n_lines = sum(len(json.loads(text)["files"]) for text in texts)
    assert len(texts) == n and n <= n_lines <= n * (math.log2(n) / 2 + 1)


@pytest.mark.parametrize("seed", range(4))
def test_swapped_files_are_those_of_an_ordinary_list(store: Store, seed: int) -> None:
    """In every version, in the log beside it for Delta Lake, and as a draft finds them by unit."""
    draw, lists, others = random.Random(seed), [list[File]()], 0
    for number in range(1, 130):
        now = lists[-1]
        old = draw.sample(now, k=min(len(now), draw.choice((0, 0, 0, 1, 2, 9))))
        new = [file_of(number * 10 + k) for k in range(draw.randint(1, 3))]
        new += draw.sample(old, k=len(old) // 4)  # goes, and comes back as the last

        if draw.random() < 0.1:  # as in another process, or beside another writer
            log._read_manifest.cache_clear()
            others += 1
        swap(store, now, old, new)
        lists.append([file for file in now if file not in old] + new)
    assert others
    log._read_manifest.cache_clear()
    listed: dict[str, int] = {}
    for version, files in enumerate(lists):
        assert log.snapshot(store.place, version).files("word_count") == files
        if version:
            name = delta.log_name("word_count", version - 1)
            listed = delta.replay(store.place.read(name), listed)
            assert listed.keys() == {delta.quoted("word_count", file.path) for file in files}


@pytest.mark.slow
def test_a_commit_looks_at_no_earlier_files(store: Store) -> None:
    """It calls as many functions after 300 commits as after 40."""

    def n_calls(number: int) -> int:
        calls = [0]

        def count(_: object, event: str, __: object) -> None:
            calls[0] += event == "call"  # also each time that a generator resumes

        sys.setprofile(count)
        try:
            publish(store, f"u{number}")
        finally:
            sys.setprofile(None)
        return calls[0]

    of_each = [n_calls(number) for number in range(300)]
    assert statistics.median(of_each[-50:]) < 1.1 * statistics.median(of_each[20:70])


def test_what_a_kept_manifest_is_read_from_is_kept(store: Store) -> None:
    """Versions go, and with them all manifests but those that the newest is a change of."""
    for number in range(14):
        become(store, [file_of(k) for k in range(number + 1)])
    needed = chain(store)
    assert 1 < len(needed) < 5
    gone = {leftover.path for leftover in leftovers(store, 0)}
    there = {f"{log.MANIFESTS}/{name}" for name in store.place.names(log.MANIFESTS)}
    assert there - gone == {f"{log.MANIFESTS}/{name}" for name in needed}
    for name in gone:
        store.place.remove(name)
    log._read_manifest.cache_clear()
    assert store.snapshot().files("word_count") == [file_of(k) for k in range(14)]


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_lost_manifest_that_others_are_changes_of_is_named_once(
    store: Store, is_gone: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(12):
        publish(store, f"u{number}")
    compact(store, "r")  # the list of one file, that of version 12
    for number in range(12, 16):
        publish(store, f"u{number}")
    base = chain(store)[-1]
    path = store.root / log.MANIFESTS / base
    assert len(chain(store)) > 1 and "-0000000012-" in base
    path.unlink() if is_gone else path.write_bytes(path.read_bytes()[:-9])
    log._read_manifest.cache_clear()
    with pytest.raises(BadInput, match=base):
        store.read("word_count")
    found = [row for row in problems(capsys, store.root).values() if base in json.dumps(row)]
    assert len(found) == 1
    command = found[0]["fix"].partition("go back by plumbline ")[2]
    assert "restore 12 " in command and main(command.split()) == 0
    assert store.read("word_count").num_rows == 12
    publish(store, "after")
    assert store.read("word_count").num_rows == 13


def test_a_base_is_an_earlier_manifest(store: Store) -> None:
    for number in range(4):
        become(store, [file_of(k) for k in range(number + 1)])
    name = store.snapshot().tables["word_count"]
    path = store.root / log.MANIFESTS / name
    values = json.loads(path.read_text())
    for base in (name, f"../{chain(store)[1]}", 3, "x", "word_count-9-x.json"):
        content = json.dumps(values | {"base": base}).encode()
        other = f"{name.rpartition('-')[0]}-{sha256(content).hexdigest()[:32]}.json"
        (path.parent / other).write_bytes(content)
        log._read_manifest.cache_clear()
        with pytest.raises(BadInput, match="is damaged"):
            log._read_manifest(store.place, "word_count", other)
