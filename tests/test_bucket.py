"""A warehouse in an object store, on a real S3 server on this machine; copies; locks."""

import http.client
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import boto3
import pytest

from plumbline.pipelines.command.main import main
from plumbline.warehouse.errors import BadInput, Interrupted, UsageProblem
from plumbline.warehouse.input import remote_files
from plumbline.warehouse.paths import address
from plumbline.warehouse.query.connection import connect
from plumbline.warehouse.run_records import recorded
from plumbline.warehouse.storage import locks, log, place
from plumbline.warehouse.storage.check import check
from plumbline.warehouse.storage.compaction import compact
from plumbline.warehouse.storage.locks import lease
from plumbline.warehouse.storage.store import Store
from tests import test_log
from tests.conftest import REPOSITORY
from tests.test_damage import problems
from tests.test_log import words

_WRITER = """
import sys
from plumbline.warehouse.storage.store import Store
root, unit, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
for k in range(1, n + 1):
    rows = [{"corpus": "c", "word": f"{unit}-{i}", "n_word": k} for i in range(9)]
    Store.open(root).publish("word_count", rows, unit=unit, run_id="r")
    print(k, flush=True)
"""

rows = partial(test_log.rows, n_rows=9)
#: Where a server says no, tests wait for one more request, not for minutes.
_ONE_RETRY = {
    **remote_files.CLIENT,
    "retry_config": {"max_retries": 1, "retry_timeout": timedelta(seconds=5)},
}


@pytest.fixture
def root(bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The address of a place for a warehouse, in a bucket of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    place._store.cache_clear()
    found = address(f"s3://{bucket}/audits/w")
    assert found is not None
    return found


def test_the_same_as_on_a_disk(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store.open(root)
    with recorded(store, "one", {}) as run_id:
        for unit in ("a", "b"):
            store.publish("word_count", rows(unit), unit=unit, run_id=run_id)
        row = {"corpus": "an/other %", "word": "tea", "n_word": 1}
        store.publish("word_count", [row], unit="x", run_id=run_id)
        compact(store, run_id, 0)
        with pytest.raises(UsageProblem, match="is not kept"):
            store.pinned(1)
        store.publish("word_count", rows("a", 5), unit="a", run_id=run_id)
    assert words(store) == {r["word"]: r["n_word"] for r in (*rows("a", 5), *rows("b"), row)}
    with connect(store) as connection:
        assert connection.execute("SELECT sum(n_word) FROM word_count").fetchone() == (55,)
    where = ["--warehouse", str(root)]
    assert main(["sql", "SELECT count(*) AS n FROM word_count", "--format", "csv", *where]) == 0
    assert capsys.readouterr().out.split() == ["n", "19"]
    assert main(["warehouse", "check", *where]) == 0, capsys.readouterr().out
    assert str(root) in capsys.readouterr().out and str(root).startswith("s3://")
    shutil.rmtree(Path(os.environ["XDG_CACHE_HOME"]))  # "delete them at any time"
    assert words(Store.open(root))["a-0"] == 5
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLUMBLINE_WORK", str(Path(os.environ["XDG_CACHE_HOME"]) / "shared"))
        assert store.work_directory("x").is_relative_to(os.environ["PLUMBLINE_WORK"])


@pytest.mark.slow
def test_four_writers_of_one_merged_file_and_one_that_is_killed(root: Path) -> None:
    store = Store.open(root)
    for unit in "abcd":
        store.publish("word_count", rows(unit), unit=unit, run_id="r")
    compact(store, "r")
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(root), unit, "3" if unit != "d" else "99"],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for unit in "abcd"
    ]
    assert writers[3].stdout is not None and writers[3].stdout.readline() == "1\n"
    writers[3].send_signal(signal.SIGKILL)
    assert [writer.wait() for writer in writers] == [0, 0, 0, -signal.SIGKILL]
    found = words(store)
    assert {w: n for w, n in found.items() if w[0] != "d"} == {
        r["word"]: 3 for unit in "abc" for r in rows(unit)
    }
    assert len({n for w, n in found.items() if w[0] == "d"}) == 1 and len(found) == 36
    left = {"a file that no kept version names", "a file or partition that was not finished"}
    assert {p["problem"] for p in check(store)} <= left


def test_what_the_server_says_is_one_line(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(BadInput, match="does not exist"):
        Store.open(f"{root}-x", create=False)
    monkeypatch.setattr(remote_files, "CLIENT", _ONE_RETRY)
    for url in ("s3://no-such-bucket/w", f"{root}"):
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        place._store.cache_clear()
        with pytest.raises(Interrupted, match="run the same command again") as caught:
            Store.open(url)
        assert "\n" not in str(caught.value)
        assert "made-up" not in str(caught.value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "127.0.0.1:9000")
    place._store.cache_clear()
    assert main(["sql", "FROM run", "--warehouse", str(root)]) == 2
    assert "AWS_ENDPOINT_URL=127.0.0.1:9000: is not an address" in capsys.readouterr().err


@pytest.mark.parametrize("is_remote", [True, False])
def test_a_holder_whose_lease_was_taken_can_publish_nothing(
    root: Path, tmp_path: Path, is_remote: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.open(root if is_remote else tmp_path / "w")
    lost = pytest.raises(Interrupted, match=r"lock on corpus c: was taken by process")
    with lost, lease(store.place, "corpus c", "corpus c"):
        store.publish("word_count", rows("a"), unit="a", run_id="r")
        with pytest.raises(UsageProblem, match="another command writes to it: process"):
            _taken(store, "corpus c")
        # It is suspended for so long that another process takes its lease.
        held = dict(log.HELD)
        log.HELD.clear()
        monkeypatch.setattr(locks, "LEASE", timedelta(0))
        _taken(store, "corpus c")
        log.HELD.update(held)
        store.publish("word_count", rows("a", 7), unit="a", run_id="r")
    assert set(words(store).values()) == {1}


def _taken(store: Store, name: str) -> None:
    log.commit(store.place, lambda draft: locks._take(draft, name, "other", name), "")


@pytest.mark.parametrize(
    ("ago", "is_alive"), [(0, True), (4, True), (6, False), (-3, True), (-6, False)]
)
def test_a_lease_lasts_as_long_as_it_is_renewed(ago: float, is_alive: bool) -> None:
    """Unless a wrong clock renewed it: clocks may differ by three minutes (docs/warehouse.md)."""
    renewed = datetime.now(timezone.utc) - timedelta(minutes=ago)
    holder = locks.this_process()
    assert locks._is_alive({"renewed": renewed.isoformat(), "holder": holder}) == is_alive
    ended = holder.replace(f" {os.getpid()} ", f" {2**22 + 1} ")
    assert not locks._is_alive({"renewed": renewed.isoformat(), "holder": ended})


@pytest.fixture
def proxied(
    root: Path, s3: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Path, list[str]]]:
    """A sound warehouse behind a server that answers reads of data files as its list says."""
    with recorded(Store.open(root), "fill", {}) as run_id:
        for unit in "ab":
            Store.open(root).publish("word_count", rows(unit), unit=unit, run_id=run_id)
    answers: list[str] = []

    class Between(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer, about = answers or ("pass", "")
            is_read = self.command == "GET" and about in self.path and "list-type" not in self.path
            answer = answer if is_read else "pass"
            sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            behind = http.client.HTTPConnection(s3.removeprefix("http://"))
            behind.request(self.command, self.path, sent, dict(self.headers))
            found = behind.getresponse()
            status, body = found.status, found.read()
            if answer.isdecimal():
                status, body = int(answer), b"<Error><Code>Odd</Code></Error>"
            elif answer == "slow":
                time.sleep(0.2)
            self.send_response(status)
            for name in ("ETag", "Last-Modified", "Content-Type"):
                if value := found.headers.get(name):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if answer == "half" else body)
            self.close_connection = True

        do_PUT = do_DELETE = do_POST = do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            """Nothing."""

    between = ThreadingHTTPServer(("127.0.0.1", 0), Between)
    threading.Thread(target=between.serve_forever, daemon=True).start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{between.server_port}")
    monkeypatch.setattr(remote_files, "CLIENT", _ONE_RETRY)
    place._store.cache_clear()
    shutil.rmtree(os.environ["XDG_CACHE_HOME"])
    yield root, answers
    between.shutdown()
    place._store.cache_clear()


@pytest.mark.slow
@pytest.mark.parametrize("about", [".parquet", "_log/commits", "_delta_log"])
@pytest.mark.parametrize(
    ("answer", "status"),
    [("500", 5), ("503", 5), ("429", 5), ("half", 5), ("403", 3), ("401", 3), ("slow", 0)],
)
def test_a_bucket_that_fails_refuses_or_is_slow_is_not_called_damaged(
    proxied: tuple[Path, list[str]],
    about: str,
    answer: str,
    status: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    root, answers = proxied
    answers += [answer, about]
    shutil.rmtree(os.environ["XDG_CACHE_HOME"], ignore_errors=True)
    assert main(["warehouse", "check", "--warehouse", str(root)]) == status
    out, err = capsys.readouterr()
    assert "damaged" not in out + err and "keep-days" not in out + err


def test_an_object_that_decayed_is_named_also_beside_a_sound_copy(
    root: Path, bucket: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store.open(root)
    with recorded(store, "fill", {}) as run_id:
        store.publish("word_count", rows("a"), unit="a", run_id=run_id)
    (file,) = store.snapshot().files("word_count")
    sound = store.path(file).read_bytes()
    client = boto3.client("s3")
    where = {"Bucket": bucket, "Key": f"audits/w/{file.path}"}
    client.put_object(**where, Body=sound[:99] + bytes([sound[99] ^ 1]) + sound[100:])
    row = problems(capsys, root)[f"{root}/{file.path}"]
    assert "is damaged" in row["problem"]
    assert "get it from a copy" in row["fix"]
    client.put_object(**where, Body=sound)
    # The other way round: a copy that decayed is fetched again, and is nobody's problem.
    copy = store.path(file)
    copy.write_bytes(sound[:99] + bytes([sound[99] ^ 1]) + sound[100:])
    assert len(words(store)) == 9 and copy.read_bytes() == sound
