"""Locks on files: one holder at a time, and the locks of dead holders are free."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from filelock import FileLock

from plumbline.eval_workers.models.scoring_contract import TextScore
from plumbline.warehouse.steps import step as chunks
from plumbline.warehouse.steps.step import Chunk, ChunkPlan
from plumbline.warehouse.storage.locks import claimed


def test_a_file_removed_by_another_machine_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acquire, errors = FileLock.acquire, [OSError(errno.ESTALE, "Stale file handle")]

    def stale_once(self: FileLock, **options: bool) -> object:
        if errors:
            raise errors.pop()
        return acquire(self, **options)

    monkeypatch.setattr(FileLock, "acquire", stale_once)
    with claimed(tmp_path / "a.claim") as mine:
        assert mine and not errors


def test_chunks_that_were_published_are_not_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another worker may remove their directory just before this one locks a chunk."""

    directory = tmp_path / "work" / "benchmark"
    directory.mkdir(parents=True)

    def late(path: Path) -> AbstractContextManager[bool]:
        directory.rmdir()
        return claimed(path)

    def compute(texts: Sequence[str]) -> Sequence[TextScore]:
        raise AssertionError(f"computes {texts}")

    monkeypatch.setattr(chunks, "claimed", late)
    ChunkPlan.of([Chunk(["text"], 1)], directory, TextScore).work(compute, lambda n_left: None)
    assert not directory.exists() and not list(tmp_path.rglob("*.claim"))
