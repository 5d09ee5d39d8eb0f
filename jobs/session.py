"""The Spark session, made from the files of ``spark_conf`` alone."""

from __future__ import annotations

import os
import sys
from importlib import resources
from pathlib import Path

from pyspark.sql import SparkSession

from jobs.java import find_java_home
from warehouse.errors import UsageProblem


def read_conf(name: str) -> dict[str, str]:
    """Settings of ``spark_conf/<name>.conf``.

    Raises:
        UsageProblem: there is no such file.

    >>> read_conf("local")["spark.ui.enabled"]
    'false'
    """
    file = resources.files("spark_conf").joinpath(f"{name}.conf")
    if not file.is_file():
        raise UsageProblem(f"Spark configuration {name!r}", "there is none, only local and cluster")
    lines = (line.strip() for line in file.read_text(encoding="utf-8").splitlines())
    pairs = (line.split(None, 1) for line in lines if line and not line.startswith("#"))
    return dict((key, value) for key, value in pairs)


def spark_session(master: str | None = None, conf: dict[str, str] | None = None) -> SparkSession:
    """The session of this process, started on first use.

    Args:
        master: overrides the file's master, such as ``local[1]``.
        conf: overrides single settings.

    The file is ``local`` unless the environment variable PLUMBLINE_SPARK_CONF names another. Under
    spark-submit the master is the submitter's. Raises ``MissingComponent`` without Java.
    """
    name = os.environ.get("PLUMBLINE_SPARK_CONF", "local")
    settings = {**read_conf(name), **(conf or {})}
    if master:
        settings["spark.master"] = master
    _prepare_environment(local=settings.get("spark.master", "").startswith("local"))
    logging = Path(str(resources.files("spark_conf").joinpath("log4j2.properties"))).resolve()
    settings.setdefault(
        "spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={logging.as_uri()}"
    )
    builder = SparkSession.builder.appName("plumbline")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _prepare_environment(local: bool) -> None:
    os.environ["JAVA_HOME"] = str(find_java_home())
    if not local:
        return
    # Workers run this very Python and find this very code, installed or not.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    root = str(Path(__file__).resolve().parents[1])
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if root not in known:
        os.environ["PYTHONPATH"] = os.pathsep.join([root, *filter(None, known)])


def stop_session() -> None:
    """End this process's session, if there is one, and its Java process with it."""
    session = SparkSession.getActiveSession()
    if session is not None:
        session.stop()
