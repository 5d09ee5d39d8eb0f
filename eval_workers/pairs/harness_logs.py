"""Imports log-likelihoods from sample logs of lm-evaluation-harness into ``pair_score``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from plumbline.eval_workers.models.model_texts import described
from plumbline.eval_workers.models.scoring_contract import LOG_LIKELIHOOD, short_hash
from plumbline.eval_workers.pairs.file_rows import rows_of_file, value_at
from plumbline.eval_workers.pairs.released_scores import ImportedScores, logprob
from plumbline.eval_workers.scoring.pair_scores import check_imported, text_id
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.input.input_rows import Record, rejected
from plumbline.warehouse.paths import json_object
from plumbline.warehouse.steps.step import Row
from plumbline.warehouse.storage.store import Store

#: All our task names start with this; logs of other tasks are not read.
PREFIX = "plumbline_"
_LOGPROBS = ("logprob_a_nats", "logprob_b_nats")
_SAMPLES = re.compile(rf"samples_(?P<task>{PREFIX}.+)_(?P<date>[^_]+)\.jsonl")


@dataclass(frozen=True)
class _Log:
    """A log of one task's samples. ``identity`` is the row of the model for table ``model``."""

    path: Path
    benchmark: str
    identity: Mapping[str, Any]


def import_samples(store: Store, directory: Path, run_id: str) -> list[ImportedScores]:
    """Read every ``samples_plumbline_*.jsonl`` under a directory, replacing earlier imports.

    The ``results_*.json`` next to a log names the model. Writes a row of table ``model`` with the
    backend `lm-eval`. The row's key is a hash of the model's name, revision, dtype and arguments,
    and of the versions of lm-eval and transformers. Also writes ``reject`` (stage `import`) and
    ``pair_score``. Logs have no token counts, so the columns for them stay empty.

    Raises ``BadInput`` if there are no logs, if a log's results file is missing, or if two logs
    are of the same task and model. Also raises what ``check_imported`` raises.
    """
    logs = sorted(_logs(directory), key=_benchmark_and_model)
    check_imported(store, [log.benchmark for log in logs])
    groups = groupby(logs, _benchmark_and_model)
    return [_import(store, list(group), directory, run_id) for _, group in groups]


def _benchmark_and_model(log: _Log) -> tuple[str, str]:
    return log.benchmark, str(log.identity["model_key"])


def _logs(directory: Path) -> list[_Log]:
    logs: dict[tuple[str, str], _Log] = {}
    for path in sorted(directory.rglob(f"samples_{PREFIX}*.jsonl")):
        if match := _SAMPLES.fullmatch(path.name):
            task = match["task"]
            benchmark, model_row = _results(path.with_name(f"results_{match['date']}.json"), task)
            key = task, model_row["model_key"]
            if key in logs:
                problem = f"both hold {task} of {model_row['model']}"
                raise BadInput(f"{logs[key].path} and {path}", problem, "keep one")
            logs[key] = _Log(path, benchmark, model_row)
    if not logs:
        fix = "run an exported task with --log_samples"
        raise BadInput(f"{directory}", f"holds no sample logs samples_{PREFIX}*.jsonl", fix)
    return list(logs.values())


def _results(path: Path, task: str) -> tuple[str, Row]:
    """Read the harness's results file; return a task's benchmark and a row for table ``model``."""
    fix = "the harness writes it next to its sample logs, keep both"
    try:
        results = json_object(path)
    except (OSError, ValueError) as e:
        raise BadInput(f"{path}", f"can't be read as JSON: {e}", fix) from e
    for name in ("config", "configs"):
        if not isinstance(results.get(name) or {}, dict):
            raise BadInput(f"{path}", f"{name} is not a JSON object", fix)
    of_task = {"config": (results.get("configs") or {}).get(task)}
    benchmark, model = value_at(of_task, "config.metadata.benchmark"), results.get("model_name")
    for what, value in ((f"benchmark of {task}", benchmark), ("model", model)):
        if not (isinstance(value, str) and value):
            raise BadInput(f"{path}", f"doesn't name the {what}", fix)
    return str(benchmark), _identity(str(model), results)


def _identity(model: str, results: Mapping[str, Any]) -> Row:
    """Return a row of ``model``. A local model gets the name of its folder, not the whole path."""
    versions = [("lm_eval", "lm_eval_version"), ("transformers", "transformers_version")]
    version = ", ".join(f"{name} {results.get(key)}" for name, key in versions)
    config = results.get("config") or {}
    columns = {
        "revision": config.get("model_sha") or config.get("model_revision"),
        "dtype": str(config.get("model_dtype") or "").removeprefix("torch.") or None,
    }
    name = Path(model).name if Path(model).is_absolute() or model[0] == "." else model
    names = {"model": name, "backend": "lm-eval", "backend_version": version}
    key = short_hash({**names, **columns, "model_args": config.get("model_args")})
    what = {"text_form": "written", "measure": LOG_LIKELIHOOD, **described(name)}
    n = config.get("model_num_parameters")
    n_parameters = n if isinstance(n, int) else None
    return {"model_key": key, **names, **what, **columns, "n_parameters": n_parameters}


def _import(store: Store, logs: Sequence[_Log], directory: Path, run_id: str) -> ImportedScores:
    """Import one model's logs for one benchmark. If a pair has several rows, reject them all."""
    benchmark, model_row = logs[0].benchmark, logs[0].identity
    model, key = model_row["model"], model_row["model_key"]
    pairs = {p["pair_id"]: p for p in store.read("benchmark_pair", benchmark=benchmark).to_pylist()}
    names = tuple(log.path.relative_to(directory).as_posix() for log in logs)
    lines = [
        (name, row, row.problem or _score(row, pairs))
        for log, name in zip(logs, names, strict=True)
        for row in rows_of_file(log.path)
    ]
    usable = (row for _, row, found in lines if not isinstance(found, str))
    n_rows = Counter(row.fields["doc"]["pair_id"] for row in usable)
    scores: list[Row] = []
    rejects: list[Row] = []
    for name, row, found in lines:
        pair_id = value_at(row.fields, "doc.pair_id")
        if not isinstance(found, str) and n_rows[pair_id] > 1:
            found = f"the pair {pair_id} was scored in {n_rows[pair_id]} rows, expected one"
        if isinstance(found, str):
            source = {"source_file": name, "source_row": row.number}
            text = str(value_at(row.fields, "doc.sentence_a"))
            rejects.append(rejected(source, found, text))
        else:
            ratio = dict(zip(_LOGPROBS, found, strict=True))
            of_pair = {"pair_id": pair_id, "text_id": text_id(pairs[pair_id])}
            scores.append({"model": model, **of_pair, **ratio})
    with store.transaction(run_id, f"scores of {model}/{benchmark}"):
        store.publish("model", [model_row], unit=key, run_id=run_id)
        store.replace("pair_score", scores, {"benchmark": benchmark, "model_key": key}, run_id)
        stage = {"stage": "import", "subject": f"{key}/{benchmark}"}
        store.replace("reject", rejects, stage, run_id)
    natural = {pair_id for pair_id, pair in pairs.items() if pair["is_natural"] is not False}
    scored = {row["pair_id"] for row in scores}
    counts = len(natural | scored), len(scores), len(rejects), len(natural - scored)
    return ImportedScores(model, benchmark, *counts, names)


def _score(row: Record, pairs: Mapping[str, Row]) -> tuple[float, ...] | str:
    """Return both sentences' log-likelihoods in nats, or the reason why the row can't be used."""
    pair_id = value_at(row.fields, "doc.pair_id")
    pair = pairs.get(pair_id) if isinstance(pair_id, str) else None
    if pair is None:
        return f"no pair of the benchmark has the pair_id {pair_id!r}"
    logprobs = []
    for k, side in enumerate("ab"):
        argument = f"arguments.gen_args_{k}.arg_"
        if value_at(row.fields, f"{argument}1") != pair[f"sentence_{side}"]:
            return f"sentence {side} differs from the pair's; export the task again"
        if value_at(row.fields, f"{argument}0") != "":
            return f"sentence {side} was scored after a context, expected none"
        text = value_at(row.fields, f"resps.{k}.0.0")
        if (value := logprob(str(text))) is None:
            return f"resps of sentence {side} hold {text!r}, expected a finite number, 0 or less"
        logprobs.append(value)
    return tuple(logprobs)
