"""Disks and neighbours that pipelines meet: one line, nothing lost, nobody disturbed."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from plumbline.pipelines.command import app
from plumbline.pipelines.command.main import main
from plumbline.pipelines.pipeline_parts import sole_pipeline
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.storage.store import Store
from tests.conftest import REPOSITORY


def test_two_pipelines_on_one_warehouse_or_output_are_told_of_each_other(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from plumbline.pipelines.pipeline_parts import sole_pipeline\n"
        "with sole_pipeline(Path('w'), Path('out')):\n"
        "    print('in', flush=True)\n    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == b"in\n"
        named = f"process {other.pid} on {socket.gethostname()}"
        for warehouse, out, place in (("w", "out2", "warehouse"), ("w2", "out", "output")):
            with (
                pytest.raises(UsageProblem, match=f"^{place} .*another command.*{named}"),
                sole_pipeline(tmp_path / warehouse, tmp_path / out),
            ):
                pass
        other.kill()
    with sole_pipeline(tmp_path / "w", tmp_path / "out"):
        assert Store.open(tmp_path / "w").root.exists()
    assert not list(tmp_path.rglob("*.claim"))


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device", "out/model.safetensors"),
        RuntimeError("java.io.IOException: No space left on device"),
        OSError(errno.EROFS, "Read-only file system", "out/index.html"),
        OSError(errno.EMFILE, "Too many open files"),
        MemoryError(),
    ],
)
def test_a_machine_that_has_no_room_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    def raising(*_: object, **__: object) -> None:
        raise ValueError("writing failed") from error

    monkeypatch.setattr(app, "app", raising)
    assert main(["pipeline"]) == 3
    (line,) = capsys.readouterr().err.strip().splitlines()
    named = ("No space", "Read-only", "run the same command again")
    assert line.startswith("error:") and any(part in line for part in named)
