"""Deployments and schedules of docs/schedule.md: a real server, real workers, runs on them."""

import json
import os
import re
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from plumbline.eval_workers.pairs import benchmarks
from plumbline.warehouse.input.shards import write_jsonl_zst
from plumbline.warehouse.run_records import recorded
from plumbline.warehouse.storage.check import check
from plumbline.warehouse.storage.store import Store
from tests.chat_server import good_script, serving
from tests.conftest import REPOSITORY
from tests.metric_rows import AFTER, BEFORE, version
from tests.prefect_server import Place
from tests.tiny_models import save

pytestmark = [pytest.mark.spark, pytest.mark.slow]

POOLS = {
    **dict.fromkeys(("count", "build", "report", "compact", "weekly"), "spark"),
    **dict.fromkeys(("score", "audit"), "gpu"),
}
BUILD = """
warehouse = "built/warehouse"
[benchmark.build]
model = "scripted"
words = ["kettle", "violin"]
"""


def test_every_deployment_waits_for_its_schedule_on_its_machine(place: Place) -> None:
    found = {d["name"]: d for d in place.post("/deployments/filter", {})}
    assert {name: d["work_pool_name"] for name, d in found.items()} == POOLS
    for deployment in found.values():
        (schedule,) = deployment["schedules"]
        assert not schedule["active"] and schedule["schedule"]["timezone"]
        assert str(REPOSITORY) not in str(deployment), "a machine's path is recorded"
    listed = place.run("deployment", "ls")
    assert not re.findall(r"(?m)^│ (\S+…)", listed), "cut in a list of 80 columns"


@pytest.fixture(scope="module")
def runs(place: Place) -> dict[str, dict[str, Any]]:
    """Four runs at the same time on both workers, by what they are to show."""
    shards = place.work / "shards"
    shards.mkdir()
    write_jsonl_zst(shards / "a.jsonl.zst", ["She met the nurse.", "He met the baker."] * 30)
    whole = (shards / "a.jsonl.zst").read_bytes()
    (shards / "b.jsonl.zst").write_bytes(whole[: len(whole) // 2])
    import_few(Store.open(place.work / "few/warehouse"))
    save("gpt2", place.work / "tiny")
    with serving(good_script) as server:
        (place.work / "build.toml").write_text(BUILD + f'base_url = "{server.url}"\n')
        begun = {
            "build": place.begin("build", name="demo", config="build.toml"),
            "shard": place.begin("count", config="", corpus="shards/*.jsonl.zst", out="broken"),
            "score": place.begin("score", config="", benchmarks=["few"], model="tiny", out="few"),
            "glob": place.begin("audit/weekly", config="", corpus="nowhere/*.jsonl"),
        }
        return {what: place.end(run_id) for what, run_id in begun.items()}


def import_few(store: Store) -> None:
    """A benchmark `few` of two pairs."""
    with recorded(store, "benchmark import", {}) as run_id:
        benchmarks.import_benchmark(store, "closed-world", None, run_id)
        rows = store.read("benchmark_pair", benchmark="closed-world").slice(0, 2).to_pylist()
        store.replace("benchmark_pair", [], {"benchmark": "closed-world"}, run_id)
        few = [{**row, "benchmark": "few"} for row in rows]
        store.replace("benchmark_pair", few, {"benchmark": "few"}, run_id)


def test_wrong_input_fails_a_run_before_anything_starts(
    place: Place, runs: dict[str, dict[str, Any]]
) -> None:
    state = runs["glob"]["state"]
    assert state["type"] == "FAILED" and "shards nowhere/*.jsonl: no such file" in state["message"]
    assert place.n_tasks(runs["glob"]) == 0 and not (place.work / "out/warehouse").exists()


def test_a_benchmark_is_built(place: Place, runs: dict[str, dict[str, Any]]) -> None:
    assert runs["build"]["state"]["type"] == "COMPLETED", runs["build"]["state"]["message"]
    pairs = Store.open(place.work / "built/warehouse").read("benchmark_pair").to_pylist()
    assert {pair["word"] for pair in pairs} == {"kettle", "violin"}


def test_a_broken_shard_fails_the_run_at_its_end(
    place: Place, runs: dict[str, dict[str, Any]]
) -> None:
    state = runs["shard"]["state"]
    assert (state["type"], state["name"]) == ("FAILED", "Shards failed"), state["message"]
    assert "shards/b.jsonl.zst" in state["message"]
    store = Store.open(place.work / "broken/warehouse")
    (row,) = store.read("corpus").to_pylist()
    assert (row["n_shards"], row["n_shards_failed"], row["n_documents"]) == (1, 1, 60)


def test_scores_the_answer_its_chart_and_changes_are_on_the_pages(
    place: Place, runs: dict[str, dict[str, Any]]
) -> None:
    """Scored on one pool, reported by the other; a version that changed too much fails the run."""
    assert runs["score"]["state"]["type"] == "COMPLETED", runs["score"]["state"]["message"]
    (row,) = json.loads(place.artifacts(runs["score"])["score"]["data"])
    assert (row["benchmark"], row["model"], row["n_done"]) == ("few", "tiny", 2)
    run = place.end(place.begin("report", config="", out="few"))
    assert run["state"]["type"] == "COMPLETED", run["state"]["message"]
    first = place.artifacts(run)
    page = place.work / "few/report/index.html"
    text = first["report"]["data"]
    assert page.is_file() and f"{socket.gethostname()}:{page}" in text and "tiny" in text
    assert "No named model has an earlier version" in first["changes"]["data"]
    store = Store.open(place.work / "few/warehouse")
    for key, ratios in {"old": BEFORE, "new": AFTER}.items():
        version(store, "many", key, ratios)
    strict = 'measure.fail_if = "pd changes by more than 5"'
    (place.work / "strict.toml").write_text(strict)
    run = place.end(place.begin("report", config="strict.toml", out="few"))
    assert (run["state"]["type"], run["state"]["name"]) == ("FAILED", "Model changed")
    assert "mine on many since" in run["state"]["message"]
    (change,) = json.loads(place.artifacts(run)["changes"]["data"])
    assert (change["name"], change["benchmark"]) == ("mine", "many") and change["change_low"] > 5


def test_a_warehouse_is_compacted(place: Place, runs: dict[str, dict[str, Any]]) -> None:
    """Files of the last day would stay: here they are older."""
    root = place.work / "few/warehouse"
    old = time.time() - 2 * 86_400
    for path in root.rglob("*"):
        if path.is_file():
            os.utime(path, (old, old))
    before = Store.open(root).read("benchmark_pair").num_rows
    run = place.end(place.begin("compact", warehouse="few/warehouse", keep_days=0))
    assert run["state"]["type"] == "COMPLETED", run["state"]["message"]
    (row,) = json.loads(place.artifacts(run)["warehouse-compact"]["data"])
    assert row["n_files_removed"] > 0
    store = Store.open(root)
    assert check(store) == [] and store.read("benchmark_pair").num_rows == before


def test_the_weekly_run_needs_one_place_of_its_pool(
    place: Place, runs: dict[str, dict[str, Any]]
) -> None:
    """The worker takes one run at a time: `count` and `report` are flows inside this one."""
    (place.work / "week.jsonl").write_text('{"text": "she saw tea and he saw coffee"}\n' * 9)
    given = {"corpus": "week.jsonl", "benchmarks": ["few"], "model": "tiny", "out": "few"}
    run = place.end(place.begin("audit/weekly", config="", **given))
    assert run["state"]["type"] == "COMPLETED", run["state"]["message"]
    store = Store.open(Path(place.work / "few/warehouse"))
    assert store.read("pair_association", corpus="week").num_rows == 2
