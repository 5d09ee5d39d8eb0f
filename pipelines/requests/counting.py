"""The pipeline's count: by this process, or by a spark-submit of the settings."""

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

from plumbline.jobs.options import CorpusOptions
from plumbline.pipelines.settings import Settings
from plumbline.warehouse.errors import (
    BadInput,
    Interrupted,
    MissingComponent,
    PlumblineError,
    UsageProblem,
)
from plumbline.warehouse.options import part, words
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.output import say

#: Environment variable that names Spark's settings to the session.
_CONF = "PLUMBLINE_SPARK_CONF"
#: Seconds that Spark has to cancel its tasks before it is killed.
_GRACE_S = 30.0
#: What a status of the command says that spark-submit runs and whose status it passes on.
_KINDS: dict[int, type[PlumblineError]] = {
    2: UsageProblem,
    4: MissingComponent,
    5: Interrupted,
}


def count(settings: Settings, name: str, shards: Sequence[Path]) -> str:
    """Count a corpus. Returns what failed of its shards, empty when all were read.

    Raises ``BadInput`` when no shard could be read, and what counting raises.
    """
    try:
        if settings.spark_submit:
            _submit(submit_command(settings, name, shards))
        else:
            _count_here(settings, name, shards)
    except BadInput as e:
        store = Store.open(settings.warehouse_path())
        rows = store.read("corpus", corpus=name).to_pylist()
        if not rows or not (rows[0]["n_shards"] and rows[0]["n_shards_failed"]):
            raise  # no shard, or it is no shard that failed
        return str(e)
    return ""


def _count_here(settings: Settings, name: str, shards: Sequence[Path]) -> None:
    from plumbline.jobs.counting.corpus import CountRequest, count_corpus

    if settings.spark_conf:
        os.environ[_CONF] = settings.spark_conf
    request = CountRequest(name, tuple(shards), **vars(part(CorpusOptions, settings)))
    store, master = Store.open(settings.warehouse_path()), settings.master or None
    count_corpus(store, request, master=master)
    for row in store.read("corpus", corpus=name).to_pylist():
        if n_rejected := row["n_rejected"]:
            n_all = row["n_documents"] + n_rejected
            say(f"{name}: {n_rejected:,} of {n_all:,} documents rejected (table `reject`)")


def check(settings: Settings) -> None:
    """Report what is wrong or missing before anything is begun.

    Raises ``UsageProblem`` for settings of Spark that don't exist or name no master;
    ``MissingComponent`` for a missing spark-submit.

    >>> check(Settings(spark_conf="cluster"))
    Traceback (most recent call last):
    ...
    plumbline.warehouse.errors.UsageProblem: setting master: is empty, and Spark's settings name \
none (set \
PLUMBLINE_MASTER=spark://host:7077, or `master` in a settings file)
    """
    if not (settings.spark_conf or settings.spark_submit):
        return
    from plumbline.jobs.spark.session import read_conf

    named = "spark.master" in read_conf(settings.spark_conf or "cluster")
    if not (settings.master or named or "--master" in settings.spark_options):
        fix = "set PLUMBLINE_MASTER=spark://host:7077, or `master` in a settings file"
        raise UsageProblem("setting master", "is empty, and Spark's settings name none", fix)
    if settings.spark_submit and shutil.which(settings.spark_submit) is None:
        fix = "give its path as spark_submit, or leave that empty"
        raise MissingComponent(f"spark_submit {settings.spark_submit}", "was not found", fix)
    if settings.spark_submit and settings.dist:
        _dist(settings)


def submit_command(settings: Settings, name: str, shards: Sequence[Path]) -> list[str]:
    """The line of spark-submit that counts a corpus; what it needs is written if it is not there.

    Shards are given as the patterns of the settings: a corpus of many blocks would not fit a line.
    """
    dist = _dist(settings)
    master = ["--master", settings.master] if settings.master else []
    spark = [*master, "--properties-file", str(_properties(settings.spark_conf or "cluster"))]
    spark += [*shlex.split(settings.spark_options), "--py-files", f"{dist}/plumbline.zip"]
    given = settings.corpus.split() or [str(shard) for shard in shards]
    count = ["corpus", "count", *given, "--corpus", name, *words(part(CorpusOptions, settings))]
    count += ["--warehouse", str(settings.warehouse_path())]
    return [settings.spark_submit, *spark, f"{dist}/submit.py", *count]


def _dist(settings: Settings) -> str:
    """Where archive and application are: written below ``out``, or of the setting."""
    if not settings.dist:
        from plumbline.pipelines.dist import write_dist

        return str(write_dist(Path(settings.out) / "dist")[0].parent)
    if "://" not in settings.dist:
        for name in ("plumbline.zip", "submit.py"):
            if not (Path(settings.dist) / name).is_file():
                raise UsageProblem(f"dist {settings.dist}", f"no {name} in it", "run `make dist`")
    return settings.dist.rstrip("/")


def _properties(conf: str) -> Path:
    if conf.endswith(".conf"):
        return Path(conf)
    return Path(str(resources.files("plumbline.spark_conf").joinpath(f"{conf}.conf")))


def _submit(command: Sequence[str]) -> None:
    """Run spark-submit to its end; its status becomes the error that it stands for."""
    process = subprocess.Popen(command, env=_environment(), start_new_session=True)
    try:
        status = process.wait()
    except BaseException:  # a stop; both Spark and the command below it are to hear of it
        _stop(process)
        raise
    if status:
        raise _KINDS.get(status, Interrupted if _was_killed(status) else BadInput)(
            "spark-submit", f"ended with status {status}", "its reason stands above"
        )


def _was_killed(status: int) -> bool:
    """Of a process, or of one below it that a shell or Java says so of.

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


def _environment() -> dict[str, str]:
    """What spark-submit runs in: this Python and a Java, unless others are named."""
    from plumbline.jobs.spark.java import find_java_home

    own = {"JAVA_HOME": str(find_java_home()), "PYSPARK_PYTHON": sys.executable}
    return {**own, **os.environ}
