"""Start the Spark session with the settings in ``spark_conf``, which spark-submit can override."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import TypeVar

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

import plumbline
from plumbline.jobs.spark.archive import write_archive
from plumbline.jobs.spark.java import INSTALL, find_java_home
from plumbline.warehouse.errors import Interrupted, MissingComponent, UsageProblem


def running_tasks(session: SparkSession) -> tuple[int, int, int]:
    """Return the numbers of finished, total and running tasks of the running stages.

    It isn't known how many stages will follow, since Spark plans each stage according to the size
    of the previous stage's output.
    """
    tracker = session.sparkContext.statusTracker()
    stages = list(filter(None, map(tracker.getStageInfo, tracker.getActiveStageIds())))
    n_done = sum(s.numCompletedTasks for s in stages)
    return n_done, sum(s.numTasks for s in stages), sum(s.numActiveTasks for s in stages)


T = TypeVar("T")


def watched(
    work: Callable[[], T],
    *,
    report: Callable[[], None] | None = None,
    cancel: Callable[[], None] | None = None,
) -> T:
    """Run ``work`` in a thread. Return its result or raise its error.

    Args:
        report: called about five times a second while ``work`` runs.
        cancel: called repeatedly after Ctrl-C until ``work`` has ended. If ``cancel`` is ``None``,
            ``work`` runs to its end.

    Raises:
        Interrupted: Ctrl-C was pressed.
    """
    with ThreadPoolExecutor(1) as pool, _interrupts() as pressed:
        outcome = pool.submit(work)
        while not outcome.done():
            wait([outcome], 0.2)
            step = cancel if pressed.is_set() else report
            if step:
                step()
        if pressed.is_set():
            raise Interrupted("interrupted; run the same command again to resume")
    return outcome.result()


@contextmanager
def _interrupts() -> Iterator[threading.Event]:
    """Yield an event that Ctrl-C sets, instead of raising ``KeyboardInterrupt``.

    A ``KeyboardInterrupt`` inside a call to Java would print a traceback.
    """
    pressed = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield pressed  # only the main thread gets signals
        return
    before = signal.signal(signal.SIGINT, lambda *_: pressed.set())
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


#: Environment variable that names the settings: ``local``, ``cluster`` or a file.
_VARIABLE = "PLUMBLINE_SPARK_CONF"
#: File name of this code on executors. spark-submit may already have sent a ``plumbline.zip``.
CODE_ARCHIVE = "plumbline-code.zip"
#: Matches the reason that Spark gives if a process ended, ran out of memory, or lost its rows.
_LOST = re.compile(
    r"ExecutorLostFailure|OutOfMemoryError|Python worker exited unexpectedly"
    r"|FetchFailedException|SparkContext was shut down|Broken pipe|Connection reset"
)
#: Matches masters that Spark accepts. With any other master, Java ends without a useful error.
_MASTER = re.compile(r"yarn|local.*|(spark|k8s)://.+")
#: Matches Java's error if no master answers: the connection fails, or Spark stops its context.
_AWAY = re.compile(
    r"java\.net\.\w*(Connect|Timeout|UnknownHost|NoRouteToHost)\w*Exception"
    r"|methods on a stopped SparkContext"
)


def read_conf(name: str) -> dict[str, str]:
    """Read ``spark_conf/<name>.conf``, or the file ``name`` if that ends with ``.conf``.

    Raises ``UsageProblem`` if there is no such file.
    """
    shipped = resources.files("plumbline.spark_conf").joinpath(f"{name}.conf")
    file = Path(name) if name.endswith(".conf") else shipped
    if not file.is_file():
        problem = "does not exist; use local, cluster or a file whose name ends with .conf"
        raise UsageProblem(f"Spark configuration {name!r}", problem)
    lines = (line.strip() for line in file.read_text(encoding="utf-8").splitlines())
    pairs = (line.split(None, 1) for line in lines if line and not line.startswith("#"))
    return dict((key, value) for key, value in pairs)


def is_local(master: str) -> bool:
    """Return whether Spark with this master runs in one JVM on this machine.

    >>> [is_local(m) for m in ("local", "local[*]", "local-cluster[2,1,2048]", "yarn")]
    [True, True, False, False]
    """
    return re.fullmatch(r"local(\[.*\])?", master) is not None


def spark_session(master: str | None = None) -> SparkSession:
    """Return this process's session. Start it on first use. A running session isn't changed.

    ``master`` overrides the settings file's master. The environment variable PLUMBLINE_SPARK_CONF
    names the settings file. The default is ``local`` or ``cluster``, depending on the master.
    Settings of spark-submit, from its command line or the site's defaults, override those in the
    file. Executors get this process's code and run it.

    Raises:
        UsageProblem: there is no master, Spark already runs on another master, or Spark can't
            start with these settings.
        MissingComponent: outside spark-submit, no Java is found or Java doesn't start.
        Interrupted: the master can't be reached, or Ctrl-C was pressed.
    """
    if SparkContext._active_spark_context is None:
        # Without ``watched``, Ctrl-C while Spark starts would leave a JVM running.
        watched(lambda: _start(master))
    session = SparkSession.builder.getOrCreate()
    _check_master(master, str(session.sparkContext.master))
    return session


def settings_for(master: str | None, submitted: Mapping[str, str]) -> dict[str, str]:
    """Merge settings: ``submitted`` (from spark-submit) and ``master`` override the settings file.

    Raises:
        UsageProblem: there is no master, Spark does not accept the master, or spark-submit was
            started with another master.
    """
    _check_master(master, submitted.get("spark.master"))
    overrides = {**submitted, **({"spark.master": master} if master else {})}
    default = "local" if is_local(overrides.get("spark.master", "local")) else "cluster"
    name = os.environ.get(_VARIABLE, default)
    settings = {**read_conf(name), **overrides}
    if "spark.master" not in settings:
        fix = "give --master, or name a file with spark.master in it"
        raise UsageProblem(f"{_VARIABLE} {name}", "names no master", fix)
    if not _MASTER.fullmatch(settings["spark.master"]):
        what, fix = f"Spark on {settings['spark.master']}", "give local[N], spark://HOST:PORT, yarn"
        raise UsageProblem(what, "there is no such master", f"{fix} or k8s://ADDRESS")
    return settings


def _start(master: str | None) -> None:
    submitted = _submitted()
    settings = settings_for(master, submitted)
    local = is_local(settings["spark.master"])
    _prepare_environment(local)
    if not submitted:
        os.environ["JAVA_HOME"] = str(find_java_home())
    if local:
        log = resources.files("plumbline.spark_conf").joinpath("log4j2.properties")
        options = f"-Dlog4j2.configurationFile={log}"
        settings.setdefault("spark.driver.extraJavaOptions", options)
    try:
        session = SparkSession.builder.appName("plumbline").config(map={**settings}).getOrCreate()
    except PySparkRuntimeError as e:
        if e.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise MissingComponent(f"Java in {os.environ['JAVA_HOME']}", "ended", INSTALL) from e
    except Py4JJavaError as e:
        reason = str(e.java_exception.getMessage() or e.java_exception).splitlines()[0]
        what = f"Spark on {settings['spark.master']}"
        if _AWAY.search(str(e)):
            fix = "is it running at this address? Then run the same command again"
            raise Interrupted(what, f"can't be reached: {reason}", fix) from e
        raise UsageProblem(what, reason) from e
    if not local:
        atexit.register(stop_session)  # otherwise the cluster would record a failure
    if submitted or not local:
        _ship(session.sparkContext)


def _submitted() -> dict[str, str]:
    """Return the settings of the spark-submit that started this process. Without it, return {}."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return {}
    SparkContext._ensure_initialized()  # connects to the JVM of spark-submit
    return dict(SparkConf().getAll())


def _check_master(master: str | None, running: str | None) -> None:
    if master and running and master != running:
        raise UsageProblem(f"master {master}", f"Spark already runs on {running}", "leave it out")


def _prepare_environment(local: bool) -> None:
    # By default, workers run the Python at the same path as this process.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if not local:
        return
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Let workers import this code even if it isn't installed.
    root = str(Path(plumbline.__file__).resolve().parents[1])
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if root not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([root, *filter(None, paths)])


def _ship(context: SparkContext) -> None:
    """Send this project's code to the executors, now and whenever one is added.

    The code is sent even if spark-submit was given the archive. Some masters don't pass the
    archive on, and no master does if the archive's path starts with ``local:``.
    """
    # `addPyFile` also changes this process's path, so restore the path afterwards.
    path = list(sys.path)
    directory = tempfile.mkdtemp(prefix="plumbline-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    context.addPyFile(str(write_archive(Path(directory, CODE_ARCHIVE))))
    sys.path[:] = path


def stop_session() -> None:
    """End this process's session, if there is one."""
    if SparkContext._active_spark_context is not None:
        with suppress(OSError, Py4JError):  # Java may have ended first
            SparkSession.builder.getOrCreate().stop()


@contextmanager
def one_line_losses() -> Iterator[None]:
    """Raise ``Interrupted``, with a one-line reason, if Spark loses a process in a ``with`` block.

    Other errors are not changed.
    """
    try:
        yield
    except (Py4JError, ConnectionError, EOFError) as e:
        if type(e) is Py4JError and "Trace:" in str(e):  # Java is still running
            raise
        reason = "its Java process has ended"
        if isinstance(e, Py4JJavaError):
            thrown = e.java_exception
            message = f"{thrown.getClass().getName()}: {thrown.getMessage()}"
            # The first line says why the last task failed. The other lines are tracebacks.
            reason = message.split("most recent failure: ")[-1].splitlines()[0]
            if not _LOST.search(reason):
                raise
        fix = "out of memory? Run the same command again to resume"
        raise Interrupted("Spark lost a process", reason, fix) from e


def stop_jobs(session: SparkSession) -> None:
    """Cancel every job. Suppress the tracebacks that Spark prints for cancelled tasks.

    Do nothing if Spark itself has ended, for example because Ctrl-C also ended spark-submit.
    """
    with suppress(OSError, Py4JError):
        session.sparkContext.setLogLevel("OFF")
        session.sparkContext.cancelAllJobs()
