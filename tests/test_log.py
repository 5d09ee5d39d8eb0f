"""The commit log: whole states for readers, no row lost, whatever fails and whoever else writes."""

import errno
import json
import os
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from plumbline.pipelines.command.main import main
from plumbline.warehouse.errors import BadInput, PlumblineError, UsageProblem
from plumbline.warehouse.run_records import recorded
from plumbline.warehouse.storage import compaction, log, place
from plumbline.warehouse.storage import delta as delta_log
from plumbline.warehouse.storage.check import check
from plumbline.warehouse.storage.compaction import compact
from plumbline.warehouse.storage.place import File, Unit
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import delta

N_UNITS, N_ROWS = 12, 40


def rows(unit: object, n_word: int = 1, n_rows: int = N_ROWS) -> list[dict[str, object]]:
    words = (f"{unit}-{i}" for i in range(n_rows))
    return [{"corpus": "c", "word": word, "n_word": n_word} for word in words]


def put(store: Store, units: Iterable[object], n_word: int = 1, n_rows: int = N_ROWS) -> None:
    for unit in units:
        store.publish("word_count", rows(unit, n_word, n_rows), unit=str(unit), run_id="r")


def words(store: Store) -> dict[str, int]:
    return {row["word"]: row["n_word"] for row in store.read("word_count").to_pylist()}


class Watched:
    """The module ``os`` with something done at one of the operations that change or list files."""

    NAMES = ("link", "rename", "unlink", "fsync", "mkdir", "rmdir", "listdir")

    def __init__(self, at: int, do: Callable[[str], object]) -> None:
        self.n, self._at, self._do, self.is_dead = 0, at, do, False

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name not in self.NAMES:
            return real

        def watched(*arguments: Any, **named: Any) -> Any:
            self.n += 1
            if self.n - 1 == self._at or (self.is_dead and self.n > self._at):
                self._do(name)
            return real(*arguments, **named)

        return watched


@contextmanager
def watched(patch: pytest.MonkeyPatch, at: int, do: Callable[[str], object]) -> Iterator[Watched]:
    with patch.context() as patched:
        seen = Watched(at, do)
        patched.setattr(place, "os", seen)
        yield seen


def n_operations(patch: pytest.MonkeyPatch, act: Callable[[], object]) -> int:
    with watched(patch, 1 << 30, lambda _: None) as seen:
        act()
    return seen.n


@pytest.mark.slow
def test_whoever_comes_between_the_operations_of_a_commit_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each operation of a writer, another writer, a compactor and a reader act."""

    def begun(name: str) -> Store:
        store = Store.open(tmp_path / name)
        put(store, "abc", n_rows=2)
        compact(store, "r")
        put(store, "b", n_rows=2)
        return store

    def outer(store: Store) -> None:
        put(store, "a", 5, 2)

    expected = {"a-0": 5, "a-1": 5, "b-0": 1, "b-1": 1, "c-0": 7, "c-1": 7}
    first, n_acted = begun("count"), 0
    n = n_operations(monkeypatch, lambda: outer(first))
    for at in range(n):
        store = begun(f"at-{at}")

        def others(_: str, store: Store = store) -> None:
            nonlocal n_acted
            n_acted += 1
            with monkeypatch.context() as patched:
                patched.setattr(place, "os", os)
                put(store, "c", 7, 2)
                compact(store, "r", 0)
                found = words(store)
                assert found in (expected, expected | {"a-0": 1, "a-1": 1})

        with watched(monkeypatch, at, others):
            outer(store)
        assert words(store) == expected, f"operation {at}"
    assert n_acted == n > 10


class Death(BaseException):
    """The process is gone: nothing that it would still do happens."""


def faulted(patch: pytest.MonkeyPatch, at: int, fault: str, act: Callable[[], object]) -> None:
    """Do something whose operation ``at`` fails, or after which nothing happens any more."""

    def fail(_: str) -> None:
        if fault == "death":
            seen.is_dead = True
            raise Death
        raise OSError(getattr(errno, fault), os.strerror(getattr(errno, fault)))

    with suppress(Death, OSError, PlumblineError), watched(patch, at, fail) as seen:
        act()


def _publish(store: Store) -> None:
    with store.transaction("r"):
        put(store, "a", 5, 2)
        store.replace("word_list", [], {"corpus": "c"}, "r")
        store.publish("word_delta", [DELTA], unit="d", run_id="r")


DELTA = delta("a-0", 0.5)
ACTIONS: dict[str, Callable[[Store], object]] = {
    "publish two tables": _publish,
    "replace": lambda store: store.replace("word_count", rows("z", 9, 3), {"corpus": "c"}, "r"),
    "compact": lambda store: compact(store, "r", 0),
    "restore": lambda store: store.restore(1, "r"),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["EIO", "ENOSPC", "EACCES", "death"])
@pytest.mark.parametrize("action", ACTIONS)
def test_after_a_fault_at_any_operation_the_state_is_the_old_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str, fault: str
) -> None:
    act = ACTIONS[action]

    def begun(name: str) -> Store:
        store = Store.open(tmp_path / name)
        put(store, "ab", n_rows=2)
        return store

    def state(store: Store) -> tuple[dict[str, int], int]:
        return words(store), store.read("word_delta").num_rows

    whole = begun("whole")
    old = ({f"{u}-{i}": 1 for u in "ab" for i in range(2)}, 0)
    n = n_operations(monkeypatch, lambda: act(whole))
    new, n_old, n_new = state(whole), 0, 0
    for at in range(n):
        store = begun(f"at-{at}")
        faulted(monkeypatch, at, fault, partial(act, store))
        found = state(store)
        assert found in (old, new), f"operation {at}"
        n_old, n_new = n_old + (found == old), n_new + (found == new)
        act(store)
        assert state(store) == new, f"again after operation {at}"
        assert {p["problem"] for p in check(store)} <= {
            "a file that no kept version names",
            "a file or partition that was not finished",
            "lacks the newest state of the table",  # the Delta log, which compact mends
        }
        with monkeypatch.context() as patched:
            patched.setattr(compaction, "UNFINISHED", timedelta(0))
            compact(store, "r", 0)
        assert state(store) == new and not list((store.root / "_staging").iterdir())
        assert not check(store)
    assert n_old and n_new and n > 5


class Forced:
    """The module ``os``, noting what is forced to the disk; the rest is gone after a power cut."""

    def __init__(self, root: Path, before: Callable[[], object]) -> None:
        self._root, self._before = root, before
        self._contents: dict[int, bytes] = {}
        self._names: dict[Path, list[os.DirEntry[str]]] = {}
        for path in (root, *root.rglob("*")):
            self._note(path)

    def __getattr__(self, name: str) -> Any:
        if name in Watched.NAMES:
            self._before()
        return getattr(os, name)

    def fsync(self, number: int) -> None:
        self._before()
        self._note(Path(f"/proc/self/fd/{number}").readlink())

    def _note(self, path: Path) -> None:
        if path.is_dir():
            self._names[path] = list(os.scandir(path))
        else:
            self._contents[path.stat().st_ino] = path.read_bytes()

    def left(self, made: Path, *, names: bool, of: Path | None = None) -> None:
        """Make what a power cut leaves now; all ``names``, or those alone that were forced."""
        made.mkdir()
        here = of or self._root
        for entry in os.scandir(here) if names else self._names.get(here, ()):
            if entry.is_dir():
                self.left(made / entry.name, names=names, of=here / entry.name)
            else:
                (made / entry.name).write_bytes(self._contents.get(entry.inode(), b""))


@pytest.mark.parametrize("action", ACTIONS)
def test_after_a_power_cut_at_any_operation_the_state_is_the_old_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    """A killed process loses nothing that it wrote; a machine does, unless it was forced."""
    store = Store.open(tmp_path / "w")
    put(store, "ab", n_rows=2)
    found: list[object] = []

    def state(root: Path) -> tuple[dict[str, int], int]:
        there = Store.open(root, create=False)
        return words(there), there.read("word_delta").num_rows

    def cut() -> None:
        for names in (False, True):
            with monkeypatch.context() as patched:
                patched.setattr(place, "os", os)
                left = tmp_path / f"left-{len(found)}"
                forced.left(left, names=names)
                try:
                    found.append(state(left))
                except BadInput as e:
                    found.append(str(e))

    old, forced = state(store.root), Forced(store.root, cut)
    with monkeypatch.context() as patched:
        patched.setattr(place, "os", forced)
        ACTIONS[action](store)
        cut()
    new = state(store.root)
    assert not [one for one in found if one not in (old, new)] and len(found) > 10
    assert found[-2:] == [new, new], "a commit that was reported is gone"


def test_tables_of_one_block_appear_together_or_not_at_all(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), store.transaction("r"):
        put(store, "a")
        raise ZeroDivisionError
    assert words(store) == {}
    before = store.snapshot().version
    with store.transaction("r"):
        put(store, "a")
        store.publish("word_delta", [DELTA], unit="d", run_id="r")
        assert words(store) == {} and store.read("word_delta").num_rows == 0
    assert store.snapshot().version == before + 1
    assert len(words(store)) == N_ROWS and store.read("word_delta").num_rows == 1


def test_a_merge_leaves_what_was_replaced_while_it_read(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, "abc")
    read, other = store.rows_of, Store.open(store.root)

    def replaced(*arguments: Any) -> Any:
        found = read(*arguments)
        put(other, "a", 7)
        return found

    monkeypatch.setattr(store, "rows_of", replaced)
    compact(store, "r")
    expected = {row["word"]: row["n_word"] for row in [*rows("a", 7), *rows("b"), *rows("c")]}
    assert words(store) == expected
    assert store.read("word_count").num_rows == 3 * N_ROWS


def test_restore_empties_tables_that_came_later(store: Store) -> None:
    put(store, "a")
    version = store.snapshot().version
    put(store, "b")
    store.publish("word_delta", [DELTA], unit="d", run_id="r")
    store.restore(version, "r")
    assert words(store) == {row["word"]: 1 for row in rows("a")}
    assert not store.read("word_delta").num_rows


def test_a_past_state_is_read_and_restored(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--warehouse", str(store.root)]
    with recorded(store, "one", {}) as first:
        store.publish("word_count", rows("a"), unit="a", run_id=first)
    version = store.snapshot().version
    with recorded(store, "two", {}) as second:
        store.replace("word_count", [], {"corpus": "c"}, second)
    query = "SELECT count(*) AS n FROM word_count"

    def counted(*options: str) -> str:
        assert main(["sql", query, "--format", "csv", *options, *where]) == 0
        return capsys.readouterr().out.split()[-1]

    assert counted() == "0"
    assert counted("--at", str(version)) == str(N_ROWS)
    for other in ("77", "2001-01-01", ""):
        assert main(["sql", query, "--at", other, *where]) == 2
        assert main(["warehouse", "restore", other, *where]) == 2
    assert main(["warehouse", "restore", *where]) == 0
    listed = capsys.readouterr().out
    assert "publish word_count" in listed and "publish run" not in listed
    past = store.pinned(version)
    with pytest.raises(UsageProblem, match="can only be read"):
        past.publish("word_count", rows("b"), unit="b", run_id="r")
    assert main(["warehouse", "restore", str(version), *where]) == 0
    assert len(words(store)) == N_ROWS and store.read("run").num_rows == 3
    compact(store, "r", 0)
    capsys.readouterr()
    kept = f"there are {store.snapshot().oldest} to {store.snapshot().version}"
    for command in (["sql", query, "--at"], ["warehouse", "restore"]):
        assert main([*command, str(version), *where]) == 2
        assert f"version {version}: is not kept: {kept}" in capsys.readouterr().err


def test_a_lost_log_is_not_taken_for_an_empty_warehouse(store: Store) -> None:
    put(store, "a")
    for path in (store.root / log.COMMITS).iterdir():
        path.unlink()
    with pytest.raises(BadInput, match="its commit log is gone"):
        Store.open(store.root)


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
    listed = set[str]()  # by the log for Delta Lake, which a stream reads version by version
    for version, files in enumerate(lists):
        assert log.snapshot(store.place, version).files("word_count") == files
        name = f"word_count/_delta_log/{version - 1:020}.json"
        for action in map(json.loads, store.place.read(name).splitlines() if version else ()):
            listed -= {action.get("remove", {}).get("path")}
            listed |= {action["add"]["path"]} if "add" in action else set()
        assert listed == {delta_log.quoted("word_count", file.path) for file in files}
