"""The kernel is compiled once for all processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
