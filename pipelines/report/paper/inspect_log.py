"""Logs of Inspect: a model's results on a benchmark with intervals, and its pairs as samples."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime, timezone
from typing import Any

import plumbline
from plumbline.eval_workers.pairs.harness.every_eval_ever_records import SCORES
from plumbline.eval_workers.pairs.harness.inspect_logs import OURS, checksum
from plumbline.eval_workers.pairs.harness.samples import PREFIX
from plumbline.pipelines.report.paper.every_eval_ever import (
    Measured,
    author,
    columns_of,
    result,
)
from plumbline.pipelines.report.rows import Row

#: Version of Inspect's log format.
VERSION = 2
_SCORER = "plumbline"
_FIGURES = (*SCORES[1:], "is_natural")


def log_files(measured: Measured) -> dict[str, bytes]:
    """The log of a model and benchmark, by its path, which follows Inspect's naming."""
    name, model = PREFIX + measured.benchmark, str(measured.model["model"])
    instances = list(measured.instances())
    samples = _samples(instances, model)
    when = datetime.fromtimestamp(int(measured.at), timezone.utc).isoformat()
    unique = hashlib.sha256(f"{name}/{measured.model['model_key']}".encode()).hexdigest()[:22]
    n = len(samples)
    log = {
        "version": VERSION,
        "status": "success",
        "eval": {
            **{"eval_id": unique, "run_id": unique, "task_id": unique},
            **{"created": when, "task": name, "task_version": 0},
            "dataset": _dataset(measured, [sample["id"] for sample in samples]),
            **{"model": model, "model_args": columns_of(measured.model), "config": {}},
            "packages": {"plumbline": plumbline.__version__},
            "metadata": {
                **{OURS: measured.benchmark, "checksum": checksum(samples)},
                **{"author": author(measured.when), "source_data": measured.source},
            },
        },
        "plan": {},  # no steps, but Inspect's `samples_df` can't read a header without a plan
        "results": {
            **{"total_samples": n, "completed_samples": n},
            "scores": [_score(row, name, measured.source) for row in measured.results],
        },
        "stats": {"started_at": when, "completed_at": when},
        "samples": samples,
    }
    path = f"logs/{when.replace(':', '-')}_{_dashed(name)}_{unique}.json"
    # ASCII, because some readers end a line at Unicode's line separators.
    return {path: f"{json.dumps(log, allow_nan=False, indent=1)}\n".encode()}


def _dashed(name: str) -> str:
    """A task's name as it appears in the file names of Inspect's logs.

    >>> _dashed("plumbline_use 5/é")
    'plumbline-use-5--'
    """
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in name)


def _dataset(measured: Measured, ids: list[str]) -> Row:
    name, n = measured.benchmark, len(ids)
    dataset = {"name": name, "samples": n, "sample_ids": ids, "shuffled": False}
    where = measured.source.get("hf_repo")
    return {**dataset, **({"location": where} if where else {})}


def _score(row: Row, name: str, source: Row) -> dict[str, Any]:
    """A row of ``metric_value`` as a score: figure, standard error, interval, and their methods."""
    record = result(row, name, source)
    config, details = record["metric_config"], record["score_details"]
    uncertainty, metric = details["uncertainty"], row["metric"]
    ends = uncertainty.get("confidence_interval", {})
    figures = {
        metric: details["score"],
        "stderr": uncertainty.get("standard_error", {}).get("value"),
        f"{metric}_low": ends.get("lower"),
        f"{metric}_high": ends.get("upper"),
    }
    return {
        "name": record["evaluation_result_id"],
        "scorer": _SCORER,
        "scored_samples": row["n"],
        "params": config["metric_parameters"],
        "metrics": {k: {"name": k, "value": v} for k, v in figures.items() if v is not None},
        "metadata": {
            **{k: v for k, v in config.items() if k != "metric_parameters"},
            **{"uncertainty": uncertainty, "details": details["details"]},
        },
    }


def _samples(instances: list[Row], model: str) -> list[Row]:
    """A sample for each pair, with a score for each result; the likelier sentence is the answer."""
    samples: dict[str, Row] = {}
    for instance in instances:
        (likelier,) = instance["output"]["raw"]
        message = {"role": "assistant", "content": likelier}
        sample = samples.setdefault(
            instance["sample_id"],
            {
                **{"id": instance["sample_id"], "epoch": 1, "input": instance["input"]["raw"]},
                **{"choices": instance["input"]["choices"], "target": ""},
                "output": {
                    "model": model,
                    "choices": [{"message": message, "stop_reason": "stop"}],
                },
                **{"scores": {}, "metadata": _figures(instance["metadata"])},
            },
        )
        if name := instance.get("evaluation_result_id"):
            sample["scores"][name] = {"value": instance["evaluation"]["score"], "answer": likelier}
    return list(samples.values())


def _figures(metadata: Row) -> Row:
    """An instance's metadata with the columns ``_FIGURES`` as numbers instead of text."""
    return {
        k: json.loads(v, parse_constant=str) if k in _FIGURES else v for k, v in metadata.items()
    }
