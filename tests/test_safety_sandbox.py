"""A warehouse that somebody made to harm ends one process, which says so in one line."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plumbline.pipelines.command.main import main
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.log import Unit, commit
from plumbline.warehouse.storage.store import Store, cast
from tests.conftest import REPOSITORY

_COMMAND = "from plumbline.pipelines.command.main import entry; entry()"


def sandboxed(*arguments: str, code: str = _COMMAND, **limits: int) -> tuple[int, str, str]:
    """Status and output of a command in the sandbox, under lower limits so that it ends soon."""

    def lower() -> None:
        for name, most in limits.items():
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))

    done = subprocess.run(
        [sys.executable, "-c", code, "--sandbox", *arguments],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "AWS_ACCESS_KEY_ID": "a"},
        preexec_fn=lower,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
def test_a_query_reads_any_file_but_writes_and_fetches_none(tmp_path: Path) -> None:
    """As docs/safety.md says, in the sandbox too."""
    Store.open(tmp_path / "w")
    other = tmp_path / "elsewhere.csv"
    other.write_text("word\ntea\n")
    for start in ([], ["--sandbox"]):
        for query, status in (
            (f"FROM read_csv('{other}')", 0),
            (f"SELECT content FROM read_text('{other}')", 0),
            (f"COPY (SELECT 1) TO '{tmp_path / 'out.csv'}'", 2),
            (f"ATTACH '{tmp_path / 'out.db'}'", 2),
            ("FROM read_csv('https://127.0.0.1/a.csv')", 2),
            ("SELECT getenv('HOME')", 2),
        ):
            where = ["sql", query, "--warehouse", str(tmp_path / "w")]
            command = [sys.executable, "-c", _COMMAND, *start, *where]
            done = subprocess.run(
                command,
                env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == status, (start, query, done.stderr)
            assert status or "tea" in done.stdout
    assert not list(tmp_path.glob("out*"))


def bomb(store: Store, name: str, column: str) -> Path:
    """A text of 10 MB in a dictionary, named by each of 1,000 rows: 10 GB in a small file."""
    values = {
        "text": "c",
        "int": 1,
        "float": 0.5,
        "time": datetime(2026, 5, 1, tzinfo=timezone.utc),
    }
    columns = {
        one.name: pa.array([values[one.kind]] * 1000, field.type)
        for one, field in zip(TABLES[name].columns, TABLES[name].arrow, strict=True)
    }
    index = pa.array([0] * 1000, pa.int32())
    columns[column] = pa.DictionaryArray.from_arrays(index, pa.array(["a" * 10_000_000]))
    staged = store.stage(name, {one: "c" for one in TABLES[name].partitions}, "r")
    part = Path(staged.directory) / "part.parquet"
    pq.write_table(pa.table(columns), part, compression="zstd", store_schema=False)
    assert part.stat().st_size < 20_000
    store.commit(staged)
    (file,) = store.snapshot().files(name)
    return store.root / file.path


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(("sql", "FROM word_count"), marks=pytest.mark.slow),
        pytest.param(("sql", "SELECT string_agg(word) FROM word_count"), marks=pytest.mark.slow),
        pytest.param(("report", "--out", "page"), marks=pytest.mark.slow),
        ("warehouse", "check"),
    ],
    ids=["rows", "in DuckDB", "report", "check"],
)
def test_a_file_that_unpacks_to_gigabytes_is_one_line(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = bomb(store, *(("run", "config") if "report" in command else ("word_count", "word")))
    status, out, err = sandboxed(*command, "--warehouse", str(store.root), AS=2 << 30)
    assert status == 3
    if "check" in command:
        assert str(path) in out and "not checked" in out and "forget" not in out
    else:
        (line,) = err.strip().splitlines()
        assert "memory" in line.lower()


@pytest.mark.parametrize("damaged", ["first", "second"])
def test_a_file_that_is_no_parquet_is_named(
    store: Store, capsys: pytest.CaptureFixture[str], damaged: str
) -> None:
    """Its hash is what its author published."""
    part = store.root / "part.parquet"
    part.write_bytes(b"PAR1 tea PAR1")
    bad = store.adopt("word_count", {"corpus": "c"}, part, (Unit("bad", 1, "r"),))
    rows = cast(TABLES["word_count"], [{"corpus": "c", "word": "tea", "n_word": 1}])
    good = store.write("word_count", {"corpus": "c"}, rows, (Unit("good", 1, "r"),))
    files = [bad, good] if damaged == "first" else [good, bad]
    commit(store.place, lambda draft: draft.swap("word_count", [], files), "r")
    assert main(["sql", "FROM word_count", "--warehouse", str(store.root)]) in (2, 3)
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert str(store.root / bad.path) in line


@pytest.mark.slow
def test_a_sandbox_that_is_killed_is_one_line(store: Store) -> None:
    endless = "SELECT sum(a.range * b.range) FROM range(1000000) a, range(1000000) b"
    status, _, err = sandboxed("sql", endless, "--warehouse", str(store.root), CPU=3)
    assert status == 3 and len(err.strip().splitlines()) == 1
    assert "minutes of a processor" in err and "warehouse check" in err


def test_the_sandbox_has_limits_and_no_network(store: Store) -> None:
    look = """
import os, resource, socket, subprocess, sys
from plumbline.warehouse.sandbox import status_of_child
if (status := status_of_child()) is not None:
    sys.exit(status)
print([resource.getrlimit(kind) for kind in (resource.RLIMIT_AS, resource.RLIMIT_FSIZE)])
print(0 < resource.getrlimit(resource.RLIMIT_CPU)[0] < 700, len(os.sched_getaffinity(0)) <= 4)
for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX):
    try:
        socket.socket(family)
    except PermissionError as e:
        print(e.errno)
socket.socketpair()
open("/dev/null").close()
sys.exit(subprocess.call([sys.executable, "-c", "import socket; socket.socket()"]))
"""
    status, out, err = sandboxed(code=look)
    most = 8 << 30
    assert out.splitlines() == [f"[({most}, {most}), ({most}, {most})]", "True True", *["13"] * 3]
    assert status == 1 and "Permission denied" in err
    status, _, err = sandboxed("sql", "FROM run", "--warehouse", "s3://bucket/w")
    assert status == 2 and "the sandbox has no network" in err


@pytest.mark.slow
def test_the_sandbox_answers_as_without_it(store: Store) -> None:
    store.publish("word_count", [{"corpus": "c", "word": "tea", "n_word": 2}], unit="u", run_id="r")
    where = ("--warehouse", str(store.root))
    status, out, _ = sandboxed("sql", "SELECT n_word FROM word_count", "--format", "csv", *where)
    assert (status, out.split()) == (0, ["n_word", "2"])
    assert sandboxed("sql", "SELECT nothing", *where)[0] == 2
    assert sandboxed("warehouse", "check", *where)[0] == 3


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSEGV])
def test_a_sandbox_that_is_killed_can_be_tried_again_and_one_that_crashes_can_not(
    how: signal.Signals, tmp_path: Path
) -> None:
    code = (
        "import os; from plumbline.pipelines.command import app, main; "
        f"app.app = lambda *_, **__: os.kill(os.getpid(), {int(how)}); main.entry()"
    )
    status, _, error = sandboxed("sql", "SELECT 1", code=code)
    (line,) = error.splitlines()
    assert line.startswith("error: sandbox: ")
    assert status == (5 if how is signal.SIGKILL else 3)
    assert ("run the same command again" in line) == (how is signal.SIGKILL)
