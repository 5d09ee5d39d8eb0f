"""Reads log-likelihoods from sample logs of lm-evaluation-harness into ``pair_score``."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plumbline.eval_workers.models.model_texts import described
from plumbline.eval_workers.models.scoring_contract import LOG_LIKELIHOOD
from plumbline.eval_workers.pairs.benchmarks.own.file_rows import SourceRow, value_at
from plumbline.eval_workers.pairs.harness.documents import at, json_document
from plumbline.eval_workers.pairs.harness.logged_pairs import PairLog, import_pairs
from plumbline.eval_workers.pairs.released.gather import finite
from plumbline.eval_workers.pairs.released.score_import import ImportedScores
from plumbline.eval_workers.scoring.pair_scores import text_id
from plumbline.eval_workers.work.step import Row
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.storage.store import Store

#: Start of the names of all our tasks; logs of other tasks are not read.
PREFIX = "plumbline_"
_SAMPLES = re.compile(rf"samples_(?P<task>{PREFIX}.+)_(?P<date>[^_]+)\.jsonl")


def import_samples(store: Store, directory: Path, run_id: str) -> list[ImportedScores]:
    """Read every ``samples_plumbline_*.jsonl`` under a directory, replacing earlier imports.

    The ``results_*.json`` beside a log names the model. The row of ``model`` has the backend
    `lm-eval`; its key is a hash of name, revision, dtype, model arguments and versions. Writes
    ``model``, ``pair_score`` (without ``n_tokens``, which logs lack) and ``reject`` (`import`).

    Raises ``BadInput`` without any log, for a log without its results, if two logs hold the same
    task of the same model, or if a benchmark is not in the warehouse. Raises ``UsageProblem`` if
    the directory doesn't exist.
    """
    return import_pairs(store, _logs(directory), run_id, _score, sentence="doc.sentence_a")


def _logs(directory: Path) -> list[PairLog]:
    kind = f"sample logs samples_{PREFIX}*.jsonl"
    if not directory.is_dir():
        raise UsageProblem(f"{directory}", "is not a directory", f"give one that holds {kind}")
    logs: dict[tuple[str, str], PairLog] = {}
    for path in sorted(directory.rglob(f"samples_{PREFIX}*.jsonl")):
        if match := _SAMPLES.fullmatch(path.name):
            task = match["task"]
            benchmark, model_row = _results(path.with_name(f"results_{match['date']}.json"), task)
            key = task, model_row["model_key"]
            if key in logs:
                problem = f"both hold {task} of {model_row['model']}"
                raise BadInput(f"{logs[key].path} and {path}", problem, "keep one")
            name = path.relative_to(directory).as_posix()
            logs[key] = PairLog(path, name, benchmark, model_row)
    if not logs:
        fix = "run an exported task with --log_samples"
        raise BadInput(f"{directory}", f"holds no {kind}", fix)
    return list(logs.values())


def _results(path: Path, task: str) -> tuple[str, Row]:
    """Benchmark of a task, and ``model`` row of a run, from the run's results file."""
    fix = "the harness writes it beside its sample logs, keep both"
    results = json_document(path, fix)
    benchmark = at(results, "configs", task, "metadata", "benchmark")
    model = at(results, "model_name")
    for what, value in ((f"benchmark of {task}", benchmark), ("model", model)):
        if not (isinstance(value, str) and value):
            raise BadInput(f"{path}", f"doesn't name the {what}", fix)
    return benchmark, _identity(model, results)


def _identity(model: str, results: Mapping[str, Any]) -> Row:
    """The ``model`` row of a run; a local model is named by its directory's name, not the path."""
    config = at(results, "config")
    versions = [("lm_eval", "lm_eval_version"), ("transformers", "transformers_version")]
    version = ", ".join(f"{name} {at(results, key)}" for name, key in versions)
    columns = {
        "revision": at(config, "model_sha") or at(config, "model_revision"),
        "dtype": str(at(config, "model_dtype") or "").removeprefix("torch.") or None,
    }
    name = Path(model).name if Path(model).is_absolute() or model[0] == "." else model
    names = {"model": name, "backend": "lm-eval", "backend_version": version}
    hashed = json.dumps(
        {**names, **columns, "model_args": at(config, "model_args")}, sort_keys=True
    )
    key = hashlib.sha256(hashed.encode()).hexdigest()[:16]
    what = {"text_form": "written", "measure": LOG_LIKELIHOOD, **described(name)}
    n_parameters = at(config, "model_num_parameters")
    n_parameters = n_parameters if isinstance(n_parameters, int) else None
    return {"model_key": key, **names, **what, **columns, "n_parameters": n_parameters}


def _score(row: SourceRow, pairs: Mapping[str, Row]) -> Row | str:
    """The columns of ``pair_score`` in a row, or the reason why the row can't be used."""
    pair_id = value_at(row.fields, "doc.pair_id")
    pair = pairs.get(pair_id) if isinstance(pair_id, str) else None
    if pair is None:
        return f"no pair of the benchmark has the pair_id {pair_id!r}"
    score: Row = {"pair_id": pair_id, "text_id": text_id(pair)}
    for k, side in enumerate("ab"):
        argument = f"arguments.gen_args_{k}.arg_"
        if value_at(row.fields, f"{argument}1") != pair[f"sentence_{side}"]:
            return f"sentence {side} is not that of the pair, export the task again"
        if value_at(row.fields, f"{argument}0") != "":
            return f"sentence {side} was scored after a context, expected none"
        text = value_at(row.fields, f"resps.{k}.0.0")
        value = finite(str(text))
        if value is None or value > 0:
            return f"resps of sentence {side} hold {text!r}, expected a finite number, 0 or less"
        score[f"logprob_{side}_nats"] = value
    return score
