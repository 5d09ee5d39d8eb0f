"""The engine that counts and merges shards: Spark or this machine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeAlias

from plumbline.jobs.counting.local_engine import LocalEngine
from plumbline.warehouse.storage.store import Store

if TYPE_CHECKING:
    from plumbline.jobs.spark.engine import SparkEngine

#: Both engines give the same rows. Their methods are described in ``LocalEngine``.
Engine: TypeAlias = "LocalEngine | SparkEngine"


def engine_of(store: Store, memory_bytes: int, master: str | None = None) -> Engine:
    """The engine of Spark if :func:`on_spark`, else the engine of this machine.

    ``memory_bytes`` is the memory limit of each process on this machine.
    """
    if not on_spark(master):
        return LocalEngine(store.work_directory("merge"), memory_bytes)
    from plumbline.jobs.spark.engine import SparkEngine

    return SparkEngine(master)


def on_spark(master: str | None) -> bool:
    """True if there is a master, Spark's settings are given, or spark-submit runs this process."""
    variables = ("PLUMBLINE_SPARK_CONF", "PYSPARK_GATEWAY_PORT")
    return bool(master or any(map(os.environ.get, variables)))
