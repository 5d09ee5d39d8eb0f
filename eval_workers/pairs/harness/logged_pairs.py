"""Reads log-likelihoods of pairs into ``pair_score`` from logs with a row per pair."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.eval_workers.pairs.benchmarks.own.file_rows import SourceRow, rows_of_file, value_at
from plumbline.eval_workers.pairs.released.released_files import grouped, require_benchmarks
from plumbline.eval_workers.pairs.released.score_import import ImportedScores
from plumbline.eval_workers.work.rejects import rejected
from plumbline.eval_workers.work.step import Row
from plumbline.warehouse.storage.store import Store


@dataclass(frozen=True)
class PairLog:
    """A log with a row per pair; ``identity`` is its row of ``model``.

    ``name`` is its path relative to the logs' directory.
    """

    path: Path
    name: str
    benchmark: str
    identity: Mapping[str, Any]


#: Returns the columns of ``pair_score`` from a row and the benchmark's pairs by id, or the reason
#: why the row can't be used.
ReadScore = Callable[[SourceRow, Mapping[str, Row]], Row | str]


def import_pairs(
    store: Store, logs: Sequence[PairLog], run_id: str, score_of: ReadScore, sentence: str
) -> list[ImportedScores]:
    """Write ``model``, ``pair_score`` and ``reject`` (stage `import`), replacing earlier imports.

    ``sentence`` is the path of sentence a in a row.

    Raises ``BadInput`` if a benchmark is not in the warehouse.
    """
    groups = grouped(logs, lambda log: (log.benchmark, log.identity["model_key"]))
    require_benchmarks(store, [name for name, _ in groups])
    return [
        _import(store, group, run_id, score_of, sentence) for _, group in sorted(groups.items())
    ]


def _import(
    store: Store, logs: Sequence[PairLog], run_id: str, score_of: ReadScore, sentence: str
) -> ImportedScores:
    """Import the logs of one benchmark and model."""
    benchmark, model_row = logs[0].benchmark, {**logs[0].identity, "run_id": run_id}
    model, key = str(model_row["model"]), str(model_row["model_key"])
    pairs = {p["pair_id"]: p for p in store.read("benchmark_pair", benchmark=benchmark).to_pylist()}
    common = {"model_key": key, "model": model, "benchmark": benchmark, "run_id": run_id}
    subject = f"{key}/{benchmark}"
    by_pair: dict[str, list[tuple[PairLog, SourceRow, Row]]] = {}
    unused: list[tuple[PairLog, SourceRow, str]] = []
    for log in logs:
        for row in rows_of_file(log.path):
            score = row.problem or score_of(row, pairs)
            if isinstance(score, str):
                unused.append((log, row, score))
            else:
                by_pair.setdefault(score["pair_id"], []).append((log, row, score))
    scores: list[Row] = []
    for pair_id, rows in by_pair.items():
        first = rows[0][2]
        if all(score == first for _, _, score in rows):
            scores.append({**common, **first})
            n_used = 1
            reason = f"pair {pair_id} has {len(rows)} rows, of which the first is used"
        else:
            n_used, reason = 0, f"pair {pair_id} has {len(rows)} rows with different figures"
        unused += [(log, row, reason) for log, row, _ in rows[n_used:]]
    reject = {"stage": "import", "subject": subject, "run_id": run_id}
    rejects = [reject | _rejected(*entry, sentence) for entry in unused]
    with store.together(run_id, f"scores of {model}/{benchmark}"):
        store.publish("model", [model_row], unit=key, run_id=run_id)
        where = {"benchmark": benchmark, "model_key": key}
        store.replace("pair_score", scores, where, run_id)
        store.replace("reject", rejects, {"stage": "import", "subject": subject}, run_id)
    names = tuple(log.name for log in logs)
    natural = {pair_id for pair_id, pair in pairs.items() if pair["is_natural"] is not False}
    scored = {row["pair_id"] for row in scores}
    n_pairs, n_missing = len(natural | scored), len(natural - scored)
    return ImportedScores(model, benchmark, n_pairs, len(scored), len(rejects), n_missing, names)


def _rejected(log: PairLog, row: SourceRow, reason: str, sentence: str) -> Row:
    text = value_at(row.fields, sentence)
    source = {"source_file": log.name, "source_row": row.number}
    return rejected(source, reason, text if isinstance(text, str) else "")
