"""Count with Spark SQL alone, on one core: simple tokens, and one join on positions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

WINDOW = 10


def with_spark(session: Any, lines: Path, targets: tuple[str, ...], dropped: list[str]) -> None:
    """Count words and target pairs in a file of JSON lines, already decompressed to favour Spark.

    Targets are few, so each is repeated at all positions in its window and joined to the tokens by
    document and position. The counts are discarded.
    """
    from pyspark.sql import functions as f

    found = f.regexp_extract_all(f.lower("text"), f.lit("([a-z]+)"), f.lit(1))
    tokens = (
        session.read.schema("text string")
        .json(str(lines))
        .withColumn("document", f.monotonically_increasing_id())
        .withColumn("kept", f.filter(found, lambda word: ~word.isin(dropped)))
        .select("document", f.posexplode("kept").alias("position", "word"))
        .cache()
    )
    tokens.groupBy("word").count().write.format("noop").mode("overwrite").save()
    reach = [f.col("position") + d for d in range(1 - WINDOW, WINDOW) if d]
    near = tokens.filter(f.col("word").isin(list(targets))).select(
        "document", f.col("word").alias("target"), f.explode(f.array(*reach)).alias("position")
    )
    pairs = tokens.join(near, ["document", "position"]).groupBy("word", "target").count()
    pairs.write.format("noop").mode("overwrite").save()
    tokens.unpersist()
