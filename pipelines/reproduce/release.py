"""A folder of the UnStereoEval release, and its import into a warehouse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store

if TYPE_CHECKING:
    from plumbline.eval_workers.pairs.released.released_results import ImportedScores

#: Benchmarks of the release and their tables under `data/datasets/raw`.
_TABLES = {
    "use-5": ("USE-5",),
    "use-10": ("USE-10",),
    "use-20": ("USE-20",),
    "winobias": ("coref__Winobias__templates.dev", "coref__Winobias__templates.test"),
    "winogender": ("coref__Winogender__templates",),
}


#: Called with the name of each step before it starts.
Announce = Callable[[str], None]


@dataclass(frozen=True)
class Release:
    """Paths of a release's parts, below its folder; None for a part that the folder lacks."""

    benchmarks: tuple[str, ...]
    statistics: Path | None
    raw: Path
    preprocessed: Path | None
    results: Path

    @staticmethod
    def at(data: Path) -> Release:
        """Find the parts. Raises ``BadInput`` without benchmarks or scores."""
        raw, results = data / "data" / "datasets" / "raw", data / "results"
        for part in (data, raw, results):
            if not part.is_dir():
                fix = "give --data the folder that holds `data` and `results` of the release"
                lacks = f"no directory {part.relative_to(data)}"
                raise BadInput(f"{data}", "no such directory" if part == data else lacks, fix)
        benchmarks = tuple(
            name
            for name, stems in _TABLES.items()
            if all(list(raw.glob(f"{stem}.csv*")) for stem in stems)
        )
        if not benchmarks:
            expected = f"expected {', '.join(stem for stems in _TABLES.values() for stem in stems)}"
            raise BadInput(f"{raw}", f"holds no table of a benchmark, {expected}")
        names = ("pmi_file_w_counts.csv.gz", "pmi_file_w_counts.csv")
        statistics = next(filter(Path.is_file, (data / "data" / name for name in names)), None)
        preprocessed = data / "data" / "datasets" / "preprocessed"
        sets = preprocessed if preprocessed.is_dir() else None
        return Release(benchmarks, statistics, raw, sets, results)


def import_release(
    store: Store, release: Release, corpus: str, run_id: str, announce: Announce
) -> tuple[list[ImportedScores], tuple[int, int] | None]:
    """Import a release in place of earlier imports under the same names.

    If the release has word statistics, MaxPMI are computed from them with Plumbline's tokeniser;
    else the released MaxPMI are used. Returns the scores, and the number of released MaxPMI that
    our tokeniser reproduces with that of all: None without released MaxPMI or word statistics.

    Raises ``BadInput`` if a part of the release is missing, damaged or invalid.
    """
    from plumbline.eval_workers.pairs.benchmarks import import_benchmark
    from plumbline.eval_workers.pairs.released.released_results import import_scores

    for name in release.benchmarks:
        announce(f"importing {name}")
        import_benchmark(store, name, release.raw, run_id)
    max_pmi = _import_leans(store, release, corpus, run_id, announce)
    announce("importing the scores")
    return import_scores(store, release.results, run_id), max_pmi


def _import_leans(
    store: Store, release: Release, corpus: str, run_id: str, announce: Announce
) -> tuple[int, int] | None:
    from plumbline.eval_workers.pairs.released.released_results import import_max_pmi
    from plumbline.jobs.association.max_pmi import constrain
    from plumbline.jobs.ingest.released_statistics import import_statistics

    if release.statistics is None and release.preprocessed is None:
        fix = "put pmi_file_w_counts.csv into `data`, or the preprocessed sets"
        raise BadInput(f"{release.raw.parent.parent}", "holds no word statistics", fix)
    released: dict[tuple[str, str], float | None] = {}
    if release.preprocessed is not None:
        announce("importing the released MaxPMI")
        import_max_pmi(store, release.preprocessed, corpus, run_id)
        released = _max_pmi(store, corpus)
    if release.statistics is None:
        return None
    announce("importing the word statistics")
    import_statistics(store, corpus, release.statistics, run_id)
    for name in release.benchmarks:
        announce(f"MaxPMI of {name}")
        constrain(store, corpus, name, least_count=0)
    if not released:
        return None
    ours = _max_pmi(store, corpus)
    return sum(_same(value, ours.get(key)) for key, value in released.items()), len(released)


def _max_pmi(store: Store, corpus: str) -> dict[tuple[str, str], float | None]:
    """MaxPMI by benchmark and pair, without pairs that their source calls unnatural."""
    text = """
        SELECT benchmark, pair_id, max_pmi_nats
        FROM pair_association JOIN benchmark_pair USING (benchmark, pair_id)
        WHERE corpus = $corpus AND contrast = 'she/he' AND is_natural IS NOT FALSE
    """
    rows = rows_of(store.root, text, {"corpus": corpus})
    return {(row["benchmark"], row["pair_id"]): row["max_pmi_nats"] for row in rows}


def _same(a: float | None, b: float | None) -> bool:
    """Equal to 2e-6: counts above a million come back from six decimals only so exactly."""
    return a is b if a is None or b is None else abs(a - b) <= 2e-6
