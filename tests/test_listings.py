"""Each version reads as the list of files that it was, and so does the log for Delta Lake."""

from __future__ import annotations

import random

import pytest

from plumbline.warehouse.storage import delta, log
from plumbline.warehouse.storage.listing import File, Unit
from plumbline.warehouse.storage.store import Store


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
            files = draft.files("word_count", {"corpus": "c"})
            found = [one for one in files if one.units == file.units]
            assert found == ([file] if file in new or file not in old else [])

    log.commit(store.place, change, "r")


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
    for version, files in enumerate(lists, 1):
        assert log.snapshot(store.place, version).files("word_count") == files


@pytest.mark.parametrize("seed", range(4))
def test_swapped_files_are_those_of_an_ordinary_list(store: Store, seed: int) -> None:
    """In every version, in the log beside it for Delta Lake, and as a draft finds them by unit."""
    draw, lists = random.Random(seed), [list[File]()]
    for number in range(1, 130):
        now = lists[-1]
        old = draw.sample(now, k=min(len(now), draw.choice((0, 0, 0, 1, 2, 9))))
        new = [file_of(number * 10 + k) for k in range(draw.randint(1, 3))]
        new += draw.sample(old, k=len(old) // 4)  # goes, and comes back as the last
        swap(store, now, old, new)
        lists.append([file for file in now if file not in old] + new)
    listed: dict[str, tuple[object, ...]] = {}
    for version, files in enumerate(lists):
        assert log.snapshot(store.place, version).files("word_count") == files
        if version:
            name = f"word_count/_delta_log/{version - 1:020}.json"
            delta._apply(delta._actions(store.place.read(name)), listed)
            assert listed.keys() == {delta.quoted("word_count", file.path) for file in files}
