"""Counting on this machine alone: shards by this process and its helpers, sums by DuckDB."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import Any

from plumbline.jobs.counting.merge import BATCH_ROWS, Merge
from plumbline.jobs.counting.partials import Ledger, Progress, ShardJob
from plumbline.warehouse.errors import Interrupted, PlumblineError

#: A helper finds the code where this process does, whatever lies in the working directory.
_START = (
    "import sys; sys.path[:] = sys.argv[1:]; "
    "from plumbline.jobs.counting.local import serve; serve()"
)
#: Bytes of shards that are counted in the time that a helper takes to start, a second or so.
BYTES_PER_HELPER = 32 << 20


class LocalEngine:
    """Counts and sums on this machine; up to one process per core counts, this one first.

    Attributes:
        work: directory for what DuckDB does not hold in memory.
        memory_bytes: what DuckDB may use.
    """

    def __init__(self, work: Path, memory_bytes: int) -> None:
        self._work = work
        self._memory_bytes = memory_bytes

    def count(self, shards: Sequence[str], job: ShardJob, progress: Progress) -> list[Ledger]:
        """Count the shards; the ledgers come in any order."""
        left = deque(shards)
        done: list[Ledger] = []
        errors: list[Exception] = []
        progress(0, len(shards))

        def work(count: Callable[[str], Ledger]) -> None:
            with suppress(IndexError):
                while not errors:
                    done.append(count(left.popleft()))
                    progress(len(done), len(shards))

        def work_beside(helper: _Helper) -> None:
            try:
                work(helper.count)
            except Exception as e:
                errors.append(e)

        helpers = [_Helper(job) for _ in range(_n_helpers(shards))]
        threads = [threading.Thread(target=work_beside, args=(h,)) for h in helpers]
        try:
            for thread in threads:
                thread.start()
            work(job.count)
            for thread in threads:
                thread.join()
        finally:
            for helper in helpers:
                helper.kill()
            for thread in threads:
                if thread.ident:
                    thread.join()
            for helper in helpers:
                helper.close()
        if errors:
            raise errors[0]
        return done

    def merge(self, merge: Merge) -> int:
        """Write the rows of a merge; returns how many."""
        import duckdb

        with TemporaryDirectory(prefix="merge-", dir=self._work) as directory:
            # Of what DuckDB is given it uses a bit more, and Arrow and Python have their own.
            limit = f"{self._memory_bytes // 2 >> 20}MiB"
            settings: dict[str, str | bool | int | float | list[str]]
            settings = {
                "memory_limit": limit,
                "temp_directory": directory,
                "threads": n_cores(),
                "preserve_insertion_order": False,
            }
            with duckdb.connect(config=settings) as connection:
                for name, files in merge.views.items():
                    names = ", ".join("'" + str(f).replace("'", "''") + "'" for f in files)
                    connection.execute(f"CREATE VIEW {name} AS FROM read_parquet([{names}])")
                query = f"{merge.query} ORDER BY {', '.join(merge.order)}"
                try:
                    rows = connection.sql(query).to_arrow_reader(BATCH_ROWS)
                    return merge.write_part("part-00000", rows)
                except duckdb.OutOfMemoryException as e:
                    problem = f"the sum of {merge.staged.table} needs more than {limit} of memory"
                    fix = "run the same command again with more --memory, or on Spark with --master"
                    raise Interrupted(problem, "", fix) from e


def _n_helpers(shards: Sequence[str]) -> int:
    n_bytes = 0
    for shard in shards:
        with suppress(OSError):
            n_bytes += os.stat(shard).st_size
    return min(n_cores() - 1, len(shards) - 1, n_bytes // BYTES_PER_HELPER)


def n_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Helper:
    """A process that counts one shard at a time, and ends when this one does."""

    def __init__(self, job: ShardJob) -> None:
        # In a session of its own: a terminal's Ctrl-C is for this process.
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._job = job

    def count(self, shard: str) -> Ledger:
        """The ledger of a shard; raises what counting raises, or ``Interrupted`` for a loss."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin and stdout
        try:
            pickle.dump((self._job, shard), stdin)
            stdin.flush()
            outcome = pickle.load(stdout)
        except (OSError, EOFError, pickle.UnpicklingError) as e:
            problem = f"the process that counted it ended with status {self._process.wait()}"
            fix = "for lack of memory? Run the same command again to resume"
            raise Interrupted(f"shard {shard}", problem, fix) from e
        if isinstance(outcome, BaseException):
            raise outcome
        assert isinstance(outcome, Ledger)
        return outcome

    def kill(self) -> None:
        """End the process, in the middle of a shard or not."""
        self._process.kill()

    def close(self) -> None:
        """Wait for its end and close its pipes, at which nobody may wait any more."""
        with suppress(BrokenPipeError), self._process:
            pass


def serve() -> None:
    """Count shards as a helper: (job, shard) from the input, ledger or error to the output."""
    given: SimpleQueue[tuple[ShardJob, str]] = SimpleQueue()
    threading.Thread(target=_listen, args=(given,), daemon=True).start()
    while True:
        job, shard = given.get()
        outcome: Ledger | Exception
        try:
            outcome = job.count(shard)
        except (PlumblineError, OSError) as e:
            outcome = e
        except Exception:  # a defect; it may not be one that can be pickled
            outcome = RuntimeError(traceback.format_exc())
        pickle.dump(outcome, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def _listen(given: SimpleQueue[Any]) -> None:
    """Pass on what comes, until the parent has ended: then this process does, at once."""
    with suppress(EOFError):
        while True:
            given.put(pickle.load(sys.stdin.buffer))
    os._exit(0)
