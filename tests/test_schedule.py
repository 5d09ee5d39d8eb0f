"""A schedule as docs/schedule.md resumes it: a real server starts the run at its minute."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest

from plumbline.warehouse.input.shards import write_jsonl_zst
from plumbline.warehouse.storage.store import Store
from tests.conftest import REPOSITORY
from tests.prefect_server import ENDED, Place, serving

EVERY_MINUTE = 'cron: "* * * * *"'


@pytest.mark.slow
def test_a_schedule_that_is_resumed_starts_runs_that_complete(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    declared = (REPOSITORY / "prefect.yaml").read_text(encoding="utf-8")
    (checkout / "prefect.yaml").write_text(re.sub('cron: "[^"]*"', EVERY_MINUTE, declared))
    # Rounds of the scheduler are a minute apart by default.
    with serving(tmp_path, PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS="2") as place:
        write_jsonl_zst(place.work / "few.jsonl.zst", ["She met the nurse."] * 30)
        (place.work / "plumbline.toml").write_text('corpus = "few.jsonl.zst"\n')
        place.start_worker("spark")
        place.run("deploy", "--name", "count", cwd=checkout)
        listed = place.run("deployment", "schedule", "ls", "count/count")
        (schedule,) = re.findall("[0-9a-f-]{36}", listed)
        place.run("deployment", "schedule", "resume", "count/count", schedule)

        first = first_scheduled(place)
        place.until({"PENDING", "RUNNING"} | ENDED, first, timeout_s=120)
        # Before the next minute: a pause takes the runs back that are to come.
        place.run("deployment", "schedule", "pause", "count/count", schedule)
        assert scheduled(place) == []
        run = place.end(first)
        assert run["state"]["type"] == "COMPLETED", run["state"]["message"]
        assert run["created_by"]["id"] == schedule and run["expected_start_time"].endswith(":00Z")
        (row,) = Store.open(place.work / "out/warehouse").read("corpus").to_pylist()
        assert row["n_documents"] == 30
        assert failures(place.log()) == []


def first_scheduled(place: Place) -> str:
    """The run that the scheduler makes for the next minute."""
    deadline = time.monotonic() + 60
    while not (found := scheduled(place)):
        assert time.monotonic() < deadline, failures(place.log()) or "nothing is scheduled"
        time.sleep(0.2)
    return str(found[0]["id"])


def scheduled(place: Place) -> list[dict[str, Any]]:
    where = {"flow_runs": {"state": {"type": {"any_": ["SCHEDULED"]}}}}
    found: list[dict[str, Any]] = place.post(
        "/flow_runs/filter", {**where, "sort": "EXPECTED_START_TIME_ASC"}
    )
    return found


def failures(log: Path) -> list[str]:
    """Exceptions in a server's log, but for those of a busy database, which are tried again."""
    lines = log.read_text(encoding="utf-8").splitlines()
    found = [line for line in lines if re.match(r"[\w.]+(Error|Exception)\b", line)]
    return [line for line in found if "database is locked" not in line]
