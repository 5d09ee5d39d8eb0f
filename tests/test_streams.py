"""Commands whose standard streams are closed, whose reader left, or whose files may not grow."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from plumbline.eval_workers.pairs.benchmarks import import_benchmark
from plumbline.warehouse.storage.store import Store
from tests.conftest import REPOSITORY

_ENTRY = (sys.executable, "-c", "from plumbline.pipelines.command.main import entry; entry()")


def _shell(script: str, place: Path, *words: str | bytes) -> subprocess.CompletedProcess[bytes]:
    """A line of bash in which ``"$@"`` is the command with these words."""
    return subprocess.run(
        ["bash", "-c", script, "bash", *_ENTRY, *words],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=120,
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("streams")
    import_benchmark(Store.open(place / "out/warehouse"), "closed-world", None, "r")
    return place


@pytest.mark.slow
@pytest.mark.parametrize("streams", [">&-", "2>&-", "<&-", ">&- 2>&- <&-", "| (exit 0)"])
@pytest.mark.parametrize(
    "words",
    [(), ("--version",), ("benchmark", "show"), ("sql", "FROM benchmark_pair"), ("runs",)],
    ids=" ".join,
)
def test_a_stream_that_is_closed_stops_no_command(
    words: tuple[str, ...], streams: str, place: Path
) -> None:
    done = _shell(f'set -o pipefail; "$@" {streams}', place, *words)
    assert (done.returncode, done.stderr) == (0, b"")
