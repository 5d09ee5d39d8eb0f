"""Count a corpus on this machine, in this process and helper processes, with limited memory."""

from __future__ import annotations

import errno
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from plumbline.jobs.counting.merge import BATCH_ROWS, WORDS, Output, PairSum
from plumbline.jobs.counting.partials import ShardJob, ShardLedger
from plumbline.jobs.kernel.corpus_options import CorpusOptions
from plumbline.warehouse.cores import n_cores
from plumbline.warehouse.errors import BadInput, Interrupted
from plumbline.warehouse.input.remote_files import located
from plumbline.warehouse.paths import Address
from plumbline.warehouse.storage.store import Staged
from plumbline.warehouse.text.escape import sql_text
from plumbline.warehouse.text.progress import Update, progress

#: Code that a helper process runs. It imports from the parent's ``sys.path``, and from there only.
_START = (
    "import sys; sys.path[:] = sys.argv[1:]; "
    "from plumbline.jobs.counting.local_engine import serve; serve()"
)
#: A process counts this many bytes in about a second. Starting a helper takes about as long.
BYTES_PER_HELPER = 32 << 20
#: Opening a shard and writing its counts takes as long as counting this many bytes.
_LEAST_BYTES = 1 << 18


class LocalEngine:
    """An engine that counts on this machine, with up to one process per core.

    Args:
        work: directory for data that does not fit in memory.
        memory_bytes: memory that this process may use to merge counts. Sorting and adding up
            rows may take half of it. Arrow, Python and the words need the other half.
    """

    def __init__(self, work: Path, memory_bytes: int) -> None:
        self._work = work
        self._memory_bytes = memory_bytes

    def count(self, shards: Sequence[str], job: ShardJob, update: Update) -> list[ShardLedger]:
        """Count the shards. Return their ledgers in any order. Several threads report progress."""
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

        n_helpers = n_processes(shards) - 1
        job = replace(job, read_ahead=n_helpers + 1 < n_cores())
        with ExitStack() as stack:
            helpers = [_Helper(job) for _ in range(n_helpers)]
            for helper in helpers:
                stack.callback(helper.close)
            pool = stack.enter_context(ThreadPoolExecutor(max(n_helpers, 1)))
            for helper in helpers:
                stack.callback(helper.process.kill)  # after an error, don't wait for helpers
            parts = [pool.submit(count_remaining, helper.count) for helper in helpers]
            count_remaining(job.count)
            for part in parts:
                part.result()
        return done

    def merge_words(self, partials: Sequence[Path], output: Output) -> int:
        """Write how often each word occurs, sorted by word. Return the number of words."""
        import duckdb

        with tempfile.TemporaryDirectory(dir=self._work) as directory:
            limit = f"{self._memory_bytes // 2 >> 20}MiB"
            settings: dict[str, Any] = {"memory_limit": limit, "temp_directory": directory}
            settings |= {"threads": n_cores(), "preserve_insertion_order": False}
            with (
                duckdb.connect(config=settings) as connection,
                progress(f"merge words of {output.constants['corpus']}"),
            ):
                names = ", ".join(sql_text(str(file)) for file in partials)
                connection.execute(f"CREATE VIEW partials AS FROM read_parquet([{names}])")
                try:
                    rows = connection.sql(f"{WORDS} ORDER BY word").to_arrow_reader(BATCH_ROWS)
                    return output.write_part("part-00000", rows)
                except duckdb.OutOfMemoryException as e:
                    if "max_temp_directory_size" in str(e):  # the disk is full
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), directory) from e
                    problem = f"the words of the corpus need more than {limit} of memory"
                    fix = "give more --memory-gb, or count on Spark (--master); counted shards stay"
                    raise BadInput(problem, "", fix) from e

    def merge_pairs(
        self, partials: Sequence[Path], words: Staged, output: Output, options: CorpusOptions
    ) -> int:
        """Write how often each word and target co-occur. Return the number of pairs.

        With ``options.all_pairs``, a pair of two different words gets two rows, one with each word
        as the target. ``words`` has the corpus's new rows of ``word_count``. Pairs with a word that
        isn't in these rows are left out.
        """
        column = pa.chunked_array(
            [x for file in words.parts() for x in pq.read_table(file)["word"].chunks], pa.string()
        )
        ranks = column.cast(pa.large_string()).combine_chunks()
        with tempfile.TemporaryDirectory(dir=self._work) as directory:
            n_bytes = self._memory_bytes // 2
            pairs = PairSum(partials, ranks, options.all_pairs, Path(directory), n_bytes)
            what = f"merge pairs of {output.constants['corpus']}"
            with progress(what), closing(pairs.sums(BATCH_ROWS, what)) as rows:
                return output.write_part("part-00000", rows)


def n_processes(shards: Sequence[str]) -> int:
    """Return the number of processes that count these shards, including this one."""
    n_bytes = 0
    for shard in shards:
        with suppress(OSError):
            remote = isinstance(located(shard), Address)  # don't ask the server for the size
            n_bytes += BYTES_PER_HELPER if remote else max(os.stat(shard).st_size, _LEAST_BYTES)
    return max(1, min(n_cores(), len(shards), 1 + n_bytes // BYTES_PER_HELPER))


class _Helper:
    """A process that counts one shard at a time, and ends when its parent does."""

    def __init__(self, job: ShardJob) -> None:
        # Start a new session, so that Ctrl-C in a terminal reaches only the parent.
        self.process = subprocess.Popen(
            [sys.executable, "-c", _START, *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._job = job

    def count(self, shard: str) -> ShardLedger:
        """Count a shard, like ``ShardJob.count``. Raises ``Interrupted`` if the process dies."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin and stdout
        try:
            pickle.dump((self._job, shard), stdin)
            stdin.flush()
            reply = pickle.load(stdout)
        except (OSError, EOFError, pickle.UnpicklingError) as e:
            problem = f"the process that counted it ended with status {self.process.wait()}"
            fix = "out of memory? Run the same command again to resume"
            raise Interrupted(f"shard {shard}", problem, fix) from e
        if isinstance(reply, Exception):
            raise reply
        assert isinstance(reply, ShardLedger)
        return reply

    def close(self) -> None:
        """Close the pipes and wait for the process to end. No other thread may use the pipes."""
        with suppress(BrokenPipeError), self.process:
            pass


def serve() -> None:
    """Count shards as a helper. Read pickled requests from stdin, write replies to stdout."""
    requests: SimpleQueue[tuple[ShardJob, str]] = SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    while True:
        pickle.dump(_reply(*requests.get()), sys.stdout.buffer)
        sys.stdout.buffer.flush()


def _reply(job: ShardJob, shard: str) -> ShardLedger | Exception:
    try:
        return job.count(shard)
    except (OSError, MemoryError) as e:
        return e
    except Exception:  # the parent shows this traceback
        return RuntimeError(traceback.format_exc())


def _listen(requests: SimpleQueue[tuple[ShardJob, str]]) -> None:
    """Queue requests. If stdin closes, the parent has ended, so end this process at once."""
    with suppress(EOFError, pickle.UnpicklingError):
        while True:
            requests.put(pickle.load(sys.stdin.buffer))
    os._exit(0)
