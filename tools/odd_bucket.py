"""A bucket that answers slowly, with errors, and twice: the rows are those of an undisturbed one.

A developer's tool, see docs/faults.md. Nine commands count, associate, import, score, measure,
count more, restore, compact and copy, in a warehouse of an S3 server on this machine. Between them
and the server a proxy delays a request, answers 500 or 503 without passing it on, passes it on and
loses the answer, or passes it on twice, at random. A command that gives up for the moment (status
5) is run again. In the end all tables must be those of the same commands on a disk.

    python tools/odd_bucket.py --seed 1 --rounds 5
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import io
import json
import logging
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

import boto3  # noqa: E402
from moto.server import ThreadedMotoServer  # noqa: E402

from plumbline.pipelines.command.main import main as plumbline  # noqa: E402
from plumbline.warehouse.paths import address  # noqa: E402
from plumbline.warehouse.storage import bucket  # noqa: E402
from plumbline.warehouse.storage.check import check  # noqa: E402
from plumbline.warehouse.storage.store import Store  # noqa: E402
from tools.same_tables import differences  # noqa: E402

#: How often a request is treated so; the others pass.
ODD = {"slow": 0.08, "500": 0.04, "503": 0.04, "lost answer": 0.04, "twice": 0.1}
_SLOWEST_S = 0.5
#: A command that gives up for the moment is run again so often, at most.
_TRIES = 8
#: Statuses of commands: done, and give up for the moment.
_DONE, _LATER = 0, 5
_QUICK = {
    "max_retries": 6,
    "retry_timeout": timedelta(seconds=30),
    "backoff": {
        "init_backoff": timedelta(milliseconds=50),
        "max_backoff": timedelta(seconds=1),
        "base": 2,
    },
}


class Between(BaseHTTPRequestHandler):
    """Passes requests on to a server, some of them oddly."""

    server: Proxy

    def do_GET(self) -> None:
        odd = self.server.drawn()
        sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if odd == "slow":
            time.sleep(self.server.rng.uniform(0, _SLOWEST_S))
        if odd.isdecimal():
            return self._answer(int(odd), b"<Error><Code>Odd</Code></Error>", {})
        for _ in range(2 if odd == "twice" else 1):
            behind = http.client.HTTPConnection(self.server.behind)
            behind.request(self.command, self.path, sent, dict(self.headers))
            found = behind.getresponse()
            status, body, headers = found.status, found.read(), found.headers
        if odd == "lost answer":
            return self._answer(500, b"<Error><Code>Odd</Code></Error>", {})
        return self._answer(status, body, headers)

    def _answer(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name in ("ETag", "Last-Modified", "Content-Type", "Content-Range"):
            if value := headers.get(name):
                self.send_header(name, value)
        n_bytes = headers.get("Content-Length", "0") if self.command == "HEAD" else str(len(body))
        self.send_header("Content-Length", n_bytes)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_PUT = do_DELETE = do_POST = do_HEAD = do_GET

    def log_message(self, *_: object) -> None:
        """Nothing."""


class Proxy(ThreadingHTTPServer):
    """A server on this machine in front of another, which treats some requests oddly."""

    daemon_threads = True

    def __init__(self, behind: str, seed: str) -> None:
        super().__init__(("127.0.0.1", 0), Between)
        self.behind, self.rng, self.requests = behind, random.Random(seed), Counter[str]()

    def drawn(self) -> str:
        """How the next request is treated."""
        kinds, shares = [*ODD, "plain"], [*ODD.values(), 1 - sum(ODD.values())]
        (odd,) = self.rng.choices(kinds, shares)
        self.requests[odd] += 1
        return odd


@contextlib.contextmanager
def served(seed: str) -> Iterator[tuple[Path, Counter[str]]]:
    """The address of a warehouse in a bucket behind a proxy, and how requests were treated."""
    behind = ThreadedMotoServer("127.0.0.1", port=0)
    behind.start()
    host, port = behind.get_host_and_port()
    proxy = Proxy(f"{host}:{port}", seed)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    keys = {"AWS_ACCESS_KEY_ID": "made-up", "AWS_SECRET_ACCESS_KEY": "made-up-too"}
    os.environ |= {**keys, "AWS_REGION": "us-east-1"}
    os.environ["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{proxy.server_port}"
    boto3.client("s3", endpoint_url=f"http://{host}:{port}").create_bucket(Bucket="odd")
    bucket._store.cache_clear()
    root = address("s3://odd/w")
    assert root is not None
    try:
        yield root, proxy.requests
    finally:
        proxy.shutdown()
        behind.stop()


def inputs(here: Path) -> None:
    """Three shards and a benchmark in a directory."""
    rng, nouns = random.Random(0), ["nurse", "clerk", "pilot", "cook", "judge", "baker"]
    for name in "abc":
        texts = [
            f"{rng.choice(('she', 'he'))} met the {rng.choice(nouns)} and the {rng.choice(nouns)}"
            for _ in range(400)
        ]
        lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
        (here / f"{name}.jsonl").write_text(lines)
    rows = [f"The {noun} said she left.,The {noun} said he left.,{noun}" for noun in nouns]
    (here / "mine.csv").write_text("\n".join(["sentence_a,sentence_b,word", *rows]) + "\n")


def commands(here: Path) -> list[list[str]]:
    """Command lines in order; MEASURED stands for the run of `measure`."""
    a, b, c = (str(here / f"{name}.jsonl") for name in "abc")
    return [
        ["corpus", "count", a, b, "--corpus", "c"],
        ["corpus", "associate", "--corpus", "c"],
        ["benchmark", "import", "mine", "--source", str(here / "mine.csv")],
        ["score", "--model", "dummy", "--benchmark", "mine"],
        ["measure"],
        ["corpus", "count", a, b, c, "--corpus", "c"],
        ["warehouse", "restore", "MEASURED"],
        ["warehouse", "compact"],
    ]


def run_all(root: Path, here: Path, statuses: Counter[int]) -> list[str]:
    """Run the commands on a warehouse; returns what they should not have said."""
    found = []
    for command in commands(here):
        if command[-1] == "MEASURED":
            runs = Store.open(root).read("run").to_pylist()
            # Two where it was done when it gave up: an answer was lost after its last commit.
            ended = (r for r in runs if r["command"] == "measure" and r["status"] == "finished")
            run = max(ended, key=lambda row: row["started_at"])
            command[-1] = run["run_id"]
        for _ in range(_TRIES):
            out, error = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
                status = plumbline([*command, "--warehouse", str(root)])
            statuses[status] += 1
            if status != _LATER:
                break
        if status != _DONE:
            found.append(f"{' '.join(command[:2])}: status {status}: {error.getvalue()[-500:]}")
    return found


def one_round(seed: str, top: Path, requests: Counter[str], statuses: Counter[int]) -> list[str]:
    """Commands on a disk and in an odd bucket; returns what differs."""
    inputs(top)
    os.environ["XDG_CACHE_HOME"] = str(top / "cache")
    found = run_all(top / "disk", top, Counter())
    with served(seed) as (root, treated):
        found += run_all(root, top, statuses)
        requests.update(treated)
        found += [f"{p.path}: {p.problem}" for p in check(Store.open(root))]
        return found + differences(Store.open(top / "disk"), Store.open(root))


def main() -> int:
    """Print what happened; status 1 when anything differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=1)
    options, started = parser.parse_args(), time.monotonic()
    bucket.RETRIES = _QUICK
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # the server's line for each request
    requests: Counter[str] = Counter()
    statuses: Counter[int] = Counter()
    found: list[str] = []
    for number in range(options.rounds):
        with tempfile.TemporaryDirectory() as top:
            new = one_round(f"{options.seed} {number}", Path(top), requests, statuses)
        found += new
        print("".join(f"FOUND {line}\n" for line in new), end="", flush=True)
        by_kind = ", ".join(f"{kind} {n}" for kind, n in requests.most_common())
        ended = ", ".join(f"status {status} {n}" for status, n in sorted(statuses.items()))
        print(f"{number + 1} rounds, {requests.total()} requests: {by_kind}; {ended}", flush=True)
    print(f"{time.monotonic() - started:.0f} s")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
