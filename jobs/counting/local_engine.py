"""Counting on this machine, by this process and its helper processes, in bounded memory."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import traceback
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

from plumbline.jobs.counting.merge import Output
from plumbline.jobs.counting.partials import ShardJob, ShardLedger
from plumbline.warehouse.cores import n_cores
from plumbline.warehouse.errors import BadInput, Interrupted
from plumbline.warehouse.input.remote_files import located
from plumbline.warehouse.paths import Address
from plumbline.warehouse.storage.locks import temporary_directory
from plumbline.warehouse.text.escape import sql_text
from plumbline.warehouse.text.progress import Update, progress

#: Code of a helper; it imports from the parent's ``sys.path``, not from the working directory.
_START = (
    "import sys; sys.path[:] = sys.argv[1:]; "
    "from plumbline.jobs.counting.local_engine import serve; serve()"
)
#: Rows of a batch, which becomes a row group of the table's file.
BATCH_ROWS = 200_000
#: Bytes of shards that a process counts in about a second; a helper takes as long to start.
BYTES_PER_HELPER = 32 << 20
#: Bytes that are counted in the time it takes to open a shard and write its counts.
_LEAST_BYTES = 1 << 18


class LocalEngine:
    """Counts and sums on this machine; up to one process per core counts shards.

    Args:
        work: directory for data that does not fit in memory.
        memory_bytes: memory that this process may use for sums. DuckDB gets half, since Arrow and
            Python need memory as well.
    """

    def __init__(self, work: Path, memory_bytes: int) -> None:
        self._work = work
        self._memory_bytes = memory_bytes

    def count(self, shards: Sequence[str], job: ShardJob, update: Update) -> list[ShardLedger]:
        """Count the shards. Return ledgers in any order. Any thread may call ``update``."""
        left, done = deque(shards), list[ShardLedger]()
        update(0, len(shards))

        def count_remaining(count: Callable[[str], ShardLedger]) -> None:
            try:
                while True:
                    try:
                        shard = left.popleft()
                    except IndexError:
                        return
                    done.append(count(shard))
                    update(len(done), len(shards))
            except BaseException:
                left.clear()
                raise

        job = replace(job, read_ahead=n_processes(shards) < n_cores())
        n_helpers = _n_helpers(shards)
        with ExitStack() as stack:
            helpers = [_Helper(job) for _ in range(n_helpers)]
            for helper in helpers:
                stack.callback(helper.close)
            pool = stack.enter_context(ThreadPoolExecutor(max(n_helpers, 1)))
            for helper in helpers:
                stack.callback(helper.kill)  # before the pool waits for its threads
            parts = [pool.submit(count_remaining, helper.count) for helper in helpers]
            count_remaining(job.count)
            for part in parts:
                part.result()
        return done

    def merge(
        self, query: str, order: str, views: Mapping[str, Sequence[Path]], output: Output, what: str
    ) -> int:
        """Write the rows of a query, each part sorted. Return how many rows the query gave.

        Args:
            query: one of ``jobs.counting.merge``.
            order: columns to sort by.
            views: files of each view; a file named twice counts twice.
            what: names the progress lines.
        """
        import duckdb

        with temporary_directory(self._work, "merge-") as directory:
            limit = f"{self._memory_bytes // 2 >> 20}MiB"
            settings: dict[str, str | bool | int | float | list[str]] = {
                "memory_limit": limit,
                "temp_directory": str(directory),
                "threads": n_cores(),
                "preserve_insertion_order": False,
            }
            with duckdb.connect(config=settings) as connection, progress(what):
                for view, files in views.items():
                    names = ", ".join(sql_text(str(file)) for file in files)
                    connection.execute(f"CREATE VIEW {view} AS FROM read_parquet([{names}])")
                try:
                    rows = connection.sql(f"FROM ({query}) ORDER BY {order}")
                    return output.write_part("part-00000", rows.to_arrow_reader(BATCH_ROWS))
                except duckdb.OutOfMemoryException as e:
                    problem = f"{what}: needs more than {limit} of memory"
                    fix = "give more --memory, or count on Spark with --master; counted shards stay"
                    raise BadInput(problem, "", fix) from e


def n_processes(shards: Sequence[str]) -> int:
    """Return the number of processes that count these shards, including this one."""
    return 1 + max(_n_helpers(shards), 0)


def _n_helpers(shards: Sequence[str]) -> int:
    n_bytes = 0
    for shard in shards:
        with suppress(OSError):
            remote = isinstance(located(shard), Address)  # don't ask a server for the shard's size
            n_bytes += BYTES_PER_HELPER if remote else max(os.stat(shard).st_size, _LEAST_BYTES)
    return min(n_cores() - 1, len(shards) - 1, n_bytes // BYTES_PER_HELPER)


class _Helper:
    """A process that counts one shard at a time, and ends soon after its parent does."""

    def __init__(self, job: ShardJob) -> None:
        # In its own session, so that a terminal's Ctrl-C reaches only the parent.
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._job = job

    def count(self, shard: str) -> ShardLedger:
        """Count a shard, like ``ShardJob.count``. Raises ``Interrupted`` if the process dies."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin and stdout
        try:
            pickle.dump((self._job, shard), stdin)
            stdin.flush()
            reply = pickle.load(stdout)
        except (OSError, EOFError, pickle.UnpicklingError) as e:
            problem = f"the process that counted it ended with status {self._process.wait()}"
            fix = "out of memory? Run the same command again to resume"
            raise Interrupted(f"shard {shard}", problem, fix) from e
        if isinstance(reply, Exception):
            raise reply
        assert isinstance(reply, ShardLedger)
        return reply

    def kill(self) -> None:
        """Kill the process, even in the middle of a shard."""
        self._process.kill()

    def close(self) -> None:
        """Wait for the process to end and close its pipes; no thread may still be reading them."""
        with suppress(BrokenPipeError), self._process:
            pass


def serve() -> None:
    """Count shards as a helper, with pickled requests on stdin and pickled replies on stdout.

    It returns when the parent ends, which closes stdin.
    """
    with suppress(EOFError, pickle.UnpicklingError):
        while True:
            pickle.dump(_reply(*pickle.load(sys.stdin.buffer)), sys.stdout.buffer)
            sys.stdout.buffer.flush()


def _reply(job: ShardJob, shard: str) -> ShardLedger | Exception:
    try:
        return job.count(shard)
    except (OSError, MemoryError) as e:
        return e
    except Exception:  # the parent shows this traceback
        return RuntimeError(traceback.format_exc())
