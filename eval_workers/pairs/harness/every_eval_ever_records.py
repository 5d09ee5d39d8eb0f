"""Reads records of Every Eval Ever that Plumbline wrote back into ``pair_score``, without loss."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from plumbline.eval_workers.pairs.benchmarks.own.file_rows import SourceRow, value_at
from plumbline.eval_workers.pairs.harness.documents import at, json_document, logs_below
from plumbline.eval_workers.pairs.harness.logged_pairs import Layout, PairLog, import_pairs
from plumbline.eval_workers.pairs.released.gather import finite
from plumbline.eval_workers.pairs.released.score_import import ImportedScores
from plumbline.eval_workers.work.step import Row
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.store import Store

#: The record NAME.json has its instances, one per pair, in NAME_samples.jsonl.
SAMPLES = "_samples.jsonl"
#: Columns of ``pair_score`` that an instance's metadata holds as texts.
SCORES = ("text_id", "logprob_a_nats", "logprob_b_nats", "n_tokens_a", "n_tokens_b")
_REQUIRED = SCORES[:3]


def import_records(store: Store, directory: Path, run_id: str) -> list[ImportedScores]:
    """Read the records of every model and benchmark under a directory.

    Scores keep the model key of the warehouse that wrote the record. Raises as ``import_pairs``,
    and ``BadInput`` without any record that Plumbline wrote, for missing or changed instances, and
    if this warehouse itself computed scores of the same key and benchmark.
    """
    logs = [
        log
        for path in logs_below(directory, ("*.json",))
        if (log := _log(path, path.relative_to(directory).as_posix()))
    ]
    if not logs:
        problem = "holds no record of Every Eval Ever that Plumbline wrote"
        raise BadInput(f"{directory}", problem, "write one with `plumbline report export`")
    return import_own(store, logs, run_id)


def import_own(store: Store, logs: Sequence[PairLog], run_id: str) -> list[ImportedScores]:
    """Import logs that Plumbline wrote. Raises as ``import_records``."""
    for log in logs:
        _refuse_own(store, log)
    return import_pairs(store, logs, run_id, Layout(_score, "input.choices.0", repeats=True))


def _log(path: Path, name: str) -> PairLog | None:
    """The log of a record; ``None`` for JSON that isn't a record of pairs by Plumbline."""
    record = json_document(path)
    benchmark = at(record, "evaluation_results", 0, "source_data", "dataset_name")
    model, details = (at(record, "model_info", key) for key in ("id", "additional_details"))
    key = at(details, "model_key")
    if at(record, "eval_library", "name") != "plumbline" or not all(
        isinstance(text, str) and text for text in (benchmark, model, key)
    ):
        return None
    samples = path.with_name(path.stem + SAMPLES)
    if not samples.is_file():
        raise BadInput(f"{path}", f"lacks {samples.name}, its pairs", "put it beside the record")
    samples_hash = hashlib.sha256(samples.read_bytes()).hexdigest()
    if at(record, "detailed_evaluation_results", "checksum") != samples_hash:
        raise BadInput(f"{samples}", f"is not the file that {path.name} names", "get both again")
    return PairLog(samples, name, benchmark, {**model_row(details), "model": model})


def model_row(details: Mapping[str, Any]) -> Row:
    """A row of ``model`` from a record's details, all of them texts, or from a log of Inspect."""
    row: Row = {}
    for column in TABLES["model"].columns:
        value = details.get(column.name)
        if isinstance(value, str | int) and column.name != "run_id":
            row[column.name] = _whole(str(value)) if column.kind == "int" else str(value)
    return row


def _refuse_own(store: Store, log: PairLog) -> None:
    """Raise ``BadInput`` if this warehouse computed scores of the log's model and benchmark."""
    key = log.identity["model_key"]
    scores = store.read("pair_score", benchmark=log.benchmark, model_key=key)
    commands = {row["run_id"]: row["command"] for row in store.read("run").to_pylist()}
    writers = {commands.get(run_id) for run_id in scores["run_id"].to_pylist()}
    if any(command and "import" not in command for command in writers):
        problem = f"{log.identity['model']} was scored on {log.benchmark} in this warehouse"
        raise BadInput(f"{log.path}", problem, "import into another one: --warehouse DIR")


def _score(row: SourceRow, pairs: Mapping[str, Row]) -> Row | str:
    """The columns of ``pair_score`` in an instance, or the reason why the row can't be used."""
    pair_id = value_at(row.fields, "sample_id")
    pair = pairs.get(pair_id) if isinstance(pair_id, str) else None
    if pair is None:
        return f"no pair of the benchmark has the sample_id {pair_id!r}"
    if value_at(row.fields, "input.choices") != [pair["sentence_a"], pair["sentence_b"]]:
        return "its sentences are not those of the pair"
    metadata = {name: value_at(row.fields, f"metadata.{name}") for name in SCORES}
    if not all(isinstance(metadata[name], str) for name in _REQUIRED):
        return f"its metadata lack {', '.join(_REQUIRED)}"
    score: Row = {"pair_id": pair_id, "text_id": metadata["text_id"]}
    for side in "ab":
        text = metadata[f"logprob_{side}_nats"]
        value = finite(text)
        if value is None or value > 0:
            return f"logprob_{side}_nats is {text!r}, expected a finite number, 0 or less"
        score[f"logprob_{side}_nats"] = value
        score[f"n_tokens_{side}"] = _whole(metadata[f"n_tokens_{side}"])
    return score


def _whole(text: object) -> int | None:
    """The number in a text of digits; ``None`` for anything else.

    >>> _whole("12"), _whole("many"), _whole(None)
    (12, None, None)
    """
    return int(text) if isinstance(text, str) and text.isascii() and text.isdigit() else None
