"""Writes a benchmark as a folder to share: pairs, a card, and a task of lm-evaluation-harness."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from plumbline.eval_workers.pairs.benchmarks import replace_facts
from plumbline.eval_workers.pairs.benchmarks.own.recipe import IN_PARQUET
from plumbline.eval_workers.pairs.harness.samples import PREFIX
from plumbline.eval_workers.pairs.sharing.card import DATA, card
from plumbline.eval_workers.pairs.sharing.shared_pairs import Constraint, shared_pairs
from plumbline.warehouse.errors import disk_problems
from plumbline.warehouse.storage.store import Store

#: Module with the functions of a task of lm-evaluation-harness.
_TASK_MODULE = "plumbline_pairs"
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9.-]+")


@dataclass(frozen=True)
class Exported:
    """A written folder: the name for the harness' ``--tasks``, the tasks' names, the files.

    ``n_left_out`` pairs are unnatural or beyond the constraint.
    """

    name: str
    tasks: tuple[str, ...]
    n_pairs: int
    n_left_out: int
    constraint: Constraint | None
    paths: tuple[Path, ...]

    def run_line(self) -> str:
        """Command that runs the tasks."""
        where = shlex.quote(str(self.paths[0].parent))
        model = "--model hf --model_args pretrained=ID_OR_PATH,dtype=float32"
        options = f"--include_path {where} --tasks {self.name} --log_samples --output_path logs"
        return f"lm_eval run {model} {options}"


def export(
    store: Store,
    benchmark: str,
    out: Path,
    licence: str | None = None,
    made: Mapping[str, object] | None = None,
    constraint: Constraint | None = None,
) -> Exported:
    """Write `README.md`, `data.parquet` and a harness task for every two groups into a folder.

    The pairs are those that metrics use, sorted by identifier: no unnatural pairs, and none beyond
    the constraint. `data.parquet` also holds the facts of the card, and `benchmark import` of that
    file reads them. Tasks of an earlier export are deleted.
    lm-evaluation-harness scores each whole sentence after BOS, so its log-likelihoods are equal to
    those of ``plumbline score``.

    Args:
        licence: its identifier; by default the known licence, or else `unknown`.
        made: facts about how the pairs were made, stored for later cards; by default those stored.
        constraint: by default the one that the benchmark was built with, if any.

    Raises ``UsageProblem`` if the warehouse has no such benchmark, or no MaxPMI of it,
    ``NothingKept`` if no pair is within the constraint, ``BadInput`` for an unusable directory.
    """
    shared = shared_pairs(store, benchmark, constraint)
    if made is not None:
        facts = {fact: str(value) for fact, value in made.items() if value is not None}
        with disk_problems(store.root):
            replace_facts(store, benchmark, facts, shared.run_id)
    text, known = card(store, shared, licence)
    name = PREFIX + _NOT_IN_NAMES.sub("_", benchmark)
    parts = shared.by_groups()
    tasks = {f"{name}_{k}_{_NOT_IN_NAMES.sub('_', g)}": g for k, g in enumerate(parts, 1)}
    if len(parts) == 1:
        tasks = {name: next(iter(parts))}
    module = resources.files("plumbline.eval_workers.pairs.harness") / f"{_TASK_MODULE}.py"
    texts = {"README.md": text, f"{_TASK_MODULE}.py": module.read_text("utf-8")}
    for task, groups in tasks.items():
        tag = None if task == name else name
        metadata = {"version": 1.0, "benchmark": benchmark, "groups": groups}
        texts[f"{task}.yaml"] = _yaml(task, tag, parts[groups], metadata)
    in_parquet = {IN_PARQUET: json.dumps(known, ensure_ascii=False).encode()}
    data = shared.data.replace_schema_metadata(in_parquet)
    with disk_problems(out):
        out.mkdir(parents=True, exist_ok=True)
        for old in out.glob(f"{PREFIX}*.yaml"):
            if _DATASET in old.read_text("utf-8", errors="replace"):
                old.unlink()
        pq.write_table(data, out / DATA, compression="zstd")
        for file, text in texts.items():
            (out / file).write_text(text, encoding="utf-8", newline="\n")
    counts = data.num_rows, shared.n_unnatural + shared.n_beyond
    paths = tuple(out / file for file in ("README.md", DATA, *list(texts)[1:]))
    return Exported(name, tuple(tasks), *counts, shared.constraint, paths)


_DATASET = f"custom_dataset: !function {_TASK_MODULE}.dataset"


def _yaml(task: str, tag: str | None, pairs: pa.Table, metadata: dict[str, object]) -> str:
    """Text of a task's configuration; strings are quoted as in JSON, which YAML can read."""
    lines = [
        f"task: {json.dumps(task)}",
        *([f"tag: {json.dumps(tag)}"] if tag else []),
        _DATASET,
        f"dataset_kwargs: {json.dumps({'file': DATA, 'groups': metadata['groups']})}",
        "test_split: test",
        "output_type: multiple_choice",
        "num_fewshot: 0",
        'doc_to_text: ""',
        "doc_to_target: 0",
        f"doc_to_choice: !function {_TASK_MODULE}.choices",
        'target_delimiter: ""',
        f"process_results: !function {_TASK_MODULE}.process_results",
        "metric_list:",
    ]
    has_direction = "direction" in pairs.schema.names and pairs["direction"].null_count < len(pairs)
    for metric in ("us", "pd", *(["stereotype"] if has_direction else [])):
        better = json.dumps(metric == "us")
        lines.append(f"  - {{metric: {metric}, aggregation: mean, higher_is_better: {better}}}")
    return "\n".join([*lines, f"metadata: {json.dumps(metadata, ensure_ascii=False)}"]) + "\n"
