"""Counting ended in the middle: the same command again resumes and ends with the same tables."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from plumbline.pipelines.command.main import main
from plumbline.warehouse.input.shards import write_jsonl_zst
from plumbline.warehouse.storage.store import Store
from tests.conftest import in_session

pytestmark = pytest.mark.slow

_TABLES = ("word_count", "pair_count", "corpus_shard", "corpus", "reject")
#: Columns that say when and by whom, not what.
_CIRCUMSTANCES = ("seconds", "run_id")


def arguments(shards: Path, warehouse: Path) -> list[str]:
    count = ["corpus", "count", str(shards / "*.jsonl.zst"), "--corpus", "c"]
    return [*count, "--warehouse", str(warehouse)]


def command(shards: Path, warehouse: Path) -> list[str]:
    """A process of its own, to be stopped; what runs after it may be this one."""
    code = (
        "import sys; from plumbline.jobs.counting import local_engine; "
        "local_engine.BYTES_PER_HELPER = 1; "
        "from plumbline.pipelines.command.main import main; sys.exit(main(sys.argv[1:]))"
    )
    return [sys.executable, "-c", code, *arguments(shards, warehouse)]


def contents(warehouse: Path, *apart: str) -> dict[str, list[dict[str, object]]]:
    """What was counted, without columns that may differ."""
    store, found = Store.open(warehouse), {}
    for name in _TABLES:
        table = store.read(name)
        table = table.select([c for c in table.column_names if c not in (*_CIRCUMSTANCES, *apart)])
        found[name] = table.sort_by([(c, "ascending") for c in table.column_names]).to_pylist()
    return found


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """Thirty shards of 1,500 documents, so that counting them takes a while."""
    rng = np.random.default_rng(5)
    vocabulary = np.array([f"word{k}" for k in range(3000)] + ["she", "he", "her", "him"] * 40)
    directory = tmp_path / "shards"
    directory.mkdir()
    for number in range(30):
        texts = (" ".join(words) for words in rng.choice(vocabulary, (1500, 60)).tolist())
        write_jsonl_zst(directory / f"{number:02}.jsonl.zst", texts)
    return directory


def test_a_killed_count_goes_on(tmp_path: Path, shards: Path) -> None:
    killed, undisturbed = tmp_path / "killed", tmp_path / "undisturbed"
    process = subprocess.Popen(
        command(shards, killed),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + 120
    while not (done := list(killed.glob("_work/count/*/*/ledger.json"))):
        assert process.poll() is None and time.monotonic() < deadline, "nothing to kill"
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    while any(in_session(process.pid).values()):
        assert time.monotonic() < deadline, "a helper outlives the command"
        time.sleep(0.05)
    assert 0 < len(done) < 30
    assert Store.open(killed).read("corpus").num_rows == 0
    kept = {path: path.stat().st_mtime_ns for path in done}
    for warehouse in (killed, undisturbed):
        assert main(arguments(shards, warehouse)) == 0
    assert {path: path.stat().st_mtime_ns for path in done} == kept, "finished shards counted again"
    assert contents(killed) == contents(undisturbed)
    assert len(contents(killed)["corpus_shard"]) == 30
