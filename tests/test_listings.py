"""Each version reads as the list of files that it was."""

from __future__ import annotations

import random

import pytest

from plumbline.warehouse.storage import log
from plumbline.warehouse.storage.log import File, Unit
from plumbline.warehouse.storage.store import Store


def file_of(number: int) -> File:
    units = (Unit(f"u{number}", 1, "r"),)
    path = f"word_count/corpus=c/{number}.parquet"
    return File(path, 100, "0" * 64, number, "0" * 8, ("c",), units)


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


@pytest.mark.parametrize("seed", range(4))
def test_swapped_files_are_those_of_an_ordinary_list(store: Store, seed: int) -> None:
    """In every version, and as a draft finds them by unit."""
    draw, lists = random.Random(seed), [list[File]()]
    for number in range(1, 130):
        now = lists[-1]
        old = draw.sample(now, k=min(len(now), draw.choice((0, 0, 0, 1, 2, 9))))
        new = [file_of(number * 10 + k) for k in range(draw.randint(1, 3))]
        new += draw.sample(old, k=len(old) // 4)  # goes, and comes back as the last
        swap(store, now, old, new)
        lists.append([file for file in now if file not in old] + new)
    for version, files in enumerate(lists):
        assert log.snapshot(store.place, version).files("word_count") == files
