"""A real Prefect server on a port of its own, with workers, as docs/schedule.md starts them."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.conftest import REPOSITORY, in_session

ENDED = {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}


@dataclass(frozen=True)
class Place:
    """A server with its workers: the API's address, and the directory that the workers are in."""

    api: httpx.Client
    work: Path
    #: What a terminal has exported.
    env: dict[str, str]
    started: list[subprocess.Popen[bytes]]

    def ask(self, method: str, path: str, body: object = None) -> httpx.Response:
        """A request; a server whose database is busy is asked again, as Prefect's client does."""
        deadline = time.monotonic() + 60
        while True:
            answer = self.api.request(method, path, json=body)
            if answer.status_code != 503 or time.monotonic() > deadline:
                return answer
            time.sleep(0.2)

    def get(self, path: str) -> Any:
        """What is at a path; asked again by a server that a busy machine kept from answering."""
        deadline = time.monotonic() + 300
        while True:
            try:
                return self.ask("GET", path).raise_for_status().json()
            except httpx.TimeoutException:
                if time.monotonic() > deadline:
                    raise

    def post(self, path: str, body: dict[str, Any]) -> Any:
        return self.ask("POST", path, body).raise_for_status().json()

    def begin(self, name: str, /, **parameters: object) -> str:
        """Start a deployment, named by its flow if there is only one; returns the run's id."""
        flow, _, own = name.partition("/")
        found = self.get(f"/deployments/name/{flow}/{own or flow}")["id"]
        # Scheduled, as the command asks for it: a run without a state waits for nobody.
        body = {"parameters": parameters, "state": {"type": "SCHEDULED"}}
        return str(self.post(f"/deployments/{found}/create_flow_run", body)["id"])

    def end(self, run_id: str) -> dict[str, Any]:
        """Wait for the end of a run; returns it with its state."""
        deadline = time.monotonic() + 400
        while True:
            run: dict[str, Any] = self.get(f"/flow_runs/{run_id}")
            if run["state"]["type"] in ENDED:
                return run
            assert time.monotonic() < deadline, run["state"]
            time.sleep(0.5)

    def artifacts(self, run: dict[str, Any]) -> dict[str, dict[str, Any]]:
        where = {"flow_runs": {"id": {"any_": [run["id"]]}}}
        return {a["key"]: a for a in self.post("/artifacts/filter", where)}

    def n_tasks(self, run: dict[str, Any]) -> int:
        return len(self.post("/task_runs/filter", {"flow_runs": {"id": {"any_": [run["id"]]}}}))

    def start(self, *arguments: str) -> None:
        """Start the server or a worker."""
        how: dict[str, Any] = {"cwd": self.work, "env": self.env}
        with (self.work.parent / f"{len(self.started)}.log").open("wb") as log:
            command = prefect(*arguments)
            self.started.append(
                subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, **how)
            )

    def start_worker(self, pool: str, *options: str) -> None:
        self.start("worker", "start", "--pool", pool, "--type", "process", *options)

    def run(self, *arguments: str) -> str:
        """What a command of Prefect prints."""
        command = prefect(*arguments)
        done = subprocess.run(command, cwd=REPOSITORY, env=self.env, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def environment(home: Path, work: Path, api: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PREFECT_", "PLUMBLINE_"))}
    own = {
        "PREFECT_HOME": str(home),
        "PREFECT_API_URL": api,
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_WORKER_QUERY_SECONDS": "1",
        "DO_NOT_TRACK": "1",
        "PYTHONPATH": str(REPOSITORY),
        "PWD": str(work),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    return {**kept, **own}


def prefect(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "prefect", "--no-prompt", *arguments]


@contextmanager
def serving(directory: Path) -> Iterator[Place]:
    """A server with the pools of `prefect.yaml`; it and all its workers are gone afterwards."""
    home, work, port = directory / "prefect", directory / "work", free_port()
    home.mkdir()
    work.mkdir()
    api = f"http://127.0.0.1:{port}/api"
    client = httpx.Client(base_url=api, timeout=60)
    there = Place(client, work, environment(home, work, api), [])
    try:
        address = ("--host", "127.0.0.1", "--port", str(port))
        there.start("server", "start", *address, "--no-ui")
        until_up(client, there.started[0])
        for pool in ("spark", "gpu"):
            answer = client.post("/work_pools/", json={"name": pool, "type": "process"})
            assert answer.status_code == 201, answer.text
        yield there
    finally:
        client.close()
        stop(there.started)


def until_up(client: httpx.Client, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 240
    while True:
        assert server.poll() is None and time.monotonic() < deadline
        try:
            if client.get("/health").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.2)


def stop(started: list[subprocess.Popen[bytes]]) -> None:
    """End the workers, then the server; each is the head of a session that must then be empty."""
    for process in reversed(started):
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)
    left = [entry for p in started for entry in in_session(p.pid).values()]
    assert left == []
