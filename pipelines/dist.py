"""What spark-submit takes to run on a cluster: ``python -m plumbline.pipelines.dist DIRECTORY``.

plumbline.zip   the project, for --py-files
submit.py       the application
cluster.conf    settings to adapt, for --properties-file
"""

from __future__ import annotations

import sys
from importlib import resources
from pathlib import Path

from plumbline.jobs.spark.archive import NAME, write_archive


def write_dist(directory: Path) -> list[Path]:
    """Write the three files, replacing older ones; returns their paths.

    >>> import tempfile
    >>> [path.name for path in write_dist(Path(tempfile.mkdtemp()))]
    ['plumbline.zip', 'submit.py', 'cluster.conf']
    """
    archive = write_archive(directory / NAME)
    application, settings = directory / "submit.py", directory / "cluster.conf"
    application.write_bytes(
        resources.files("plumbline.pipelines").joinpath("submit.py").read_bytes()
    )
    settings.write_bytes(
        resources.files("plumbline.spark_conf").joinpath("cluster.conf").read_bytes()
    )
    return [archive, application, settings]


if __name__ == "__main__":
    for path in write_dist(Path(sys.argv[1])):
        print(path)
