"""Code that is run later is kept where nobody else can put it, and is compiled once."""

from __future__ import annotations

import os
import subprocess
import sys
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


def is_private(path: Path, shared: Path) -> bool:
    """Whether ``path`` is in a new directory that only this user may enter."""
    root = path.parent
    return root != shared and root.name.startswith("plumbline-") and root.stat().st_mode & 0o77 == 0


@pytest.mark.parametrize("theirs", ["open to others", "link", "of another user"])
def test_a_directory_that_others_may_write_is_refused(
    theirs: str, shared: Path, monkeypatch: MonkeyPatch
) -> None:
    found = shared.with_name("elsewhere") if theirs == "link" else shared
    found.mkdir()
    found.chmod(0o755 if theirs == "open to others" else 0o700)
    if theirs == "link":
        shared.symlink_to(found)
    elif theirs == "of another user":
        owner = os.getuid()
        found = found.rename(shared.with_name(f"plumbline-{owner + 1}"))
        monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    assert is_private(user_cache("java"), found)
    assert not list(found.iterdir())


CODE = """
from plumbline.jobs.kernel.memory import rehash
rehash(0, 0, 0, 0)
stats = rehash.dispatcher.stats
print(sum(stats.cache_misses.values()), sum(stats.cache_hits.values()))
"""


@pytest.mark.slow
def test_one_process_compiles_what_several_need(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    started = [
        subprocess.Popen([sys.executable, "-c", CODE], env=environment, stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    said = sorted(tuple(p.communicate()[0].split()) for p in started)
    assert said == [(b"0", b"1"), (b"0", b"1"), (b"1", b"0")]
