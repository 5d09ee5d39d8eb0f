"""The released UnStereoEval files in a warehouse, for tests against the published tables."""

from __future__ import annotations

from pathlib import Path

from plumbline.eval_workers.pairs.benchmarks import import_benchmark
from plumbline.eval_workers.pairs.released.released_results import (
    ImportedScores,
    import_max_pmi,
    import_scores,
)
from plumbline.warehouse.storage.store import Store

BENCHMARKS = ("use-5", "use-10", "use-20", "winobias", "winogender")


def load(store: Store, data: Path, results: Path | None = None) -> list[ImportedScores]:
    """Import the five sets, their MaxPMI against the Pile, and scores (all released ones)."""
    release = data / "unstereo-eval"
    sets = release / "data" / "datasets"
    for name in BENCHMARKS:
        import_benchmark(store, name, sets / "raw", "published")
    import_max_pmi(store, sets / "preprocessed", "pile", "published")
    return import_scores(store, results or release / "results", "published")
