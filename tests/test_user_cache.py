"""Code that is run later is kept only where nobody else can have put it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import platformdirs
import pytest
from pytest import MonkeyPatch

from plumbline.jobs.kernel import cache as module
from plumbline.jobs.kernel.cache import user_cache


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: MonkeyPatch) -> Path:
    """This user's place in a shared temporary directory; the cache directory can't be made."""
    not_a_directory = tmp_path / "file"
    not_a_directory.touch()
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: not_a_directory / name)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    module._private_fallback.cache_clear()
    return tmp_path / f"plumbline-{os.getuid()}"


def test_a_directory_of_its_own_in_the_shared_one(shared: Path) -> None:
    assert user_cache("java") == user_cache("java") == shared / "java"
    assert shared.stat().st_mode & 0o777 == 0o700


def is_private(path: Path, shared: Path) -> bool:
    """Whether ``path`` is in a new directory that only this user may enter."""
    root = path.parent
    return root != shared and root.name.startswith("plumbline-") and root.stat().st_mode & 0o77 == 0


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o755])
def test_a_directory_that_others_may_enter_is_refused(shared: Path, mode: int) -> None:
    shared.mkdir()
    shared.chmod(mode)
    assert is_private(user_cache("java"), shared)
    assert not list(shared.iterdir())


def test_a_link_is_refused(shared: Path, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.mkdir(mode=0o700)
    shared.symlink_to(target)
    assert is_private(user_cache("java"), shared)
    assert not list(target.iterdir())


def test_a_directory_of_another_user_is_refused(shared: Path, monkeypatch: MonkeyPatch) -> None:
    owner = os.getuid()
    theirs = shared.with_name(f"plumbline-{owner + 1}")
    theirs.mkdir(mode=0o700)
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    assert is_private(user_cache("java"), theirs)
    assert not list(theirs.iterdir())
