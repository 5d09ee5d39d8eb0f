"""Import a folder of the UnStereoEval release, measure it, compare it with printed figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from plumbline.eval_workers.scoring.statistics.measure_options import MeasureOptions
from plumbline.eval_workers.scoring.statistics.metrics_by_sql import measure
from plumbline.pipelines.reproduce.compare import (
    AGREE,
    CONTRADICTED,
    OFF,
    OUTCOMES,
    ComparedFigure,
    compare,
    starts,
)
from plumbline.pipelines.reproduce.printed_figures import DEDUPLICATION, SIZE, PrintedFigure
from plumbline.pipelines.reproduce.unstereoeval import claims
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store

if TYPE_CHECKING:
    from plumbline.eval_workers.pairs.released.score_import import ImportedScores

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


@dataclass(frozen=True)
class ReleaseResult:
    """Comparisons with the release.

    Attributes:
        compared: every printed figure beside ours. starts: the pronoun-first split.
        claims: numbers of the paper outside its tables, beside ours.
        sizes: rows of the view `size_trend`. deduplication: rows of `deduplication_mean`.
        models: hub ids that have scores.
        incomplete: a line for each set of scores with pairs missing or rows rejected.
        max_pmi: number of released MaxPMI that our tokeniser reproduces, and number of all; None
            without released MaxPMI or without word statistics.
    """

    compared: list[ComparedFigure]
    starts: list[dict[str, object]]
    claims: list[claims.CheckedClaim]
    sizes: list[dict[str, Any]]
    deduplication: list[dict[str, Any]]
    models: tuple[str, ...]
    incomplete: list[str]
    max_pmi: tuple[int, int] | None


def reproduce(
    store: Store,
    data: Path,
    figures: list[PrintedFigure],
    corpus: str,
    announce: Announce,
    run_id: str,
) -> ReleaseResult:
    """Import the release from ``data``, measure every model and compare with printed figures.

    If the release has word statistics, MaxPMI are computed from them with Plumbline's tokeniser;
    else the released MaxPMI are used. Earlier imports under the same names are replaced.

    Raises:
        BadInput: a part of the release is missing, damaged or invalid.
    """
    release = Release.at(data)
    imported, max_pmi = import_release(store, release, corpus, run_id, announce)
    announce("measuring")
    etas = sorted({f.eta_nats for f in figures if f.eta_nats is not None})
    options = MeasureOptions(eta=tuple(etas), log_base=tuple({f.log_base for f in figures}))
    table = measure(store, run_id, options)
    rows = _of_release(store, table, corpus, imported)
    models = tuple(sorted({x.model for x in imported}))
    changes = deduplication_rows(
        store, corpus, {f.eta_nats for f in figures if f.metric == DEDUPLICATION}, models
    )
    of_words = neighbours(store, release.statistics, corpus)
    return ReleaseResult(
        compare(sorted(figures, key=lambda f: f.table), [*rows, *changes]),
        starts(rows),
        claims.check(store, models, corpus, claims.packaged(), of_words),
        rows_of(store.root, _SIZES, {"corpus": corpus}),
        rows_of(store.root, _DEDUPLICATION, {"corpus": corpus}),
        models,
        _incomplete(imported),
        max_pmi,
    )


def neighbours(store: Store, statistics: Path | None, corpus: str) -> dict[str, pa.Table]:
    """The relations `near` and `tau` of the claims; empty without the release's file of PMI."""
    from plumbline.jobs.ingest.released_pmi import beside, read_pmi
    from plumbline.jobs.ingest.released_statistics import LIST
    from plumbline.pipelines.reproduce.word_lists import agreement_of

    pmi = beside(statistics) if statistics else None
    if pmi is None:
        return {}
    near = [{"word": r.word, "targets": [*r.pmi]} for r in read_pmi(pmi) if not r.reason]
    tau = [asdict(a) for a in agreement_of(store, corpus, LIST)]
    return {"near": pa.Table.from_pylist(near), "tau": pa.Table.from_pylist(tau)}


_OF_RELEASE = "scores = 'released' AND corpus IN ('', $corpus)"
_SIZES = f"FROM size_trend WHERE {_OF_RELEASE} ORDER BY ALL"
_DEDUPLICATION = f"FROM deduplication_mean() WHERE {_OF_RELEASE} ORDER BY ALL"


def deduplication_rows(
    store: Store, corpus: str, etas: set[float | None], models: Sequence[str]
) -> list[dict[str, Any]]:
    """Change of US from each of the models to its ``-deduped`` twin, as rows of ``metric_value``.

    One row for each of ``etas`` (None: all pairs); the interval is that of view `deduplication`.
    """
    text = f"FROM deduplication(eta_limit := $eta) WHERE {_OF_RELEASE} AND measure = 'us'"
    return [
        {
            **{name: row[name] for name in ("model", "benchmark", "subset", "n")},
            **{"metric": DEDUPLICATION, "eta_nats": eta, "options": "{}"},
            **{"value": row["difference"], "value_se": None},
            **{"value_low": row["difference_low"], "value_high": row["difference_high"]},
        }
        for eta in etas
        for row in rows_of(store.root, text, {"corpus": corpus, "eta": eta or 0.0})
        if (row["subset"] == "all") == (eta is None) and row["model"] in models
    ]


def import_release(
    store: Store, release: Release, corpus: str, run_id: str, announce: Announce
) -> tuple[list[ImportedScores], tuple[int, int] | None]:
    """Import a release; returns its scores, and ``max_pmi`` as in ``ReleaseResult``."""
    from plumbline.eval_workers.pairs.benchmarks import import_benchmark
    from plumbline.eval_workers.pairs.released.score_import import import_scores

    for name in release.benchmarks:
        announce(f"importing {name}")
        import_benchmark(store, name, release.raw, run_id)
    max_pmi = _import_leans(store, release, corpus, run_id, announce)
    announce("importing the scores")
    return import_scores(store, release.results, run_id), max_pmi


def _import_leans(
    store: Store, release: Release, corpus: str, run_id: str, announce: Announce
) -> tuple[int, int] | None:
    from plumbline.eval_workers.pairs.released.max_pmi_import import import_max_pmi
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


def _of_release(
    store: Store, table: pa.Table, corpus: str, imported: Sequence[ImportedScores]
) -> list[dict[str, Any]]:
    """Metrics of the scores that were imported now, without the warehouse's other scores."""
    released = store.read("model", pc.field("backend") == "released")
    keys = set(released["model_key"].to_pylist())
    sets = {(x.model, x.benchmark) for x in imported}
    return [
        row
        for row in table.to_pylist()
        if row["corpus"] in ("", corpus)
        and row["model_key"] in keys
        and (row["model"], row["benchmark"]) in sets
    ]


def _incomplete(imported: Sequence[ImportedScores]) -> list[str]:
    return [
        f"{x.model} on {x.benchmark}: {x.n_scored:,} of {x.n_pairs:,} pairs scored, "
        f"{x.n_rejected:,} rows rejected"
        for x in imported
        if x.n_missing or x.n_rejected
    ]


def summary(outcome: ReleaseResult) -> dict[str, Counter[str]]:
    """Number of figures of models, and of sizes of sets, by outcome."""
    compared = outcome.compared
    return {
        "figures of models": Counter(c.outcome for c in compared if c.figure.metric != SIZE),
        "sizes of sets": Counter(c.outcome for c in compared if c.figure.metric == SIZE),
    }


def as_rows(outcome: ReleaseResult) -> list[dict[str, object]]:
    """Comparisons as flat rows, for a CSV."""
    return [
        {
            **asdict(c.figure),
            "ours": c.ours,
            "ours_low": c.ci[0],
            "ours_high": c.ci[1],
            "difference": c.difference,
            "outcome": c.outcome,
            "note": c.note,
        }
        for c in outcome.compared
    ]


def shown_rows(outcome: ReleaseResult) -> Iterator[dict[str, object]]:
    """Printed rows: outcomes by table, figures that differ, and claims."""
    counts = Counter((c.figure.table, c.outcome) for c in outcome.compared)
    for number in sorted({c.figure.table for c in outcome.compared}):
        yield {"table": number, **{o: counts[number, o] for o in OUTCOMES}}
    yield from (row for row in as_rows(outcome) if row["outcome"] in (OFF, CONTRADICTED))
    yield from claims.table(outcome.claims)


def own_rows(outcome: ReleaseResult) -> list[dict[str, object]]:
    """Results that the paper doesn't have: the pronoun's place, model size, deduplication."""
    return [
        *outcome.starts,
        *({name: r[name] for name in _SIZE} for r in outcome.sizes if not r["family"]),
        *({name: r[name] for name in _CHANGE} for r in outcome.deduplication),
    ]


#: Columns of changes per tenfold number of parameters, and from a model to its -deduped twin.
_SIZE = (
    *("benchmark", "measure", "unit", "n_families", "n_models"),
    *("per_tenfold", "per_tenfold_low", "per_tenfold_high"),
)
_CHANGE = (
    *("benchmark", "subset", "measure", "unit", "n_models", "n_fell", "n_rose"),
    *("difference", "difference_low", "difference_high"),
)


def lines(outcome: ReleaseResult) -> Iterator[str]:
    """Summary: models, MaxPMI, incomplete sets, figures and claims by outcome."""
    yield f"{len(outcome.models)} models: {', '.join(outcome.models)}"
    if outcome.max_pmi:
        same, n = outcome.max_pmi
        yield f"MaxPMI from the word statistics equals the released one on {same:,} of {n:,} pairs"
    yield from (f"incomplete: {line}" for line in outcome.incomplete)
    for kind, counts in summary(outcome).items():
        yield f"{kind}: {', '.join(f'{counts[o]:,} {o}' for o in OUTCOMES)}"
    if outcome.claims:
        yield claims.summary(outcome.claims)
    else:
        yield "Claims need all 28 models and five sets: not run"
    agree = [abs(c.difference or 0.0) for c in outcome.compared if c.outcome == AGREE]
    yield f"largest difference among figures that agree: {max(agree, default=0.0):.4f}"
