"""Run a command in this process, and print where its seconds and memory went: ``python -m``.

A stage is a function of the command's modules; its time is its own, without that of stages inside
it. ``rest`` is whatever is in none: starting, reading options, recording the run.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from pathlib import Path
from types import GeneratorType
from typing import Any

from plumbline.pipelines.command.main import main

_STATISTICS = "plumbline.eval_workers.scoring.statistics.metrics_by_sql"
_WRITE = "plumbline.pipelines.report.write"
_FACTS = "plumbline.pipelines.report.facts"
#: Command -> name of a stage -> its functions, where they are looked up.
STAGES = {
    "measure": {
        "queries of metrics": [f"{_STATISTICS}:query"],
        "metrics without their queries": [f"{_STATISTICS}:compute"],
        "scores with their errors": [f"{_STATISTICS}:scored"],
        "ranks of models": [f"{_STATISTICS}:model_ranks"],
        "power of benchmarks": [f"{_STATISTICS}:powers"],
        "controls": [f"{_STATISTICS}.controls:effects_of_all"],
        "publishing": [f"{_STATISTICS}:_replace"],
        "what is printed": [
            "plumbline.pipelines.commands.measure:query",
            "plumbline.pipelines.commands.measure:_lines",
            "plumbline.pipelines.commands.measure:measured",
        ],
    },
    "report": {
        "views": [f"{_FACTS}:connect"],
        "queries": [f"{_FACTS}.Facts:_once", f"{_FACTS}.Facts:points"],
        "sections": [f"{_WRITE}:make_page"],
        "first page": [f"{_WRITE}:front"],
        "search of words": [f"{_WRITE}:words"],
        "search of pairs": [f"{_WRITE}:pairs"],
        "pages of the searches": [f"{_WRITE}:search_page", f"{_WRITE}:block_files"],
        "pages": [f"{_WRITE}:render", f"{_WRITE}:render_front"],
        "plots and their data": [f"{_WRITE}:_files"],
        "writing": [f"{_WRITE}:_publish"],
    },
}


class _Watch:
    """Seconds, processor seconds and peaks of memory by stage."""

    def __init__(self) -> None:
        self.found: dict[str, list[float]] = {}
        self._stack = ["rest"]
        self._last = (time.perf_counter(), time.process_time())
        _reset_peak()

    def turn(self) -> None:
        """Add what passed since the last turn to the stage that is on."""
        now = (time.perf_counter(), time.process_time())
        wall, cpu = (b - a for a, b in zip(self._last, now, strict=True))
        had = self.found.get(self._stack[-1], [0, 0, 0])
        self.found[self._stack[-1]] = [had[0] + wall, had[1] + cpu, max(had[2], _peak_bytes())]
        self._last = now
        _reset_peak()

    def stage(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """The function, watched; what a generator yields is made at once."""

        @wraps(work)
        def watched(*given: Any, **named: Any) -> Any:
            self.turn()
            self._stack.append(name)
            try:
                made = work(*given, **named)
                return iter(list(made)) if isinstance(made, GeneratorType) else made
            finally:
                self.turn()
                self._stack.pop()

        return watched


def _reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _peak_bytes() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    return int(status.split("VmHWM:")[1].split()[0]) << 10


def run(words: list[str]) -> dict[str, list[float]]:
    """Run a command; seconds, processor seconds and peak bytes of each stage."""
    watch = _Watch()
    for name, functions in STAGES[words[0]].items():
        for place in functions:
            module, _, function = place.partition(":")
            owner = _owner(module)
            setattr(owner, function, watch.stage(name, getattr(owner, function)))
    status = main(words)
    watch.turn()
    if status:
        raise SystemExit(status)
    return watch.found


def _owner(name: str) -> Any:
    """A module, or a module or class in one."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        module, _, last = name.rpartition(".")
        return getattr(import_module(module), last)


if __name__ == "__main__":
    out, *words = sys.argv[1:]
    Path(out).write_text(json.dumps(run(words)), encoding="utf-8")
