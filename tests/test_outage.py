"""A hub that is away for a moment is tried again, and only that; a machine has no room."""

from __future__ import annotations

import errno
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from plumbline.pipelines.command import app
from plumbline.pipelines.command.main import main
from plumbline.pipelines.stages import may_pass
from tests.hub_server import AWAY, Hub, environment, hub
from tests.tiny_models import save

MODEL = "somebody/tiny"
#: Says "tried" on each decision about another try and waits for a line. The hub's own waits between
#: its attempts are left out, as are ours: what they would wait for is what the test does meanwhile.
_DRIVER = """
import sys
import huggingface_hub.utils._http as http
from plumbline.pipelines import stages as task_retries

http.time = type("no waits", (), {**vars(http.time), "sleep": lambda s: None})
real = task_retries.may_pass

def told(error):
    answer = real(error)
    print("tried", answer, flush=True)
    sys.stdin.readline()
    return answer

task_retries.may_pass = told
task_retries._DELAY_S = 0
"""
#: The pipeline's own stage.
_SCORE = """
from pathlib import Path
from plumbline.pipelines.command.base import Context
from plumbline.pipelines.command.value_sources import made
from plumbline.pipelines.commands.pipeline import Pipeline
from plumbline.pipelines.pipeline_parts import Parts
from plumbline.pipelines.pipeline_plan import ModelPlan, PipelinePlan
from plumbline.pipelines.stages import Stages
from plumbline.eval_workers.pairs import benchmarks
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.warehouse.storage.store import Store

pipeline = made(Pipeline, {"out": "."})
store = Store.open(pipeline.warehouse)
benchmarks.import_benchmark(store, "closed-world", None, "r")
rows = store.read("benchmark_pair", benchmark="closed-world").slice(0, 2)
store.replace("benchmark_pair", rows, {"benchmark": "closed-world"}, "r")

try:
    plan = PipelinePlan((), ("closed-world",), ())
    parts = Parts(pipeline, plan, Context(store, "", Stages()))
    parts._score(ModelPlan("m", sys.argv[1], options=ModelOptions()))
except Exception as e:
    print("end FAILED", e)
else:
    print("end COMPLETED", store.read("pair_score").num_rows)
"""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Hub]:
    with hub({MODEL: save("gpt2", tmp_path / "model")}) as server:
        yield server


def driven(
    code: str, served: Hub, away: str, place: Path, model: str = MODEL, *, returns: bool = True
) -> tuple[list[str], str]:
    """What was decided after each try, and how it ended, of a hub that is back after the first."""
    served.go(away)
    tries: list[str] = []
    with subprocess.Popen(
        [sys.executable, "-c", _DRIVER + code, model],
        cwd=place,
        env=environment(served, place / "hf"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        for line in process.stdout:
            kind, _, said = line.strip().partition(" ")
            if kind == "end":
                process.stdin.close()
                return tries, said
            if kind == "tried":
                tries.append(said)
                if returns:
                    served.come_back()
                process.stdin.write("\n")
                process.stdin.flush()
    raise AssertionError("it said nothing of an end")


@pytest.mark.parametrize("client", ["httpx", "httpx2"])
@pytest.mark.parametrize("away", AWAY)
def test_what_a_client_says_of_a_server_that_is_away_may_pass(
    client: str, away: str, tmp_path: Path
) -> None:
    http = pytest.importorskip(client)
    with hub({}) as server:
        server.go(away)
        with pytest.raises(http.HTTPError) as caught:
            http.get(server.url, trust_env=False).raise_for_status()
        assert may_pass(caught.value)
        server.come_back()
        with pytest.raises(http.HTTPError) as caught:
            http.get(server.url, trust_env=False).raise_for_status()
        assert not may_pass(caught.value)
        with pytest.raises(http.UnsupportedProtocol) as caught:
            http.get("hub.invalid", trust_env=False)
        assert not may_pass(caught.value)


@pytest.mark.slow
def test_scoring_goes_on_when_the_hub_is_back(served: Hub, tmp_path: Path) -> None:
    """Under Prefect: the task's second try downloads the model and scores both pairs."""
    tries, end = driven(_SCORE, served, "refused", tmp_path)
    assert tries[0] == "True" and end == "COMPLETED 2"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("away", "model", "ends"),
    [*((way, MODEL, 5) for way in AWAY), ("", "somebody/else", 3)],
)
def test_a_command_says_by_its_status_whether_it_may_succeed_later(
    away: str, model: str, ends: int, served: Hub, tmp_path: Path
) -> None:
    served.go(away)
    start = "from plumbline.pipelines.command.main import entry; entry()"
    quick = _DRIVER.partition("real =")[0]  # without the hub's own waits
    done = subprocess.run(
        [sys.executable, "-c", quick + start, "disclosure", "probe", "topics", "--model", model],
        cwd=tmp_path,
        env=environment(served, tmp_path / "hf"),
        capture_output=True,
        text=True,
        check=False,
    )
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == ends and last.startswith(f"error: model {model}"), done.stderr
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
