"""A model's results as front matter of its card: `model-index`, with all metrics of a benchmark."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from plumbline.pipelines.report.metric_tables import by_metric
from plumbline.pipelines.report.model import estimate
from plumbline.pipelines.report.paper.data_sets import DataSet
from plumbline.pipelines.report.rows import Row, Rows

_TASK = "text-generation"


def model_index(model: str, rows: Rows, sets: Mapping[str, DataSet]) -> Iterator[str]:
    """Lines of YAML with results of one model over all pairs; none without results.

    The type of a data set is its repository on the hub or, if it wasn't pushed, the benchmark's
    name. A metric's value is in the unit of the tables; its interval is in the metric's name, which
    the model's page shows.
    """
    lines = by_metric(rows, "benchmark", "groups")
    if not lines:
        return
    yield from ("---", "model-index:", f"- name: {_quoted(model)}", "  results:")
    for line in lines:
        benchmark = line["benchmark"]
        data_set = sets[benchmark].repository if benchmark in sets else benchmark
        yield f"  - task: {{type: {_TASK}}}"
        yield f"    dataset: {{name: {_quoted(benchmark)}, type: {_quoted(data_set)}}}"
        yield "    metrics:"
        for heading, row in line["metrics"].items():
            yield from _metric(heading, row, line["n"])
    yield from ("---", "")


def _metric(heading: str, row: Row, n_pairs: int) -> Iterator[str]:
    shown = estimate(row)
    if row["value"] is None or shown.value is None:
        return
    interval = shown.text.partition("(")[2].rstrip(")") or "none"
    name = f"{heading}, {row['groups']}, {n_pairs} pairs, 95% interval {interval}"
    labels = f"type: {_quoted(row['metric'])}, name: {_quoted(name)}"
    yield f"    - {{{labels}, value: {round(shown.value, 4)}}}"


def _quoted(text: str) -> str:
    """A string as JSON has it, which YAML reads."""
    return json.dumps(text)
