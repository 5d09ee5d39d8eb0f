"""Disks and neighbours that pipelines meet: one line, nothing lost, nobody disturbed."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from prefect.events.schemas.events import Event, Resource
from prefect.events.worker import EventsWorker

from plumbline.pipelines import disk, offline, stages
from plumbline.pipelines.alone import alone
from plumbline.pipelines.cli import main as cli
from plumbline.warehouse.errors import BadInput, Interrupted, UsageProblem
from plumbline.warehouse.storage.store import Store
from tests.conftest import REPOSITORY


def test_two_pipelines_on_one_warehouse_or_output_are_told_of_each_other(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom plumbline.pipelines.alone import alone\n"
        "with alone(Path('w'), Path('out')):\n    print('in', flush=True)\n    sys.stdin.read()\n"
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
                alone(tmp_path / warehouse, tmp_path / out),
            ):
                pass
        other.kill()
    with alone(tmp_path / "w", tmp_path / "out"):
        assert Store.open(tmp_path / "w").root.exists()
    assert not list(tmp_path.rglob("*.claim"))


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device", "out/model.safetensors"),
        RuntimeError("java.io.IOException: No space left on device"),
        OSError(errno.EROFS, "Read-only file system", "out/index.html"),
    ],
)
def test_a_disk_that_refuses_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    def raising(*_: object, **__: object) -> None:
        raise ValueError("writing failed") from error

    monkeypatch.setattr(cli, "app", raising)
    assert cli.main(["pipeline"]) == 3
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("error:") and ("No space" in line or "Read-only" in line)


def test_a_defect_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(*_: object, **__: object) -> None:
        raise ValueError("no disk's fault")

    monkeypatch.setattr(cli, "app", raising)
    with pytest.raises(ValueError, match="no disk's fault"):
        cli.main(["pipeline"])


def test_a_full_disk_for_prefect_is_told_before_its_server_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {"PREFECT_HOME": str(tmp_path / "home")}
    monkeypatch.setattr(os, "environ", environment)
    monkeypatch.setattr(disk, "_LEAST", shutil.disk_usage(tmp_path).total * 2)
    with pytest.raises(BadInput, match=r"home, for Prefect.*MB free.*PREFECT_HOME"):
        offline.prepare(tmp_path / "out")
    environment["PREFECT_API_URL"] = "http://10.0.0.1:4200/api"
    offline.prepare(tmp_path / "out")


_RESOURCE = Resource({"prefect.resource.id": "r"})


def test_a_server_of_prefect_that_is_gone_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what Prefect has still to tell that server is dropped: no client is asked for it."""
    monkeypatch.setattr(EventsWorker, "_handle", EventsWorker._handle)  # as it was, afterwards
    monkeypatch.setattr(disk, "full_place", lambda: None)
    assert stages.told(_unanswered("http://127.0.0.1:8000/v1/completions")) is None
    without_client = object.__new__(EventsWorker)
    with pytest.raises(AttributeError):
        asyncio.run(without_client._handle(Event(event="e", resource=_RESOURCE)))
    never_up = RuntimeError("Timed out while attempting to connect to ephemeral Prefect API server")
    for error in (never_up, _unanswered("http://127.0.0.1:8123/api/task_runs/")):
        line = stages.told(error)
        assert isinstance(line, Interrupted) and "Prefect's server: does not answer" in str(line)
    asyncio.run(without_client._handle(Event(event="e", resource=_RESOURCE)))
    assert stages.told(ValueError("a defect")) is None
    monkeypatch.setattr(disk, "full_place", lambda: Path("/small"))
    assert isinstance(stages.told(never_up), BadInput)


def _unanswered(url: str) -> Exception:
    """What a client says that finds nobody there."""
    return httpx.ConnectError("refused", request=httpx.Request("POST", url))
