"""Deployments as docs/schedule.md has them: a real server, a real worker, runs on it."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from plumbline.pipelines import flows
from plumbline.warehouse.input.shards import write_jsonl_zst
from plumbline.warehouse.storage.check import check
from plumbline.warehouse.storage.store import Store
from tests.conftest import REPOSITORY
from tests.prefect_server import Place
from tests.tiny_models import save

pytestmark = [pytest.mark.spark, pytest.mark.slow]

NAMES = {"audit", "corpus", "evaluate", "report", "weekly"}
COMMANDS = {*("build", "corpus-count", "score", "fairpair-run", "probe", "compact")}
ON_GPU = {"audit", "probe", "evaluate", "score", "fairpair-run"}


def test_every_deployment_waits_for_its_schedule_on_its_machine(place: Place) -> None:
    found = {d["name"]: d for d in place.post("/deployments/filter", {})}
    assert set(found) == NAMES | COMMANDS
    for name, deployment in found.items():
        assert deployment["work_pool_name"] == ("gpu" if name in ON_GPU else "spark")
        (schedule,) = deployment["schedules"]
        assert not schedule["active"] and schedule["schedule"]["timezone"]
        assert str(REPOSITORY) not in str(deployment), "a machine's path is recorded"
    listed = place.run("deployment", "ls")
    assert "warehouse-compact/compact " in listed
    assert not re.findall(r"(?m)^│ (\S+…)", listed), "cut in a list of 80 columns"


def test_a_parameter_of_another_type_is_refused(place: Place) -> None:
    answer = place.create("evaluate", model=3)
    assert (
        answer.status_code == 409 and "field 'model'. Failure reason: 3 is not valid" in answer.text
    )


@pytest.fixture(scope="module")
def runs(place: Place) -> dict[str, dict[str, Any]]:
    """Three runs at the same time on both workers, by what they are to show."""
    shards = place.work / "shards"
    shards.mkdir()
    write_jsonl_zst(shards / "a.jsonl.zst", ["She met the nurse.", "He met the baker."] * 30)
    whole = (shards / "a.jsonl.zst").read_bytes()
    (shards / "b.jsonl.zst").write_bytes(whole[: len(whole) // 2])
    import_few(Store.open(place.work / "few/warehouse"))
    save("gpt2", place.work / "tiny")
    begun = {
        "shard": place.begin("corpus", conf="", corpus="shards/*.jsonl.zst", out="broken"),
        "score": place.begin("evaluate", conf="", benchmarks="few", model="tiny", out="few"),
        "glob": place.begin("weekly", conf="", corpus="nowhere/*.jsonl"),
    }
    return {what: place.end(run_id) for what, run_id in begun.items()}


def test_wrong_input_fails_a_run_before_anything_starts(
    place: Place, runs: dict[str, dict[str, Any]]
) -> None:
    state = runs["glob"]["state"]
    assert state["type"] == "FAILED" and "\n" not in state["message"]
    said = "shards nowhere/*.jsonl: no such file (check the path or the pattern, docs/corpora.md)"
    assert said in state["message"]
    assert place.n_tasks(runs["glob"]) == 0 and not (place.work / "out").exists()


@pytest.mark.parametrize(
    ("flow", "asked"),
    [
        (flows.fairpair_run, {"probe_set": "common-sents"}),
        (flows.disclosure_probe, {"sets": "topics"}),
    ],
)
def test_a_model_that_is_not_there_is_told_before_anything_starts(
    flow: Any, asked: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    state = flow.fn(conf="", model="./nowhere", **asked)
    assert state.is_failed() and "nowhere does not exist" in state.message.replace(":", "")
    assert not list(tmp_path.iterdir())


def test_a_broken_shard_is_on_the_page_with_the_command_that_repeats_it(
    place: Place, runs: dict[str, dict[str, Any]]
) -> None:
    state = runs["shard"]["state"]
    assert (state["type"], state["name"]) == ("FAILED", "Shards failed"), state["message"]
    again = (
        "plumbline corpus count 'shards/*.jsonl.zst' --corpus shards --warehouse broken/warehouse"
    )
    assert again in state["message"]
    (row,) = json.loads(place.artifacts(runs["shard"])["failed-shards"]["data"])
    assert row["repair it, then"] == again and row["shard"] == "shards/b.jsonl.zst"
    store = Store.open(place.work / "broken/warehouse")
    (row,) = store.read("corpus").to_pylist()
    assert (row["n_shards"], row["n_shards_failed"], row["n_documents"]) == (1, 1, 60)
    assert store.read("word_delta").num_rows


def test_scores_metrics_and_the_report_are_on_the_pages(
    place: Place, runs: dict[str, dict[str, Any]]
) -> None:
    """A benchmark of two pairs and a tiny model: scored on one pool, reported by the other."""
    assert runs["score"]["state"]["type"] == "COMPLETED", runs["score"]["state"]["message"]
    (row,) = json.loads(place.artifacts(runs["score"])["score"]["data"])
    assert (row["benchmark"], row["model"], row["n_scored"]) == ("few", "tiny", 2)
    run = place.end(place.begin("report", conf="", out="few"))
    assert run["state"]["type"] == "COMPLETED", run["state"]["message"]
    found = place.artifacts(run)
    (line,) = json.loads(found["measure"]["data"])
    assert (line["benchmark"], line["model"], line["n_pairs"]) == ("few", "tiny", 2)
    page = place.work / "few/report/index.html"
    assert page.is_file() and f"{socket.gethostname()}:{page}" in found["report"]["data"]
    assert "## Which way does tiny lean on few?" in found["report"]["data"]


def test_a_warehouse_is_compacted(place: Place, runs: dict[str, dict[str, Any]]) -> None:
    run = place.end(
        place.begin("warehouse-compact/compact", warehouse="few/warehouse", dry_run=True)
    )
    assert run["state"]["type"] == "COMPLETED", run["state"]["message"]
    assert "nothing was done" in run["state"]["message"]
    run = place.end(
        place.begin("warehouse-compact/compact", warehouse="few/warehouse", keep_days=0)
    )
    assert run["state"]["type"] == "COMPLETED", run["state"]["message"]
    (row,) = json.loads(place.artifacts(run)["warehouse-compact"]["data"])
    assert row.keys() == {"n_partitions_merged", "n_files_removed"}
    assert check(Store.open(place.work / "few/warehouse")) == []


def test_the_weekly_run_needs_one_place_of_its_pool(
    place: Place, runs: dict[str, dict[str, Any]]
) -> None:
    """The worker takes one run at a time: `corpus` and `report` are flows inside this one."""
    (place.work / "week.jsonl").write_text('{"text": "she saw tea and he saw coffee"}\n' * 9)
    given = {"corpus": "week.jsonl", "benchmarks": "few", "model": "tiny", "out": "few"}
    run = place.end(place.begin("weekly", conf="", **given))
    assert run["state"]["type"] == "COMPLETED", run["state"]["message"]
    store = Store.open(place.work / "few/warehouse")
    assert store.read("pair_association", corpus="week").num_rows == 2


def test_commands_are_deployments(place: Place, runs: dict[str, dict[str, Any]]) -> None:
    """Their parameters are their options, checked by the server; rows come as on a command line."""
    answer = place.create("score", benchmark=["few"], dtype="float8")
    assert answer.status_code == 409 and "float8" in answer.text
    (place.work / "ten.jsonl").write_text('{"text": "she saw tea and he saw coffee"}\n' * 10)
    where = {"warehouse": "few/warehouse"}
    sampled = {"probe_set": "common-sents", "n": 2, "max_new_tokens": 2, "config": ""}
    begun = {
        "corpus-count": {"shards": ["ten.jsonl"], "corpus": "ten", **where},
        "score": {"benchmark": ["few"], "model": ["tiny"], "models": None, **where},
        "fairpair-run": {**sampled, "model": "tiny", "out": "few/report", "conf": "", **where},
    }
    ids = {name: place.begin(name, **given) for name, given in begun.items()}
    done = {name: place.end(run_id) for name, run_id in ids.items()}
    for name, run in done.items():
        assert run["state"]["type"] == "COMPLETED", (name, run["state"]["message"])
    (row,) = json.loads(place.artifacts(done["corpus-count"])["corpus-count"]["data"])
    assert (row["corpus"], row["n_documents"], row["changed"]) == ("ten", 10, True)
    (row,) = json.loads(place.artifacts(done["score"])["score"]["data"])
    assert (row["n_pairs"], row["n_scored"], row["n_new"]) == (2, 2, 0)
    store = Store.open(place.work / "few/warehouse")
    assert store.read("continuation").num_rows and store.read("fairpair_set").num_rows
    tasks = place.post(
        "/task_runs/filter", {"flow_runs": {"id": {"any_": [done["fairpair-run"]["id"]]}}}
    )
    assert {"sample tiny", "perturb", "report"} <= {task["name"] for task in tasks}


def import_few(store: Store) -> None:
    from plumbline.eval_workers.pairs import benchmarks
    from plumbline.warehouse.storage.run_records import recorded

    with recorded(store, "benchmark import", {"name": "few"}) as run_id:
        benchmarks.import_benchmark(store, "closed-world", None, run_id)
        rows = store.read("benchmark_pair", benchmark="closed-world").to_pylist()[:2]
        store.drop("benchmark_pair", {"benchmark": "closed-world"})
        few = [{**row, "benchmark": "few"} for row in rows]
        store.replace("benchmark_pair", few, {"benchmark": "few"}, run_id)


def test_the_command_runs_as_a_flow_when_it_is_asked_to(place: Place) -> None:
    """On the server whose address it prints: one run, one task per stage, named by it."""
    (place.work / "few.jsonl").write_text('{"text": "she saw tea and he saw coffee"}\n' * 9)
    command = ["pipeline", "--prefect", "--corpus", "few.jsonl", "--out", "as-flow"]
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from plumbline.pipelines.command.main import entry; entry()",
            *command,
        ],
        cwd=place.work,
        env=place.env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert f"Prefect server: {place.env['PREFECT_API_URL']}\n" in done.stdout
    (run,) = place.post("/flow_runs/filter", {"flows": {"name": {"any_": ["plumbline"]}}})
    assert run["name"] == "pipeline into as-flow" and run["state"]["type"] == "COMPLETED"
    tasks = place.post("/task_runs/filter", {"flow_runs": {"id": {"any_": [run["id"]]}}})
    assert {"count few", "associate few", "measure", "report"} <= {t["name"] for t in tasks}
