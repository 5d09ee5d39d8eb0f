"""Errors of hubs, connections and disks: what may pass and is tried again, what is one line."""

import errno
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub.errors
import pytest
from prefect.states import Completed, Failed

from plumbline.eval_workers.models import open_backend
from plumbline.eval_workers.models.local import model_files, source
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.pipelines import flows
from plumbline.pipelines.command import app
from plumbline.pipelines.command.main import main
from plumbline.pipelines.commands.pipeline import Pipeline
from plumbline.pipelines.flows import run_command
from plumbline.warehouse.errors import BadInput, Interrupted, MissingComponent, UsageProblem
from tests.hub_server import AWAY, environment, hub
from tests.steps import python

#: Leaves out the hub's own waits between its attempts.
_NO_WAITS = """
import sys
import huggingface_hub.utils._http as http

http.time = type("no waits", (), {**vars(http.time), "sleep": lambda s: None})
"""


@pytest.mark.slow
@pytest.mark.parametrize(("away", "ends"), [*((way, 5) for way in AWAY), ("", 3)])
def test_a_command_says_by_its_status_whether_it_may_succeed_later(
    away: str, ends: int, tmp_path: Path
) -> None:
    start = "from plumbline.pipelines.command.main import entry; entry()"
    words = ("disclosure", "probe", "topics", "--model", "a/b")
    with hub(away=away) as url:
        env = environment(url, tmp_path / "hf")
        done = python(_NO_WAITS + start, *words, cwd=tmp_path, env=env)
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == ends and last.startswith("error: model a/b"), done.stderr
    assert ("run the same command again" in last) == (ends == 5)


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


def test_a_flow_on_a_full_disk_ends_with_the_command_s_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    store, pipeline = tmp_path / "w", Pipeline(warehouse=tmp_path / "w", out=tmp_path)
    with pytest.raises(BadInput, match="make room; finished work is kept"), pipeline.sole():
        full()
    monkeypatch.setattr(flows, "run_command", full)
    with pytest.raises(BadInput, match="make room; finished work is kept"):
        flows.compact.fn(str(store))


def test_an_audit_gives_all_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    def ends(state: object) -> object:
        return lambda **_: state

    monkeypatch.setattr(flows, "_pipeline", lambda **_: SimpleNamespace(check=lambda: None))
    monkeypatch.setattr(flows, "count", ends(Failed(name=flows.SHARDS_FAILED, message="b.jsonl")))
    monkeypatch.setattr(flows, "score", ends(Completed()))
    changed = Failed(name=flows.MODEL_CHANGED, message="mine on b")
    monkeypatch.setattr(flows, "report", ends(changed))
    state = flows.audit.fn()
    assert (state.name, state.message) == (flows.MODEL_CHANGED, "mine on b; b.jsonl")


@pytest.mark.parametrize("adapter", [None, "a/none"])
def test_a_hub_that_is_away_is_asked_once(
    monkeypatch: pytest.MonkeyPatch, adapter: str | None
) -> None:
    """Its client would try again for half a minute, for each file."""
    asked: list[str] = []

    def away(*_: object, **__: object) -> None:
        raise ConnectionRefusedError

    monkeypatch.setattr(source, "get_session", lambda: SimpleNamespace(head=away))
    monkeypatch.setattr(model_files, "find_adapter_config_file", asked.append)
    monkeypatch.setattr(source, "cached_file", lambda name, **_: asked.append(name))
    with pytest.raises(Interrupted, match=r"a/none: .*can't be loaded from the hub"):
        open_backend("a/none", ModelOptions(adapter=adapter)).identity  # noqa: B018
    assert not asked


def raised_from(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


def answered(status: int) -> Exception:
    error = OSError("the hub's answer")
    error.response = SimpleNamespace(status_code=status)  # type: ignore[attr-defined]
    return error


MAY_PASS = [
    TimeoutError(),
    OSError(errno.ENETUNREACH, "unreachable"),
    answered(429),
    answered(503),
    raised_from(BadInput("model m", "can't be loaded"), ConnectionResetError()),
    raised_from(Interrupted("model m", "the hub is away"), ConnectionRefusedError()),
]
STAYS = [
    answered(404),
    BadInput("shard 3", "truncated"),
    raised_from(UsageProblem("model m", "no such model"), ConnectionResetError()),
    Interrupted("stopped"),
    raised_from(Interrupted("stopped"), KeyboardInterrupt()),  # type: ignore[arg-type]
    MissingComponent("torch", "is not installed"),
    PermissionError(errno.EACCES, "denied"),
    ValueError("a defect"),
    huggingface_hub.errors.OfflineModeIsEnabled(),
]


def test_only_what_may_pass_is_tried_again() -> None:
    condition = run_command.retry_condition_fn
    assert condition is not None and run_command.retries == 2
    for error in (*MAY_PASS, *STAYS):
        assert condition(run_command, None, Failed(data=error)) is (error in MAY_PASS)  # type: ignore[arg-type]
