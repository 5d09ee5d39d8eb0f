"""Files for spark-submit on a cluster: ``python -m plumbline.pipelines.cluster_files DIRECTORY``.

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
    """Write or replace the three files; returns their paths.

    >>> import tempfile
    >>> [path.name for path in write_dist(Path(tempfile.mkdtemp()))]
    ['plumbline.zip', 'submit.py', 'cluster.conf']
    """
    written = [write_archive(directory / NAME)]
    for package, name in (("pipelines", "submit.py"), ("spark_conf", "cluster.conf")):
        content = resources.files(f"plumbline.{package}").joinpath(name).read_bytes()
        written.append(directory / name)
        written[-1].write_bytes(content)
    return written


if __name__ == "__main__":
    for path in write_dist(Path(sys.argv[1])):
        print(path)
