"""Write the files for spark-submit, and set the working directory of a Prefect worker.

``python -m plumbline.pipelines.deployment DIRECTORY`` writes:

plumbline.zip   the project's code, for --py-files
submit.py       the application
cluster.conf    settings that you can edit, for --properties-file
"""

from __future__ import annotations

import os
import sys
from importlib import resources
from pathlib import Path

from plumbline.jobs.spark.archive import NAME, write_archive
from plumbline.warehouse.errors import BadInput, UsageProblem

#: Environment variable with a worker's directory; services need it, since they have no PWD.
VARIABLE = "PLUMBLINE_DIRECTORY"


def write_dist(directory: Path) -> list[Path]:
    """Write the three files for spark-submit, replacing existing ones; return their paths.

    >>> import tempfile
    >>> [path.name for path in write_dist(Path(tempfile.mkdtemp()))]
    ['plumbline.zip', 'submit.py', 'cluster.conf']
    """
    written = [write_archive(directory / NAME)]
    for source, name in (("__main__.py", "submit.py"), ("spark_conf/cluster.conf", "cluster.conf")):
        written.append(directory / name)
        written[-1].write_bytes(resources.files("plumbline").joinpath(source).read_bytes())
    return written


def worker_directory() -> dict[str, str]:
    """Change to the directory in the variable ``PLUMBLINE_DIRECTORY`` or, if not set, ``PWD``.

    `prefect.yaml` calls this function before each run. That file can't use the variable
    itself: Prefect would give all workers the deploying machine's value. Raises ``UsageProblem``
    if neither variable is set, and ``BadInput`` if the directory can't be entered.
    """
    directory = os.environ.get(VARIABLE) or os.environ.get("PWD")
    if not directory:
        raise UsageProblem("the worker's directory", "is not known", f"set {VARIABLE}")
    try:
        os.chdir(directory)
    except OSError as e:
        raise BadInput(f"directory {directory}", e.strerror or "can't be entered") from e
    return {"directory": os.getcwd()}


if __name__ == "__main__":
    for path in write_dist(Path(sys.argv[1])):
        print(path)
