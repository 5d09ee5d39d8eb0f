"""Counting a pipeline's corpus by spark-submit."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import resources
from pathlib import Path

from plumbline.jobs.kernel.corpus_options import CorpusOptions
from plumbline.pipelines.command.base import line_of
from plumbline.pipelines.command.value_sources import made
from plumbline.pipelines.commands.corpus.counting_corpora import Count
from plumbline.pipelines.pipeline_options import PipelineOptions
from plumbline.warehouse.errors import (
    BadInput,
    Interrupted,
    MissingComponent,
    PlumblineError,
    UsageProblem,
)
from plumbline.warehouse.options import part

#: Environment variable from which the Spark session takes the name of its settings.
CONF = "PLUMBLINE_SPARK_CONF"
#: Seconds that Spark has to cancel its tasks before it is killed.
_GRACE_S = 30.0
#: Exit status of the command, which spark-submit passes on -> error.
_KINDS: dict[int, type[PlumblineError]] = {
    2: UsageProblem,
    4: MissingComponent,
    5: Interrupted,
}


def check(options: PipelineOptions) -> None:
    """Check the settings of Spark and spark-submit before anything starts.

    Raises ``UsageProblem`` if no master is set or a file of settings or of ``dist`` is missing,
    ``MissingComponent`` if spark-submit is.

    >>> from plumbline.pipelines.commands.pipeline import Pipeline
    >>> check(Pipeline(spark_conf="cluster"))
    Traceback (most recent call last):
    ...
    plumbline.warehouse.errors.UsageProblem: setting master: is empty, and Spark's settings name \
none (set \
PLUMBLINE_MASTER=spark://host:7077, or `master` in a settings file)
    """
    if not (options.spark_conf or options.spark_submit):
        return
    from plumbline.jobs.spark.spark_session import read_conf

    named = "spark.master" in read_conf(options.spark_conf or "cluster")
    if not (options.master or named or "--master" in options.spark_options):
        fix = "set PLUMBLINE_MASTER=spark://host:7077, or `master` in a settings file"
        raise UsageProblem("setting master", "is empty, and Spark's settings name none", fix)
    if options.spark_submit and shutil.which(options.spark_submit) is None:
        fix = "give its path as spark_submit, or leave that empty"
        raise MissingComponent(f"spark_submit {options.spark_submit}", "was not found", fix)
    if options.spark_submit and options.dist:
        _dist(options)


def submit_command(options: PipelineOptions, name: str, shards: Sequence[str]) -> list[str]:
    """The spark-submit command that counts a corpus. Without ``dist``, writes its archive first.

    The command has the settings' patterns or, without patterns, ``shards``: the paths of a large
    corpus can be too long for a command line.
    """
    dist = _dist(options)
    master = ["--master", options.master] if options.master else []
    conf = options.spark_conf or "cluster"
    if not conf.endswith(".conf"):
        conf = str(resources.files("plumbline.spark_conf").joinpath(f"{conf}.conf"))
    spark = [*master, "--properties-file", conf]
    spark += [*shlex.split(options.spark_options), "--py-files", f"{dist}/plumbline.zip"]
    patterns = list(options.corpus) or list(shards)
    counting = {**vars(part(CorpusOptions, options)), "warehouse": options.warehouse}
    line = shlex.split(line_of(made(Count, {"shards": patterns, "corpus": name, **counting})))
    return [options.spark_submit, *spark, f"{dist}/submit.py", *line[1:]]


def _dist(options: PipelineOptions) -> str:
    """Directory of archive and application: ``dist`` or, written now, ``out``/dist."""
    if not options.dist:
        from plumbline.pipelines.cluster_files import write_dist

        return str(write_dist(options.out / "dist")[0].parent)
    if "://" not in options.dist:
        for name in ("plumbline.zip", "submit.py"):
            if not (Path(options.dist) / name).is_file():
                raise UsageProblem(f"dist {options.dist}", f"no {name} in it", "run `make dist`")
    return options.dist.rstrip("/")


def submit(command: Sequence[str]) -> None:
    """Run spark-submit and wait for its end; if it fails, raise the error of its exit status."""
    from plumbline.jobs.spark.java import find_java_home

    # This Python and a Java that is found, unless the environment names others.
    defaults = {"JAVA_HOME": str(find_java_home()), "PYSPARK_PYTHON": sys.executable}
    process = subprocess.Popen(command, env=defaults | os.environ, start_new_session=True)
    try:
        status = process.wait()
    except BaseException:  # on a stop, Spark and the command that it runs must end too
        _stop(process)
        raise
    if status:
        raise _KINDS.get(status, Interrupted if _was_killed(status) else BadInput)(
            "spark-submit", f"ended with status {status}", "its reason stands above"
        )


def _was_killed(status: int) -> bool:
    """True if a signal killed the process or a child whose status it returns.

    >>> _was_killed(-9), _was_killed(143), _was_killed(1)
    (True, True, False)
    """
    return status < 0 or status > 128


def _stop(process: subprocess.Popen[bytes]) -> None:
    for sign in (signal.SIGINT, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S)
            return
