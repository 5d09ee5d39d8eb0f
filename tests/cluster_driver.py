"""A driver for tests/test_cluster.py: reports where code comes from, then runs a command.

Usage: cluster_driver.py REPORT ARGUMENTS... The command's Spark session is the one reported on.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def whereabouts(_: Iterator[int]) -> Iterator[dict[str, Any]]:
    """What a Python worker imports and who it is."""
    import plumbline.jobs.counting.partials
    import plumbline.warehouse

    yield {
        "jobs": plumbline.jobs.counting.partials.__file__,
        "warehouse": plumbline.warehouse.__file__,
        "directory": str(Path.cwd()),
        "daemon": os.getppid(),
    }


def main(report: Path, arguments: list[str]) -> int:
    """Write what this process and two tasks at a time say, then run the command."""
    import plumbline.jobs
    from plumbline.jobs.spark.spark_session import spark_session
    from plumbline.pipelines.command.main import main as run

    context = spark_session().sparkContext
    tasks = context.parallelize(range(8), 8).mapPartitions(whereabouts).collect()
    found = {"driver": plumbline.jobs.__file__, "tasks": tasks}
    report.write_text(json.dumps(found), encoding="utf-8")
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
