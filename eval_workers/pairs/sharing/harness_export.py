"""Exports a benchmark of the warehouse as tasks of lm-evaluation-harness."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import pyarrow as pa

from plumbline.eval_workers.pairs.harness.samples import PREFIX
from plumbline.eval_workers.pairs.sharing.benchmark_card import (
    Constraint,
    by_groups,
    json_lines,
    shared_pairs,
)
from plumbline.warehouse.errors import disk_problems
from plumbline.warehouse.storage.store import Store

#: Module with the functions of a task of lm-evaluation-harness.
_TASK_MODULE = "plumbline_pairs"
#: Pattern of the suffixes of a task's files.
_SUFFIXES = r"(yaml|jsonl)"
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9.-]+")


@dataclass(frozen=True)
class ExportedTasks:
    """Written tasks: the name for ``--tasks``, the tasks' names, the number of pairs, the files.

    ``n_left_out`` pairs are unnatural or beyond the constraint; ``limit`` describes the constraint.
    """

    name: str
    tasks: tuple[str, ...]
    n_pairs: int
    n_left_out: int
    limit: str
    paths: tuple[Path, ...]

    def run_line(self) -> str:
        """Command that runs the tasks."""
        where = shlex.quote(str(self.paths[0].parent))
        model = "--model hf --model_args pretrained=ID_OR_PATH,dtype=float32"
        options = f"--include_path {where} --tasks {self.name} --log_samples --output_path logs"
        return f"lm_eval run {model} {options}"


def write_task(
    store: Store, benchmark: str, out: Path, constraint: Constraint | None = None
) -> ExportedTasks:
    """Write the pairs of ``shared_pairs`` as one task for every two groups that they compare.

    Files of earlier exports of the benchmark are deleted. Raises as ``write_card``.

    lm-evaluation-harness scores each whole sentence after BOS, so its log-likelihoods are equal to
    those of ``plumbline score``.
    """
    shared = shared_pairs(store, benchmark, constraint)
    name = PREFIX + _NOT_IN_NAMES.sub("_", benchmark)
    parts = by_groups(shared.data)
    tasks = {f"{name}_{k}_{_NOT_IN_NAMES.sub('_', g)}": g for k, g in enumerate(parts, 1)}
    if len(parts) == 1:
        tasks = {name: next(iter(parts))}
    texts = {f"{_TASK_MODULE}.py": _source()}
    for task, groups in tasks.items():
        tag = None if task == name else name
        metadata = {"version": 1.0, "benchmark": benchmark, "groups": groups}
        texts[f"{task}.yaml"] = _yaml(task, tag, parts[groups], metadata)
        texts[f"{task}.jsonl"] = json_lines(parts[groups])
    with disk_problems(out):
        out.mkdir(parents=True, exist_ok=True)
        for old in _tasks_in(out, name, benchmark):
            if old.name not in texts:
                old.unlink()
        for file, text in texts.items():
            (out / file).write_text(text, encoding="utf-8", newline="\n")
    counts = shared.data.num_rows, shared.n_unnatural + shared.n_beyond
    limit = str(shared.constraint or "")
    return ExportedTasks(name, tuple(tasks), *counts, limit, tuple(out / file for file in texts))


def _tasks_in(directory: Path, name: str, benchmark: str) -> list[Path]:
    """Files of earlier exports of a benchmark's tasks, which start with ``name``."""
    is_task = re.compile(rf"{re.escape(name)}(_[0-9]+_[A-Za-z0-9._-]+)?\.{_SUFFIXES}").fullmatch
    entry = f'"benchmark": {json.dumps(benchmark, ensure_ascii=False)},'

    def is_ours(path: Path) -> bool:
        config = path.with_name(f"{path.name.removesuffix(path.suffix)}.yaml")
        return not config.is_file() or entry in config.read_text("utf-8", errors="replace")

    return [path for path in directory.iterdir() if is_task(path.name) and is_ours(path)]


def _source() -> str:
    package = "plumbline.eval_workers.pairs.harness"
    return (files(package) / f"{_TASK_MODULE}.py").read_text("utf-8")


def _yaml(task: str, tag: str | None, pairs: pa.Table, metadata: dict[str, object]) -> str:
    """Text of a task's configuration; strings are quoted as in JSON, which YAML can read."""
    lines = [
        f"task: {json.dumps(task)}",
        *([f"tag: {json.dumps(tag)}"] if tag else []),
        f"custom_dataset: !function {_TASK_MODULE}.dataset",
        f"dataset_kwargs: {{file: {json.dumps(f'{task}.jsonl')}}}",
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
